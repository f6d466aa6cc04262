"""k-index: a conjunction of k predicates matches when it is in k of the event's posting lists.

Idea.    Split expressions by size.  Every value of an attribute has, for each size k, a sorted list
         of the expressions that accept it.  An event opens one list per attribute; an expression of
         size k matches when it is in k of them.  Sizes with fewer than k lists are passed over, and
         lists are skipped through: nothing before the k-th smallest current id can match.
Source.  Whang et al., VLDB 2009: k-index (section 3) and the Conjunction algorithm (Algorithm 1);
         ranges are enumerated, as in section 7.2 (3) of the BE-Tree paper.
Differs. What is enumerated is not every value but every segment of keys that the predicates tell
         apart: on a small domain the same, beyond it fewer, and open ranges, <> and floats can be
         held at all, with the strong semantics.  What would take more than `max_postings` in all
         is refused, counted before it is enumerated.  Dynamic (the original is static): an
         expression with a new end waits, tested one by one, until an eighth of all wait; then all
         is enumerated anew.  The list Z of sizes below 1 is not needed.  For an event of intervals
         an expression may be in several lists of one attribute, so it is counted once per
         attribute, without skipping.
Cost.    Match O(postings of the event's segments), less what is skipped.  Memory 4 bytes a posting
         (at most half as much again in unused room), a posting for every segment that a predicate
         covers: it grows with cardinality.  21 bytes a list, 12 a segment, 1 a slot.

Layout   (C segments, L lists, S slots)
         segments           see segment_kernels
         first  int32[C]    the list of a segment for its smallest size, NONE
         next   int32[L]    the list for the next larger size (or the next free id), NONE
         arity  int32[L]    k, the size of its expressions
         lists  lists[L]    slots (see id_lists); list PENDING holds those that wait
         held   bool[S]     what the index holds
         count  int64[2]    HIGH, FREE
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.baselines.counting_kernels import count_uses
from matchwood.index.baselines.k_index_bound import Bound
from matchwood.index.baselines.k_index_kernels import (
    HIGH,
    LISTS_FULL,
    NONE,
    PENDING,
    KIndexLayout,
    count_postings,
    post_attributes,
    post_expressions,
    unpost_expressions,
)
from matchwood.index.baselines.k_index_match_kernels import Scratch, match_by_size
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.index.stabbing.segment_kernels import Segments
from matchwood.index.stabbing.segments import no_segments, segments_of
from matchwood.kernel.arrays import doubled, grown, named, slices, taken, writable
from matchwood.kernel.id_lists import MAX_ITEMS, IdListStore

PENDING_SHARE, MOST_PENDING = 8, 64
"""All is enumerated anew when more than MOST_PENDING and one in PENDING_SHARE expressions wait."""

FEWEST_AT_A_TIME, MOST_PASSES = 16, 32
"""Attributes that are enumerated in one pass over the expressions, and how many passes."""

MOST_COUNTS = 64
"""How often postings are counted to find out which expressions of a batch are too many."""


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    max_postings   postings of all expressions together; what would make more is refused.  Raising
                   it allows wider ranges on finer domains, at 4 to 6 bytes a posting.  Leaving
                   expressions have fewer postings, so what is left can always be built anew
    """

    max_postings: int = 2**27

    def __post_init__(self) -> None:
        self._expect_integer("max_postings", least=1)


class Counted(NamedTuple):
    """What enumerating expressions takes."""

    segments: Segments
    n_postings: int


