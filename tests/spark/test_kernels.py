"""Executors with empty caches compile nothing: the package that is sent to them carries kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from matchwood.bench.compile_ahead import compile_kernels
from matchwood.kernel import store

PACKAGE = Path(store.__file__).parents[1]
STEPS = ["matcher", "trees", "segments", "index blocks", "index pst_bloom"]
"""What executors run: they match, and build planned segments."""

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.skipif(store.best_baseline() is None, reason="no baseline for this machine")
def test_executors_of_a_cluster_compile_nothing(tmp_path: Path) -> None:
    baseline = store.best_baseline()
    assert baseline is not None
    site, caches = tmp_path / "site", tmp_path / "caches"
    shutil.copytree(PACKAGE, site / "matchwood", ignore=shutil.ignore_patterns("__pycache__"))
    # Loads what bin/setup has compiled into the clone, and compiles what is missing.
    compile_kernels(baseline, site / "matchwood" / store.FOLDER, steps=STEPS)
    for name in ("home", "caches"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("kernels_driver.py")), str(tmp_path)],
        env={
            **{key: value for key, value in os.environ.items() if key != "MATCHWOOD_QUIET"},
            "PYTHONPATH": str(site),
            "HOME": str(tmp_path / "home"),
            "NUMBA_CACHE_DIR": str(caches),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = pq.read_table(tmp_path / "matches", partitioning=None).to_pylist()
    assert sum(len(row["subscription_ids"]) for row in rows) > 20
    # Every kernel that is compiled is kept: an empty cache means that none was.
    assert [file.name for file in tmp_path.rglob("*.nbc") if site not in file.parents] == []
    assert "compiling its kernels" not in done.stderr
