"""Space cutting in `be_tree`: l-nodes that overflow are partitioned or clustered.

Algorithms 5 and 6, one step at a time, see `insert`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.be_tree.insert import share_of
from matchwood.index.be_tree.nodes import (
    ATTR,
    BELOW,
    CAP,
    HI,
    HOME,
    LEFT,
    LO,
    N_HELD,
    N_TODO,
    OWNER,
    RIGHT,
    ROOT,
    SPLIT,
    TODO,
    TOP_BUCKET,
    add_todo,
    cut,
    has_nodes,
    new_c_node,
    new_p_node,
    search_p_dir,
    smallest_cell,
)
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.posting_cell_kernels import cell_attr, cell_hull, cell_is, cell_words
from matchwood.kernel.posting_kernels import (
    START,
    USED,
    N,
    copy_entry,
    entry_slot,
    entry_words,
    find_cell,
    fit,
    has_words,
    resize,
)

# ── space clustering ────────────────────────────────────────────────────────────────────────────


class Half(NamedTuple):
    """What goes to one half of a bucket."""

    n: int  # expressions
    words: int
    lo: int  # their hull
    hi: int


@part
def _measure_halves(tree, c, attr, mid):
    """For each half of a bucket: what goes there."""
    postings = tree.postings
    n_left, n_right = np.int64(0), np.int64(0)
    w_left, w_right = np.int64(0), np.int64(0)
    left_lo, left_hi, right_lo, right_hi = MAX_KEY, MIN_KEY, MAX_KEY, MIN_KEY
    entry = np.int64(postings.lists[c, START])
    end = entry + postings.lists[c, USED]
    while entry < end:
        words = entry_words(postings.word[entry])
        at = find_cell(postings, entry, attr)
        if at >= 0:
            lo, hi = cell_hull(postings, at)
            if hi <= mid:
                n_left, w_left = n_left + 1, w_left + words
                left_lo, left_hi = min(left_lo, lo), max(left_hi, hi)
            elif lo > mid:
                n_right, w_right = n_right + 1, w_right + words
                right_lo, right_hi = min(right_lo, lo), max(right_hi, hi)
        entry += words
    return Half(n_left, w_left, left_lo, left_hi), Half(n_right, w_right, right_lo, right_hi)


@part
def _new_half(tree, c, side, lo, hi, half, max_cap):
    """A child bucket with room for a half: all of lo..hi, or if it overflows its smallest cell."""
    if half.n == 0:
        return np.int32(-1)
    p = tree.c[c, OWNER]
    if half.n > max_cap:
        lo, hi = smallest_cell(tree, p, lo, hi, half.lo, half.hi)
    child = new_c_node(tree, p, c, lo, hi, max_cap)
    tree.c[c, side] = child
    resize(tree.postings, child, half.words)
    return child


@part
def move_entry(tree, entry, to, attr):
    """Copy an entry to a c-node below, without its predicate on attr if the bucket subsumes it."""
    postings = tree.postings
    at = find_cell(postings, entry, attr)
    without = np.int64(-1)
    if at >= 0 and cell_is(postings, at, tree.span[to, LO], tree.span[to, HI]):
        without = at
    copy_entry(postings, entry, to, without)
    tree.leaf_of[entry_slot(postings.word[entry])] = to


@part
def split_bucket(tree, c, max_cap):
    """Halve a leaf bucket and move the expressions that a half encloses; False when full."""
    postings = tree.postings
    used = np.int64(postings.lists[c, USED])
    if not (has_nodes(tree, 2, 0) and has_words(postings, 2 * used)):
        return False
    attr = np.int64(tree.p[tree.c[c, OWNER], ATTR])
    mid, _ = cut(tree, c)
    low_half, high_half = _measure_halves(tree, c, attr, mid)
    lo, hi = tree.span[c, LO], tree.span[c, HI]
    left = _new_half(tree, c, LEFT, lo, mid, low_half, max_cap)
    right = _new_half(tree, c, RIGHT, mid + 1, hi, high_half, max_cap)
    tree.c[c, SPLIT] = 1
    entry = np.int64(postings.lists[c, START])
    end, to = entry + used, entry
    kept = np.int64(0)
    while entry < end:
        words = entry_words(postings.word[entry])
        at = find_cell(postings, entry, attr)
        target = np.int32(-1)
        if at >= 0:
            low, high = cell_hull(postings, at)
            target = left if high <= mid else right if low > mid else target
        if target >= 0:
            move_entry(tree, entry, target, attr)
        else:
            for i in range(words):
                postings.word[to + i] = postings.word[entry + i]
            to += words
            kept += 1
        entry += words
    _keep(postings, c, to, kept)
    for child in (left, right):
        if child >= 0 and postings.lists[child, N] > tree.c[child, CAP]:
            add_todo(tree, child)
    return True


@part
def _keep(postings, c, end, kept):
    """A list now ends earlier."""
    postings.lists[c, USED] = end - postings.lists[c, START]
    postings.lists[c, N] = kept
    fit(postings, c)


# ── space partitioning ──────────────────────────────────────────────────────────────────────────


@part
def _tally_attributes(tree, c, scratch, histogram):
    """How many expressions of an l-node test each attribute, and which shares of its domain."""
    postings = tree.postings
    entry = np.int64(postings.lists[c, START])
    end_of_list = entry + postings.lists[c, USED]
    while entry < end_of_list:
        end = entry + entry_words(postings.word[entry])
        at = entry + 1
        while at < end:
            attr = cell_attr(postings.word[at])
            scratch.tally[attr] += 1
            if histogram:
                lo, hi = cell_hull(postings, at)
                scratch.share[attr] += share_of(tree, attr, lo, hi)
            at += cell_words(postings.word[at])
        entry = end


@part
def _next_attribute(tree, c, scratch, rules):
    """GetNextHighestScoreUnusedAttr: the attribute of highest rank in an l-node; -1 for none.

    Gain is the number of expressions that test it.  Loss is what the histogram's average bucket
    holds, or 0 in the optimistic variant; and what recycling blamed the attribute for.
    """
    _tally_attributes(tree, c, scratch, rules.histogram)
    p = tree.c[c, OWNER]
    while p >= 0:  # each attribute at most once on a path
        scratch.tally[tree.p[p, ATTR]] = 0
        p = tree.c[tree.p[p, HOME], OWNER]
    postings = tree.postings
    best, best_rank = np.int64(-1), -np.inf
    entry = np.int64(postings.lists[c, START])
    end_of_list = entry + postings.lists[c, USED]
    while entry < end_of_list:
        end = entry + entry_words(postings.word[entry])
        at = entry + 1
        while at < end:
            attr = cell_attr(postings.word[at])
            n = scratch.tally[attr]
            likely = tree.attr_n[attr] / tree.count[N_HELD]  # that an event has the attribute
            loss = scratch.share[attr] * likely + scratch.blame[attr] * n
            rank = rules.beta * n - rules.gamma * loss
            if n >= rules.min_size and (rank > best_rank or (rank == best_rank and attr < best)):
                best, best_rank = attr, rank
            scratch.tally[attr], scratch.share[attr] = 0, 0.0
            at += cell_words(postings.word[at])
        entry = end
    return best


@part
def update_capacity(tree, c, max_cap):
    """UpdateClusterCapacity: the l-node's size rounded up, so that it shrinks after a partition."""
    n = np.int64(tree.postings.lists[c, N])
    tree.c[c, CAP] = max(np.int64(1), (n + max_cap - 1) // max_cap) * max_cap


@part
def extend(tree, c, max_cap):
    """An extended l-node: nothing divides it.  A quarter at least, so that n cost O(n) in all."""
    n = np.int64(tree.postings.lists[c, N])
    tree.c[c, CAP] = n + max(max_cap, n // 4)


@part
def partition(tree, c, scratch, rules):
    """SpacePartitioning, one attribute: move its expressions under a p-node; False when full."""
    postings = tree.postings
    used = np.int64(postings.lists[c, USED])
    if not (has_nodes(tree, 1, 1) and has_words(postings, 2 * used)):
        return False
    attr = _next_attribute(tree, c, scratch, rules)
    if attr < 0:
        extend(tree, c, rules.max_cap)
        return True
    p = search_p_dir(tree, c, attr)
    if p < 0:
        p = new_p_node(tree, attr, c, rules.max_cap)
        scratch.score[p] = 0.0
    top = tree.p[p, TOP_BUCKET]
    resize(postings, top, np.int64(postings.lists[top, USED]) + used)
    entry = np.int64(postings.lists[c, START])
    end, to = entry + used, entry
    kept, moved = np.int64(0), np.int64(0)
    while entry < end:
        words = entry_words(postings.word[entry])
        if find_cell(postings, entry, attr) >= 0:
            move_entry(tree, entry, top, attr)
            moved += 1
        else:
            for i in range(words):
                postings.word[to + i] = postings.word[entry + i]
            to += words
            kept += 1
        entry += words
    tree.p[p, BELOW] += moved
    _keep(postings, c, to, kept)
    fit(postings, top)
    update_capacity(tree, c, rules.max_cap)
    if postings.lists[top, N] > tree.c[top, CAP]:
        add_todo(tree, top)
    return True


@part
def relieve(tree, scratch, rules):
    """One step for the c-node on top of todo; False when full."""
    c = tree.todo[tree.count[N_TODO] - 1]
    if tree.postings.lists[c, N] <= tree.c[c, CAP]:
        tree.count[N_TODO] -= 1
        tree.c[c, TODO] = 0
        return True
    at = tree.count[N_TODO] - 1
    is_leaf = c != ROOT and tree.c[c, SPLIT] == 0
    if is_leaf and cut(tree, c)[1]:  # the forced split rule
        done = split_bucket(tree, c, rules.max_cap)
    else:
        done = partition(tree, c, scratch, rules)
    if done and tree.postings.lists[c, N] <= tree.c[c, CAP]:
        last = tree.count[N_TODO] - 1  # steps push on top: remove this one first
        tree.todo[at] = tree.todo[last]
        tree.count[N_TODO] = last
        tree.c[c, TODO] = 0
    return done
