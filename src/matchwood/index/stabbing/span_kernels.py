"""The nodes of a segment tree that make up a span of its leaves.

A tree over n leaves, whatever n is, has the nodes 1 .. 2n - 1: leaf i is n + i, and 2k and 2k + 1
are below k.  A span is made up from its ends, level by level:

    node, left, right = next_node(first + n, last + n + 1)
    while node > 0:
        ...
        node, left, right = next_node(left, right)
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part


@part
def next_node(left, right):
    """A node of those that make up left .. right - 1, and what remains of them; 0 for none."""
    while left < right:
        if left & 1:
            return left, left + 1, right
        if right & 1:
            return right - 1, left, right - 1
        left >>= 1
        right >>= 1
    return np.int64(0), left, right
