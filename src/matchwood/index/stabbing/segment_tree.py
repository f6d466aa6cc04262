"""Segment tree: the intervals that contain a key, static.

Idea.    The ends of intervals cut the keys into elementary segments.  Over them stands a binary
         tree; an interval is put on the few nodes that make it up, and a key's intervals are those
         on the way from its segment to the root.
Source.  Bentley 1977; de Berg et al., section 10.3.  A baseline of PS-Tree in its Table 3.
Differs. Bottom-up over any number of leaves, node lists one behind the other.
Cost.    Build O(n log n), a key O(log n + intervals found), memory 4 bytes for each of at most
         2 log n nodes of an interval and 24 a cut.

Layout   (C cuts)
         cut    int64[C]     first key of a segment, ascending, MIN_KEY first
         start  int64[2C+1]  slice of `item` of every node; segment i is node C + i, the root is 1
         item   int32[]      interval numbers
"""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.segment_tree_kernels import fill_nodes, stab_nodes
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY


class SegmentTree:
    """Closed intervals of int64 keys, numbered as they are given."""

    def __init__(self, lo: np.ndarray, hi: np.ndarray) -> None:
        ends = np.concatenate([[MIN_KEY], lo, hi[hi != MAX_KEY] + 1])
        self._cut = np.unique(ends)
        start = np.zeros(2 * len(self._cut) + 2, np.int64)
        nothing = np.empty(0, np.int32)
        fill_nodes(self._cut, lo, hi, start, nothing, True)
        start = np.cumsum(start)
        self._item = np.empty(int(start[-1]), np.int32)
        ends_of = start.copy()
        fill_nodes(self._cut, lo, hi, ends_of, self._item, False)
        self._start = start

    @classmethod
    def of_intervals(cls, lo: np.ndarray, hi: np.ndarray) -> SegmentTree:
        return cls(lo, hi)

    def stab(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Offsets, and the intervals of every key, in no order."""
        offsets = np.zeros(len(keys) + 1, np.int64)
        nothing = np.empty(0, np.int32)
        stab_nodes(self._cut, self._start, self._item, keys, offsets, nothing)
        out = np.empty(int(offsets[-1]), np.int32)
        if len(out):
            stab_nodes(self._cut, self._start, self._item, keys, offsets, out)
        return offsets, out

    @property
    def nbytes(self) -> int:
        return self._cut.nbytes + self._start.nbytes + self._item.nbytes