class KIndex(IndexFrame):
    """Owns the lists and the segments they belong to."""

    name: ClassVar[str] = "k_index"
    Config = Config

    def _clear(self) -> None:
        nothing = np.empty(0, np.int64)
        self._scratch = Scratch(
            here=nothing, at=nothing, end=nothing, cursor=nothing, seen=nothing,
            tally=np.empty(0, np.int32), clock=np.zeros(1, np.int64), work=np.zeros(3, np.int64),
        )  # fmt: skip
        self._begin(no_segments(), np.zeros(16, np.bool_))
        self._bound: Bound | None = Bound()  # None: not known since a snapshot was read
        self._epoch = self._table.epoch
        self._n_written = 0

    def _begin(self, segments: Segments, held: np.ndarray) -> None:
        """No lists but the one of those that wait."""
        self._segments = segments
        self._lists = IdListStore(16)
        self._directory = KIndexLayout(
            first=np.full(len(segments.cut), NONE, np.int32),
            next=np.full(16, NONE, np.int32),
            arity=np.zeros(16, np.int32),
            held=held,
            count=np.array([PENDING + 1, NONE], np.int64),
        )
        self._n_enumerated = 0

    # ── what it refuses ─────────────────────────────────────────────────────────────────────────

    @property
    def _most_postings(self) -> int:
        return min(self.config.max_postings, MAX_ITEMS // 3 * 2)

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Expressions with which there would be too many postings.

        A part of the slots that is too much is halved until only those are left out that are.
        """
        if self._table.epoch == self._epoch:  # else keys have moved since segments were made
            if self._bound is None:
                self._bound = self._bound_of(self._held())
            if self._with_more(self._bound, slots).n_postings <= self._most_postings:
                return {}
        refused: dict[int, MatchwoodError] = {}
        accepted, parts, n_counts = self._held(), [slots], 0
        while parts:
            part = parts.pop()
            both = np.concatenate([accepted, part])
            n_postings, n_counts = self._counted(both).n_postings, n_counts + 1
            if n_postings <= self._most_postings:
                accepted = both
            elif len(part) > 1 and n_counts < MOST_COUNTS:
                parts += [part[len(part) // 2 :], part[: len(part) // 2]]
            else:
                error = self._too_many(n_postings, len(both))
                refused |= dict.fromkeys(part.tolist(), error)
        return refused

    def _too_many(self, n_postings: int, n: int) -> IndexBuildError:
        return IndexBuildError(
            f"index 'k_index' lists an expression under every value its predicates accept: "
            f"expected at most {self._most_postings:,} postings, found {n_postings:,} for {n:,} "
            "expressions; raise max_postings if there is memory for them, or choose an index "
            "that holds ranges as ranges (be_tree, counting, propagation)"
        )

    def _counted(self, slots: np.ndarray) -> Counted:
        """The segments that these expressions tell apart, and the postings that they take."""
        p = self._table.predicates.layout
        uses = np.zeros(len(p.attr), np.int32)
        count_uses(self._table.layout, slots, uses)
        used = np.flatnonzero(uses).astype(np.int32)
        segments = segments_of(p, used)
        return Counted(segments, int(count_postings(segments, p, used, uses)))

    def _with_more(self, bound: Bound, slots: np.ndarray) -> Bound:
        p, x = self._table.predicates.layout, self._table.layout
        return bound.with_more(self._segments, p, x.code[slices(x.start[slots], x.size[slots])])

    def _bound_of(self, slots: np.ndarray) -> Bound:
        """The bound of what was counted."""
        n_postings = self._counted(slots).n_postings
        return self._with_more(Bound(), slots)._replace(n_postings=n_postings)

    def _held(self) -> np.ndarray:
        return np.flatnonzero(self._directory.held).astype(np.int32)

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        self._enumerate(np.sort(slots))

    def _add(self, slots: np.ndarray) -> None:
        slots = np.sort(slots)
        if self._bound is not None:
            self._bound = self._with_more(self._bound, slots)
        x = self._directory
        self._directory = x._replace(
            held=grown(x.held, doubled(len(x.held), int(slots.max()) + 1)),
        )
        self._post(post_expressions, slots)
        n_live = self._n_live + len(slots)
        if self._lists.lists.size[PENDING] > max(MOST_PENDING, n_live // PENDING_SHARE):
            self._enumerate(self._held())
        elif self._bound is not None and self._bound.n_postings > self._most_postings:
            self._bound = self._bound_of(self._held())

    def delete(self, slots: np.ndarray) -> None:
        held = self._directory.held
        slots = slots[slots < len(held)]
        super().delete(slots[held[slots]])  # what was refused was never here

    def _remove(self, slots: np.ndarray) -> None:
        unpost_expressions(
            self._directory, self._lists.lists, self._segments,
            self._table.layout, self._table.predicates.layout, slots,
        )  # fmt: skip
        if 4 * self._n_live < self._n_enumerated:  # fewer segments tell the others apart
            self._enumerate(self._held())
        self._lists.trim()

    def _enumerate(self, slots: np.ndarray) -> None:
        """Hold exactly these slots, over segments of their own."""
        segments, n_postings = self._counted(slots)
        self._n_written += n_postings
        self._begin(segments, np.zeros(doubled(16, int(slots.max()) + 1), np.bool_))
        self._lists.make_room(n_postings + n_postings // 4)
        at_a_time = max(FEWEST_AT_A_TIME, len(segments.attr_start) // MOST_PASSES)
        for low in range(0, len(segments.attr_start), at_a_time):
            self._post(post_attributes, slots, low, low + at_a_time)
        self._lists.trim(unused=0.3)
        self._directory.held[slots] = True
        self._n_enumerated = len(slots)
        self._bound = self._with_more(Bound(), slots)._replace(n_postings=n_postings)

    def _post(self, post: Callable[..., tuple[int, int]], slots: np.ndarray, *which: int) -> None:
        """Call a kernel until all slots are done, growing what is full."""
        done = 0
        while done < len(slots):
            done, full = post(
                self._directory, self._lists.lists, self._segments,
                self._table.layout, self._table.predicates.layout, slots, done, *which,
            )  # fmt: skip
            if full == LISTS_FULL:
                self._make_lists()
            elif full:
                self._lists.grow()

    def _make_lists(self) -> None:
        x = self._directory
        self._lists.make_lists(2 * len(x.next))
        n = len(self._lists.lists.size)
        self._directory = x._replace(next=grown(x.next, n, NONE), arity=grown(x.arity, n))

    def _stepper(self, events: EventBatch) -> Step:
        board, table = self._board, self._table
        is_plain = events.lo is events.hi or bool((events.lo == events.hi).all())
        scratch = self._scratch_for(events, is_plain)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_by_size(
                self._directory, self._lists.lists, self._segments, is_plain, scratch,
                table.layout, events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _scratch_for(self, events: EventBatch, is_plain: bool) -> Scratch:
        s = self._scratch
        longest = int(np.diff(events.start).max(initial=0))
        if len(s.here) < longest:
            here, at, end, cursor = np.empty((4, doubled(16, longest)), np.int64)
            s = s._replace(here=here, at=at, end=end, cursor=cursor)
        n_slots = len(self._directory.held)
        if not is_plain and len(s.seen) < n_slots:
            s = s._replace(seen=np.zeros(n_slots, np.int64), tally=np.zeros(n_slots, np.int32))
        self._scratch = s
        return s

    def _structure(self) -> dict[str, Any]:
        own = sum(array.nbytes for array in (*self._directory, *self._segments))
        return {
            "segments": len(self._segments.cut),
            "lists": int((self._lists.lists.size > 0).sum()),
            "postings": self._lists.n_ids,
            "pending_conjunctions": int(self._lists.lists.size[PENDING]),
            "postings_written": self._n_written,
            "bytes": own + self._lists.nbytes,
        }

    def draw(self) -> str:
        n_lists = int(self._directory.count[HIGH])
        arity, size = self._directory.arity[:n_lists], self._lists.lists.size[:n_lists]
        lines = [f"k_index: {self._n_live} conjunctions over {len(self._segments.cut)} segments"]
        for k in np.unique(arity[size > 0]).tolist() if self._n_live else []:
            mine = size[(arity == k) & (size > 0)]
            name = f"size {k}" if k else "waiting"
            lines.append(f"├── {name}: {int(mine.sum())} postings in {len(mine)} lists")
        return "\n".join([*lines, f"└── {self._lists.n_ids} postings"])

    def _arrays(self) -> dict[str, np.ndarray]:
        own = {**named(self._directory), **named(self._segments)}
        return {**own, **self._lists.layout("list")}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._n_enumerated, self._bound = self._n_live, None
        self._directory = taken(KIndexLayout, layout)
        self._segments = taken(Segments, layout)
        self._lists.take(layout, "list")

    def _thaw(self) -> None:
        self._directory = writable(self._directory)
        self._lists.thaw()
