"""Deletion from `be_tree`: underflow, merging, and taking parts of the tree down."""

from __future__ import annotations

import numpy as np

from matchwood.index.be_tree.cut import update_capacity
from matchwood.index.be_tree.nodes import (
    CAP,
    HI,
    HOME,
    LEFT,
    LO,
    N_DIR,
    N_HELD,
    OWNER,
    RIGHT,
    ROOT,
    SPLIT,
    TOP_BUCKET,
    UP,
    free_c_node,
    free_p_node,
)
from matchwood.index.be_tree.takedown import count_below, put_aside
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.posting_kernels import (
    N,
    drop_entry,
    fit,
)

# ── underflow ───────────────────────────────────────────────────────────────────────────────────


@part
def _is_open_leaf(tree, c):
    return tree.c[c, N_DIR] == 0 and tree.c[c, LEFT] < 0 and tree.c[c, RIGHT] < 0


@part
def _detach(tree, up, c, instead):
    """Replace a bucket under the one above it."""
    tree.c[up, LEFT if tree.c[up, LEFT] == c else RIGHT] = instead
    if instead >= 0:
        tree.c[instead, UP] = up
    elif _is_open_leaf(tree, up):
        tree.c[up, SPLIT] = 0


@part
def _merge(tree, up, max_cap):
    """The merge rule: leaf buckets go back to an open bucket above when they fit half of it."""
    if tree.c[up, N_DIR] > 0:
        return
    total = np.int64(tree.postings.lists[up, N])
    for side in (LEFT, RIGHT):
        child = tree.c[up, side]
        if child >= 0:
            if not _is_open_leaf(tree, child):
                return
            total += tree.postings.lists[child, N]
    if 2 * total > max_cap:
        return
    for side in (LEFT, RIGHT):
        child = tree.c[up, side]
        if child >= 0:
            count_below(tree, child, -tree.postings.lists[child, N])
            put_aside(tree, child)
            free_c_node(tree, child)
            tree.c[up, side] = -1
    tree.c[up, SPLIT] = 0


@part
def settle(tree, c, max_cap, min_size):
    """After a deletion: remove empty nodes upwards, merge or reinsert an underflowing l-node."""
    while c != ROOT and tree.c[c, N_DIR] == 0:
        n, up, p = tree.postings.lists[c, N], tree.c[c, UP], tree.c[c, OWNER]
        is_leaf = _is_open_leaf(tree, c)
        if not is_leaf:
            left, right = tree.c[c, LEFT], tree.c[c, RIGHT]
            if n == 0 and up >= 0 and (left < 0 or right < 0):
                _detach(tree, up, c, max(left, right))  # a bucket that only leads to another
                free_c_node(tree, c)
            return
        if n == 0 and up >= 0:
            _detach(tree, up, c, np.int32(-1))
            free_c_node(tree, c)
            c = up
        elif up < 0 and n < min_size:
            count_below(tree, c, -n)
            put_aside(tree, c)
            c = tree.p[p, HOME]
            free_c_node(tree, tree.p[p, TOP_BUCKET])
            free_p_node(tree, p)
        else:
            if n < min_size:
                _merge(tree, up, max_cap)
            return


@part
def delete_expression(tree, expressions, predicates, slot, max_cap, min_size):
    """Take an expression out, and settle its c-node."""
    c = tree.leaf_of[slot]
    tree.leaf_of[slot] = -1
    drop_entry(tree.postings, c, slot)
    fit(tree.postings, c)
    count_below(tree, c, -1)
    tree.count[N_HELD] -= 1
    if 2 * tree.postings.lists[c, N] <= tree.c[c, CAP]:
        update_capacity(tree, c, max_cap)
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        attr = predicates.attr[expressions.code[k]]
        tree.attr_n[attr] -= 1
        if tree.attr_n[attr] == 0:
            tree.attr_span[attr, LO], tree.attr_span[attr, HI] = MAX_KEY, MIN_KEY
    settle(tree, c, max_cap, min_size)
