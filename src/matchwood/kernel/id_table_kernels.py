"""A hash table of ids whose content lies in arrays of the owner: open addressing, linear probing.

    at = first_cell(table, h)                  h: a hash of the content that is looked for
    while table[at] != EMPTY:
        if ... table[at] has that content: found
        at = next_cell(table, at)
    not found; a new id with this content goes to `at`

Layout   table  int32[2^k]  ids, EMPTY elsewhere; the owner keeps half of it EMPTY at least

The table holds neither content nor hashes: 4 bytes a cell.  A removal moves later ids of the run
back, so that there are no tombstones; it needs the hash of each:

    hole = cell_of_id(table, hash_of(owner, id), id)
    nearby = next_cell(table, hole)
    while table[nearby] != EMPTY:
        hole = moved_back(table, hole, nearby, hash_of(owner, table[nearby]))
        nearby = next_cell(table, nearby)
    table[hole] = EMPTY

The owner writes this loop: a kernel that passes a function to another one is not kept on disk.

Indexes of cells are uint64: what Numba does for an index that may be negative costs an instruction.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part

EMPTY = -1


@part
def first_cell(table, h):
    """Where the search for a hash, uint64, begins."""
    return h & np.uint64(len(table) - 1)


@part
def next_cell(table, at):
    """The cell that is looked at after another one."""
    return (at + np.uint64(1)) & np.uint64(len(table) - 1)


@part
def put_id(table, h, id_):
    """Enter an id that is not there; the table has a free cell."""
    at = first_cell(table, h)
    while table[at] != EMPTY:
        at = next_cell(table, at)
    table[at] = id_


@part
def cell_of_id(table, h, id_):
    """The cell of an id that is there."""
    at = first_cell(table, h)
    while table[at] != id_:
        at = next_cell(table, at)
    return at


@part
def moved_back(table, hole, nearby, h):
    """Move the id at `nearby`, whose hash is h, to the hole if it belongs at or before it.

    Returns the hole: `nearby` where the id has moved.
    """
    mask = np.uint64(len(table) - 1)
    if ((nearby - first_cell(table, h)) & mask) < ((nearby - hole) & mask):
        return hole
    table[hole] = table[nearby]
    return nearby
