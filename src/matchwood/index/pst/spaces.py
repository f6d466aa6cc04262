"""Kernels of predicate spaces: the disjoint stretches of keys that an attribute is divided into.

    cut     MIN      20       30       61       81             a dimension: cuts and space ids
    space   [..19]   [20..29] [30..60] [61..80] [81..]

A *dimension* is one division of an attribute's keys.  Its first cut is MIN_KEY, so that its spaces
cover all keys; a dimension without cuts has not been used.  Space ids stay when others come and go.

Layout   (D dimensions, M positions)
         start, size, room, free, count      as in id_lists: a block of cuts for every dimension
         item   int32[M]   space ids, in the order of their keys (the paper's `next`)
         cut    int64[M]   first key of a space, ascending in a dimension
         uses   int32[M]   intervals held that begin at this cut or end just before it; a cut
                           without uses tells nothing apart
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.id_list_kernels import NO_BLOCK, capacity, give_block, room_for, take_block
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.sort_kernels import last_not_above


class Spaces(NamedTuple):
    """See the module's docstring for the arrays."""

    start: np.ndarray
    size: np.ndarray
    room: np.ndarray
    item: np.ndarray
    free: np.ndarray
    count: np.ndarray
    cut: np.ndarray
    uses: np.ndarray


@part
def position_of(spaces, dim, key):
    """The position of the space that a key falls into; the dimension has cuts."""
    start = np.int64(spaces.start[dim])
    return last_not_above(spaces.cut, start, start + spaces.size[dim], key)


@part
def end_of(spaces, dim, position):
    """The last key of the space at a position."""
    if position + 1 == spaces.start[dim] + spaces.size[dim]:
        return MAX_KEY
    return spaces.cut[position + 1] - 1


@part
def open_dimension(spaces, dim, space):
    """Give a dimension its first space, all keys; False: no room."""
    start = take_block(spaces, 0)
    if start < 0:
        return False
    spaces.start[dim], spaces.size[dim], spaces.room[dim] = start, 1, 0
    spaces.cut[start], spaces.item[start], spaces.uses[start] = MIN_KEY, space, 0
    return True


@part
def _move_cuts(spaces, dim, start, room):
    """Move a dimension's cuts to another block, and give the old one back."""
    before = spaces.start[dim]
    for i in range(spaces.size[dim]):
        spaces.item[start + i] = spaces.item[before + i]
        spaces.cut[start + i] = spaces.cut[before + i]
        spaces.uses[start + i] = spaces.uses[before + i]
    give_block(spaces, before, spaces.room[dim])
    spaces.start[dim], spaces.room[dim] = start, room


@part
def make_cut_room(spaces, dim):
    """Room for one more cut; False, and nothing done, when there is none."""
    room, n = spaces.room[dim], np.int64(spaces.size[dim])
    if n < capacity(room):
        return True
    start = take_block(spaces, room + 1)
    if start < 0:
        return False
    _move_cuts(spaces, dim, start, room + 1)
    return True


@part
def put_cut(spaces, dim, position, cut, space):
    """A new space behind the one at a position; there is room for its cut."""
    for i in range(spaces.start[dim] + spaces.size[dim], position + 1, -1):
        spaces.item[i] = spaces.item[i - 1]
        spaces.cut[i] = spaces.cut[i - 1]
        spaces.uses[i] = spaces.uses[i - 1]
    spaces.item[position + 1], spaces.cut[position + 1], spaces.uses[position + 1] = space, cut, 0
    spaces.size[dim] += 1


@part
def drop_cut(spaces, dim, position):
    """Join the space at a position to the one before it: its cut goes."""
    for i in range(position, spaces.start[dim] + spaces.size[dim] - 1):
        spaces.item[i] = spaces.item[i + 1]
        spaces.cut[i] = spaces.cut[i + 1]
        spaces.uses[i] = spaces.uses[i + 1]
    spaces.size[dim] -= 1
    n, room = np.int64(spaces.size[dim]), spaces.room[dim]
    if room >= 4 and 4 * n <= capacity(room):
        start = take_block(spaces, room_for(2 * n))
        if start >= 0:
            _move_cuts(spaces, dim, start, room_for(2 * n))


@part
def is_cut(spaces, dim, key):
    return spaces.cut[position_of(spaces, dim, key)] == key


@part
def use_cuts(spaces, dim, predicates, pred, step):
    """Count the ends of a predicate's intervals at the cuts that are there."""
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        if lo != MIN_KEY:
            position = position_of(spaces, dim, lo)
            if spaces.cut[position] == lo:
                spaces.uses[position] += step
        if hi != MAX_KEY:
            position = position_of(spaces, dim, hi + 1)
            if spaces.cut[position] == hi + 1:
                spaces.uses[position] += step


@part
def has_end(predicates, pred, cut):
    """Whether an interval of a predicate begins at a cut or ends just before it."""
    if predicates.n_intervals[pred] == 1:
        return predicates.lo[pred] == cut or predicates.hi[pred] == cut - 1
    first = predicates.interval_start[pred]
    end = first + np.int64(predicates.n_intervals[pred])
    low = last_not_above(predicates.interval_lo, first, end, cut)
    return predicates.interval_lo[low] == cut or predicates.interval_hi[low] == cut - 1


@part
def is_whole(spaces, dim, predicates, pred):
    """Whether a predicate is a union of whole spaces, so that reaching one of them proves it."""
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        if lo != MIN_KEY and not is_cut(spaces, dim, lo):
            return False
        if hi != MAX_KEY and not is_cut(spaces, dim, hi + 1):
            return False
    return True


@part
def next_places(spaces, dim, predicates, pred, i, last):
    """The first and last position that interval i of a predicate meets, and earlier ones do not.

    last   what this returned for interval i - 1, -1 for the first: asked for all intervals in
           order, it gives every space that the predicate meets once
    """
    lo, hi = interval(predicates, pred, i)
    first = max(position_of(spaces, dim, lo), last + 1)
    return first, max(position_of(spaces, dim, hi), last)


@part
def n_met(spaces, dim, predicates, pred, most):
    """How many spaces a predicate meets; counting stops above `most`."""
    n, last = np.int64(0), np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        n += last - first + 1 if last >= first else 0
        if n > most:
            break
    return n


@part
def is_open(spaces, dim):
    return spaces.room[dim] != NO_BLOCK
