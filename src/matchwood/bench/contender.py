"""Contender: one index in one case, from its build to its times.

warm up    build and match a few subscriptions: everything is compiled, or read from the cache
build      all subscriptions, timed
check      all events: the same pairs as scan, or the run ends
passes     search of all events, and absorb, timed, as often as the runner calls
delete     if the suite asks: timed, then checked again
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from matchwood.bench.answers import WrongAnswers, check, first_events, pairs
from matchwood.bench.results import AGREES, REFERENCE, SCAN, SKIPPED, UNCHECKED, IndexResult
from matchwood.bench.searching import searched
from matchwood.bench.suite import INSERT, IndexSpec
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import IndexBuildError
from matchwood.index.core.protocol import ANY, Hits, Index
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan
from matchwood.kernel.verify_kernels import COUNTERS
from matchwood.workload.loading import Loaded
from matchwood.workload.stopwatch import Stopwatch

_WARM_UP = 64
"""Subscriptions that are enough to reach every kernel with the right types."""


class Arena(NamedTuple):
    """What all contenders of a case share."""

    case: str
    table: ExpressionTable
    slots: np.ndarray
    events: EventBatch
    expected: np.ndarray  # answers of scan for the first n_checked events, see answers.pairs
    n_checked: int


def arena_of(case: str, loaded: Loaded, events: EventBatch, n_checked: int) -> Arena:
    """The subscriptions and events of a case; scan answers as many events as are checked."""
    scan = Scan.build(loaded.table, loaded.slots)
    hits = searched(scan, first_events(events, n_checked), Scratch())
    return Arena(case, loaded.table, loaded.slots, events, pairs(hits, n_checked), n_checked)


class Contender:
    """Owns one index and the record of what it did."""

    def __init__(self, spec: IndexSpec, cls: type[Index], arena: Arena) -> None:
        cls.Config.checked(spec.label, spec.config)  # a wrong setting is no reason to skip an index
        self.spec = spec
        self.result = IndexResult(spec.label, spec.index, spec.config, spec.build)
        self._cls = cls
        self._arena = arena
        self._events = first_events(arena.events, spec.events)
        self._watch = Stopwatch()
        self._index: Index | None = None
        self._scratch = Scratch()
        self._n_matches = 0

    @property
    def takes_part(self) -> bool:
        return self._index is not None

    def prepare(self, will_delete: bool) -> None:
        """Warm up, build and check; what this workload cannot be given to is skipped."""
        try:
            self._refuse_trees()
            self._warm_up(will_delete)
            with self._watch.phase("build"):
                self._index = self._build(self._arena.slots)
        except IndexBuildError as error:
            self.result.answers, self.result.note = SKIPPED, str(error)
            return
        with self._watch.phase("first match"):
            hits = searched(self._index, self._events, self._scratch)
        self._check(hits, self._arena.expected)
        self._n_matches = len(hits.slots)
        result = self.result
        result.compile_seconds = self._watch.compiling
        result.build_seconds = self._watch.seconds["build"]
        result.stats = self._index.stats()
        result.bytes = int(result.stats["bytes"])
        result.n_events = self._events.n_events
        result.counters = dict(zip(COUNTERS, hits.counters.tolist(), strict=True))

    def run_pass(self) -> None:
        """One timed pass over the events."""
        assert self._index is not None
        began = time.perf_counter()
        hits = searched(self._index, self._events, self._scratch)
        seconds = time.perf_counter() - began
        if len(hits.slots) != self._n_matches:
            raise WrongAnswers(
                f"index {self.spec.label!r}: expected {self._n_matches:,} matches in every pass, "
                f"found {len(hits.slots):,} in pass {len(self.result.times) + 1}"
            )
        self.result.times.append(seconds)

    def run_deletes(self, share: float) -> None:
        """Delete a share of the subscriptions, spread evenly, and check what is left."""
        assert self._index is not None
        slots = self._arena.slots
        n = int(share * len(slots))
        gone = slots[np.arange(n) * len(slots) // max(n, 1)]
        with self._watch.phase("delete"):
            for first in range(0, n, self.spec.chunk):
                self._index.delete(gone[first : first + self.spec.chunk])
            self._index.settle()
        expected = self._arena.expected
        left = expected[~np.isin(expected & 0xFFFFFFFF, gone)]
        self._check(searched(self._index, self._events, self._scratch), left)
        self.result.n_deleted = n
        self.result.delete_seconds = self._watch.seconds["delete"]

    def _refuse_trees(self) -> None:
        kinds = self._arena.table.layout.kind[self._arena.slots]
        if self._cls.language != ANY and (kinds == TREE).any():
            raise IndexBuildError("takes conjunctions only")

    def _warm_up(self, will_delete: bool) -> None:
        few = self._arena.slots[:_WARM_UP]
        with self._watch.phase("warm up"):
            index = self._build(few)
            searched(index, first_events(self._events, 2), self._scratch)
            if will_delete:
                index.delete(few[: len(few) // 2])

    def _build(self, slots: np.ndarray) -> Index:
        spec, inserts = self.spec, self.spec.build == INSERT
        first_slots = slots[:0] if inserts else slots
        index = self._cls.build(self._arena.table, first_slots, **spec.config)
        for first in range(0, len(slots) if inserts else 0, spec.chunk):
            index.insert(slots[first : first + spec.chunk])
        index.settle()
        return index

    def _check(self, hits: Hits, expected: np.ndarray) -> None:
        """Compare the events that both this index and scan have seen."""
        if self.spec.index == "null":
            self.result.answers = UNCHECKED
            self.result.note = "matches nothing: the floor of the harness"
            return
        n = min(self._arena.n_checked, self._events.n_events)
        check(self.spec.label, self._arena.case, pairs(hits, n), expected[(expected >> 32) < n])
        self.result.answers = REFERENCE if self.spec.index == SCAN else AGREES
