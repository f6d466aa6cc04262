"""k-index: a conjunction of k predicates matches when it is in k of the event's posting lists.

Idea.    Split expressions by size.  Every value of an attribute has, for each size k, a sorted list
         of the expressions that accept it.  An event opens one list per attribute; an expression of
         size k matches when it is in k of them.  Sizes with fewer than k lists are passed over, and
         lists are skipped through: nothing before the k-th smallest current id can match.
Source.  Whang et al., VLDB 2009: k-index (section 3) and the Conjunction algorithm (Algorithm 1);
         ranges are enumerated, as in section 7.2 (3) of the BE-Tree paper.
Differs. What is enumerated is not every value (`over = "values"` does so) but every segment of keys
         that the predicates tell apart: on a small domain the same, beyond it fewer, and open
         ranges, <> and floats can be held at all, with the strong semantics.  What would take more
         than `max_postings` in all is refused, counted before it is enumerated.  Built again after
         changes (the original is static, too).  The list Z of sizes below 1 is not needed.  For an
         event of intervals an expression may be in several lists of one attribute, so it is counted
         once per attribute, without skipping.
Cost.    Match O(postings of the event's segments), less what is skipped.  Memory 4 bytes a posting,
         a posting for every segment that a predicate covers: it grows with cardinality.  12 bytes a
         list, 16 a segment.

Layout   (C segments, L lists, M postings)
         segments           see segment_kernels
         first  int64[C+1]  the lists of segment c are first[c] .. first[c + 1] - 1, by size
         arity  int32[L]    k, the size of its expressions
         start  int64[L+1]  the slots of list i, ascending, are item[start[i]:start[i + 1]]
         item   int32[M]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.baselines.k_index_bound import Bound
from matchwood.index.baselines.k_index_kernels import (
    KIndexLayout,
    count_postings,
    post_attributes,
)
from matchwood.index.baselines.k_index_match_kernels import Cursors, match_by_size
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Part, Scratch
from matchwood.index.core.static import StaticFrame
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.stabbing.segment_kernels import Segments
from matchwood.index.stabbing.segments import segments_of
from matchwood.kernel.arrays import bytes_of, doubled
from matchwood.kernel.id_lists import MAX_ITEMS

FEWEST_AT_A_TIME, MOST_PASSES = 16, 32
"""Attributes that are enumerated in one pass over the expressions, and how many passes."""

MOST_COUNTS = 64
"""How often postings are counted to find out which expressions of a batch are too many."""


SEGMENTS, VALUES = "segments", "values"
CONJUNCTION, COUNTING = "conjunction", "counting"


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    max_postings   postings of all expressions together; what would make more is refused.  Raising
                   it allows wider ranges on finer domains, at 4 to 6 bytes a posting.  Leaving
                   expressions have fewer postings, so what is left can always be built anew
    over           "segments" of keys that predicates tell apart, or every one of the "values"
                   between the smallest and the largest constant of an attribute, as in the paper:
                   more postings, for comparison; what has too many values is refused
    algorithm      "conjunction" (Algorithm 1), or "counting": every list of the event is read to
                   its end and counted, whatever its size.  Over values that is SIFT as section 7.2
                   (2) of the BE-Tree paper runs it; for comparison
    """

    max_postings: int = 2**27
    over: str = SEGMENTS
    algorithm: str = CONJUNCTION

    def __post_init__(self) -> None:
        self._expect_integer("max_postings", least=1)
        self._expect_one("over", SEGMENTS, VALUES)
        self._expect_one("algorithm", CONJUNCTION, COUNTING)


class Counted(NamedTuple):
    """What enumerating expressions takes."""

    segments: Segments
    start: np.ndarray  # int64[C+1], where the postings of each segment begin

    @property
    def n_postings(self) -> int:
        return int(self.start[-1])


def _n_values(segments: Segments) -> int:
    """Values between the first and the last cut of every attribute, the open first one left out."""
    total = 0
    for first, last in pairwise(segments.attr_start.tolist()):
        if last - first > 1:
            total += int(segments.cut[last - 1]) - int(segments.cut[first + 1]) + 1
    return total


def _every_value(segments: Segments) -> Segments:
    """The same, with a segment for every value between its first and its last cut."""
    cuts, starts = [np.empty(0, np.int64)], [0]
    for first, last in pairwise(segments.attr_start.tolist()):
        cut = segments.cut[first:last]
        if len(cut) > 1:
            cut = np.concatenate([cut[:1], np.arange(cut[1], cut[-1] + 1)])
        cuts.append(cut)
        starts.append(starts[-1] + len(cut))
    return Segments(np.array(starts, np.int64), np.concatenate(cuts))


class Enumerated(NamedTuple):
    """What is built; see the module's docstring."""

    segments: Segments
    lists: KIndexLayout


