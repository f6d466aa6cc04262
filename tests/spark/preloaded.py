"""PySpark's daemon with everything that workers import and load, for the session of the tests.

    python -m spark.preloaded pyspark.worker     as `spark.python.daemon.module` starts it

A worker is a fork of the daemon, and PySpark's own loads pandas, Numba, the package and its kernels
in each: 1.2 s of CPU.  The drivers that tests start as processes of their own use PySpark's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd  # noqa: F401
import pyarrow as pa
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import matchwood as mw
from matchwood.spark import worker  # noqa: F401


def load_kernels() -> None:
    """Match conjunctions and trees once, as workers do."""
    matcher = mw.Matcher()
    matcher.add_many([(1, "a = 1 AND b < 2"), (2, "a = 2 OR s = 'x'")])
    matcher.match_many(pa.table({"a": [1, 2], "b": [1, None], "s": ["x", "y"]}))


def hide_tests() -> None:
    """Workers import the package, and no module of the tests."""
    folder = str(Path(__file__).parents[1])
    sys.path[:] = [path for path in sys.path if path != folder]


if __name__ == "__main__":
    load_kernels()
    hide_tests()
    manager()
