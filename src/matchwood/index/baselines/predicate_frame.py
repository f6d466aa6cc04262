"""Predicate frame: static indexes that find all predicates an event satisfies, by stabbing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import StaticFrame, Structure
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.kernel.id_lists import MAX_ITEMS

_MOST_ITEMS = 96
"""An interval takes fewer items of a stabbing tree's lists, whatever else is held: it is on two
nodes of a level at most, and lists have room for half as many again."""


class PredicateFrame(StaticFrame[Structure]):
    """The verbs; a subclass says what is done with the predicates that were found."""

    def _must_build_now(self, slots: np.ndarray) -> bool:
        """Whether the lists of the stabbing tree might become too long."""
        p = self._table.predicates.layout
        return _MOST_ITEMS * (len(p.attr) + len(p.interval_lo)) > MAX_ITEMS

    def _stabbing(self, uses: np.ndarray) -> StabbingTree:
        stabbing = StabbingTree()
        stabbing.build(self._table, uses)
        return stabbing

    def _step(
        self,
        kernel: Callable[..., int],
        events: EventBatch,
        scratch: Scratch,
        stabbing: StabbingTree,
        *arguments: Any,
    ) -> Step:
        """The step that calls a kernel: its own arguments, then those that all of them take."""
        found = stabbing.scratch_in(scratch.of(self), events)
        finder = stabbing.finder(self._table.predicates.layout, found)
        return scratch.step(kernel, events, *arguments, finder)
