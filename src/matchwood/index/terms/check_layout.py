"""Kernels that check the terms of a snapshot: no search may leave an array or go on for ever."""

from __future__ import annotations

import numpy as np

from matchwood.index.terms.words import END, FIRST, JUMP, LEAF, is_last, offset_of
from matchwood.kernel.jit import kernel


@kernel
def check_tree(codes, tree, n_leaves):
    """Whether every attribute has two nodes a code, and all runs are of leaves."""
    for attr in range(len(codes.n)):
        if tree.base[attr + 1] - tree.base[attr] != 2 * np.int64(codes.n[attr]):
            return False
    for r in range(len(tree.run)):
        first, end = tree.run[r, FIRST], tree.run[r, END]
        if first < 0 or first >= end or end > n_leaves:
            return False
    return True


@kernel
def check_steps(step, n_leaves):
    """Whether every step leads to a later one or to the end."""
    n = np.int64(len(step))
    for i in range(n):
        leaf, jump = np.int64(step[i, LEAF]), np.int64(step[i, JUMP])
        if leaf < 0 or leaf >= n_leaves or jump < 0 or i + offset_of(jump) >= n:
            return False
        if not is_last(jump) and i + 1 == n:
            return False
    return True


@kernel
def see_slots(slots, seen):
    """Note which slots there are; False when one is none."""
    for slot in slots:
        if slot < 0 or slot >= len(seen):
            return False
        seen[slot] = True
    return True
