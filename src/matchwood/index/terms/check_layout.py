"""Kernels that check the terms of a snapshot: no search may leave an array or go on for ever."""

from __future__ import annotations

import numpy as np

from matchwood.index.terms.words import (
    END,
    FIRST,
    HEAD,
    JUMP,
    LEAF,
    N_COPIES,
    N_RANGES,
    N_RUNS,
    N_SLICES,
    is_last,
    offset_of,
)
from matchwood.kernel.jit import kernel, part


@part
def _are_inside(piece, at, end, least, most):
    """Whether all pairs of a piece are not empty, from `least` on and not behind `most`."""
    for i in range(at, end, 2):
        if piece[i + FIRST] < least or piece[i + FIRST] >= piece[i + END] or piece[i + END] > most:
            return False
    return True


@part
def _is_piece(piece, at, end, terms, n_leaves):
    """Whether a piece is as long as its counts say, and its pairs are of what there is."""
    if end - at < HEAD:
        return False
    for i in range(at, at + HEAD):
        if piece[i] < 0:
            return False
    ranges = at + HEAD + 2 * np.int64(piece[at + N_RUNS])
    slices = ranges + 2 * np.int64(piece[at + N_RANGES])
    copies = slices + 2 * np.int64(piece[at + N_SLICES])
    if copies + np.int64(piece[at + N_COPIES]) != end:
        return False
    return (
        _are_inside(piece, at + HEAD, ranges, np.int64(0), n_leaves)
        and _are_inside(piece, ranges, slices, np.int64(0), np.int64(len(terms.group)) - 1)
        and _are_inside(piece, slices, copies, np.int64(0), np.int64(len(terms.sure)))
    )


@kernel
def check_tree(codes, tree, terms, is_slot):
    """Whether every attribute has two nodes a code, and all pieces are whole."""
    for attr in range(len(codes.n)):
        if tree.base[attr + 1] - tree.base[attr] != 2 * np.int64(codes.n[attr]):
            return False
    for node in range(len(tree.start) - 1):
        at, end = tree.start[node], tree.start[node + 1]
        if at == end:
            continue
        if not _is_piece(tree.piece, at, end, terms, np.int64(len(tree.leaf))):
            return False
        for i in range(end - np.int64(tree.piece[at + N_COPIES]), end):
            slot = np.int64(tree.piece[i])
            if slot < 0 or slot >= len(is_slot) or not is_slot[slot]:
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
