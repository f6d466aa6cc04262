"""Arrays that grow by doubling, and tuples of them that go into snapshots and come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
"""A NamedTuple of arrays: how kernels take a structure."""


def doubled(size: int, needed: int) -> int:
    """`size`, or 1 for nothing, doubled until it is enough."""
    size = max(size, 1)
    while size < needed:
        size *= 2
    return size


COPIED_AT_ONCE = 2**16
"""Bytes up to which an array grows without giving up the interpreter's lock."""


def grown(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    """The array itself when it is long enough, else a longer copy with `fill` at its end."""
    if size <= len(array):
        return array
    shape, n_bytes = (size, *array.shape[1:]), size * array.strides[0]
    is_plain = array.flags.c_contiguous and not array.dtype.hasobject
    if is_plain and 0 < n_bytes <= COPIED_AT_ONCE:
        # NumPy would give the lock up for making zeros, for copying and for filling.
        found = bytearray(array.data)
        found += np.array([fill], array.dtype).tobytes() * (
            (n_bytes - len(found)) // array.itemsize
        )
        return np.frombuffer(found, array.dtype).reshape(shape)
    make = np.empty if fill else np.zeros  # zeros take no memory before they are written
    fresh = make(shape, array.dtype)
    fresh[: len(array)] = array
    if fill:
        fresh[len(array) :] = fill
    return fresh


def positions(slots: np.ndarray) -> np.ndarray:
    """Slots in the type that NumPy indexes with.

    With int32, and in searching, sorting and `take`, it gives up the interpreter's lock, even for
    ten of them; where other threads run Python code, getting it back takes far longer than that.
    """
    return slots.astype(np.intp)


def writable(arrays: Arrays) -> Arrays:
    """The same arrays; those that cannot be written (memory maps) as copies."""
    return type(arrays)(*map(writable_array, arrays))


def writable_array(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy of one that cannot be written."""
    return array if array.flags.writeable else array.copy()


def named(arrays: tuple[Any, ...], prefix: str = "") -> dict[str, np.ndarray]:
    """The arrays of a NamedTuple by name, for a snapshot."""
    return {f"{prefix}{name}": a for name, a in zip(arrays._fields, arrays, strict=True)}  # type: ignore[attr-defined]


def restored(kind: type[Arrays], layout: Mapping[str, np.ndarray], prefix: str = "") -> Arrays:
    """A NamedTuple made of arrays of a snapshot."""
    return kind(*[layout[f"{prefix}{name}"] for name in kind._fields])  # type: ignore[attr-defined]


def prefixed(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The same arrays of a snapshot under names that begin with a prefix."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a snapshot whose names begin with a prefix, by the rest of their names."""
    n = len(prefix)
    return {name[n:]: array for name, array in arrays.items() if name.startswith(prefix)}


def bytes_of(*parts: Any) -> int:
    """Bytes of arrays, and of arrays in tuples.

    >>> bytes_of(np.zeros(2), (np.zeros(1, np.int32), (np.zeros(3, np.int8),)))
    23
    """
    return sum([each.nbytes if isinstance(each, np.ndarray) else bytes_of(*each) for each in parts])


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Where slices of these sizes begin, one behind the other, and where the last one ends; int64.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, dtype=np.int64, out=found[1:])
    return found


def slices(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """All positions of several slices, one after the other.

    >>> slices(np.array([10, 3]), np.array([2, 3])).tolist()
    [10, 11, 3, 4, 5]
    """
    firsts = np.cumsum(size) - size
    at: np.ndarray = np.repeat(start - firsts, size) + np.arange(int(size.sum()))
    return at
