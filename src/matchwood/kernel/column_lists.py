"""Column lists: id lists whose items have further columns beside them.

    item  [ 7  3  9 | 4  4 .. ]      the ids, in blocks as `id_lists` has them
    mark  [ x  y  z | u  v .. ]      what belongs to each, at the same position

The owner keeps its own order in a block; `id_list_kernels.take_block` and `give_block` hand blocks
out.  Kernels see one NamedTuple: the fields of `IdLists`, and then the columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.kernel.arrays import slices
from matchwood.kernel.id_list_kernels import NO_BLOCK, TOP
from matchwood.kernel.id_lists import IdListStore


class ColumnStore(IdListStore):
    """Owns lists with columns; `columns` are empty arrays that say the type of each."""

    def __init__(self, kind: Any, n_lists: int, **columns: np.ndarray) -> None:
        super().__init__(n_lists)
        self._columns = tuple(columns)
        size = len(self.lists.item)
        shaped = {
            name: np.zeros((size, *array.shape[1:]), array.dtype) for name, array in columns.items()
        }
        self.lists: Any = kind(**self.lists._asdict(), **shaped)

    def grow(self, n_items: int = 0) -> None:
        super().grow(n_items)
        top, size = int(self.lists.count[TOP]), len(self.lists.item)
        fresh = {}
        for name in self._columns:
            array = getattr(self.lists, name)
            fresh[name] = np.zeros((size, *array.shape[1:]), array.dtype)
            fresh[name][:top] = array[:top]
        self.lists = self.lists._replace(**fresh)

    def trim(self, unused: float = 0.75, growth: float = 0.125) -> None:
        if not self._is_sparse(unused):
            return
        start = self.lists.start.copy()
        super().trim(unused, growth)
        held = np.flatnonzero(self.lists.room != NO_BLOCK)
        room = self.lists.room[held].astype(np.int64)
        size = (2 + (room & 1)) << (room >> 1)
        old, new = slices(start[held], size), slices(self.lists.start[held], size)
        fresh = {}
        for name in self._columns:
            array = getattr(self.lists, name)
            fresh[name] = np.zeros((len(self.lists.item), *array.shape[1:]), array.dtype)
            fresh[name][new] = array[old]
        self.lists = self.lists._replace(**fresh)

    def _to_save(self, name: str, arrays: Any) -> Any:
        top = int(arrays.count[TOP])
        cut = {column: getattr(arrays, column)[:top] for column in ("item", *self._columns)}
        return arrays._replace(**cut)
