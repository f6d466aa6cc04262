"""A million conjunctions: our matcher, counting with NumPy, DuckDB and `scan` on the same events.

Subscriptions come from a table of predicates and events are encoded before a time is taken: what is
measured is a search, and the arranging of what it found.  The others take fewer events, and their
answers must be the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood import Matcher
from matchwood.bench.engine.contest import one_event
from matchwood.bench.goals import Measured, agree, seconds
from matchwood.bench.speed.roofline import Reading, reading
from matchwood.bench.speed.sizes import Sizes
from matchwood.bench.speed.user_cases import matcher_of
from matchwood.encode.events import EncodedEvents, EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.answers.choices import Choice
from matchwood.engine.matches import Found
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan
from matchwood.kernel.arrays import slices
from matchwood.workload import Workload, find_workload
from matchwood.workload.loading import load_events

BEST = 10
"""Matches that a search with a limit is asked for."""

COUNTED = 5
"""Events that the others are given."""

WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "begen": ("begen", {}),
    "zipf": ("begen:zipf", {}),
    "pstree": ("pstree", {}),
    "sparse": ("pstree:dims-30k", {}),
}


class Counting:
    """NumPy counting: subscriptions of the predicates that hold, counted by `bincount`."""

    def __init__(self, table: ExpressionTable, slots: np.ndarray) -> None:
        x, p = table.layout, table.predicates.layout
        self.need = x.size[slots].astype(np.int64)
        code = table.codes_of(slots)
        order = np.argsort(code, kind="stable")
        self.posting = np.repeat(np.arange(len(slots), dtype=np.int32), x.size[slots])[order]
        self.start = np.searchsorted(code[order], np.arange(len(p.attr) + 1))
        self.slots = slots
        used = np.flatnonzero(p.attr >= 0)
        sizes = p.n_intervals[used]
        one = sizes == 1
        pred = np.concatenate([used[one], np.repeat(used[~one], sizes[~one])])
        at = slices(p.interval_start[used[~one]], sizes[~one])
        lo = np.concatenate([p.lo[used[one]], p.interval_lo[at]])
        hi = np.concatenate([p.hi[used[one]], p.interval_hi[at]])
        by_attr = np.argsort(p.attr[pred], kind="stable")
        self.pred, self.lo, self.hi = pred[by_attr], lo[by_attr], hi[by_attr]
        self.first = np.searchsorted(p.attr[self.pred], np.arange(table.n_attributes + 1))

    def match(self, attrs: np.ndarray, keys: np.ndarray) -> np.ndarray:
        held = []
        for attr, key in zip(attrs.tolist(), keys.tolist(), strict=True):
            part = slice(self.first[attr], self.first[attr + 1])
            held.append(self.pred[part][(self.lo[part] <= key) & (key <= self.hi[part])])
        found = np.concatenate(held)
        lists = slices(self.start[found], self.start[found + 1] - self.start[found])
        counts = np.bincount(self.posting[lists], minlength=len(self.need))
        return self.slots[counts == self.need]


class Database:
    """DuckDB: events joined with the intervals of predicates, grouped and counted."""

    def __init__(self, counting: Counting, attr: np.ndarray) -> None:
        import duckdb
        import pyarrow as pa

        self._database = duckdb.connect()
        self._database.execute("SET threads = 1")
        start, pred = counting.start, counting.pred
        sizes = start[pred + 1] - start[pred]
        held = pa.table(
            {
                "attr": np.repeat(attr[pred], sizes),
                "lo": np.repeat(counting.lo, sizes),
                "hi": np.repeat(counting.hi, sizes),
                "sub": counting.posting[slices(start[pred], sizes)],
            }
        )
        need = pa.table({"sub": np.arange(len(counting.need), dtype=np.int32), "n": counting.need})
        for name, table in (("p", held), ("need", need)):
            self._database.register("given", table)
            self._database.execute(f"CREATE TABLE {name} AS FROM given")

    def match(self, attrs: np.ndarray, keys: np.ndarray) -> np.ndarray:
        import pyarrow as pa

        self._database.register("e", pa.table({"attr": attrs, "v": keys}))
        found = self._database.execute(
            "SELECT sub FROM (SELECT p.sub, count(*) AS c FROM e JOIN p ON e.attr = p.attr AND "
            "e.v BETWEEN p.lo AND p.hi GROUP BY ALL) JOIN need USING (sub) WHERE c = n ORDER BY sub"
        ).fetchnumpy()["sub"]
        return np.asarray(found)


def index_case(name: str, sizes: Sizes, index: str) -> Iterator[Measured | Reading]:
    """One of WORKLOADS."""
    workload = _workload(name, sizes.subscriptions, sizes.events)
    matcher = matcher_of(workload, index)
    store = matcher._store
    events = distinct(load_events(workload, store.attributes))
    batch = EncodedEvents(events, {})
    found = matcher.find(batch)
    alone = [one_event(events, e) for e in range(events.n_events)]
    extra = _others(name, store.table, alone, found.slots, found.offsets)
    store.table.shut()  # the others have read it; a search does not
    n = events.n_events
    batched = seconds(lambda: matcher.find(batch), sizes.rounds) / n * 1e6
    yield Measured(f"{name} batch", batched, extra)
    yield reading(name, matcher.stats()["indexes"][0], found.counters, n, batched)
    if name in ("begen", "zipf"):
        each = [EncodedEvents(event, {}) for event in alone]
        single = seconds(lambda: [matcher.find(event) for event in each], sizes.rounds)
        yield Measured(f"{name} alone", single / n * 1e6)
    if name == "begen":
        yield _limited(matcher, batch, found, sizes.rounds)
        yield Measured("begen counting", extra["NumPy counting"] / batched)
        stats = matcher.stats()["bytes"]
        shares = {name: size / workload.n_subscriptions for name, size in stats.items()}
        text = shares.pop("texts")
        yield Measured("memory", sum(shares.values()), {**shares, "text apart": text})


def _limited(matcher: Matcher, batch: EncodedEvents, found: Found, rounds: int) -> Measured:
    """The first matches of each event alone."""
    best = Choice(limit=BEST)
    some, n = matcher.find(batch, choice=best), len(found.offsets) - 1
    agree(
        "suite speed, limit",
        *[
            [each.slots[a : min(a + BEST, b)].tolist() for a, b in pairwise(each.offsets.tolist())]
            for each in (found, some)
        ],
    )
    agree("suite speed, limit", [int(np.diff(some.offsets).max())], [BEST])
    took = seconds(lambda: matcher.find(batch, choice=best), rounds) / n * 1e6
    share = some.counters["candidates"] / max(1, found.counters["candidates"])
    return Measured("begen limit", took, {"share of the candidates": share})


def distinct(events: EventBatch) -> EventBatch:
    """The events without repetitions, which a batch would search once.

    BEGen has as many events as base expressions: 100 at a matching probability of 1 %.
    """
    each = [slice(*bounds) for bounds in pairwise(events.start.tolist())]
    found = {(events.attr[at].tobytes(), events.lo[at].tobytes()): at for at in each}
    sizes = [at.stop - at.start for at in found.values()]
    attr, keys = (
        np.concatenate([array[at] for at in found.values()]) for array in (events.attr, events.lo)
    )
    return EventBatch(np.cumsum([0, *sizes]), attr, keys, keys)


def _workload(name: str, n: int, n_events: int) -> Workload:
    preset, changes = WORKLOADS[name]
    return find_workload(preset, **{**changes, "n_subscriptions": n, "n_events": n_events})


def _others(
    case: str,
    table: ExpressionTable,
    events: list[EventBatch],
    slots: np.ndarray,
    offsets: np.ndarray,
) -> dict[str, float]:
    """µs an event of the other ways, whose answers are ours."""
    held = np.flatnonzero(table.layout.size > 0).astype(np.int32)
    counting = Counting(table, held)
    scan, scratch = Scan.build(table, held), Scratch()
    ways: dict[str, Callable[[EventBatch], np.ndarray]] = {
        "NumPy counting": lambda event: counting.match(event.attr, event.lo),
        "scan": lambda event: np.sort(scan.search(event, scratch).slots),
    }
    try:
        database = Database(counting, table.predicates.layout.attr)
        ways["DuckDB"] = lambda event: held[database.match(event.attr, event.lo)]
    except ImportError:
        pass  # the table then says nothing of it
    few, found = events[:COUNTED], {}
    for name, match in ways.items():
        match(few[0])
        began = time.thread_time()
        answers = [match(event) for event in few]
        found[name] = (time.thread_time() - began) / len(few) * 1e6
        for e, answer in enumerate(answers):
            agree(f"{case}, {name}", slots[offsets[e] : offsets[e + 1]].tolist(), answer.tolist())
    return found
