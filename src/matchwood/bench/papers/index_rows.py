"""Rows of indexes on events: build, check against scan, timed passes in turn.

All series of a point are built first, each in a process of its own; then each is asked for a pass
in turn, the first one changing.  A time is CPU time: one thread, and a shared machine disturbs it
least.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.bench.answers import WrongAnswers, check, fingerprint, first_events, pairs
from matchwood.bench.contender import Arena, arena_of
from matchwood.bench.papers.cases import Limits, Series
from matchwood.bench.papers.isolated import TIME, Child, Refused
from matchwood.bench.papers.rows import MEASURED, REFUSED, WRONG, Row
from matchwood.bench.searching import searched
from matchwood.encode.expression_kernels import TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.core.protocol import ANY, Index
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import StaticFrame
from matchwood.kernel.verify_kernels import COUNTERS
from matchwood.workload import Workload
from matchwood.workload.loading import load_events, load_subscriptions

_WARM_UP = 64


class Contender(NamedTuple):
    """A series at a point, with its settings there."""

    series: Series
    config: dict[str, Any]


def load(workload: Workload, limits: Limits) -> Arena:
    """Generate and encode a workload, and let scan answer the events to check."""
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    return arena_of("", loaded, events, min(limits.checked, events.n_events))


def measure(
    contenders: Sequence[Contender],
    arena: Arena,
    limits: Limits,
    record: Callable[[Contender, Row], None],
) -> None:
    """All contenders of one workload; every row is recorded, whatever became of it."""
    running: list[_Running] = []
    megabytes = 0.0
    for each in contenders:
        row = _Running(each, arena, limits)
        row.build()
        megabytes += (row.found.get("bytes") or 0) / 1e6
        running.append(row)
        if megabytes > limits.megabytes:  # not all fit side by side
            for other in running:
                other.all_passes()
    for number in range(limits.repetitions):
        turn = number % max(1, len(running))
        for row in running[turn:] + running[:turn]:
            row.one_pass()
    for row in running:
        record(row.contender, row.finished())


class _Running:
    """A contender in its process, and what it has said so far."""

    def __init__(self, contender: Contender, arena: Arena, limits: Limits) -> None:
        self.contender, self._limits = contender, limits
        self.found: Row = {"state": MEASURED, "times": []}
        self._left = limits.row_seconds
        self._child: Child | None = None
        try:
            _warm_up(contender, arena)
        except MatchwoodError as error:
            self._refuse(Refused("refused", str(error)))
            return
        self._child = Child(lambda: steps(contender, arena, limits), limits.megabytes)

    def build(self) -> None:
        found = self._ask()
        if found is not None:
            self.found |= found

    def one_pass(self) -> None:
        if len(self.found["times"]) < self._limits.repetitions:
            found = self._ask()
            if found is not None:
                self.found["times"].append(found)

    def all_passes(self) -> None:
        for _ in range(self._limits.repetitions):
            self.one_pass()
        if self._child is not None:
            self._child.close()
            self._child = None

    def finished(self) -> Row:
        if self._child is not None:
            self._child.close()
        times = self.found["times"]
        if self.found["state"] == MEASURED and times:
            per_event = statistics.median(times) / self.found["n_events"]
            self.found["metrics"]["us_per_event"] = per_event * 1e6
            self.found["metrics"]["throughput"] = 1 / max(per_event, 1e-12)
        return self.found

    def _ask(self) -> Any:
        if self._child is None:
            return None
        began = time.monotonic()
        try:
            return self._child.step(self._left)
        except Refused as refused:
            if not self.found["times"]:
                self._refuse(refused)
        except WrongAnswers as error:
            self.found = {"state": WRONG, "label": "wrong", "reason": str(error), "times": []}
        finally:
            self._left -= time.monotonic() - began
        self._child = None
        return None

    def _refuse(self, refused: Refused) -> None:
        row: Row = {"state": REFUSED, "label": refused.label, "reason": refused.reason, "times": []}
        if refused.label == TIME and "build_seconds" not in self.found:
            row["bounds"] = {"build_seconds": self._limits.row_seconds}  # it takes longer than that
        self.found = row


def steps(contender: Contender, arena: Arena, limits: Limits) -> Iterator[Any]:
    """Inside the process: build and check, then the seconds of one pass after the other."""
    before, began = allocated(), time.process_time()
    index = build(contender, arena.table, arena.slots)
    build_seconds, grown = time.process_time() - began, allocated() - before
    checked = first_events(arena.events, arena.n_checked)
    scratch = Scratch()
    searched(index, first_events(arena.events, 1), scratch)
    began = time.process_time()
    hits = searched(index, checked, scratch)
    seconds = max(time.process_time() - began, 1e-6)
    found = pairs(hits, arena.n_checked)
    check(contender.series.id, "", found, arena.expected)
    fit = int(arena.n_checked * limits.pass_seconds / seconds)
    events = first_events(arena.events, max(1, fit))
    stats = index.stats()
    work = dict(zip(COUNTERS, hits.counters.tolist(), strict=True))
    yield {
        "build_seconds": build_seconds,
        "bytes": int(stats["bytes"]),
        "n_events": events.n_events,
        "answers": fingerprint(found),
        "counters": work,
        "metrics": {
            "build_seconds": build_seconds,
            "megabytes": stats["bytes"] / 1e6,
            "process_megabytes": grown / 1e6,
            "build_us_per_subscription": build_seconds / max(1, len(arena.slots)) * 1e6,
            "bytes_per_subscription": stats["bytes"] / max(1, len(arena.slots)),
            **vcr_storage(stats),
            **shares(arena, build_seconds, stats),
            **{f"{name}_per_event": work[name] / max(1, work["events"])
               for name in ("nodes", "candidates", "predicates", "matches") if name in work},
            **{name: stats[name] for name in ("load", "activated_vcrs", "nodes", "conjunctions")
               if isinstance(stats.get(name), int | float)},
        },
    }  # fmt: skip
    while True:
        began = time.process_time()
        searched(index, events, scratch)
        yield time.process_time() - began


def build(contender: Contender, table: ExpressionTable, slots: np.ndarray) -> Index:
    """The index of a series: at once, or inserted in calls of `chunk` subscriptions."""
    series = contender.series
    cls = find_index(series.index)
    if cls.language != ANY and (table.layout.kind[slots] == TREE).any():
        raise IndexBuildError("takes conjunctions only")
    inserts = series.build == "insert"
    index = cls.build(table, slots[:0] if inserts else slots, **contender.config)
    for first in range(0, len(slots) if inserts else 0, series.chunk):
        index.insert(slots[first : first + series.chunk])
    if isinstance(index, StaticFrame):
        index.settle()
    return index


def shares(arena: Arena, build_seconds: float, stats: Mapping[str, Any]) -> dict[str, float]:
    """What a predicate costs where subscriptions are conjunctions, and nodes a subscription."""
    n = max(1, len(arena.slots))
    found = {}
    if isinstance(stats.get("nodes"), int | float):
        found["nodes_per_subscription"] = stats["nodes"] / n
    if not (arena.table.layout.kind[arena.slots] == TREE).any():
        predicates = max(1, int(arena.table.layout.size[arena.slots].sum(dtype=np.int64)))
        found |= {
            "predicates_per_subscription": predicates / n,
            "bytes_per_predicate": stats["bytes"] / predicates,
            "build_us_per_predicate": build_seconds / predicates * 1e6,
        }
    return found


def vcr_storage(stats: Mapping[str, Any]) -> dict[str, float]:
    """Storage of a VCR index as its paper reckons it (section 3.1), from its counters.

    Pointers to the lists of all VCRs, or a hash table of pointers whose entries hold a number, a
    list and the next entry; lists are chains of an id and a pointer.  All of 4 bytes.
    """
    if "activated_vcrs" not in stats:
        return {}
    entries = 0 if stats["lists"] == "table" else 12 * stats["activated_vcrs"]
    return {"paper_megabytes": (4 * stats["places"] + entries + 8 * stats["ids_in_lists"]) / 1e6}


class _Allocated(ctypes.Structure):
    """What the C library's `mallinfo2` returns."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def allocated() -> int:
    """Bytes that this process has allocated and not freed, whichever library asked for them.

    The resident size does not tell: a child of a fork builds in pages that its parent had freed,
    so that it hardly grows.  0 where the C library cannot say.
    """
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0
    ask.restype = _Allocated
    found = ask()
    return int(found.uordblks + found.hblkhd)


_warm: set[str] = set()


def _warm_up(contender: Contender, arena: Arena) -> None:
    """Use every kernel once in the parent: its children then load and compile nothing."""
    key = repr((contender.series, sorted(contender.config.items(), key=str)))
    if key in _warm:
        return
    index = build(contender, arena.table, arena.slots[:_WARM_UP])
    searched(index, first_events(arena.events, 2), Scratch())
    _warm.add(key)
