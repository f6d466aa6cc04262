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
from matchwood.index.core.scratch import Scratch

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

    def _new_arrays(self) -> tuple[Gathering, np.ndarray]:
        x, built = self._table.layout, self._built
        n_slots, longest, n_leaves = len(built.words.start), built.longest, len(built.posts.item)
        sizes, is_tree = x.size[:n_slots], x.kind[:n_slots] == TREE
        # where the intervals of an expression have to lead
        last_point = np.where(is_tree | (sizes == 1), sizes + 1, sizes + 2)
        gathering = Gathering(
            stamp=np.zeros(n_slots, np.int64),
            first=np.empty(n_slots, np.int32),
            touched=np.empty(n_slots, np.int32),
            next=np.empty(n_leaves + 1, np.int32),
            word=np.empty(n_leaves + 1, np.int32),
            sorted=np.empty(longest + 4, np.int32),
            reached=np.zeros((longest + 4, 2), np.int64),
            clock=np.zeros(1, np.int64),
        )
        return gathering, last_point

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        x = self._built
        gathering, last_point = self._arrays_in(scratch)
        arguments = x.posts, x.words, last_point, self.is_dewey, gathering
        return self._step(match_leaf_ids, events, scratch, x.stabbing, *arguments)
