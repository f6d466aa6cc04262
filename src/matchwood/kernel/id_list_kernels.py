"""Kernels of `id_lists`: insert into sorted lists, remove from them, move them to other blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import first_not_below

TOP, USED = range(2)
"""Positions in `count`: where the arena's untouched end begins, items of blocks in use."""

NO_BLOCK = -1
N_CLASSES = 62


class IdLists(NamedTuple):
    """See `id_lists.py` for the table of arrays."""

    start: np.ndarray
    size: np.ndarray
    room: np.ndarray
    item: np.ndarray
    free: np.ndarray
    count: np.ndarray


@part
def capacity(room):
    """Items in a block of a class: 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    return np.int64(2 + (room & 1)) << np.int64(room >> 1)


@part
def room_for(n):
    """The smallest class whose blocks hold n items."""
    room = 0
    while capacity(room) < n:
        room += 1
    return room


@part
def take_block(lists, room):
    """A block of a class; -1 when the arena is full."""
    start = np.int64(lists.free[room])
    if start >= 0:
        lists.free[room] = lists.item[start]
    elif lists.count[TOP] + capacity(room) <= len(lists.item):
        start = lists.count[TOP]
        lists.count[TOP] += capacity(room)
    else:
        return np.int64(-1)
    lists.count[USED] += capacity(room)
    return start


@part
def give_block(lists, start, room):
    """Put a block on the free list of its class."""
    lists.item[start] = lists.free[room]
    lists.free[room] = start
    lists.count[USED] -= capacity(room)


@part
def _move(lists, which, room):
    """Move a list to a block of another class; False, and nothing done, when the arena is full."""
    start = take_block(lists, room)
    if start < 0:
        return False
    before = lists.start[which]
    for i in range(lists.size[which]):
        lists.item[start + i] = lists.item[before + i]
    if lists.room[which] != NO_BLOCK:
        give_block(lists, before, lists.room[which])
    lists.start[which] = start
    lists.room[which] = room
    return True


@part
def reserve(lists, which, n):
    """Room for n ids in a list, so that they need no moving; False when the arena is full."""
    if n == 0 or (lists.room[which] != NO_BLOCK and capacity(lists.room[which]) >= n):
        return True
    return _move(lists, which, room_for(n))


@kernel
def reserve_lists(lists, sizes):
    """Room for so many ids in each list, one behind the other; the arena is large enough."""
    for which in range(len(sizes)):
        reserve(lists, which, sizes[which])


@kernel
def needed_room(sizes):
    """Items of the arena that `reserve_lists` takes for empty lists."""
    total = np.int64(0)
    for n in sizes:
        if n > 0:
            total += capacity(room_for(n))
    return total


@part
def first_at_least(lists, which, id_):
    """How many ids of a list are smaller: where the id is, or would be."""
    start = lists.start[which]
    return first_not_below(lists.item, start, start + lists.size[which], id_) - start


@part
def insert_id(lists, which, id_):
    """Put an id into a list, once; False, and nothing done, when the arena is full."""
    n = np.int64(lists.size[which])
    at = n
    if n > 0 and lists.item[lists.start[which] + n - 1] >= id_:
        at = first_at_least(lists, which, id_)
        if lists.item[lists.start[which] + at] == id_:
            return True
    room = lists.room[which]
    if room == NO_BLOCK or capacity(room) == n:
        if not _move(lists, which, room + 1):
            return False
    start = lists.start[which]
    for i in range(start + n, start + at, -1):
        lists.item[i] = lists.item[i - 1]
    lists.item[start + at] = id_
    lists.size[which] = n + 1
    return True


@part
def remove_id(lists, which, id_):
    """Remove an id from a list, if it is there; a list that became small moves to less room."""
    at = first_at_least(lists, which, id_)
    start, n = lists.start[which], np.int64(lists.size[which])
    if at == n or lists.item[start + at] != id_:
        return
    for i in range(start + at, start + n - 1):
        lists.item[i] = lists.item[i + 1]
    lists.size[which] = n - 1
    room = lists.room[which]
    if n == 1:
        give_block(lists, start, room)
        lists.room[which] = NO_BLOCK
    elif room >= 4 and 4 * n <= capacity(room):
        _move(lists, which, room - 2)  # half the room; no harm when there is none


@kernel
def repack(lists, fresh):
    """Copy all blocks to a fresh arena, one behind the other; it holds what is USED now."""
    top = np.int64(0)
    for which in range(len(lists.room)):
        if lists.room[which] == NO_BLOCK:
            continue
        start, n = lists.start[which], capacity(lists.room[which])
        for i in range(n):
            fresh[top + i] = lists.item[start + i]
        lists.start[which] = top
        top += n
    lists.free[:] = -1
    lists.count[TOP] = top
