"""Kernels of the element trie: values as sequences of elements, and the leaves beside each value.

    [-5..-1], [1..5]       root ─┬─ - ─── 7 ─┬─ 11    l e g = 0 1 1      a value is a node;
    over bytes                   │           └─ 15            1 1 2      l, e, g: leaves below,
                                 └─ + ─── 0 ─┬─ 1             2 3 3      at and above it
                                             └─ 5             3 3 4

A node has 16 children at most; larger elements are several smaller ones.  A value comes before the
values that continue it, so strings of different lengths are in order.

Layout   (T nodes)
         child  int32[T, 16]  NONE where there is none
         leaf   int32[T, 3]   BELOW, AT, ABOVE: leaves beside the node's value; NONE: it has none
         uses   int32[T, 2]   ends of predicates before and after the value
         count  int64[1]      N_NODES
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part

NONE = -1
WIDTH = 16
BELOW, AT, ABOVE = range(3)

N_NODES = 0


class Trie(NamedTuple):
    """See the module's docstring for the arrays."""

    child: np.ndarray
    leaf: np.ndarray
    uses: np.ndarray
    count: np.ndarray


@part
def _first_value(trie, node):
    """The smallest value at or under a node (the paper's GetLNode), or NONE."""
    while trie.leaf[node, AT] == NONE:
        k = np.int64(0)
        while k < WIDTH and trie.child[node, k] == NONE:
            k += 1
        if k == WIDTH:
            return np.int64(NONE)
        node = np.int64(trie.child[node, k])
    return np.int64(node)


@part
def _next_value(trie, path, elements, depth, node):
    """The smallest value behind a sequence that ends at `depth` (GetRNode), or NONE.

    `node` is its node when it has one; what continues it comes first.
    """
    if node != NONE:
        for k in range(WIDTH):
            if trie.child[node, k] != NONE:
                found = _first_value(trie, np.int64(trie.child[node, k]))
                if found != NONE:
                    return found
    for d in range(depth - 1, -1, -1):
        for k in range(np.int64(elements[d]) + 1, WIDTH):
            if trie.child[path[d], k] != NONE:
                found = _first_value(trie, np.int64(trie.child[path[d], k]))
                if found != NONE:
                    return found
    return np.int64(NONE)


@kernel
def find_value(trie, elements, size, path, last_leaf):
    """MatchPair (Algorithm 3): the leaf of a value; `last_leaf` lies behind all values."""
    node = np.int64(0)
    for d in range(size):
        path[d] = node
        child = np.int64(trie.child[node, elements[d]])
        if child == NONE:
            found = _next_value(trie, path, elements, d + 1, np.int64(NONE))
            return last_leaf if found == NONE else np.int64(trie.leaf[found, BELOW])
        node = child
    if trie.leaf[node, AT] != NONE:
        return np.int64(trie.leaf[node, AT])
    found = _next_value(trie, path, elements, size, node)
    return last_leaf if found == NONE else np.int64(trie.leaf[found, BELOW])


@kernel
def find_values(trie, elements, sizes, path, last_leaf, found):
    """The leaf of every row of elements."""
    for i in range(len(sizes)):
        found[i] = find_value(trie, elements[i], sizes[i], path, last_leaf)


@kernel
def put_value(trie, elements, size, path):
    """The node of a value, made if need be; there is room for `size` nodes."""
    node = np.int64(0)
    for d in range(size):
        path[d] = node
        child = np.int64(trie.child[node, elements[d]])
        if child == NONE:
            child = trie.count[N_NODES]
            trie.count[N_NODES] += 1
            trie.child[node, elements[d]] = child
        node = child
    return node


@kernel
def next_value(trie, elements, size, path, node):
    """The value behind that of a node, or NONE."""
    return _next_value(trie, path, elements, size, node)
