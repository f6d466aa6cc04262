"""The owner of an A-Tree; see the page of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.a_tree.check import check_a_tree, check_stabbing
from matchwood.index.a_tree.config import ON_DEMAND, ZERO_SUPPRESSION, ATreeConfig
from matchwood.index.a_tree.delete import delete_batch
from matchwood.index.a_tree.draw import draw_dot, draw_text, sharing_by_level
from matchwood.index.a_tree.insert import DONE, NODES_FULL, TABLE_FULL, insert_batch
from matchwood.index.a_tree.levels import match_levels
from matchwood.index.a_tree.match import MINE, VIEW, Mine, View, match_events
from matchwood.index.a_tree.memory import ATreeMemory, new_levels, new_matching
from matchwood.index.a_tree.nodes import CHANGED, WAITING
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import BoundStep, IndexFrame, Saved, Step
from matchwood.index.core.protocol import ANY
from matchwood.index.core.scratch import Scratch, new_version
from matchwood.index.stabbing.predicate_kernels import Scratch as Found
from matchwood.index.stabbing.predicates import StabbingTree

MANY, SHARE = 1024, 8
"""A batch of at least MANY expressions, and one for each SHARE held, is followed by `rebalance`."""


class ATree(IndexFrame):
    """Owns the graph and the predicate index below it."""

    name: ClassVar[str] = "a_tree"
    language: ClassVar[str] = ANY
    is_kept: ClassVar[bool] = True
    LAYOUT = VIEW
    SEARCH = MINE
    Config: ClassVar[type[IndexConfig]] = ATreeConfig

    def _clear(self) -> None:
        self._memory = ATreeMemory()
        self._found_by = StabbingTree()
        self._version = new_version()

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        """Short expressions first: the long ones then find them to build on."""
        sizes = self._table.layout.size[slots]
        self._insert(slots[np.argsort(sizes, kind="stable")])
        self._memory.renumber(self._table, self.config.for_kernels())
        self._found_by.build(self._table, self._uses())

    def _uses(self) -> np.ndarray:
        """By predicate: 1 for those that are leaves."""
        return (self._memory.layout.leaf_of >= 0).astype(np.int32)

    def _add(self, slots: np.ndarray) -> None:
        changed = self._insert(slots)
        self._found_by.hold_all(self._table, changed)
        self._found_by.settle(self._table)
        if len(slots) >= max(MANY, self._n_live // SHARE):
            self.rebalance()

    def rebalance(self) -> None:
        """Number nodes anew, so that those which become true together are neighbours again.

        Takes about a sixth of the time that building takes.  A large batch does it by itself;
        after many small ones matching takes three quarters of the time.
        """
        if not self._memory.n_leaves:
            return
        self._thaw()
        self._memory.renumber(self._table, self.config.for_kernels(), slack=0.125)
        self._version = new_version()

    def _insert(self, slots: np.ndarray) -> np.ndarray:
        """Take expressions in; returns the predicates that are new."""
        table, memory, settings = self._table, self._memory, self.config.for_kernels()
        memory.make_plain()
        memory.make_ids(table, slots)
        sizes = table.layout.size[slots]
        longest = int(sizes.max())
        # what is abandoned for lack of room comes, goes and comes again
        changed = np.empty(int(sizes.sum(dtype=np.int64)) + 128 * longest, np.int32)
        scratch = memory.scratch(longest)
        scratch.used[CHANGED] = 0
        done = 0
        while True:
            n, status = insert_batch(
                table.layout, table.predicates.layout, slots[done:],
                memory.layout, scratch, settings, memory.hull, changed,
            )  # fmt: skip
            done += n
            if status == NODES_FULL:
                memory.make_nodes()
                scratch = memory.scratch(longest)
            elif status == TABLE_FULL:
                memory.make_table()
            elif status != DONE:
                memory.make_words()
            if scratch.used[WAITING]:
                self._release(np.empty(0, np.int32), changed)
            if status == DONE:
                break
        self._version = new_version()
        kept = np.unique(changed[: scratch.used[CHANGED]])
        return kept[memory.layout.leaf_of[kept] >= 0]

    def _remove(self, slots: np.ndarray) -> None:
        memory = self._memory
        memory.make_plain()
        scratch = memory.scratch()
        changed = np.empty(int(memory.n_leaves), np.int32)
        scratch.used[CHANGED] = 0
        self._release(slots, changed)
        self._found_by.drop_all(self._table, changed[: scratch.used[CHANGED]])
        self._found_by.settle(self._table)
        if memory.is_hollow():
            memory.renumber(self._table, self.config.for_kernels(), slack=0.125)
        self._version = new_version()

    def _release(self, slots: np.ndarray, changed: np.ndarray) -> None:
        """Delete expressions, and remove nodes that wait for it."""
        memory, done = self._memory, 0
        scratch, settings = memory.scratch(), self.config.for_kernels()
        while True:
            done, status = delete_batch(slots, done, memory.layout, scratch, settings, changed)
            if status == DONE:
                return
            memory.make_words()

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def _view(self) -> View:
        stabbing = self._found_by
        return View(
            self._memory.layout, stabbing.arrays, stabbing.segments, stabbing.on_node.lists,
            self._table.predicates.layout,
        )  # fmt: skip

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        stabbing, table, x = self._found_by, self._table, self._memory.layout
        part, is_on_demand = scratch.of(self), self.config.matching == ON_DEMAND
        if part.version != self._version:
            part.arrays = new_matching(x) if is_on_demand else new_levels(x, table)
            part.version = self._version
        matching = part.arrays
        found = stabbing.scratch_in(part, events)
        if not is_on_demand:
            return self._level_stepper(events, scratch, stabbing, found)
        return self._bound_step(
            match_events, events, scratch, lambda: Mine(matching, found, scratch.board)
        )

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep | None:
        """As `IndexFrame.alone`; None for the matching of the papers."""
        step = self._stepper(events, scratch)
        return step if isinstance(step, BoundStep) else None

    def _level_stepper(
        self, events: EventBatch, scratch: Scratch, stabbing: StabbingTree, found: Found
    ) -> Step:
        table, x, levels = self._table, self._memory.layout, scratch.of(self).arrays
        suppress = int(self.config.matching == ZERO_SUPPRESSION)
        finder = stabbing.finder(table.predicates.layout, found)
        return scratch.step(match_levels, events, x, levels, suppress, finder)

    # ── looking at it ───────────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        return {
            **self._memory.stats(),
            "sharing": sharing_by_level(self._memory.layout),
            **self._found_by.stats(),
            "bytes": self._memory.nbytes + self._found_by.nbytes,
        }

    def draw(self, style: str = "text") -> str:
        """The graph as text, or with style "dot" for Graphviz."""
        names = self._table.predicates
        return (draw_dot if style == "dot" else draw_text)(self._memory.layout, names)

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**self._memory.saved(), **self._found_by.saved()}

    @classmethod
    def _check(cls, saved: Saved) -> None:
        is_leaf = check_a_tree(saved.table, saved.slots, saved.layout)
        check_stabbing(saved.table, is_leaf, saved.layout)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._memory.take(layout)
        self._found_by.take(layout)

    def _thaw(self) -> None:
        self._memory.thaw()
        self._found_by.thaw()
