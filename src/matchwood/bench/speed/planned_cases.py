"""Searches of what a segment plans: trees, conjunctions in an index for trees, ten million of them.

Subscriptions are encoded into an expression table, without ids and texts, and events before a time
is taken: what is measured is the search alone.  Answers are those of `scan`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matchwood.bench.answers import first_events
from matchwood.bench.engine.contest import AUTO, Contestant
from matchwood.bench.goals import Measured, agree, seconds
from matchwood.bench.speed.index_cases import COUNTED, distinct
from matchwood.bench.speed.roofline import Reading, reading
from matchwood.bench.speed.sizes import Sizes
from matchwood.encode.events import EventBatch
from matchwood.engine.segments.planner import plan
from matchwood.index.core.protocol import Index
from matchwood.index.core.registry import find_index
from matchwood.kernel.verify_kernels import COUNTERS
from matchwood.workload import Workload, find_workload
from matchwood.workload.loading import Loaded, load_events, load_subscriptions

TREES = {"abegen": "abegen", "ads": "ad_trees"}
"""Preset of the workload, by case."""


class Planned(NamedTuple):
    """A workload with the indexes of a segment, or with one that was named."""

    loaded: Loaded
    events: EventBatch
    indexes: list[Index]
    search: Contestant


def planned(workload: Workload, index: str) -> Planned:
    loaded = load_subscriptions(workload)
    events = distinct(load_events(workload, loaded.attributes))
    table, slots = loaded.table, loaded.slots
    if index == AUTO:
        indexes = [each.build(table) for each in plan(table, slots).choices]
    else:
        indexes = [find_index(index).build(table, slots)]
    return Planned(loaded, events, indexes, Contestant(index, indexes))


def micros(way: Contestant, events: EventBatch, rounds: int) -> float:
    """µs an event of a batch."""
    return seconds(lambda: way.search(events), rounds) / events.n_events * 1e6


def _scanned(case: str, found: Planned) -> float:
    """µs an event that `scan` takes for some events, whose answers are ours."""
    few = first_events(found.events, COUNTED)
    scan = Contestant("scan", [find_index("scan").build(found.loaded.table, found.loaded.slots)])
    began = time.thread_time()
    expected = scan.pairs(few)
    took = time.thread_time() - began
    agree(f"suite speed, {case}", expected.tolist(), found.search.pairs(few).tolist())
    return took / few.n_events * 1e6


def _reading(case: str, found: Planned, took: float) -> Reading:
    """The roofline of a batch that took so many µs an event."""
    hits = found.search.search(found.events)
    counters = np.sum([each.counters for each in hits], axis=0)
    work = dict(zip(COUNTERS, counters.tolist(), strict=True))
    return reading(case, found.indexes[0].stats(), work, found.events.n_events, took)


def tree_case(name: str, sizes: Sizes, index: str) -> Iterator[Measured | Reading]:
    """A workload of trees: a batch of events against the plan of `auto`, and against `scan`."""
    found = planned(
        find_workload(TREES[name], n_subscriptions=sizes.subscriptions, n_events=sizes.events),
        index,
    )
    extra = {"scan": _scanned(name, found)}
    took = micros(found.search, found.events, sizes.rounds)
    bytes_ = sum([each.stats()["bytes"] for each in found.indexes])
    extra["bytes a subscription"] = bytes_ / sizes.subscriptions
    yield Measured(f"{name} batch", took, extra)
    yield _reading(name, found, took)


def conjunctions_case(sizes: Sizes, _index: str) -> Iterator[Measured]:
    """Conjunctions in indexes for trees, against `blocks`; all take turns."""
    workload = find_workload(
        "begen", n_subscriptions=sizes.subscriptions // 10, n_events=sizes.events
    )
    found = planned(workload, "blocks")
    _scanned("conjunctions", found)
    table, slots = found.loaded.table, found.loaded.slots
    ways = [found.search] + [
        Contestant(name, [find_index(name).build(table, slots)]) for name in ("terms", "a_tree")
    ]
    few = first_events(found.events, COUNTED)
    agree("suite speed, conjunctions", *[way.pairs(few).tolist() for way in ways])
    rounds = [[micros(way, found.events, 1) for way in ways] for _ in range(2 * sizes.rounds)]
    blocks, terms, a_tree = map(min, zip(*rounds, strict=True))
    extra = {"blocks µs": blocks, "terms µs": terms, "a_tree µs": a_tree}
    yield Measured("conjunctions", a_tree / blocks, extra)
    yield Measured("conjunctions terms", terms / blocks)


def growth_case(sizes: Sizes, index: str) -> Iterator[Measured | Reading]:
    """Ten times as many subscriptions at equal matches."""
    took = []
    for name, n in (("growth 1x", sizes.subscriptions), ("growth 10x", 10 * sizes.subscriptions)):
        found = planned(
            find_workload(
                "pstree", n_subscriptions=n, n_events=sizes.events, n_attributes=1_000,
                match_probability=sizes.subscriptions / 1_000 / n,
            ),
            index,
        )  # fmt: skip
        _scanned("growth", found)
        took.append(micros(found.search, found.events, sizes.rounds))
        yield _reading(name, found, took[-1])
        del found  # before there are ten times as many
    yield Measured("growth", took[1] / took[0], {"µs before": took[0], "µs grown": took[1]})
