"""`auto` against every single index on one workload: the same answers, times taken in turn.

What is compared are searches of encoded events: the indexes that `auto` plans for a segment, and
each index that can hold all of it alone.  Single events are searched by the steps that
`Matcher.match` binds (`IndexFrame.alone`), where all indexes of a contestant have one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from matchwood.bench.answers import check, first_events, pairs
from matchwood.bench.engine.sizes import Sizes
from matchwood.bench.goals import AnswersDiffer, Measured
from matchwood.bench.searching import searched
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.segments.planner import plan
from matchwood.errors import MatchwoodError
from matchwood.index.core.protocol import ANY, Hits, Index
from matchwood.index.core.query_kernels import ALL_MATCHES, QUERY, Query
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.bound import Binding
from matchwood.kernel.verify_kernels import COUNTERS, Output
from matchwood.workload import Workload, find_workload
from matchwood.workload.loading import load_events, load_subscriptions

SINGLE = ("blocks", "terms", "pst_bloom", "pst_hash", "be_tree", "vcr", "a_tree", "scan")
FOR_TREES = ("terms", "a_tree", "interval_id", "translation", "scan")
AUTO = "auto"
SCANNED, TRANSLATED = 3_000, 20_000
"""Subscriptions up to which `scan` and `translation` take part."""
ALONE, CHECKED = 50, 20
"""Events that are searched one by one; events whose answers are compared with those of `scan`."""
PASSES = 0.02
"""CPU seconds of the passes of a round."""

WORKLOADS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "uniform": ("uniform", "uniform:small", {}),
    "begen": ("begen", "begen:default", {}),
    "zipf": ("begen, Zipf's law", "begen:zipf", {}),
    "pstree": ("pstree, 100 attributes", "pstree:dims-100", {}),
    "sparse": ("pstree, 30,000 attributes", "pstree:dims-30k", {}),
    "ads": ("ads", "ads:small", {}),
    "trees": ("abegen, trees", "abegen:default", {}),
    "ranges": ("skew2d, two ranges", "skew2d:figure-6a", {}),
}
"""By name: what a row says of it, a preset of a workload, and changes of that."""


def one_event(events: EventBatch, e: int) -> EventBatch:
    """An event of a batch as a batch."""
    part = slice(events.start[e], events.start[e + 1])
    keys = np.ascontiguousarray(events.lo[part])
    return EventBatch(np.array([0, len(keys)]), events.attr[part].copy(), keys, keys)


class OneByOne:
    """Steps of some indexes, bound once to the arrays that one event after the other is put to."""

    def __init__(self, indexes: list[Index], widest: EventBatch, scratch: Scratch) -> None:
        self._scratch, self._indexes = scratch, indexes
        start, attr, key = np.zeros(2, np.int64), widest.attr.copy(), widest.lo.copy()
        self._events = EventBatch(start, attr, key, key)
        scratch.post(self._events, 0)
        self._bind(1_024)

    def _bind(self, room: int) -> None:
        self._out, self._offsets = np.empty(room, np.int32), np.zeros(2, np.int64)
        output = Output(self._offsets, self._out, np.zeros(len(COUNTERS), np.int64))
        query = self._query = Query(self._events, output, np.array([ALL_MATCHES]))
        bound = self._bound = Binding(QUERY).of(query)
        steps = [getattr(each, "alone", _no_step)(self._events, self._scratch)
                 for each in self._indexes]  # fmt: skip
        self._steps = [each.with_query(bound) for each in steps if each is not None]
        self.is_usable = len(self._steps) == len(steps)

    def search(self, event: EventBatch) -> np.ndarray:
        """The slots that hold for an event."""
        n, start, attr, key = len(event.attr), *self._events[:3]
        start[1], attr[:n], key[:n] = n, event.attr, event.lo
        found = [np.empty(0, np.int32)]
        for i, index in enumerate(self._indexes):
            while (status := self._steps[i][0](self._scratch.next_stamp())) != 1:
                if status < 0:
                    index.make_room(self._scratch)  # type: ignore[attr-defined]
                self._bind(2 * len(self._out))
            found.append(self._out[: self._offsets[1]].copy())
        return np.concatenate(found)


def _no_step(events: EventBatch, scratch: Scratch) -> None:
    """Stands for `alone` in an index that does not have it."""


class Contestant:
    """Some indexes that share the work."""

    def __init__(self, name: str, indexes: list[Index]) -> None:
        self.name, self._indexes, self._scratch = name, indexes, Scratch()
        self.batch: list[float] = []
        self.alone: list[float] = []

    def search(self, events: EventBatch) -> list[Hits]:
        return [searched(each, events, self._scratch) for each in self._indexes]

    def pairs(self, events: EventBatch) -> np.ndarray:
        found = [pairs(hits, events.n_events) for hits in self.search(events)]
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    def prepare(self, singles: list[EventBatch]) -> None:
        """Bind what single events are searched by, and see that they find the same."""
        steps = OneByOne(
            self._indexes, max(singles, key=lambda each: len(each.attr)), self._scratch
        )
        self._one: Callable[[EventBatch], Any] = steps.search if steps.is_usable else self.search
        if steps.is_usable:
            for each in singles:
                if not np.array_equal(np.sort(steps.search(each)), self.pairs(each)):
                    raise AnswersDiffer(f"suite engine: {self.name} finds another answer alone")

    def round(self, events: EventBatch, singles: list[EventBatch]) -> None:
        """Take times, of some passes each."""
        self.search(events)  # whatever the one before has left in the caches
        self.batch += _passes(lambda: self.search(events), events.n_events)
        self.alone += _passes(lambda: [self._one(each) for each in singles], len(singles))


def _passes(search: Callable[[], Any], n_events: int) -> list[float]:
    """CPU seconds an event of one pass after the other, until they have taken PASSES in all.

    The shortest of a few passes of less than a millisecond is noise: the same index was 0.6 and
    2.5 times as fast as itself.
    """
    found: list[float] = []
    began = last = time.thread_time()
    while not found or last < began + PASSES:
        search()
        now = time.thread_time()
        found.append((now - last) / n_events)
        last = now
    return found


def contest(
    label: str, workload: Workload, n_events: int, rounds: int, tell: Callable[[str], Any] = str
) -> dict[str, dict[str, float]]:
    """µs an event, of a batch and alone, by the name of the index; `auto` is the first.

    tell  called with lines for people: what `auto` has planned, and what takes no part

    WrongAnswers when one of them disagrees with `scan`.
    """
    loaded = load_subscriptions(workload)
    table, slots = loaded.table, loaded.slots
    events = first_events(load_events(workload, loaded.attributes), n_events)
    found = _contestants(table, slots, tell)
    singles = [one_event(events, e) for e in range(min(ALONE, events.n_events))]
    few = first_events(events, CHECKED)
    expected = Contestant("scan", [find_index("scan").build(table, slots)]).pairs(few)
    for each in found:
        check(each.name, label, each.pairs(few), expected)
        each.search(events)
        each.prepare(singles)
    for turn in range(rounds):
        for each in [*found[turn % len(found) :], *found[: turn % len(found)]]:
            each.round(events, singles)
    return {
        what: {each.name: min(getattr(each, what)) * 1e6 for each in found}
        for what in ("batch", "alone")
    }


def ratio(micros: dict[str, float]) -> tuple[float, str]:
    """`auto` by the best of the others, and its name."""
    others = {name: value for name, value in micros.items() if name != AUTO}
    best = min(others, key=others.__getitem__)
    return micros[AUTO] / others[best], best


def contest_case(name: str, sizes: Sizes, _index: str) -> Iterator[Measured]:
    """One of WORKLOADS: the worse of the ratios of a batch and of single events."""
    _, preset, changes = WORKLOADS[name]
    whole = find_workload(preset, **{"n_events": sizes.events, **changes})
    n = min(whole.n_subscriptions, sizes.contest)
    workload = whole.with_parameters(n_subscriptions=n)
    found = contest(name, workload, sizes.events, sizes.rounds)
    extra: dict[str, float] = {}
    for what, micros in found.items():
        value, best = ratio(micros)
        extra |= {f"{what} x": value, f"{what} auto µs": micros[AUTO]}
        extra[f"{what} {best} µs"] = micros[best]
    yield Measured(f"auto {name}", max(extra["batch x"], extra["alone x"]), extra)


def _contestants(
    table: ExpressionTable, slots: np.ndarray, tell: Callable[[str], Any]
) -> list[Contestant]:
    chosen = plan(table, slots)
    for row in chosen.rows():
        tell(f"    {row['index']} <- {row['reason']}")
    found = [Contestant(AUTO, [each.build(table) for each in chosen.choices])]
    has_trees = bool((table.layout.kind[slots] == TREE).any())
    most = {"scan": SCANNED, "translation": TRANSLATED}
    for name in FOR_TREES if has_trees else SINGLE:
        kind = find_index(name)
        if (has_trees and kind.language != ANY) or len(slots) > most.get(name, len(slots)):
            continue
        try:
            index = kind.build(table, slots)
            index.settle()
            found.append(Contestant(name, [index]))
        except MatchwoodError as error:
            tell(f"    {name}: {error}")
    return found
