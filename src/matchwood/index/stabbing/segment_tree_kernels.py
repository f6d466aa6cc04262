"""Kernels of `segment_tree`: count, write and find the intervals on the nodes above a segment."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.span_kernels import next_node
from matchwood.kernel.jit import kernel
from matchwood.kernel.sort_kernels import last_not_above


@kernel
def fill_nodes(cuts, lo, hi, start, item, is_counting):
    """Put every interval on the nodes that make it up.  Run twice: to count, and to write.

    Counting leaves the number of node v in start[v + 1]; writing moves start[v] to its end.
    """
    n = np.int64(len(cuts))
    for k in range(len(lo)):
        first = last_not_above(cuts, np.int64(0), n, lo[k])
        last = last_not_above(cuts, np.int64(0), n, hi[k])
        node, left, right = next_node(first + n, last + n + 1)
        while node > 0:
            if is_counting:
                start[node + 1] += 1
            else:
                item[start[node]] = k
                start[node] += 1
            node, left, right = next_node(left, right)


@kernel
def stab_nodes(cuts, start, item, keys, offsets, out):
    """The intervals of every key; with an empty `out` only their numbers, in offsets[i + 1]."""
    n = np.int64(len(cuts))
    for i in range(len(keys)):
        node, at = last_not_above(cuts, np.int64(0), n, keys[i]) + n, offsets[i]
        total = np.int64(0)
        while node > 0:
            for k in range(start[node], start[node + 1]):
                if len(out) > 0:
                    out[at + total] = item[k]
                total += 1
            node >>= 1
        if len(out) == 0:
            offsets[i + 1] = offsets[i] + total
