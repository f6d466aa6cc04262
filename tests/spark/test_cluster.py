"""Separate executor processes, one of which is killed in the middle of the job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import matchwood as mw
from matchwood.workload.bookshop import Bookshop

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    driver = str(Path(__file__).with_name("cluster_driver.py"))
    src = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, driver, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": src, "MATCHWOOD_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "facts").read_text() == "2 True"  # two executors, one killed and replaced
    shop = Bookshop(3)
    matcher = mw.Matcher()
    matcher.add_many([(n, shop.subscription()) for n in range(1000)])
    expected = dict(enumerate(matcher.match_many([shop.event() for _ in range(200)])))
    rows = pq.read_table(tmp_path / "matches", partitioning=None).to_pylist()
    assert len(rows) == 200
    assert {row["event_id"]: row["subscription_ids"] for row in rows} == expected
    assert sum(map(len, expected.values())) > 20
