"""Kernels of `gryphon` that build it: the order of tests, and what is left of them in leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel
from matchwood.kernel.posting_kernels import push

EQUALITY, GENERIC = range(2)
"""Group g keeps its edges in lists 2g + EQUALITY and 2g + GENERIC."""

ROOT = 0
NONE = -1
NEARBY = 8
"""Groups that are read in the time of one look into the hash table: those of a node lie together,
a look into the table misses the caches."""

IS_GROUP = np.int64(1) << 31
"""Marks a group among the pairs: (node, IS_GROUP | attribute)."""


class Tree(NamedTuple):
    """See `gryphon.py` for the table of arrays; pairs and postings are further arrays."""

    first: np.ndarray
    attr: np.ndarray
    start: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    ref: np.ndarray
    child: np.ndarray


class Factoring(NamedTuple):
    """Which tree an event is looked up in; see `gryphon_factoring.py`."""

    attr: np.ndarray  # int32[F], the attributes that are factored out
    start: np.ndarray  # int64[F+1], cuts of attribute f: start[f] .. start[f + 1] - 1
    cuts: np.ndarray  # int64, ascending inside an attribute
    root: np.ndarray  # int32, by combination of cells, NONE: no expression; [ROOT] without any


@kernel
def arrange(rank, expressions, predicates, slots, start, order):
    """The predicates of expressions by the rank of their attributes, those of slots[i] from
    start[i] on.
    """
    for i in range(len(slots)):
        begin, n = expressions.start[slots[i]], np.int64(expressions.size[slots[i]])
        mine = order[start[i] : start[i] + n]
        for k in range(n):
            pred = expressions.code[begin + k]
            mine_rank = rank[predicates.attr[pred]]
            j = k
            while j > 0 and rank[predicates.attr[mine[j - 1]]] > mine_rank:
                mine[j] = mine[j - 1]
                j -= 1
            mine[j] = pred


class Leaves(NamedTuple):
    """Expressions, and where each is posted."""

    slot: np.ndarray
    node: np.ndarray
    depth: np.ndarray  # predicates on the way to the node: order[start:start + depth]
    start: np.ndarray
    order: np.ndarray


@kernel
def fill_leaves(postings, expressions, predicates, leaves, rows, first, skip, rarity):
    """Post expressions at their nodes, without the predicates on the way; rows first.. in turn.

    rows    positions in `leaves`
    skip    int8 by attribute, all 0 before and after

    Returns how many are done; fewer than all: the arena has no room.
    """
    start, depth, order = leaves.start, leaves.depth, leaves.order
    for r in range(first, len(rows)):
        i = rows[r]
        for k in range(start[i], start[i] + depth[i]):
            skip[predicates.attr[order[k]]] = 1
        fits = push(postings, leaves.node[i], expressions, predicates, leaves.slot[i], skip, rarity)
        for k in range(start[i], start[i] + depth[i]):
            skip[predicates.attr[order[k]]] = 0
        if not fits:
            return r
    return len(rows)
