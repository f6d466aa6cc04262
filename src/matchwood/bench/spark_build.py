"""The suite `spark`, part `build`: texts to an index, built by tasks; what the driver takes for it.

The index is built of a tenth of the texts first, which warms up workers, and then of all of them.
The memory of the driver's Python should not grow from one to the other: tasks build segments, and
the driver lists them.  Lists of some events are compared with those of a matcher that has some of
the subscriptions.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from matchwood.bench.goals import AnswersDiffer
from matchwood.engine.matcher import Matcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARED = 20_000
"""Subscriptions of the matcher that lists are compared with."""
EVENTS = 200


def run_build(spark: SparkSession, folder: Path, n_subscriptions: int) -> dict[str, Any]:
    """Build the index of the bookshop's texts, and look at it."""
    from matchwood.spark import read_workload
    from matchwood.spark.indexes import build_index

    made = read_workload(
        spark, "bookshop", "subscriptions", subscriptions=n_subscriptions, form="texts",
        partitions=4,
    )  # fmt: skip
    made.write.parquet(str(folder / "texts"))
    texts = spark.read.parquet(str(folder / "texts"))
    most: dict[int, int] = {}
    for n in (max(1, n_subscriptions // 10), n_subscriptions):
        cpu, start = cpu_of_tree(), time.perf_counter()
        with OwnMemory() as memory:
            built = build_index(texts.where(f"id < {n}"), snapshots=str(folder / "indexes"))
        seconds, cpu = time.perf_counter() - start, cpu_of_tree() - cpu
        most[n] = memory.most
    _compare(spark, built.matcher, texts)
    return {
        "texts": n_subscriptions,
        "to an index, s": seconds,
        "to an index, CPU s of all processes": cpu,
        "texts per second": n_subscriptions / seconds,
        "segments": len(list(built.folder.glob("segments/*"))),
        **{f"memory of the driver's Python for {n:,}, MB": most[n] / 1e6 for n in most},
    }


def _compare(spark: SparkSession, matcher: Matcher, texts: Any) -> None:
    from matchwood.spark import read_workload

    some = texts.where(f"id < {COMPARED}").toArrow()
    few = Matcher()
    few.add_many(list(zip(some["id"].to_pylist(), some["expr"].to_pylist(), strict=True)))
    events = read_workload(spark, "bookshop", "events", events=EVENTS, layout="wide").toArrow()
    events = events.drop_columns(["event_id"])
    found = [
        [id_ for id_ in each if isinstance(id_, int) and id_ < COMPARED]
        for each in matcher.match_many(events).to_pylist()
    ]
    expected = [sorted(each) for each in few.match_many(events).to_pylist()]
    if found != expected or not any(expected):
        raise AnswersDiffer("suite spark, build: answers differ, so there are no times")


def cpu_of_tree() -> float:
    """CPU seconds of this process and all below it, with those below that have ended."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended meanwhile
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(seconds[each] for each in below)


class OwnMemory:
    """How much the memory of this process that is no mapped file grows at most, looked at often."""

    def __enter__(self) -> Self:
        self._first = self._last = _own_memory()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ends.wait(0.005):
            self._last = max(self._last, _own_memory())

    @property
    def most(self) -> int:
        return self._last - self._first


def _own_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)
