"""Interval tree: the intervals that contain a key, by a search tree that knows its highest ends.

Idea.    Intervals stand in a balanced search tree by their first key; every node knows the highest
         last key below it, so that a search leaves out subtrees which end too early or begin too
         late.
Source.  Cormen et al., section 14.3 (augmented trees).  A baseline of PS-Tree in its Table 3.
Differs. The tree lies in the sorted array: the root of a slice is its middle.  Made once; the
         dynamic one for contexts is the interval skip list.
Cost.    Build O(n log n), a key O(min(n, found * log n)), memory 28 bytes an interval.

Layout   (n intervals, in the order of their first keys)
         lo, hi   int64[n]   the intervals
         highest  int64[n]   the largest hi of the slice whose middle this is
         number   int32[n]   which interval it is
"""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.interval_tree_kernels import fill_highest, stab_tree
from matchwood.kernel.arrays import bytes_of

_DEPTH = 160


class IntervalTree:
    """Closed intervals of int64 keys, numbered as they are given."""

    def __init__(self, lo: np.ndarray, hi: np.ndarray) -> None:
        order = np.argsort(lo, kind="stable")
        self._lo, self._hi = lo[order], hi[order]
        self._number = order.astype(np.int32)
        self._highest = np.empty_like(self._hi)
        self._stack = np.zeros((_DEPTH, 3), np.int64)
        if len(lo):
            fill_highest(self._hi, self._highest, self._stack)

    @classmethod
    def of_intervals(cls, lo: np.ndarray, hi: np.ndarray) -> IntervalTree:
        return cls(lo, hi)

    def stab(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Offsets, and the intervals of every key, in no order."""
        offsets = np.zeros(len(keys) + 1, np.int64)
        tree = (self._lo, self._hi, self._highest, self._number)
        stab_tree(*tree, keys, self._stack, offsets, np.empty(0, np.int32))
        out = np.empty(int(offsets[-1]), np.int32)
        if len(out):
            stab_tree(*tree, keys, self._stack, offsets, out)
        return offsets, out

    @property
    def nbytes(self) -> int:
        return bytes_of(self._lo, self._hi, self._highest, self._number)
