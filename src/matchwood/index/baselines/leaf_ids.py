"""Leaf ids: the common owner of `interval_id` and `dewey_id`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import TREE
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.baselines.expression_postings import ExpressionPostings
from matchwood.index.baselines.leaf_id_kernels import Gathering, match_leaf_ids
from matchwood.index.core.frame import Step

LONGEST = 2**15 - 3
"""Most tokens of an expression: the ends of intervals have 16 bits."""


class LeafIds(ExpressionPostings):
    """A leaf has two words: its expression and its id."""

    is_dewey: ClassVar[bool]

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Expressions that are too long."""
        sizes = self._table.layout.size[slots]
        return {
            int(slots[i]): IndexBuildError(
                f"{self.name}: expected expressions of at most {LONGEST:,} tokens, found one of "
                f"{int(sizes[i]):,}: use a_tree"
            )
            for i in np.flatnonzero(sizes > LONGEST)
        }

    def _stepper(self, events: EventBatch) -> Step:
        board, stabbing, table = self._board, self._stabbing, self._table
        scratch = stabbing.scratch_for(events)
        if self._gathering is None:
            self._gathering = self._new_gathering(), self._last_points()
        gathering, last_point = self._gathering

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_leaf_ids(
                self._posts.lists, self._blocks.lists, last_point, self.is_dewey, gathering,
                stabbing.arrays, stabbing.segments, stabbing.on_node.lists, scratch,
                events, first, stamp, board.event, board.entry,
                table.predicates.layout, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _last_points(self) -> np.ndarray:
        """Where the intervals of an expression have to lead."""
        x = self._table.layout
        return np.where((x.kind == TREE) | (x.size == 1), x.size + 1, x.size + 2)

    def _new_gathering(self) -> Gathering:
        n_slots, n_leaves = len(self._table.layout.size), self._posts.n_ids
        longest = int(self._table.layout.size.max(initial=0)) + 4
        return Gathering(
            stamp=np.zeros(n_slots, np.int64),
            first=np.empty(n_slots, np.int32),
            touched=np.empty(n_slots, np.int32),
            next=np.empty(n_leaves + 1, np.int32),
            word=np.empty(n_leaves + 1, np.int32),
            sorted=np.empty(longest, np.int32),
            reached=np.zeros((longest, 2), np.int64),
            clock=np.zeros(1, np.int64),
        )
