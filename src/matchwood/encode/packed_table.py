"""Packed table: the expressions and predicates of a segment, compressed while nothing reads them.

Searches of `blocks` read what the blocks have; the table itself is asked by few verbs (`near`,
`overlaps`, `save`, merges).  So it is kept as what it takes to make it again:

    each array   less its lowest value, or as differences where it never falls; then one plane of
                 bytes after another, from the lowest byte up, as many as the values need; each
                 plane compressed (zstd); upper ends of intervals less the lower ones

A sixth to a tenth of the arrays is left; a million expressions are unpacked in some tenths of a
second (`python benchmarks/memory.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import N_CODE, ExpressionLayout
from matchwood.encode.predicates import PredicateTable

_WIDTH = 8
_ENDS = (("lo", "hi"), ("interval_lo", "interval_hi"))


class PackedArray(NamedTuple):
    """One array of integers."""

    dtype: np.dtype[np.generic]
    n: int
    lowest: int
    is_rising: bool
    """Whether differences are packed."""
    planes: tuple[bytes, ...]

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.planes))

    def unpacked(self) -> np.ndarray:
        import pyarrow as pa

        found = np.zeros((self.n, _WIDTH), np.uint8)
        for at, plane in enumerate(self.planes):
            data = pa.decompress(plane, self.n, codec="zstd", asbytes=True)
            found[:, at] = np.frombuffer(data, np.uint8)
        values = found.view(np.int64).ravel()
        if self.is_rising:
            np.cumsum(values, out=values)
        values += np.int64(self.lowest)
        return values.astype(self.dtype, copy=False)


def packed_array(array: np.ndarray) -> PackedArray:
    """The array compressed."""
    import pyarrow as pa

    n = len(array)
    values = array.astype(np.int64)
    lowest = int(values.min()) if n else 0
    values -= np.int64(lowest)  # wraps around where the values are far apart, and back again
    is_rising = n > 1 and bool((array[1:] >= array[:-1]).all())
    if is_rising:
        values[1:] -= values[:-1].copy()
    bits = int(np.bitwise_or.reduce(values.view(np.uint64)))
    width = (bits.bit_length() + 7) // 8
    rows = values.view(np.uint8).reshape(n, _WIDTH)
    planes = [pa.compress(rows[:, at].tobytes(), codec="zstd", asbytes=True) for at in range(width)]
    return PackedArray(array.dtype, n, lowest, is_rising, tuple(planes))


class PackedTable:
    """The arrays of an expression table and of its predicates."""

    def __init__(self, layout: ExpressionLayout, predicates: PredicateTable) -> None:
        n_slots = int(np.flatnonzero(layout.kind).max(initial=-1)) + 1
        cut = {"code": int(layout.count[N_CODE]), "count": len(layout.count)}
        arrays = {name: getattr(layout, name)[: cut.get(name, n_slots)] for name in layout._fields}
        self._is_whole = np.array_equal(arrays["start"], _side_by_side(arrays["size"]))
        if self._is_whole:  # no code was given up in between
            del arrays["start"]
        self._expressions = {name: packed_array(array) for name, array in arrays.items()}
        arrays = predicates.saved()
        for low, high in _ENDS:
            arrays[high] = arrays[high] - arrays[low]  # wraps around, and back again
        self._predicates = {name: packed_array(array) for name, array in arrays.items()}
        self.n_predicates = len(predicates)

    def arrays(self) -> Iterator[tuple[str, PackedArray]]:
        """All arrays with their names."""
        for name, each in self._expressions.items():
            yield f"expressions: {name}", each
        for name, each in self._predicates.items():
            yield f"predicates: {name}", each

    @property
    def nbytes(self) -> int:
        return sum([each.nbytes for _, each in self.arrays()])

    def kinds(self) -> np.ndarray:
        """The kind of every slot."""
        return self._expressions["kind"].unpacked()

    def unpacked(self) -> tuple[ExpressionLayout, PredicateTable]:
        """The layout and the predicates again."""
        arrays = {name: each.unpacked() for name, each in self._expressions.items()}
        if self._is_whole:
            arrays["start"] = _side_by_side(arrays["size"])
        layout = ExpressionLayout(**arrays)
        arrays = {name: each.unpacked() for name, each in self._predicates.items()}
        for low, high in _ENDS:
            arrays[high] += arrays[low]
        return layout, PredicateTable.restore(arrays)


def _side_by_side(sizes: np.ndarray) -> np.ndarray:
    """Where code of these sizes begins that lies side by side."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return ends - sizes
