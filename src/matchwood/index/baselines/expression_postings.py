"""Expression postings: what the baselines that keep each tree separately have in common.

A predicate knows the trees, or the leaves of trees, that it occurs in; a tree has some words that
say how to evaluate it.  `dewey_id`, `interval_id` and `bop` differ in these words.

Layout   posts     lists[P]   by predicate: expressions, or where the words of leaves are (see
                              list_kernels)
         words     start int64[S], item int32[]: by slot, where the words of an expression begin
         stabbing             which predicates an event satisfies (see stabbing)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.index.baselines.expression_postings_kernels import count_leaves, post_leaves
from matchwood.index.baselines.list_kernels import Lists, post_slots
from matchwood.index.baselines.predicate_frame import PredicateFrame
from matchwood.index.core.protocol import ANY
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.arrays import bytes_of, offsets_of


class Trees(NamedTuple):
    """See the module's docstring for the arrays."""

    posts: Lists
    words: Lists
    stabbing: StabbingTree
    longest: int  # tokens of an expression


class ExpressionPostings(PredicateFrame[Trees]):
    """Owns postings, words and the predicate index; a subclass writes words and matches."""

    language: ClassVar[str] = ANY
    posts_leaves: ClassVar[bool] = True
    """Whether leaves are posted, by the position of their two words, or expressions."""

    @abstractmethod
    def _words(self, slots: np.ndarray, n_leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words of expressions, one after the other, and where each begins."""

    def _build(self, slots: np.ndarray) -> Trees:
        x = self._table.layout
        uses = np.zeros(len(self._table.predicates.layout.attr), np.int32)
        n_leaves, last = np.zeros(len(slots), np.int32), np.full(len(uses), -1, np.int32)
        count_leaves(x, slots, not self.posts_leaves, last, uses, n_leaves)
        words, word_start = self._words(slots, n_leaves)
        by_slot = np.zeros(int(slots.max(initial=-1)) + 1, np.int64)
        by_slot[slots] = word_start[:-1]
        start = offsets_of(np.trim_zeros(uses, "b"))
        is_far = self.posts_leaves and len(words) > np.iinfo(np.int32).max
        item = np.empty(int(start[-1]), np.int64 if is_far else np.int32)
        if self.posts_leaves:
            post_leaves(x, slots, word_start, start[:-1].copy(), item)
        else:
            last[:] = -1
            post_slots(x, slots, last, start[:-1].copy(), item)
        longest = int(x.size[slots].max(initial=0))
        return Trees(Lists(start, item), Lists(by_slot, words), self._stabbing(uses), longest)

    def _structure(self) -> dict[str, Any]:
        x = self._built
        return {
            "postings": len(x.posts.item),
            **x.stabbing.stats(),
            "bytes": bytes_of(x.posts, x.words) + x.stabbing.nbytes,
        }

    def draw(self) -> str:
        self.settle()
        x = self._built
        return (
            f"{self.name}\n├── {len(x.stabbing)} predicates, {len(x.posts.item)} postings\n"
            f"└── {len(self)} expressions in {len(x.words.item)} words"
        )
