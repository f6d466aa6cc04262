"""A hash table from words to words: open addressing, linear probing, no tombstones.

Layout   (H cells, any number; at most 5 of 8 are in use)
         cell   int64[H, 2]  KEY; HELD, what is kept under it, 0 where the cell is free

A key and what it holds lie side by side: a lookup reads one cache line.  The number of keys in use
is the owner's, see `fits`.  Indexes of cells are uint64: Numba then tests for no negative values.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part

KEY, HELD = range(2)
_ODD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@part
def fits(cell, n_keys):
    """Whether that many keys leave 3 of 8 cells free."""
    return 8 * n_keys <= 5 * len(cell)


@part
def home_of(cell, key):
    """The cell where the search for a key begins."""
    h = np.uint64(key) * _ODD
    h ^= h >> np.uint64(32)
    h *= _MIX
    return ((h >> np.uint64(32)) * np.uint64(len(cell))) >> np.uint64(32)


@part
def _after(cell, at):
    at += np.uint64(1)
    return at if at < np.uint64(len(cell)) else np.uint64(0)


@part
def find_cell(cell, key):
    """The cell of a key, or the free one where it would be."""
    at = home_of(cell, key)
    while cell[at, HELD] != 0 and cell[at, KEY] != key:
        at = _after(cell, at)
    return at


@part
def close_cell(cell, hole):
    """Free a cell that is in use; later ones of its run move back."""
    n = np.uint64(len(cell))
    cell[hole, HELD] = 0
    nearby = _after(cell, hole)
    while cell[nearby, HELD] != 0:
        home = home_of(cell, cell[nearby, KEY])
        from_home = nearby - home if nearby >= home else nearby + n - home
        from_hole = nearby - hole if nearby >= hole else nearby + n - hole
        if from_home >= from_hole:
            cell[hole, KEY], cell[hole, HELD] = cell[nearby, KEY], cell[nearby, HELD]
            cell[nearby, HELD] = 0
            hole = nearby
        nearby = _after(cell, nearby)


@kernel
def move_cells(cell, fresh):
    """Copy all that is in use to an empty table in which it fits."""
    for i in range(len(cell)):
        if cell[i, HELD] != 0:
            at = find_cell(fresh, cell[i, KEY])
            fresh[at, KEY], fresh[at, HELD] = cell[i, KEY], cell[i, HELD]
