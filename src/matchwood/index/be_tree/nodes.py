"""Nodes of `be_tree`: arenas of c-nodes and p-nodes, the p-directory, and the grid of buckets.

See the page of this folder (`__init__`) for the table of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_table_kernels import (
    EMPTY,
    cell_of_id,
    first_cell,
    moved_back,
    next_cell,
    put_id,
)
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.posting_kernels import PostingLayout, release_segment

OWNER, UP, LEFT, RIGHT, HEAD, N_DIR, CAP, SPLIT, TODO = range(9)
"""Columns of `c`: p-node above (-1: root), bucket above (-1: none), halves, first p-node below,
how many of these, capacity of the l-node, whether the bucket was split, whether it is in todo."""
C_WIDTH = 9

ATTR, HOME, TOP_BUCKET, NEXT, PREV, BELOW = range(6)
"""Columns of `p`: attribute (-1: free), c-node above, bucket of the whole domain, neighbours in
the p-directory of that c-node, expressions below."""
P_WIDTH = 6

LO, HI = range(2)

C_HIGH, C_FREE, P_HIGH, P_FREE, N_C, N_P, N_TODO, N_PENDING, N_HELD = range(9)
"""Positions in `count`: ids ever used, first free id (-1), nodes in use, lengths of the two
stacks, expressions held or pending."""
N_COUNTS = 9

N_NOTED = 0
"""Position in `count` of a search."""

ROOT = np.int32(0)


class Rules(NamedTuple):
    """The settings that kernels ask for; see `be_tree.Config`."""

    max_cap: int
    min_size: int
    theta: float
    alpha_s: float
    alpha_c: float
    beta: float
    gamma: float
    histogram: bool
    node_window: float  # a share of the expressions below a p-node; 0: the tree has one window


class Scratch(NamedTuple):
    """What changes need besides the tree; nothing in it is saved."""

    tally: np.ndarray  # int32[A], zero between uses
    share: np.ndarray  # float64[A], zero between uses
    path: np.ndarray  # int32[A], -1 between uses: bucket of the attribute on a path
    skip: np.ndarray  # int8[A], zero between uses: subsumed on a path
    stack: np.ndarray  # int32[C + 1]
    visits: np.ndarray  # int64[C], events of the window that reached a c-node
    discarded: np.ndarray  # int64[C], predicate evaluations spent in vain on its l-node
    score: np.ndarray  # float64[P], added to the number of expressions below
    blame: np.ndarray  # float64[A], what recycling found out about an attribute


class Search(NamedTuple):
    """What a search writes to; see `Scratch` for what becomes of visits and discarded."""

    stack: np.ndarray  # int32[2 C + 1], c-nodes to visit
    posted: np.ndarray  # int64[A], -1 between events: offset in the event at hand
    visits: np.ndarray  # int64[C]
    discarded: np.ndarray  # int64[C]
    noted: np.ndarray  # int32[C], the c-nodes with visits, count[N_NOTED] of them
    count: np.ndarray  # int64[1]


class TreeLayout(NamedTuple):
    """See the page of this folder (`__init__`) for the table of arrays."""

    c: np.ndarray
    span: np.ndarray
    p: np.ndarray
    grid: np.ndarray
    directory: np.ndarray
    attr_span: np.ndarray
    attr_n: np.ndarray
    leaf_of: np.ndarray
    todo: np.ndarray
    pending: np.ndarray
    count: np.ndarray
    postings: PostingLayout


# ── arenas ──────────────────────────────────────────────────────────────────────────────────────


@part
def has_nodes(tree, n_c, n_p):
    """Whether so many new nodes surely fit."""
    return (
        tree.count[C_HIGH] + n_c <= len(tree.c)
        and tree.count[P_HIGH] + n_p <= len(tree.p)
        and 2 * (tree.count[N_P] + n_p) <= len(tree.directory)
    )


@part
def new_c_node(tree, owner, up, lo, hi, cap):
    """A c-node with an empty l-node."""
    c = np.int32(tree.count[C_FREE])
    if c >= 0:
        tree.count[C_FREE] = tree.c[c, LEFT]
    else:
        c = np.int32(tree.count[C_HIGH])
        tree.count[C_HIGH] += 1
    row = tree.c[c]
    row[OWNER], row[UP], row[LEFT], row[RIGHT], row[HEAD] = owner, up, -1, -1, -1
    row[N_DIR], row[CAP], row[SPLIT], row[TODO] = 0, cap, 0, 0
    tree.span[c, LO], tree.span[c, HI] = lo, hi
    tree.postings.lists[c, :] = 0
    tree.count[N_C] += 1
    return c


@part
def free_c_node(tree, c):
    release_segment(tree.postings, c)
    tree.c[c, OWNER] = -2
    tree.c[c, LEFT] = tree.count[C_FREE]
    tree.count[C_FREE] = c
    tree.count[N_C] -= 1


@part
def new_p_node(tree, attr, home, cap):
    """A p-node in the p-directory of a c-node, over an empty bucket of the whole domain."""
    p = np.int32(tree.count[P_FREE])
    if p >= 0:
        tree.count[P_FREE] = tree.p[p, NEXT]
    else:
        p = np.int32(tree.count[P_HIGH])
        tree.count[P_HIGH] += 1
    row = tree.p[p]
    head = tree.c[home, HEAD]
    row[ATTR], row[HOME], row[NEXT], row[PREV], row[BELOW] = attr, home, head, -1, 0
    if head >= 0:
        tree.p[head, PREV] = p
    tree.c[home, HEAD] = p
    tree.c[home, N_DIR] += 1
    tree.count[N_P] += 1
    put_id(tree.directory, _hash_of(tree, p), p)
    set_grid(tree, p)
    row[TOP_BUCKET] = new_c_node(tree, p, -1, MIN_KEY, MAX_KEY, cap)
    return p


@part
def free_p_node(tree, p):
    """Take a p-node, whose buckets are gone, out of its p-directory."""
    _leave(tree, p)
    row = tree.p[p]
    if row[PREV] >= 0:
        tree.p[row[PREV], NEXT] = row[NEXT]
    else:
        tree.c[row[HOME], HEAD] = row[NEXT]
    if row[NEXT] >= 0:
        tree.p[row[NEXT], PREV] = row[PREV]
    tree.c[row[HOME], N_DIR] -= 1
    row[ATTR] = -1
    row[NEXT] = tree.count[P_FREE]
    tree.count[P_FREE] = p
    tree.count[N_P] -= 1


@part
def add_todo(tree, c):
    """Remember a c-node whose l-node may be too full."""
    if tree.c[c, TODO] == 0:
        tree.c[c, TODO] = 1
        tree.todo[tree.count[N_TODO]] = c
        tree.count[N_TODO] += 1


# ── p-directory: one hash table for all c-nodes ─────────────────────────────────────────────────


@part
def _hash(c, attr):
    h = (np.uint64(c) << np.uint64(32) | np.uint64(attr)) * np.uint64(0x9E3779B97F4A7C15)
    return (h ^ (h >> np.uint64(29))) >> np.uint64(8)


@part
def _hash_of(tree, p):
    return _hash(tree.p[p, HOME], tree.p[p, ATTR])


@part
def search_p_dir(tree, c, attr):
    """SearchPDir: the p-node of an attribute below a c-node; -1 when there is none."""
    at = first_cell(tree.directory, _hash(c, attr))
    while tree.directory[at] != EMPTY:
        p = tree.directory[at]
        if tree.p[p, ATTR] == attr and tree.p[p, HOME] == c:
            return p
        at = next_cell(tree.directory, at)
    return np.int32(-1)


@part
def _leave(tree, p):
    """Remove a p-node from the p-directory."""
    hole = cell_of_id(tree.directory, _hash_of(tree, p), p)
    nearby = next_cell(tree.directory, hole)
    while tree.directory[nearby] != EMPTY:
        hole = moved_back(tree.directory, hole, nearby, _hash_of(tree, tree.directory[nearby]))
        nearby = next_cell(tree.directory, nearby)
    tree.directory[hole] = EMPTY


@part
def enter_all(tree):
    """Fill an emptied p-directory again."""
    for p in range(tree.count[P_HIGH]):
        if tree.p[p, ATTR] >= 0:
            put_id(tree.directory, _hash_of(tree, p), p)


# ── grid: halves of an attribute's domain ───────────────────────────────────────────────────────


@part
def set_grid(tree, p):
    """Fix the domain that a p-node halves: the known interval ends, and as much on either side.

    So ends that keep rising (times, running numbers) fall into different cells before the grid is
    made anew.
    """
    attr = tree.p[p, ATTR]
    lo, hi = tree.attr_span[attr, LO], tree.attr_span[attr, HI]
    if lo > hi:  # no finite end: every predicate is open on both sides
        lo, hi = np.int64(0), np.int64(0)
    width = max(np.uint64(1), np.uint64(hi) - np.uint64(lo))
    below = min(width, np.uint64(lo) - np.uint64(MIN_KEY))
    above = min(width, np.uint64(MAX_KEY) - np.uint64(hi))
    tree.grid[p, LO] = np.int64(np.uint64(lo) - below)
    tree.grid[p, HI] = np.int64(np.uint64(hi) + above)


@part
def is_outgrown(tree, p):
    """Whether an interval end of the attribute now lies outside the domain that a p-node halves."""
    attr = tree.p[p, ATTR]
    lo, hi = tree.attr_span[attr, LO], tree.attr_span[attr, HI]
    return lo <= hi and (lo < tree.grid[p, LO] or hi > tree.grid[p, HI])


@part
def middle(lo, hi):
    """The last key of the lower half of lo..hi."""
    return lo + np.int64((np.uint64(hi) - np.uint64(lo)) >> np.uint64(1))


@part
def cut(tree, c):
    """Where a bucket is halved, and whether it can be (atomic buckets cannot)."""
    p = tree.c[c, OWNER]
    lo, hi = max(tree.span[c, LO], tree.grid[p, LO]), min(tree.span[c, HI], tree.grid[p, HI])
    return middle(lo, hi), lo < hi


@part
def smallest_cell(tree, p, lo, hi, low, high):
    """The smallest cell of a p-node's grid within the cell lo..hi that encloses low..high."""
    while True:
        first, last = max(lo, tree.grid[p, LO]), min(hi, tree.grid[p, HI])
        if first >= last:
            return lo, hi
        mid = middle(first, last)
        if high <= mid:
            hi = mid
        elif low > mid:
            lo = mid + 1
        else:
            return lo, hi


@part
def push_halves(tree, c, stack, top):
    """Put the halves of a bucket onto a stack of c-nodes; returns its new height."""
    for side in (LEFT, RIGHT):
        if tree.c[c, side] >= 0:
            stack[top] = tree.c[c, side]
            top += 1
    return top


@part
def push_p_nodes(tree, c, stack, top):
    """Put the buckets of all p-nodes of a c-node onto a stack; returns its new height."""
    p = tree.c[c, HEAD]
    while p >= 0:
        stack[top] = tree.p[p, TOP_BUCKET]
        top += 1
        p = tree.p[p, NEXT]
    return top
