"""Kernels that write what follows from the nodes of segment trees, a piece for each (`words`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.terms.words import END, FIRST, HEAD, N_COPIES, N_RANGES, N_RUNS, N_SLICES
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import sort_words

COPIED = 16
"""Slots of a run, sure without a test, up to which a node has a copy of them: they fit into a cache
line, which a search would have to wait for.  More are read where they are.
"""


class Leaves(NamedTuple):
    """What follows from leaves."""

    sure: np.ndarray  # int64[L + 1], where the slots of a leaf begin in `slots`
    group: np.ndarray  # int64[L + 1], the same of its groups
    needed: np.ndarray  # int64[L + 1], leaves before it that a rest looks at
    slots: np.ndarray  # int32[]


@part
def _between(offsets, run, r):
    return offsets[run[r, END]] - offsets[run[r, FIRST]]


@part
def _count(leaves, run, r, count):
    """Add what a run puts into the piece of its node to its four counts."""
    n_sure = _between(leaves.sure, run, r)
    count[N_RUNS] += np.int64(_between(leaves.needed, run, r) > 0)
    count[N_RANGES] += np.int64(_between(leaves.group, run, r) > 0)
    count[N_SLICES] += np.int64(n_sure > COPIED)
    count[N_COPIES] += n_sure if n_sure <= COPIED else np.int64(0)


@part
def _count_all(leaves, run, first, end, count):
    """The four counts of runs first .. end - 1; returns the words of their piece, 0 for none."""
    for i in range(HEAD):
        count[i] = 0
    for r in range(first, end):
        _count(leaves, run, r, count)
    words = 2 * (count[N_RUNS] + count[N_RANGES] + count[N_SLICES]) + count[N_COPIES]
    return words + HEAD if words > 0 else np.int64(0)


@kernel
def measure_pieces(leaves, start, run, count, size):
    """size: words of the piece of every node; count is int64[HEAD], written to."""
    for node in range(len(start) - 1):
        size[node] = _count_all(leaves, run, start[node], start[node + 1], count)


@part
def _put(piece, at, first, end):
    """Write a pair; returns the position behind it."""
    piece[at + FIRST], piece[at + END] = first, end
    return at + 2


@kernel
def write_pieces(leaves, start, run, count, at, piece):
    """Write the pieces of all nodes; at[node] is where each begins."""
    for node in range(len(start) - 1):
        if at[node] == at[node + 1]:
            continue
        _count_all(leaves, run, start[node], start[node + 1], count)
        for i in range(HEAD):
            piece[at[node] + i] = count[i]
        runs = at[node] + HEAD
        ranges = runs + 2 * count[N_RUNS]
        slices = ranges + 2 * count[N_RANGES]
        first = copies = slices + 2 * count[N_SLICES]
        for r in range(start[node], start[node + 1]):
            begin, end = leaves.sure[run[r, FIRST]], leaves.sure[run[r, END]]
            if _between(leaves.needed, run, r) > 0:
                runs = _put(piece, runs, run[r, FIRST], run[r, END])
            if _between(leaves.group, run, r) > 0:
                ranges = _put(piece, ranges, leaves.group[run[r, FIRST]], leaves.group[run[r, END]])
            if end - begin > COPIED:
                slices = _put(piece, slices, begin, end)
                continue
            for i in range(begin, end):
                piece[copies] = leaves.slots[i]
                copies += 1
        sort_words(piece, first, copies)  # bits of neighbours are in one word
