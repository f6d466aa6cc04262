"""Separate executor processes: one is killed, calls are repeated, and a Connect client asks.

None of them compiles anything: the package that is sent to them carries kernels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import matchwood as mw
from matchwood.bench.compile_ahead import compile_kernels
from matchwood.kernel import store
from matchwood.workload.bookshop import Bookshop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PACKAGE = Path(store.__file__).parents[1]
STEPS = ["matcher", "trees", "segments", "index blocks", "index pst_bloom"]
"""What executors run: they match, and build planned segments."""

Lists = dict[int, list[int]]


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """What the driver of one cluster wrote.

    Driver and executors run a copy of the package that carries compiled kernels, as a wheel does,
    with empty caches and an empty home.
    """
    folder = tmp_path_factory.mktemp("cluster")
    site, baseline = folder / "site", store.best_baseline()
    shutil.copytree(PACKAGE, site / "matchwood", ignore=shutil.ignore_patterns("__pycache__"))
    if baseline is not None:
        # Loads what bin/setup has compiled into the clone, and compiles what is missing.
        compile_kernels(baseline, site / "matchwood" / store.FOLDER, steps=STEPS)
    for name in ("home", "caches"):
        (folder / name).mkdir()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("cluster_driver.py")), str(folder)],
        env={
            **{key: value for key, value in os.environ.items() if key != "MATCHWOOD_QUIET"},
            "PYTHONPATH": str(site),
            "HOME": str(folder / "home"),
            "NUMBA_CACHE_DIR": str(folder / "caches"),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "said.txt").write_text(done.stderr)
    return folder


@pytest.fixture(scope="module")
def expected() -> Lists:
    shop = Bookshop(3)
    matcher = mw.Matcher()
    matcher.add_many([(n, shop.subscription()) for n in range(1000)])
    found = dict(enumerate(matcher.match_many([shop.event() for _ in range(200)])))
    assert sum(map(len, found.values())) > 20
    return found


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def numbered(found: dict[str, list[int]]) -> Lists:
    return {int(event): ids for event, ids in found.items()}


def halved(lists: Lists) -> Lists:
    return {event: [id_ for id_ in ids if id_ < 500] for event, ids in lists.items()}


@pytest.mark.skipif(store.best_baseline() is None, reason="no baseline for this machine")
def test_executors_with_empty_caches_compile_nothing(work: Path) -> None:
    # Every kernel that is compiled is kept: an empty cache means that none was.
    site = work / "site"
    assert [file.name for file in work.rglob("*.nbc") if site not in file.parents] == []
    assert "compiling its kernels" not in (work / "said.txt").read_text()


def test_a_killed_executor_changes_nothing(work: Path, expected: Lists) -> None:
    told = read(work / "classic.json")
    assert (told["executors"], told["killed"]) == (2, True)  # one was killed and replaced
    rows = pq.read_table(work / "matches", partitioning=None).to_pylist()
    assert len(rows) == 200
    assert {row["event_id"]: row["subscription_ids"] for row in rows} == expected


def test_match_can_be_called_again_on_a_cluster(work: Path, expected: Lists) -> None:
    # before: "already registered with a different path" at the second call
    told = read(work / "classic.json")
    assert told["reused"]
    assert [numbered(each) for each in told["again"]] == [expected, halved(expected)]


def test_a_change_sends_what_is_new_to_executors(work: Path, expected: Lists) -> None:
    told = read(work / "classic.json")
    priced = numbered(told["changed"])
    others = {event: [id_ for id_ in ids if id_ != 500] for event, ids in priced.items()}
    assert others == {event: [id_ for id_ in ids if id_ != 500] for event, ids in expected.items()}
    assert sum(500 in ids for ids in priced.values()) > 100
    assert all(ids == sorted(ids) for ids in priced.values())
    largest, later = max(told["sent"].values()), told["sent_later"]
    known = [name for name in later if name.startswith("matchwood-known-")]
    assert len(known) == 1, "rows of the version of half the table, which was used last"
    assert len(later) == 3, "a segment, and what else belongs to a version"
    assert sum(later.values()) < largest / 2
    assert (told["read again"], told["last reused"]) == (0, False), "one pass tells the change"


def test_a_connect_client_gets_the_same_lists_from_every_door(work: Path, expected: Lists) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    # before: JVM_ATTRIBUTE_NOT_SUPPORTED, a Connect session has no sparkContext
    told = read(work / "connect.json")
    assert "connect" in told["kind"]
    assert [numbered(each) for each in told["match"]] == [expected, expected]
    assert numbered(told["pairs"]) == {event: ids for event, ids in halved(expected).items() if ids}
    assert numbered(told["sharded"]) == expected
    assert told["kept"][0]
    assert numbered(told["kept"][1]) == expected
    assert numbered(told["sql"]) == expected
    assert told["errors"] == [0, 0, 0]
