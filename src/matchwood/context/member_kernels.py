"""Kernels over members: subscriptions of a filter, laid out for testing in their contexts.

Layout   (P members, m leaves; a member is in n indexes at most, p * n .. p * n + n - 1 are its
         entries)
         leaf   int64[m, 4]    what a predicate tests: see leaf_kernels
         jump   int32[m, 2]    next leaf when it holds and when not, or MATCH, or FAIL
         start  int64[P+1]     slice of leaves that belongs to a member; of its entries first, of a
                               tree copies of them last, which no jump leads to
         slot   int32[P]       expression, -1 when deleted
         row    int32[P]       row of its context in the cells, -1: it has none
         is_tree uint8[P]      0: all leaves must hold, jumps need not be looked at
         need   uint8[P]       indexes that find it when it matches; 0: a candidate for every event
         entry  int32[P*n, 3]  first leaf, number of leaves, first link; 0 leaves: not held
         listed int32[P*n]     the index that holds an entry
         link   int32[L, 5]    ENTRY, LEAF, NEXT and PREVIOUS of the same cell, SIBLING of the entry
         loose  int32[]        subscriptions that no index holds
         wrong  uint8[P*n]     false positives of an entry since it was escalated
         spent  uint8[P*n]     how often it was found since then, by some of the events
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.context.leaf_kernels import leaf_holds, leaf_range
from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel, part

ENTRY, LEAF, NEXT_LINK, PREVIOUS_LINK, SIBLING = range(5)
MATCH, FAIL = -1, -2
N_MEMBERS, N_LEAVES, N_LINKS, FREE_LINK, N_LOOSE, N_DEAD = range(6)
"""Positions in `count`."""


class Members(NamedTuple):
    """See the module's docstring."""

    leaf: np.ndarray
    jump: np.ndarray
    start: np.ndarray
    slot: np.ndarray
    row: np.ndarray
    need: np.ndarray
    is_tree: np.ndarray
    entry: np.ndarray
    listed: np.ndarray
    link: np.ndarray
    loose: np.ndarray
    wrong: np.ndarray
    spent: np.ndarray
    count: np.ndarray


@part
def test(members, p, at, cells, event, tested):
    """MATCH, or the leaf that decided against a subscription, testing from leaf `at` on."""
    first, row = members.start[p], members.row[p]
    if members.is_tree[p] == 0:
        end = members.start[p + 1]
        while at < end and leaf_holds(members.leaf, at, row, cells, event):
            at += 1
        return np.int64(MATCH) if at == end else at
    while True:
        tested[0] += 1
        is_true = leaf_holds(members.leaf, at, row, cells, event)
        to = members.jump[at, 0 if is_true else 1]
        if to == MATCH:
            return np.int64(MATCH)
        if to == FAIL:
            return at
        at = first + to


@part
def entry_range(members, e, n_indexes, cells):
    """k(e): the keys that all leaves of an entry allow; of a tree the hull of what one allows."""
    p = e // n_indexes
    row, first = members.row[p], members.entry[e, 0]
    if members.is_tree[p] != 0:
        lo, hi = np.int64(MAX_KEY), np.int64(MIN_KEY)
        for at in range(first, first + members.entry[e, 1]):
            low, high = leaf_range(members.leaf, at, row, cells)
            if low <= high:
                lo, hi = min(lo, low), max(hi, high)
        return lo, hi
    lo, hi = np.int64(MIN_KEY), np.int64(MAX_KEY)
    for at in range(first, first + members.entry[e, 1]):
        low, high = leaf_range(members.leaf, at, row, cells)
        lo, hi = max(lo, low), min(hi, high)
        if lo > hi:
            return np.int64(MAX_KEY), np.int64(MIN_KEY)
    return lo, hi


@kernel
def entry_ranges(members, cells, chosen, n_indexes, lo, hi):
    """k(e) of entries, for people and tests."""
    for i in range(len(chosen)):
        lo[i], hi[i] = entry_range(members, np.int64(chosen[i]), n_indexes, cells)


@kernel
def leaf_ranges(members, cells, chosen, leaf_member, lo, hi):
    """The ranges of single leaves, for statistics."""
    for i in range(len(chosen)):
        row = members.row[leaf_member[i]]
        lo[i], hi[i] = leaf_range(members.leaf, chosen[i], row, cells)
