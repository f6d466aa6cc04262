"""Kernels of records: expressions by space, each with its signature, and the ids of spaces.

See `bloom` for the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_list_kernels import NO_BLOCK, capacity, give_block, room_for, take_block
from matchwood.kernel.jit import part

HIGH, FREE = range(2)
"""Positions in `count`: space ids ever handed out, the first free one or NONE."""

NONE = -1
NO_ACCESS = -(2**31)
"""An expression without an access predicate; other negative numbers are ~predicate."""


class Records(NamedTuple):
    """Lists of expressions by space; see `bloom`."""

    start: np.ndarray
    size: np.ndarray
    room: np.ndarray
    item: np.ndarray
    free: np.ndarray
    count: np.ndarray
    mark: np.ndarray


class Homes(NamedTuple):
    """See `bloom` for the arrays."""

    ref: np.ndarray
    access: np.ndarray
    space_seen: np.ndarray
    count: np.ndarray


# ── lists of records ────────────────────────────────────────────────────────────────────────────


@part
def reserve_records(records, space, n):
    """Room for n records in all; False, and nothing done, when there is none."""
    room = records.room[space]
    if n == 0 or (room != NO_BLOCK and n <= capacity(room)):
        return True
    larger = room_for(n)
    start = take_block(records, larger)
    if start < 0:
        return False
    if room != NO_BLOCK:
        before = records.start[space]
        copy_records(records, before, start, np.int64(records.size[space]))
        give_block(records, before, room)
    records.start[space], records.room[space] = start, larger
    return True


@part
def copy_records(records, before, start, n):
    for i in range(n):
        records.item[start + i] = records.item[before + i]
        for w in range(records.mark.shape[1]):
            records.mark[start + i, w] = records.mark[before + i, w]


@part
def drop_at(records, space, at):
    """Remove a record: the last one moves to its position; a list that shrank frees memory."""
    last = records.start[space] + records.size[space] - 1
    copy_records(records, last, at, 1)
    records.size[space] -= 1
    n, room = np.int64(records.size[space]), records.room[space]
    if n == 0:
        give_block(records, records.start[space], room)
        records.start[space], records.room[space] = 0, NO_BLOCK
    elif room >= 4 and 4 * n <= capacity(room):
        smaller = room_for(2 * n)
        start = take_block(records, smaller)
        if start >= 0:
            copy_records(records, records.start[space], start, n)
            give_block(records, records.start[space], room)
            records.start[space], records.room[space] = start, smaller


@part
def drop_ref(records, space, ref):
    start = records.start[space]
    for i in range(start, start + records.size[space]):
        if records.item[i] == ref:
            drop_at(records, space, i)
            return


@part
def has_id(homes, records):
    return homes.count[FREE] != NONE or homes.count[HIGH] < len(records.size)


@part
def take_id(homes, records):
    space = homes.count[FREE]
    if space != NONE:
        homes.count[FREE] = records.start[space]
        records.start[space] = 0
    else:
        space = homes.count[HIGH]
        homes.count[HIGH] += 1
    homes.space_seen[space] = 0
    return space


@part
def give_id(homes, records, space):
    """Give back the id of a space, and its list."""
    if records.room[space] != NO_BLOCK:
        give_block(records, records.start[space], records.room[space])
        records.room[space] = NO_BLOCK
    records.size[space] = 0
    records.start[space] = homes.count[FREE]
    homes.count[FREE] = space
