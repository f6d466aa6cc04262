"""Kernels that check a BE-Tree of a snapshot: one walk over its nodes, one over its expressions."""

from __future__ import annotations

import numpy as np

from matchwood.index.be_tree.nodes import (
    ATTR,
    BELOW,
    C_FREE,
    CAP,
    HEAD,
    HI,
    HOME,
    LEFT,
    LO,
    N_C,
    N_DIR,
    N_P,
    NEXT,
    OWNER,
    P_FREE,
    PREV,
    RIGHT,
    ROOT,
    SPLIT,
    TODO,
    TOP_BUCKET,
    UP,
    cut,
)
from matchwood.kernel.cell_check_kernels import entry_end
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.posting_kernels import (
    ROOM,
    START,
    USED,
    N,
    class_of,
    class_words,
    entry_slot,
)

GONE = -2
"""The owner of a free c-node."""


@part
def _reach(tree, c, owner, up, seen, stack, top):
    """Push a c-node that belongs where it was found and was not seen before; -1 if it does not."""
    if c < 0 or c >= len(tree.c) or seen[c] or tree.c[c, OWNER] != owner or tree.c[c, UP] != up:
        return np.int64(-1)
    if tree.span[c, LO] > tree.span[c, HI] or tree.c[c, CAP] < 1 or tree.c[c, TODO] != 0:
        return np.int64(-1)
    seen[c] = True
    stack[top] = c
    return top + 1


@part
def _reach_halves(tree, c, seen, stack, top):
    """Push the halves of a bucket, each on its side of the middle."""
    owner = tree.c[c, OWNER]
    for side in (LEFT, RIGHT):
        child = tree.c[c, side]
        if child == -1:
            continue
        if owner < 0 or tree.c[c, SPLIT] != 1 or child < 0 or child >= len(tree.c):
            return np.int64(-1)
        mid, is_cut = cut(tree, c)
        lo, hi = tree.span[c, LO], tree.span[c, HI]
        if side == LEFT:
            hi = mid
        else:
            lo = mid + 1
        if not is_cut or tree.span[child, LO] < lo or tree.span[child, HI] > hi:
            return np.int64(-1)
        top = _reach(tree, child, owner, c, seen, stack, top)
        if top < 0:
            return top
    return top


@part
def _is_new_on_path(tree, p):
    """Whether no p-node above cuts by the same attribute; the path up was walked down before."""
    attr = tree.p[p, ATTR]
    above = tree.c[tree.p[p, HOME], OWNER]
    while above >= 0:
        if tree.p[above, ATTR] == attr:
            return False
        above = tree.c[tree.p[above, HOME], OWNER]
    return True


@part
def _reach_p_nodes(tree, c, n_attributes, seen, seen_p, stack, top):
    """Push the buckets of the p-directory of a c-node."""
    p, before, n = tree.c[c, HEAD], np.int32(-1), 0
    while p != -1:
        if p < 0 or p >= len(tree.p) or seen_p[p]:
            return np.int64(-1)
        seen_p[p] = True
        row = tree.p[p]
        if row[HOME] != c or row[PREV] != before or row[ATTR] < 0 or row[ATTR] >= n_attributes:
            return np.int64(-1)
        if tree.grid[p, LO] > tree.grid[p, HI] or not _is_new_on_path(tree, p):
            return np.int64(-1)
        top = _reach(tree, row[TOP_BUCKET], p, -1, seen, stack, top)
        if top < 0:
            return top
        before, p = p, row[NEXT]
        n += 1
    return top if n == tree.c[c, N_DIR] else np.int64(-1)


@kernel
def check_nodes(tree, n_attributes, seen, seen_p, stack):
    """Whether nodes are a tree from the root down, and all others are free, each once."""
    top = _reach(tree, ROOT, np.int32(-1), np.int32(-1), seen, stack, np.int64(0))
    n_c = n_p = np.int64(0)
    while top > 0:
        c = stack[top - 1]
        n_c += 1
        n_p += tree.c[c, N_DIR]
        top = _reach_halves(tree, c, seen, stack, top - 1)
        if top >= 0:
            top = _reach_p_nodes(tree, c, n_attributes, seen, seen_p, stack, top)
    if top < 0 or n_c != tree.count[N_C] or n_p != tree.count[N_P]:
        return False
    c = tree.count[C_FREE]
    while c != -1:
        if c < 0 or c >= len(tree.c) or seen[c] or tree.c[c, OWNER] != GONE:
            return False
        if tree.postings.lists[c, ROOM] != 0 or tree.postings.lists[c, USED] != 0:
            return False
        seen[c] = True
        n_c += 1
        c = np.int64(tree.c[c, LEFT])
    p = tree.count[P_FREE]
    while p != -1:
        if p < 0 or p >= len(tree.p) or seen_p[p] or tree.p[p, ATTR] != -1:
            return False
        seen_p[p] = True
        n_p += 1
        p = np.int64(tree.p[p, NEXT])
    return n_c == len(tree.c) and n_p == len(tree.p)


@part
def _fits_path(tree, c, expressions, predicates, slot, below):
    """Whether an expression lies in every bucket above it; counts it below each p-node."""
    bucket, p = c, tree.c[c, OWNER]
    while p >= 0:
        below[p] += 1
        is_inside = False
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            pred = expressions.code[k]
            if predicates.attr[pred] == tree.p[p, ATTR]:
                lo, hi = predicates.lo[pred], predicates.hi[pred]
                is_inside = tree.span[bucket, LO] <= lo and hi <= tree.span[bucket, HI]
        if not is_inside:
            return False
        bucket = tree.p[p, HOME]
        p = tree.c[bucket, OWNER]
    return True


@kernel
def check_leaves(tree, expressions, predicates, n_attributes, top, listed, below):
    """The expressions in all l-nodes, or -1 if one is not where it belongs; `below` counts them."""
    total = np.int64(0)
    word = tree.postings.word
    for c in range(len(tree.c)):
        row = tree.postings.lists[c]
        if row[ROOM] == 0:
            if row[USED] != 0 or row[N] != 0:
                return np.int64(-1)
            continue
        room = np.int64(row[ROOM])
        if room < 0 or row[USED] < 0 or row[USED] > room or class_words(class_of(room)) != room:
            return np.int64(-1)
        if row[START] < 0 or row[START] + room > top:
            return np.int64(-1)
        at, end, n = np.int64(row[START]), np.int64(row[START] + row[USED]), 0
        while at < end:
            slot = np.int64(entry_slot(word[at]))
            last = entry_end(word, at, end, n_attributes, expressions, predicates)
            if last < 0 or slot >= len(tree.leaf_of) or tree.leaf_of[slot] != c or listed[slot]:
                return np.int64(-1)
            listed[slot] = True
            if not _fits_path(tree, c, expressions, predicates, slot, below):
                return np.int64(-1)
            at, n = last, n + 1
        if n != row[N] or (n == 0 and row[USED] != 0):
            return np.int64(-1)
        total += n
    for p in range(len(tree.p)):
        if tree.p[p, ATTR] >= 0 and tree.p[p, BELOW] != below[p]:
            return np.int64(-1)
    return total
