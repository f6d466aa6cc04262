"""Kernels that find indexes for trees: leaves without which a tree cannot be TRUE.

A set of leaves *covers* a tree when it cannot be TRUE without one of them: with all of them taken
to be not TRUE, no way through the jumps ends in MATCH.

    (x < 1 AND a = 2) OR (x > 9 AND b = 3)     covered by x < 1, x > 9: one index, on x
    x < 1 OR y = 2                             covered by x < 1, y = 2: two, either may find it
"""

from __future__ import annotations

import numpy as np

from matchwood.context.member_kernels import MATCH
from matchwood.kernel.jit import kernel, part

NOT_CHOSEN = -1

MOST_LEAVES = 512
"""Larger trees have no index: looking for their covers takes the square of their leaves."""


@part
def _covers(jump, chosen, reached):
    """Whether the chosen leaves of a tree cover it; a leaf jumps to later ones only."""
    for at in range(len(jump)):
        reached[at] = at == 0
    for at in range(len(jump)):
        if reached[at]:
            for side in range(1 if chosen[at] else 0, 2):
                to = jump[at, side]
                if to == MATCH:
                    return False
                if to >= 0:
                    reached[to] = True
    return True


@part
def _choose(lists, wanted, chosen):
    """Choose the leaves of one index, or of all where `wanted` is NOT_CHOSEN."""
    for at in range(len(lists)):
        chosen[at] = lists[at] >= 0 and (wanted == NOT_CHOSEN or lists[at] == wanted)


@part
def _thin_out(jump, chosen, reached):
    """Take away chosen leaves while the others cover the tree: the last ones first."""
    for at in range(len(jump) - 1, -1, -1):
        if chosen[at]:
            chosen[at] = False
            if not _covers(jump, chosen, reached):
                chosen[at] = True


@part
def _all_of(jump, lists, rank, position, listed, chosen, reached):
    """Indexes each of which finds the tree whenever it is TRUE, the most selective first."""
    n, used = np.int64(0), np.int64(-1)
    while n < len(listed):
        best = np.int64(NOT_CHOSEN)
        for at in range(len(lists)):
            k = np.int64(lists[at])
            if k >= 0 and rank[k] > used and (best < 0 or rank[k] < rank[best]):
                best = k
        if best < 0:
            break
        used = rank[best]
        _choose(lists, best, chosen)
        if _covers(jump, chosen, reached):
            _thin_out(jump, chosen, reached)
            for at in range(len(jump)):
                if chosen[at]:
                    position[at] = n
            listed[n] = best
            n += 1
    return n


@part
def _any_of(jump, lists, position, listed, chosen, reached):
    """Indexes one of which finds the tree whenever it is TRUE; 0 when they would be too many."""
    _choose(lists, np.int64(NOT_CHOSEN), chosen)
    if not _covers(jump, chosen, reached):
        return np.int64(0)
    _thin_out(jump, chosen, reached)
    n = np.int64(0)
    for at in range(len(jump)):
        if not chosen[at]:
            continue
        j = np.int64(0)
        while j < n and listed[j] != lists[at]:
            j += 1
        if j == len(listed):
            position[:] = NOT_CHOSEN
            return np.int64(0)
        if j == n:
            listed[n] = lists[at]
            n += 1
        position[at] = j
    return n


@kernel
def cover_trees(jump, lists, start, rank, position, listed, need, scratch):
    """Indexes for trees, whose leaves are start[t] .. start[t + 1] - 1.

    lists   by leaf, the index that may hold it, -1: none
    rank    by index, its rank among all, the most selective first
    place   written: by leaf, the number of its entry in its tree, or NOT_CHOSEN
    listed  written: by tree and entry, its index
    need    written: by tree, in how many of its indexes it is found when it is TRUE; 0: no index
    scratch bool[2, longest tree]
    """
    for t in range(len(start) - 1):
        first, last = start[t], start[t + 1]
        need[t] = 0
        if last - first > MOST_LEAVES:
            continue
        jumps, mine, to = jump[first:last], lists[first:last], position[first:last]
        chosen, reached = scratch[0, : last - first], scratch[1, : last - first]
        n = _all_of(jumps, mine, rank, to, listed[t], chosen, reached)
        if n == 0 and _any_of(jumps, mine, to, listed[t], chosen, reached) > 0:
            n = 1
        need[t] = n
