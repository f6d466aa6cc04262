"""Counting index: a conjunction matches once all of its predicates have been seen.

Idea.    Find the predicates that the event satisfies, each once for all expressions that share it.
         Walk the posting list of each, counting per expression how many are still to be seen.
         None left: a match.
Source.  SIFT (Yan and Garcia-Molina 1999), as used in section 7.2 (2) of the BE-Tree paper.
Differs. Ranges are found by stabbing, not enumerated, so memory does not grow with cardinality, and
         inequality has the strong semantics at no extra price (enumerated, it is `k_index` with
         algorithm="counting" and over="values").  Built again after changes (there:
         a profile is posted and taken out in place).
Cost.    Match O(satisfied predicates + their postings).  Memory 4 bytes a posting, 8 a predicate,
         and the stabbing tree; a matcher 2 an expression.

Layout   (P predicate ids, S slots)
         posts     lists[P]   slots of the expressions that use a predicate (see list_kernels)
         stabbing             which predicates an event satisfies (see stabbing)
         counter   [S, 2]     copied into each scratch.  LEFT: base + predicates still to be seen;
                              NEED: predicates.  Every event has a base above all counters before
                              it, so they are set back only when they come to the limit of their
                              type: uint8 for expressions of up to 30 predicates (half the time of
                              int32), int32
         width, clock         distance of two bases; the last base
         opened    int64[n,2] scratch: ends of the lists of satisfied predicates
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.counting_kernels import NEED, count_batch
from matchwood.index.baselines.list_kernels import Lists, post_slots
from matchwood.index.baselines.predicate_frame import PredicateFrame
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.use_kernels import uses_of
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import bytes_of, doubled, offsets_of

SHORT = 32
"""Up to this width, one more than the predicates of an expression, counters are bytes."""


class Postings(NamedTuple):
    """See the module's docstring for the arrays."""

    posts: Lists
    stabbing: StabbingTree
    counter: np.ndarray
    width: int


class Counts(NamedTuple):
    """What a search writes to."""

    counter: np.ndarray
    clock: np.ndarray
    opened: np.ndarray


class Counting(PredicateFrame[Postings]):
    """Owns the posting lists, the stabbing tree and the counters."""

    name: ClassVar[str] = "counting"

    def _build(self, slots: np.ndarray) -> Postings:
        x = self._table.layout
        uses = uses_of(self._table, slots)
        start = offsets_of(np.trim_zeros(uses, "b"))
        item = np.empty(int(start[-1]), np.int32)
        post_slots(x, slots, np.full(len(uses), -1, np.int32), start[:-1].copy(), item)
        width = doubled(2, int(x.size[slots].max(initial=0)) + 1)
        n_slots = int(slots.max(initial=-1)) + 1
        counter = np.zeros((n_slots, 2), np.uint8 if width <= SHORT else np.int32)
        counter[slots, NEED] = x.size[slots]
        return Postings(Lists(start, item), self._stabbing(uses), counter, width)

    def _new_arrays(self) -> Counts:
        x = self._built
        opened = np.empty((len(x.stabbing), 2), np.int64)
        return Counts(x.counter.copy(), np.zeros(1, np.int64), opened)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        x, mine = self._built, self._arrays_in(scratch)
        most = int(np.iinfo(x.counter.dtype).max)
        return self._step(count_batch, events, scratch, x.stabbing, x.posts, mine, x.width, most)

    def _structure(self) -> dict[str, Any]:
        x = self._built
        return {
            "postings": len(x.posts.item),
            **x.stabbing.stats(),
            "bytes": bytes_of(x.posts) + x.stabbing.nbytes,
        }

    def draw(self) -> str:
        self.settle()
        x = self._built
        longest = int(np.diff(x.posts.start).max(initial=0))
        return (
            f"counting\n├── {len(x.stabbing)} predicates over "
            f"{len(x.stabbing.segments.cut)} segments\n"
            f"└── {len(x.posts.item)} postings of {self._n_live} conjunctions, "
            f"the longest list {longest}"
        )
