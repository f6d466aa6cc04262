"""Id lists: many sorted lists of ids in one arena, each growing and shrinking by itself.

Idea.    A list is in a block; when the block is full the list moves to one half as large again, and
         the old block is free for the next list of that size.  Ids are sorted, so an id is found
         by halving, a list can be skipped through, and inserting twice is inserting once.
Cost.    Appending O(1) amortised; elsewhere and deleting O(log n) and one move of memory.  13 bytes
         a list, 4 an id, at most half as much again in unused room.

Layout   (L lists, M items)
         start  int64[L]   where a list's block begins
         size   int32[L]   ids in it
         room   int8[L]    class of its block (see `capacity`), NO_BLOCK when the list is empty
         item   int32[M]   the blocks; ids ascending inside a list
         free   int32[62]  first free block of every class, the next in its first item; -1 none
         count  int64[2]   TOP, USED

Blocks need not hold a sorted list: an owner that keeps its own order in them (the records of
`pst`) takes them with `take_block` and `give_block`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from matchwood.errors import IndexBuildError
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.checks import Column, check, check_slices, expect
from matchwood.kernel.id_list_kernels import (
    N_CLASSES,
    NO_BLOCK,
    TOP,
    USED,
    IdLists,
    needed_room,
    repack,
    reserve_lists,
)
from matchwood.kernel.owner import Owner

MAX_ITEMS = 2**31 - 1
_SMALL = 256


class IdListStore(Owner):
    """Owns the lists: makes them, grows the arena, gives it back."""

    OWNED: ClassVar = {"lists": ""}

    def __init__(self, n_lists: int = 0) -> None:
        self.lists = IdLists(
            start=np.zeros(n_lists, np.int64),
            size=np.zeros(n_lists, np.int32),
            room=np.full(n_lists, NO_BLOCK, np.int8),
            item=np.zeros(_SMALL, np.int32),
            free=np.full(N_CLASSES, -1, np.int32),
            count=np.zeros(2, np.int64),
        )

    @property
    def n_ids(self) -> int:
        return int(self.lists.size.sum(dtype=np.int64))

    def make_lists(self, n: int) -> None:
        """At least n lists, the new ones empty."""
        x = self.lists
        size = doubled(len(x.size), n) if n > len(x.size) else len(x.size)
        self.lists = x._replace(
            start=grown(x.start, size), size=grown(x.size, size), room=grown(x.room, size, NO_BLOCK)
        )

    def make_room(self, n_items: int) -> None:
        """Room for that many more items at the end of the arena; nothing is done where there is."""
        if int(self.lists.count[TOP]) + n_items > len(self.lists.item):
            self.grow(n_items)

    def reserve(self, sizes: np.ndarray) -> None:
        """Room for so many ids in each of the lists, which are empty, in the order of the lists."""
        sizes = sizes.astype(np.int64, copy=False)
        self.make_room(int(needed_room(sizes)))
        reserve_lists(self.lists, sizes)

    def grow(self, n_items: int = 0) -> None:
        """A larger arena, for a kernel that found it full: that many more items, or half as many
        again.
        """
        x = self.lists
        needed = int(x.count[TOP]) + n_items
        size = max(needed, len(x.item) + len(x.item) // 2, _SMALL)  # a snapshot may have none
        if size > MAX_ITEMS:
            size = MAX_ITEMS
            if needed >= MAX_ITEMS or len(x.item) == MAX_ITEMS:
                raise IndexBuildError(
                    f"expected at most {MAX_ITEMS:,} ids in the lists of one index, found more: "
                    "spread the subscriptions over several matchers"
                )
        item = np.zeros(size, np.int32)  # memory that is not touched costs nothing yet
        item[: x.count[TOP]] = x.item[: x.count[TOP]]
        self.lists = x._replace(item=item)

    def trim(self, unused: float = 0.75, growth: float = 0.125) -> None:
        """Close the arena up, with some room to grow, once more than this share is unused."""
        if self._is_sparse(unused):
            used = int(self.lists.count[USED])
            fresh = np.zeros(max(_SMALL, used + int(growth * used)), np.int32)
            repack(self.lists, fresh)
            self.lists = self.lists._replace(item=fresh)

    def _is_sparse(self, unused: float) -> bool:
        n = len(self.lists.item)
        return n > _SMALL and bool(self.lists.count[USED] < (1 - unused) * n)

    def _to_save(self, name: str, arrays: IdLists) -> IdLists:
        """The arena without its untouched end."""
        return arrays._replace(item=arrays.item[: int(arrays.count[TOP])])

    def _owned(self, name: str, arrays: IdLists) -> IdLists:
        """Without free blocks: the links between them were not checked."""
        return arrays._replace(free=np.full(N_CLASSES, -1, np.int32))


_LISTS = {
    "start": Column("int64", "l"),
    "size": Column("int32", "l", 0),
    "room": Column("int8", "l", NO_BLOCK, N_CLASSES),
    "item": Column("int32", "m"),
    "free": Column("int32", N_CLASSES),
    "count": Column("int64", 2),
}


def check_lists(layout: Mapping[str, np.ndarray], prefix: str) -> None:
    """Whether lists of a snapshot lie in blocks of their own; what they hold is the owner's."""
    n_items = check(layout, _LISTS, prefix)["m"]
    room, size = layout[f"{prefix}room"], layout[f"{prefix}size"]
    held = np.flatnonzero(room != NO_BLOCK)
    expect(not size[room == NO_BLOCK].any(), f"{prefix}size", "nothing without a block")
    classes = room[held].astype(np.int64)
    capacity = (2 + (classes & 1)) << (classes >> 1)
    expect((size[held] <= capacity).all(), f"{prefix}size", "what fits its block")
    start = layout[f"{prefix}start"][held]
    check_slices(f"{prefix}start", start, capacity, n_items)
    order = np.argsort(start, kind="stable")
    ends = (start + capacity)[order]
    expect((ends[:-1] <= start[order][1:]).all(), f"{prefix}start", "blocks apart")
    count = [n_items, int(capacity.sum())]
    expect(layout[f"{prefix}count"].tolist() == count, f"{prefix}count", str(count))
