"""PySpark's daemon with everything that workers import and load, for the session of the tests.

    python -m spark.preloaded pyspark.worker     as `spark.python.daemon.module` starts it

A worker is a fork of the daemon, and PySpark's own imports pandas, Numba, the package and its kernels
anew in each: 1.2 s of CPU.  The drivers that tests start as processes of their own use PySpark's.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = str(Path(__file__).parents[1])
sys.path[:] = [path for path in sys.path if path != TESTS]  # workers see the package alone

import pandas  # noqa: E402, F401
import pyarrow as pa  # noqa: E402
import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import matchwood as mw  # noqa: E402
import matchwood.spark.worker  # noqa: E402, F401


def load_kernels() -> None:
    """Match conjunctions and trees once, as workers do."""
    matcher = mw.Matcher()
    matcher.add_many([(1, "a = 1 AND b < 2"), (2, "a = 2 OR s = 'x'")])
    matcher.match_many(pa.table({"a": [1, 2], "b": [1, None], "s": ["x", "y"]}))


if __name__ == "__main__":
    load_kernels()
    manager()
