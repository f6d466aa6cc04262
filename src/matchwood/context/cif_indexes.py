"""Subscriptions of the context-aware filter and the indexes that hold them: built and changed.

See `cif.py` for the page of the filter, and the kernels for the layouts.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import numpy as np

from matchwood.context.agile import new_structure, renewed, roomier
from matchwood.context.agile_kernels import BOX_LEVEL, GBU, NO_INDEX, SKIP_LIST, Following
from matchwood.context.choice import choose_attributes, no_choice
from matchwood.context.cif_build import ends_of, structure_for
from matchwood.context.member_kernels import N_MEMBERS, Members
from matchwood.context.members import Compiled, append, compile_slots, meanings, no_members
from matchwood.context.policy_kernels import P_MEMBERS, P_UPDATES
from matchwood.context.safe_range_kernels import Indexed
from matchwood.context.store import ContextStore
from matchwood.context.update_kernels import (
    box_entries,
    deescalate_entries,
    enter,
    leave,
    make_nodes,
    update_cells,
)
from matchwood.encode.keys import INT_MAX, INT_MIN
from matchwood.index.core.frame import IndexFrame
from matchwood.index.core.scratch import new_version
from matchwood.index.stabbing.interval_skip_list import with_identifiers
from matchwood.index.stabbing.interval_skip_list_kernels import LEVELS
from matchwood.index.stabbing.marker_kernels import KIND, NODES
from matchwood.kernel.arrays import grown

SPARE_NODES = 64
"""Nodes that are never worth looking for those that no range ends at any more."""
_NO_CELLS = np.full((1, 1, 4), INT_MIN, np.int64)


class MemberIndexes(IndexFrame):
    """Owns subscriptions and indexes; the values are the store's."""

    mode: ClassVar[int] = NO_INDEX
    _slots: set[int]
    _pending: list[int]
    _policy: np.ndarray
    work: np.ndarray

    _is_stale = True
    """Whether subscriptions and indexes have to be built again before they are used."""

    contexts: ContextStore | None = None
    """The values that subscriptions refer to; set by the owner, None while none has any."""

    @property
    def _store(self) -> ContextStore | None:
        return self.contexts

    @property
    def member_of(self) -> np.ndarray:
        """Subscription by slot, -1: none."""
        return self._member_of

    @property
    def predicates(self) -> Any:
        """The layout of the predicate table."""
        return self._table.predicates.layout

    @property
    def cells(self) -> np.ndarray:
        """The values of the contexts."""
        return _NO_CELLS if self._store is None else self._store.cells

    def _drop_layout(self) -> None:
        """Forget subscriptions and indexes, and the links from values to them."""
        if self._store is not None and self._store.follower is self:
            self._store.reset_safety()
        self.choice = no_choice()
        self.members: Members = no_members()
        self.structure = new_structure(0, 1)
        self._scope = np.zeros((0, 2), np.int64)
        self._before = np.zeros(LEVELS, np.int64)
        self._member_of = np.full(16, -1, np.int32)
        self._version = new_version()
        self._built_with = (0, 0)
        self._n_dead = 0
        self._types_version = -1
        self._most_nodes = SPARE_NODES
        self._swept, self._swept_work = sys.maxsize, (0, 0)

    # -- building ----------------------------------------------------------------------------

    def _compile(self, slots: list[int] | np.ndarray) -> Compiled:
        return compile_slots(
            self._table, np.array(slots, np.int32), meanings(self._table, self._store)
        )

    def _build(self) -> None:
        """Compile all slots, choose the indexes, and put all subscriptions into them."""
        store = self._store
        self._drop_layout()
        if not self._slots:
            return
        slots = np.array(sorted(self._slots), np.int32)
        compiled = self._compile(slots)
        n_values = 0 if store is None else store.n_values
        self._built_with = (len(slots), n_values)
        self._policy[P_MEMBERS] = len(slots)
        self._types_version = -1 if store is None else store.attributes.version
        if self.mode != NO_INDEX:
            rows = np.full(len(compiled.slots), -1, np.int32)
            if store is not None:
                linked = store.is_linked(compiled.slots)
                rows[linked] = store.slot_row[compiled.slots[linked]]
            self.choice = choose_attributes(compiled, rows, self.cells, self.config.indexes)
            if self.choice.width:
                self.structure = structure_for(compiled, self.choice, self.config.structure)
                self._scope = self._scopes()
        self._is_stale = False
        self._pending = []
        self._take_compiled(compiled)

    def _scopes(self) -> np.ndarray:
        """Of partial indexes: first and last key that each holds."""
        scope = np.empty((self.choice.n_lists, 2), np.int64)
        scope[:, 0], scope[:, 1] = INT_MIN, INT_MAX
        return scope

    def _take_compiled(self, compiled: Compiled) -> None:
        """Append subscriptions and put them into the indexes."""
        if not len(compiled.slots):
            return
        first = int(self.members.count[N_MEMBERS])
        self.members = append(self.members, compiled, self.choice, self._store)
        last = int(self.members.count[N_MEMBERS])
        top = int(compiled.slots.max()) + 1
        if top > len(self._member_of):
            self._member_of = grown(self._member_of, max(top, 2 * len(self._member_of)), -1)
        self._member_of[compiled.slots] = np.arange(first, last)
        n = self.choice.width
        if not n:
            return
        self.structure = with_identifiers(self.structure, len(self.members.entry))
        if first == 0 and self.structure.count[KIND] == SKIP_LIST:
            n_lists = self.choice.n_lists
            for k, ends in enumerate(ends_of(self.members, self.cells, last, n, n_lists)):
                self._repeat(
                    lambda done, k=k, ends=ends: make_nodes(
                        self.structure, k, ends, done, self._before
                    ),
                    0, len(ends),
                )  # fmt: skip
        self._repeat(lambda done: enter(self._indexed(), done, last), first, last)
        if self.mode == GBU and self.structure.count[KIND] == SKIP_LIST:
            self._repeat(
                lambda done: box_entries(self._indexed(), done, last, BOX_LEVEL), first, last
            )
        if first == 0:
            self._most_nodes = SPARE_NODES + 3 * int(self.structure.count[NODES])

    @property
    def _is_bottom_up(self) -> bool:
        """Whether an entry that leaves its boxes is moved from where it is, not from the top."""
        return False

    @property
    def _mode_of_updates(self) -> int:
        """What an update that leaves K(i) does, see `agile_kernels.update`."""
        return self.mode

    def _indexed(self, mode: int | None = None) -> Indexed:
        """What kernels of updates work on, as it is now."""
        following = Following(
            self.mode if mode is None else mode, self._scope, self._before, self._is_bottom_up
        )
        return Indexed(self.members, self.structure, self.cells, self.choice.width, following)

    def _repeat(self, step: Any, done: int, last: int) -> None:
        """Call a step until it comes to the end, making room whenever it stops."""
        while True:
            done = step(done)
            if done == last:
                return
            self.structure = roomier(self.structure)

    # -- changes -----------------------------------------------------------------------------

    def _leave(self, slots: np.ndarray) -> None:
        """Remove subscriptions of slots from the indexes."""
        inside = slots[slots < len(self._member_of)]
        chosen = self._member_of[inside]
        self._member_of[inside] = -1
        chosen = chosen[chosen >= 0]
        leave(self._indexed(), chosen)
        self._n_dead += len(chosen)
        if self._n_dead > 64 + len(self._slots) // 4:
            self._is_stale = True

    def update(self, rows: np.ndarray, cols: np.ndarray, keys: np.ndarray) -> None:
        """Write keys into cells, count the values that are set, and let the indexes follow."""
        n_set = np.zeros(0, np.int64) if self._store is None else self._store.n_set
        mode = self._mode_of_updates
        self._repeat(
            lambda done: update_cells(
                self._indexed(mode), n_set, rows, cols, keys, done, self._policy, self.work
            ),
            0, len(keys),
        )  # fmt: skip
        self._give_back_nodes()

    def _give_back_nodes(self) -> None:
        """Nodes stay when the ranges that ended there leave; when they are two in three, all are
        made anew.  So many were made since the last time that the work is theirs.
        """
        if self.structure.count[NODES] > self._most_nodes:
            self.structure = renewed(
                self.structure, self.choice.n_lists, self.members.listed, self._before
            )
            self._most_nodes = SPARE_NODES + 3 * int(self.structure.count[NODES])

    def _deescalate_all(self, chosen: np.ndarray, is_whole: bool = False) -> None:
        self._repeat(
            lambda done: deescalate_entries(self._indexed(), chosen, done, is_whole, self.work),
            0, len(chosen),
        )  # fmt: skip
        self._give_back_nodes()

    def forget_layout(self) -> None:
        """Keys have moved, or types have become known: build anew at the next match."""
        self._is_stale = True

    def note_updates(self, n: int) -> None:
        """So many values were changed."""
        self._policy[P_UPDATES] += n
