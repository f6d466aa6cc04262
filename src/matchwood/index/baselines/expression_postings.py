"""Expression postings: what the partners that keep every tree for itself have in common.

A predicate knows the trees, or the leaves of trees, that it occurs in; a tree has some words that
say how to evaluate it.  `dewey_id`, `interval_id` and `bop` differ in these words.

Layout   posts     lists[P]   by predicate: expressions, or the places of leaves (see id_lists)
         blocks    lists[S]   by expression: its words
         stabbing             which predicates an event satisfies (see stabbing)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.index.baselines.expression_postings_kernels import (
    BLOCKS_FULL,
    POSTS_FULL,
    count_leaves,
    post_expressions,
    unpost_expressions,
)
from matchwood.index.core.frame import IndexFrame
from matchwood.index.core.protocol import ANY
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.id_lists import IdListStore


class ExpressionPostings(IndexFrame):
    """Owns postings, words and the predicate index; a subclass writes words and matches."""

    language: ClassVar[str] = ANY
    posts_leaves: ClassVar[bool] = True
    """Whether leaves are posted, by the place of their two words, or expressions."""

    def _clear(self) -> None:
        self._stabbing = StabbingTree()
        self._posts = IdListStore(16)
        self._blocks = IdListStore(16)
        self._gathering: Any = None

    @abstractmethod
    def _words(self, slots: np.ndarray, n_leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words of expressions, one after the other, and where each begins."""

    def _fill(self, slots: np.ndarray) -> None:
        slots = np.sort(slots)
        uses, n_leaves = self._count(slots)
        self._stabbing.build(self._table, uses)
        self._posts.make_lists(len(uses))
        self._posts.make_room(int(n_leaves.sum(dtype=np.int64)))
        self._post(slots, n_leaves, is_held=True)

    def _add(self, slots: np.ndarray) -> None:
        slots = np.sort(slots)
        _, n_leaves = self._count(slots)
        self._stabbing.make_ids(self._table)
        self._posts.make_lists(len(self._table.predicates.layout.attr))
        self._post(slots, n_leaves, is_held=False)
        self._stabbing.settle(self._table)

    def _count(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        uses = np.zeros(len(self._table.predicates.layout.attr), np.int32)
        n_leaves = np.zeros(len(slots), np.int32)
        count_leaves(self._table.layout, slots, uses, n_leaves)
        return uses, n_leaves

    def _post(self, slots: np.ndarray, n_leaves: np.ndarray, is_held: bool) -> None:
        stabbing, posts, blocks, table = self._stabbing, self._posts, self._blocks, self._table
        blocks.make_lists(int(slots.max()) + 1)
        words, word_start = self._words(slots, n_leaves)
        blocks.make_room(len(words))
        done = 0
        while done < len(slots):
            done, full = post_expressions(
                table.layout, table.predicates.layout, slots, done, words, word_start,
                self.posts_leaves, is_held, posts.lists, blocks.lists,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
            )  # fmt: skip
            if done < len(slots):
                full_one = {POSTS_FULL: posts, BLOCKS_FULL: blocks}.get(full, stabbing.on_node)
                full_one.grow()
        self._gathering = None

    def _remove(self, slots: np.ndarray) -> None:
        stabbing = self._stabbing
        unpost_expressions(
            self._table.layout, self._table.predicates.layout, slots, self.posts_leaves,
            self._posts.lists, self._blocks.lists,
            stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
        )  # fmt: skip
        stabbing.settle(self._table)
        self._posts.trim()
        self._gathering = None

    def _structure(self) -> dict[str, Any]:
        return {
            "postings": self._posts.n_ids,
            **self._stabbing.stats(),
            "bytes": self._posts.nbytes + self._blocks.nbytes + self._stabbing.nbytes,
        }

    def draw(self) -> str:
        return (
            f"{self.name}\n├── {len(self._stabbing)} predicates, {self._posts.n_ids} postings\n"
            f"└── {len(self)} expressions in {self._blocks.n_ids} words"
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            **self._posts.layout("post"),
            **self._blocks.layout("block"),
            **self._stabbing.layout(),
        }

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._posts.take(layout, "post")
        self._blocks.take(layout, "block")
        self._stabbing.take(layout)

    def _thaw(self) -> None:
        self._posts.thaw()
        self._blocks.thaw()
        self._stabbing.thaw()
