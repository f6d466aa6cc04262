"""Rows that are neither indexes on events nor filters on a stream.

stabbing    intervals of one attribute (PS-Tree, Table 3)
transition  subscriptions of one distribution replaced by those of another, and back (BE-Tree,
            Figure 13); half of the events of each
sharing     how often subexpressions occur, by level and by rank (A-Tree, Figure 7)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.bench.answers import check, pairs
from matchwood.bench.papers.cases import Limits
from matchwood.bench.papers.index_rows import Contender
from matchwood.bench.searching import searched
from matchwood.bench.table_3 import STRUCTURES, drawn
from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import MatchwoodError
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan
from matchwood.workload import Workload
from matchwood.workload.ad_trees import AdTrees
from matchwood.workload.loading import Loaded, load_events, load_into

STEPS = 5
"""Parts in which the subscriptions are replaced, there and back."""


def stabbing(contender: Contender, n: int, limits: Limits) -> Iterator[Any]:
    """One structure: n intervals, n keys.  A scan is asked for few keys, and its time scaled."""
    name = contender.series.index
    make: Callable[..., Any] = STRUCTURES[name]
    lo, hi, keys = drawn(n, n, seed=1)
    make(lo[:10], hi[:10]).stab(keys[:10])  # compile
    began = time.process_time()
    tree = make(lo, hi)
    build = time.process_time() - began
    few = keys[: min(200, n)]
    asked = few if name == "scan" else keys
    times = []
    for _ in range(limits.repetitions):
        began = time.process_time()
        tree.stab(asked)
        times.append((time.process_time() - began) * len(keys) / len(asked))
    n_found = int(tree.stab(asked)[0][-1]) * len(keys) / len(asked)
    offsets, ids = tree.stab(few)
    found = f"{int(offsets[-1])} {int(ids.sum(dtype=np.int64))}"
    yield {
        "times": times,
        "n_events": len(keys),
        "build_seconds": build,
        "answers": hashlib.sha256(found.encode()).hexdigest(),
        "metrics": {
            "query_ms": float(np.median(times)) * 1e3,
            "build_ms": build * 1e3,
            "megabytes": tree.nbytes / 1e6,
            "found_per_key": n_found / len(keys),
            "ns_per_found": float(np.median(times)) / max(1.0, n_found) * 1e9,
        },
    }


class Transition(NamedTuple):
    """Subscriptions of two distributions in one table, and events of both."""

    loaded: Loaded
    events: EventBatch
    n: int
    slots: np.ndarray


_warm: list[Contender] = []


def load_transition(contender: Contender, workload: Workload) -> Transition:
    """Load X and Y; replace a few of them, so that no process has to compile."""
    other = {"uniform": "zipf", "zipf": "uniform"}[workload.parameters()["distribution"]]
    both = workload, workload.with_parameters(distribution=other)
    loaded = Loaded(Attributes(workload.schema()), ExpressionTable())
    for number, each in enumerate(both):
        load_into(loaded, each, number * workload.n_subscriptions)
    events = _joined([load_events(each, loaded.attributes) for each in both])
    whole = Transition(loaded, events, workload.n_subscriptions, loaded.slots)
    few = whole._replace(slots=loaded.slots[:: max(1, len(loaded.slots) // 1_000)])
    if contender not in _warm:
        next(transition(contender, few, Limits(repetitions=1)))
        _warm.append(contender)
    return whole


def transition(contender: Contender, found: Transition, limits: Limits) -> Iterator[Any]:
    """The matching time while X is replaced by Y and Y by X; every step is checked against scan."""
    loaded, events, n, slots = found
    there = slots[slots < n], slots[slots >= n]
    index = find_index(contender.series.index).build(loaded.table, slots[:0], **contender.config)
    digest, present = hashlib.sha256(), np.zeros(2 * n, bool)
    curve: list[float] = []
    steps: list[float] = []
    scratch = Scratch()

    def change(new: np.ndarray, old: np.ndarray) -> None:
        for first in range(0, len(new), contender.series.chunk):
            index.insert(new[first : first + contender.series.chunk])
        index.delete(old)
        present[new], present[old] = True, False

    def point() -> None:
        times = []
        for _ in range(limits.repetitions):
            began = time.process_time()
            hits = searched(index, events, scratch)
            times.append(time.process_time() - began)
        expected = Scan.build(loaded.table, np.flatnonzero(present).astype(np.int32))
        right = pairs(searched(expected, events, scratch), events.n_events)
        check(contender.series.id, f"step {len(curve)}", pairs(hits, events.n_events), right)
        digest.update(right.astype("<i8").tobytes())
        curve.append(float(np.median(times)) / events.n_events * 1e6)
        steps.append(float(hits.counters[1:4].sum()) / events.n_events)

    change(there[0], slots[:0])
    point()
    for new, old in ((there[1], there[0]), (there[0], there[1])):
        for part in range(STEPS):
            change(new[part::STEPS], old[part::STEPS])
            point()
    yield {
        "times": [],
        "n_events": events.n_events,
        "answers": digest.hexdigest(),
        "metrics": {"us_per_event": curve[-1], "megabytes": index.stats()["bytes"] / 1e6},
        "curve": {"x": list(range(len(curve))), "us_per_event": curve, "steps_per_event": steps},
    }


def _joined(batches: list[EventBatch]) -> EventBatch:
    """Batches of events one after the other."""
    ends = np.cumsum([0, *[int(each.start[-1]) for each in batches]])
    start = [each.start[:-1] + end for each, end in zip(batches, ends, strict=False)]
    return EventBatch(
        np.concatenate([*start, ends[-1:]]).astype(np.int64),
        *[
            np.concatenate([getattr(each, name) for each in batches])
            for name in ("attr", "lo", "hi")
        ],
    )


def sharing(contender: Contender, workload: Workload, limits: Limits) -> Iterator[Any]:
    """`levels`: occurrences of a subexpression by level; `ranks`: of predicates, by rank."""
    del limits
    if not isinstance(workload, AdTrees):
        raise MatchwoodError(f"expected the workload 'ad_trees', found {workload.name!r}")
    if contender.series.index == "levels":
        found = workload.sharing()
        xs: list[int] = list(range(1, len(found) + 1))
        values = found.tolist()
    else:
        rows = workload.trees(0, workload.n_subscriptions)
        starts = np.minimum(rows.start[:-1], max(0, len(rows.values) - 1))
        ends = np.maximum(rows.start[1:] - 1, starts)
        leaf = np.stack([rows.attr, rows.op, rows.values[starts], rows.values[ends]], axis=1)
        counts = np.unique(leaf, axis=0, return_counts=True)[1]
        counts = np.sort(counts)[::-1]
        at = np.unique(np.geomspace(1, len(counts), 12).astype(int))
        xs, values = at.tolist(), counts[at - 1].astype(float).tolist()
    yield {
        "times": [],
        "n_events": 0,
        "answers": "",
        "metrics": {"sharing": values[0]},
        "curve": {"x": xs, "sharing": values},
    }