class KIndex(StaticFrame[Enumerated]):
    """Owns the lists and the segments they belong to."""

    name: ClassVar[str] = "k_index"
    Config = Config

    def _clear(self) -> None:
        super()._clear()
        self._bound = Bound()
        self._epoch = self._table.epoch

    # ── what it refuses ─────────────────────────────────────────────────────────────────────────

    @property
    def _most_postings(self) -> int:
        return min(self.config.max_postings, MAX_ITEMS // 3 * 2)

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Expressions with which there would be too many postings.

        A part of the slots that is too much is halved until only those are left out that are.
        """
        most, is_known = self._most_postings, self._table.epoch == self._epoch
        is_bound = self.config.over == SEGMENTS  # the bound knows segments, and not values
        if is_bound and is_known and self._with_more(self._bound, slots).n_postings <= most:
            return {}  # else they are too many, or keys have moved since segments were made
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
        uses = uses_of(self._table, slots)
        used = np.flatnonzero(uses).astype(np.int32)
        segments = segments_of(p, used)
        if self.config.over == VALUES:
            n_values = _n_values(segments)
            if n_values > self._most_postings:
                return Counted(segments, np.array([0, n_values]))  # too many in all
            segments = _every_value(segments)
        start = np.zeros(len(segments.cut) + 2, np.int64)
        count_postings(segments, p, used, uses, start[1:])
        np.cumsum(start, out=start)  # from differences to postings of each segment
        np.cumsum(start, out=start)
        return Counted(segments, start[:-1])

    def _with_more(self, bound: Bound, slots: np.ndarray) -> Bound:
        return bound.with_more(self._table.predicates.layout, self._table.codes_of(slots))

    def _note(self, slots: np.ndarray, counted: Counted) -> None:
        """Begin the bound anew from what was counted for these slots, which are all."""
        bound = self._with_more(Bound(segments=counted.segments), slots)
        self._bound = bound._replace(n_postings=counted.n_postings)

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _add(self, slots: np.ndarray) -> None:
        super()._add(slots)
        self._bound = self._with_more(self._bound, slots)
        if self._bound.n_postings > self._most_postings or self.config.over == VALUES:
            self._note(self._held(), self._counted(self._held()))

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        super()._take(layout)
        self._note(self._held(), self._counted(self._held()))

    def _build(self, slots: np.ndarray) -> Enumerated:
        """Postings segment after segment, in a segment by size and slot."""
        counted, x = self._counted(slots), self._table.layout
        self._note(slots, counted)
        segments, item = counted.segments, np.empty(counted.n_postings, np.int32)
        by_size = slots[np.argsort(x.size[slots], kind="stable")]
        end = counted.start[:-1].copy()
        at_a_time = max(FEWEST_AT_A_TIME, len(segments.attr_start) // MOST_PASSES)
        for low in range(0, len(segments.attr_start), at_a_time):
            post_attributes(
                segments, x, self._table.predicates.layout, by_size, low, low + at_a_time, end, item
            )
        arity = x.size[item]
        is_first = np.ones(len(item), np.bool_)
        is_first[1:] = arity[1:] != arity[:-1]
        is_first[counted.start[:-1][counted.start[:-1] < counted.start[1:]]] = True
        start = np.flatnonzero(is_first)
        lists = KIndexLayout(
            first=np.searchsorted(start, counted.start),
            arity=arity[start].astype(np.int32),
            start=np.append(start, len(item)),
            item=item,
        )
        return Enumerated(segments, lists)

    def new_part(self) -> Part:
        part, nothing = Part(), np.empty(0, np.int64)
        part.arrays = Cursors(
            here=nothing, stop=nothing, at=nothing, end=nothing, cursor=nothing, seen=nothing,
            tally=np.empty(0, np.int32), clock=np.zeros(1, np.int64), work=np.zeros(3, np.int64),
        )  # fmt: skip
        return part

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        is_plain = events.are_values and self.config.algorithm == CONJUNCTION
        x, cursors = self._built, self._cursors(scratch.of(self), events, is_plain)
        return scratch.step(match_by_size, events, x.lists, x.segments, is_plain, cursors)

    def _cursors(self, part: Part, events: EventBatch, is_plain: bool) -> Cursors:
        s: Cursors = part.arrays
        longest = int(np.diff(events.start).max(initial=0))
        if len(s.here) <= longest:
            here, stop, at, end, cursor = np.empty((5, doubled(16, longest + 1)), np.int64)
            s = s._replace(here=here, stop=stop, at=at, end=end, cursor=cursor)
        n_slots = self._n_slots
        if not is_plain and len(s.seen) < n_slots:
            s = s._replace(seen=np.zeros(n_slots, np.int64), tally=np.zeros(n_slots, np.int32))
        part.arrays = s
        return s

    def _structure(self) -> dict[str, Any]:
        segments, lists = self._built
        return {
            "segments": len(segments.cut),
            "lists": len(lists.arity),
            "postings": len(lists.item),
            "bytes": bytes_of(segments, lists),
        }

    def draw(self) -> str:
        self.settle()
        segments, x = self._built
        sizes = np.diff(x.start)
        lines = [f"k_index: {self._n_live} conjunctions over {len(segments.cut)} segments"]
        lines += [
            f"├── size {k}: {int(sizes[x.arity == k].sum())} postings in "
            f"{int((x.arity == k).sum())} lists"
            for k in np.unique(x.arity).tolist()
        ]
        return "\n".join([*lines, f"└── {len(x.item)} postings"])
