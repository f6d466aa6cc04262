"""The activated VCRs of a `vcr` index: their lists, and the table or hash that finds a list.

Layout   see the page of this folder (`__init__`)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.vcr.activate import HIGH, N_INEXACT, Active, enter_all
from matchwood.index.vcr.change import (
    FLAGS,
    ITEMS_FULL,
    KX,
    KY,
    LISTS_FULL,
    MAP_FULL,
    Grid,
    Parts,
    Vcrs,
    insert_more,
    remove_all,
)
from matchwood.index.vcr.config import CHAINS, HASH, TABLE
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.id_lists import IdListStore
from matchwood.kernel.owner import Owner
from matchwood.kernel.pair_map_kernels import new_pair_map, renumber_ids, with_room

MOST_SLOTS = 2 ** (31 - FLAGS)
"""Slots that an item of a list has room for."""

BOXES = 8
"""Boxes are kept when one in so many expressions, or more, has to be tested against its own."""


class VCRLists(Owner):
    """Owns the arrays over one grid: fills them, grows them, empties them."""

    OWNED: ClassVar = {"grid": "grid_", "active": "active_", "pairs": "hash_", "_store": "list_"}
    REPLACED: ClassVar = ("grid",)

    def __init__(
        self, grid: Grid, lists: str, places: int, overlapped: bool, most_vcrs: int
    ) -> None:
        self.grid = grid
        self.pairs = new_pair_map()
        size = {TABLE: n_places(grid), CHAINS: places}.get(lists, 0)
        self.active = Active(
            table=np.zeros(size, np.int32),
            chain=np.zeros(16 if lists == CHAINS else 0, np.int32),
            owner=np.zeros(16, np.int64),
            count=np.array([0, -1, 0], np.int64),
            home=np.zeros(16, np.uint8),
            box=np.zeros((0, 4), np.int64),
        )
        self._store = IdListStore(16)
        self.overlapped = overlapped
        self._most = most_vcrs

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def lay_out(self, table: ExpressionTable, slots: np.ndarray) -> None:
        """Activate VCRs, and reserve their lists in the order of their numbers.

        A point then reads its lists in a few runs of memory: half the time and less of lists in the
        order in which they came (docs/decisions/0010-vcr-a-grid-of-keys.md).
        """
        self._make_home(slots)
        uses = self._run(table, slots, is_count=True)
        if BOXES * self.active.count[N_INEXACT] > len(slots):
            box = np.zeros((len(self.active.home), 4), np.int64)
            self.active = self.active._replace(box=box)
        active, n = self.active, int(self.active.count[HIGH])
        order = np.argsort(active.owner[:n], kind="stable")
        active.owner[:n] = active.owner[:n][order]
        if len(active.chain):
            active.table[:] = 0
            enter_all(active, self.pairs)
        elif len(active.table):
            active.table[active.owner[:n]] = np.arange(1, n + 1, dtype=np.int32)
        else:
            rank = np.empty(n, np.int32)
            rank[order] = np.arange(n, dtype=np.int32)
            renumber_ids(self.pairs, rank)
        self._store.reserve(uses[:n][order])

    def insert(self, table: ExpressionTable, slots: np.ndarray) -> None:
        """Place expressions, ascending; `home` says which the grid cannot hold."""
        self._make_home(slots)
        self._run(table, slots, is_count=False)

    def _run(self, table: ExpressionTable, slots: np.ndarray, is_count: bool) -> np.ndarray:
        """Put ids into lists, or count how many each list will get; returns the counts."""
        uses = np.zeros(len(self.active.owner) if is_count else 0, np.int32)
        parts, done = self._parts(), 0
        while done < len(slots):
            done, full = insert_more(
                self._vcrs(), uses, table.layout, table.predicates.layout, slots, done,
                self.overlapped, parts,
            )  # fmt: skip
            self._grow(full)
            uses = grown(uses, len(self.active.owner)) if is_count else uses
        return uses

    def remove(self, table: ExpressionTable, slots: np.ndarray) -> None:
        """Take out expressions that are placed; lists shrink, VCRs without ids are deactivated."""
        p, parts = table.predicates.layout, self._parts()
        remove_all(self._vcrs(), table.layout, p, slots, self.overlapped, parts)
        self._store.trim()

    def _grow(self, full: int) -> None:
        active = self.active
        if full == LISTS_FULL:
            self._store.make_lists(max(2 * len(active.owner), int(active.count[HIGH]) + self._most))
            size = len(self._store.lists.size)
            chain = grown(active.chain, size) if len(active.chain) else active.chain
            self.active = active._replace(owner=grown(active.owner, size), chain=chain)
        elif full == MAP_FULL:
            self.pairs = with_room(self.pairs, self._most)
        elif full == ITEMS_FULL:
            self._store.grow()

    def _make_home(self, slots: np.ndarray) -> None:
        size = doubled(len(self.active.home), int(slots.max()) + 1)
        box = self.active.box
        self.active = self.active._replace(
            home=grown(self.active.home, size), box=grown(box, size) if len(box) else box
        )

    def _parts(self) -> Parts:
        return Parts(np.zeros(4, np.int64), np.zeros((self._most, 4), np.int64))

    def _vcrs(self) -> Vcrs:
        return Vcrs(self.grid, self.active, self.pairs, self._store.lists)

    # ── telling and keeping ─────────────────────────────────────────────────────────────────────

    @property
    def lists(self) -> IdLists:
        return self._store.lists

    @property
    def form(self) -> str:
        """What finds a list: see `Config.lists`."""
        if len(self.active.chain):
            return CHAINS
        return TABLE if len(self.active.table) else HASH

    @property
    def n_active(self) -> int:
        return int((self.lists.size > 0).sum())

    @property
    def n_ids(self) -> int:
        return self._store.n_ids

    @property
    def n_places(self) -> int:
        """Places of the table or of the hash."""
        return len(self.active.table) or len(self.pairs.key)

    @property
    def load(self) -> float:
        """Activated VCRs by places."""
        return self.n_active / self.n_places

    def longest(self, n: int) -> list[tuple[tuple[int, int, int, int], int]]:
        """The VCRs (x, y, width, height) with the longest lists, and how long these are."""
        sizes = self.lists.size
        found = np.argsort(-sizes, kind="stable")[:n].tolist()
        return [(self.vcr(which), int(sizes[which])) for which in found if sizes[which]]

    def vcr(self, which: int) -> tuple[int, int, int, int]:
        """The VCR of a list: Equation 1 backwards."""
        kx, ky = int(self.grid.shape[KX]), int(self.grid.shape[KY])
        corner, shape = divmod(int(self.active.owner[which]), (kx + 1) * (ky + 1))
        j, i = divmod(shape, kx + 1)
        y, x = divmod(corner, len(self.grid.cut_x))
        return x, y, 1 << i, 1 << j


def n_places(grid: Grid) -> int:
    """All VCRs of a plane: B R_x R_y."""
    shapes = (int(grid.shape[KX]) + 1) * (int(grid.shape[KY]) + 1)
    return shapes * len(grid.cut_x) * len(grid.cut_y)
