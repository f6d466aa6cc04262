"""Arrays that grow by doubling, so that adding one element at a time stays cheap."""

from __future__ import annotations

import numpy as np


def doubled(size: int, needed: int) -> int:
    """`size`, or 1 for nothing, doubled until it is enough."""
    size = max(size, 1)
    while size < needed:
        size *= 2
    return size


def grown(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    """The array itself when it is long enough, else a longer copy with `fill` at its end."""
    if size <= len(array):
        return array
    fresh = np.empty(size, array.dtype)
    fresh[: len(array)] = array
    fresh[len(array) :] = fill
    return fresh


def slices(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """All positions of several slices, one after the other.

    >>> slices(np.array([10, 3]), np.array([2, 3])).tolist()
    [10, 11, 3, 4, 5]
    """
    firsts = np.cumsum(size) - size
    at: np.ndarray = np.repeat(start - firsts, size) + np.arange(int(size.sum()))
    return at
