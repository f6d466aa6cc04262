"""What every test shares: Hypothesis profiles and one lazy Spark session."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from matchwood.index.core.registry import REGISTRY
from matchwood.index.stabbing import interval_skip_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hundreds of processes are started, and each imports the package: let them keep bytecode, also
# where the environment says not to.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests end processes and never the machine: what a file was given is there without its disk.
os.fsync = lambda _: None

gc.disable()  # until everything is imported and collected, of which nothing is garbage

# Levels of skip lists are random in each process; work counters have to be the same in every run.
interval_skip_list.level_seed = 0x5DEECE66D1CE4E5B

# How hard Hypothesis tries.  No deadline: the first call of a kernel compiles it, and the machine
# is shared.  No database: a run depends on the code alone, and a failure prints its own seed.
_COMMON = {
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("fast", max_examples=20, **_COMMON)
settings.register_profile("ci", max_examples=25, **_COMMON)
settings.register_profile("long", max_examples=5_000, **_COMMON)
_PROFILE = os.environ.get("MATCHWOOD_PROFILE", "fast")
settings.load_profile(_PROFILE)


CHOSEN = ("scan", "be_tree", "pst_bloom", "a_tree", "agile")
"""Indexes that are tested all the time; `make test-fast` leaves the others out."""

STATEFUL = ("be_tree",)
"""Those whose random sequences of changes are in the quick set, too: each takes seconds."""

TESTS = Path(__file__).parent

LONGEST_NAME = 1_000
"""Characters of a test's name: each process sends all names to the first one, and its reports."""

HEAVY = ("dims-30k", "dims-10k", "querylog:")
"""Workloads that take seconds to make."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests are shared among processes: those that need Spark go to two of them, file by file, so
    that two sessions will do, all tests of an index run in the same one, and so do the quick tests
    of a file, which load the same kernels.  What takes longest comes first, so that no process is
    left with it when the others have nothing more to do.
    """
    for item in items:
        if len(item.nodeid) > LONGEST_NAME:
            raise pytest.UsageError(f"expected short ids of parameters: {item.nodeid[:200]}...")
        index = _index_of(item)
        if item.get_closest_marker("long") and _PROFILE != "long":
            item.add_marker(pytest.mark.skip(reason="for MATCHWOOD_PROFILE=long"))
        if any(workload in item.nodeid for workload in HEAVY):
            item.add_marker(pytest.mark.slow)
        if index is not None and (index not in CHOSEN or "narrow_gaps" in item.nodeid):
            item.add_marker(pytest.mark.slow)
        if item.path.name == "test_stateful.py" and index not in STATEFUL:
            item.add_marker(pytest.mark.slow)
        group = index
        if group is None and not item.get_closest_marker("slow"):
            group = item.path.relative_to(TESTS).as_posix()
        if item.get_closest_marker("spark"):
            # The bit of the hash that shares their time evenly: --durations=0 tells.
            group = f"spark-{crc32(item.path.name.encode()) >> 14 & 1}"
        if group is not None and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn)


def pytest_runtestloop() -> None:
    """What was collected stays to the end: spare the garbage collector from walking through it.

    Tests make many objects and little garbage in cycles: it is looked for less often than by
    default, which took up to a fifth of their time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    """Let the last collection find everything; DuckDB reports what it does not find as leaks."""
    gc.unfreeze()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse versions of pytest and pytest-xdist that do not keep a group in one process.

    pytest-xdist writes the group behind a test's name; without it three processes would each start
    Spark, clusters and servers for the same tests, and nothing would say so.
    """
    if not getattr(session.config.option, "loadgroup", False):
        return
    marked = [each for each in session.items if each.get_closest_marker("xdist_group")]
    if any("@" not in each.nodeid for each in marked):
        raise pytest.UsageError(
            "--dist loadgroup does not group tests with these versions of pytest and "
            "pytest-xdist; install those that pyproject.toml names"
        )


def _turn(item: pytest.Item) -> int:
    """Spark's tests, then slow ones, then the others."""
    if item.get_closest_marker("spark"):
        return 0
    return 1 if item.get_closest_marker("slow") else 2


def _index_of(item: pytest.Item) -> str | None:
    if item.path.parent.name not in ("index", "context"):
        return None
    named = [name for name in REGISTRY if name in item.nodeid]
    return max(named, key=len, default=None)


PUBLIC_VERBS = (
    "tests/engine/test_matching.py",
    "tests/engine/test_snapshot.py",
    "tests/engine/test_subscriptions.py",
    "tests/engine/test_add_many.py",
    "tests/engine/test_explain.py",
    "tests/context/test_matcher.py",
    "tests/context/test_agile.py",
    "tests/index/test_interval_events.py",
    "tests/workload/",
)
"""Tests that must not compile anything: what they call is compiled ahead.

The contract tests of indexes are not among them: they pass arrays that no public verb makes, with
gaps or protected by NumPy, and these have types of their own.
"""


@pytest.fixture(autouse=True)
def compiled_ahead(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test of public verbs fails when it compiles a kernel that was left out of those ahead."""
    if not request.node.nodeid.startswith(PUBLIC_VERBS):
        yield
        return
    from ahead import left_out
    from matchwood.kernel.compile_times import recorded

    with recorded() as compiled:
        yield
    assert left_out(compiled) == []


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a test run; started by the first test that asks for it."""
    from matchwood.spark import local_session
    from spark.sessions import CHEAP_SESSION, PRELOADED

    # Python workers are processes of their own: they find the package where pytest found it.
    paths = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    session = local_session("matchwood-tests", **CHEAP_SESSION, **PRELOADED, **_kafka())
    try:
        yield session
    finally:
        session.stop()


def _kafka() -> dict[str, str]:
    """Spark's connector to Kafka, for tests/spark/test_kafka.py, where its jars are."""
    from spark.kafka import JARS, are_there

    return {"spark.driver.extraClassPath": str(JARS / "connector" / "*")} if are_there() else {}
