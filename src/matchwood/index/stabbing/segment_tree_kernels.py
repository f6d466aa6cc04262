"""Kernels of `segment_tree`: count, write and find the intervals on the nodes above a segment."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part


@part
def _last_at_most(cuts, key):
    base, n, one = np.uint64(0), np.uint64(len(cuts)), np.uint64(1)
    while n > one:
        half = n >> one
        base += half if cuts[base + half] <= key else np.uint64(0)
        n -= half
    return np.int64(base)


@kernel
def fill_nodes(cuts, lo, hi, start, item, is_counting):
    """Put every interval on the nodes that make it up.  Run twice: to count, and to write.

    Counting leaves the number of node v in start[v + 1]; writing moves start[v] to its end.
    """
    n = len(cuts)
    for k in range(len(lo)):
        left, right = _last_at_most(cuts, lo[k]) + n, _last_at_most(cuts, hi[k]) + n + 1
        while left < right:
            if left & 1:
                if is_counting:
                    start[left + 1] += 1
                else:
                    item[start[left]] = k
                    start[left] += 1
                left += 1
            if right & 1:
                right -= 1
                if is_counting:
                    start[right + 1] += 1
                else:
                    item[start[right]] = k
                    start[right] += 1
            left >>= 1
            right >>= 1


@kernel
def stab_nodes(cuts, start, item, keys, offsets, out):
    """The intervals of every key; with an empty `out` only their numbers, in offsets[i + 1]."""
    n = len(cuts)
    for i in range(len(keys)):
        node, at = _last_at_most(cuts, keys[i]) + n, offsets[i]
        total = np.int64(0)
        while node > 0:
            for k in range(start[node], start[node + 1]):
                if len(out) > 0:
                    out[at + total] = item[k]
                total += 1
            node >>= 1
        if len(out) == 0:
            offsets[i + 1] = offsets[i] + total
