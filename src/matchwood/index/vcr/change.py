"""Kernels of `vcr`: number and decompose rectangles, put expressions into lists, take them out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_list_kernels import (
    IdLists,
    capacity,
    insert_id,
    remove_id,
    reserve,
    room_for,
)
from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import PairMap, find_pair, has_places, put_pair, remove_pair

X_ATTR, Y_ATTR, KX, KY = range(4)
"""Positions in `Grid.shape`: the two attributes, log2 of the longest sides."""

HIGH, FREE, N_INEXACT = range(3)
"""Positions in `Active.count`: lists ever handed out, the first free one or -1, expressions among
the first ones whose ranges do not end on grid lines."""

INNER = 1
"""In `Grid.edge`, beside RIGHT and TOP: the point is on no side of the VCR."""

NOT_HELD, PLACED, REST = range(3)
"""Where an expression is: nowhere, in lists of VCRs, in the index for the rest."""

BOX, MORE, RIGHT, TOP = 1, 2, 4, 8
"""Flags of an item.  What is left to test: its own two ranges, its other predicates.  Where its
rectangle ends: on the right side of this VCR, on its upper side."""

FLAGS = 4
"""Bits of an item for them; the slot is above."""

DONE, LISTS_FULL, MAP_FULL, ITEMS_FULL = range(4)
"""Why an insertion stopped."""


class Grid(NamedTuple):
    """The plane; see `vcr.py` for the table of arrays."""

    cut_x: np.ndarray
    cut_y: np.ndarray
    shape: np.ndarray
    distance: np.ndarray
    step_x: np.ndarray
    step_y: np.ndarray
    edge: np.ndarray


class Active(NamedTuple):
    """Activated VCRs, apart from their hash and their lists; see `vcr.py`."""

    table: np.ndarray
    chain: np.ndarray
    owner: np.ndarray
    count: np.ndarray
    home: np.ndarray
    box: np.ndarray


class Vcrs(NamedTuple):
    """The grid, the VCRs that are activated, and the ids in them."""

    grid: Grid
    active: Active
    pairs: PairMap
    lists: IdLists


class Parts(NamedTuple):
    """Scratch of a decomposition."""

    rectangle: np.ndarray  # int64[4]
    pieces: np.ndarray  # int64[most, 4]


# ── rectangles ──────────────────────────────────────────────────────────────────────────────────


@kernel
def vcr_id(x, y, i, j, range_x, kx, ky):
    """Equation 1: the number of VCR (x, y, 2^i, 2^j)."""
    return (kx + 1) * (ky + 1) * (x + y * range_x) + j * (kx + 1) + i


@part
def _longest(size, k):
    """log2 of the longest side, up to 2^k, that fits into a size."""
    i = np.int64(0)
    while i < k and np.int64(2) << i <= size:
        i += 1
    return i


@part
def _n_pieces(size, k, overlapped):
    """Into how many sides a size is cut."""
    if overlapped:
        i = _longest(size, k)
        return (size + (np.int64(1) << i) - 1) >> i
    n, rest = size >> k, size & ((np.int64(1) << k) - 1)
    while rest:
        n += rest & 1
        rest >>= 1
    return n


@kernel
def n_vcrs(w, h, kx, ky, overlapped):
    """How many VCRs a decomposition has."""
    return _n_pieces(w, kx, overlapped) * _n_pieces(h, ky, overlapped)


@kernel
def simple_decomposition(a, b, w, h, kx, ky, out):
    """SD, Figure 2: strips from the bottom, each cut from the left, each piece as long as fits.

    Writes (x, y, i, j) for every VCR (x, y, 2^i, 2^j); returns how many.
    """
    n = np.int64(0)
    bottom, height = b, h
    while height > 0:
        j = _longest(height, ky)
        left, width = a, w
        while width > 0:
            i = _longest(width, kx)
            out[n, 0], out[n, 1], out[n, 2], out[n, 3] = left, bottom, i, j
            n += 1
            left += np.int64(1) << i
            width -= np.int64(1) << i
        bottom += np.int64(1) << j
        height -= np.int64(1) << j
    return n


@kernel
def overlapped_decomposition(a, b, w, h, kx, ky, out):
    """OD, Figure 4: one size for all; the last of a strip, and the last strip, shift back."""
    n = np.int64(0)
    i, j = _longest(w, kx), _longest(h, ky)
    length, height = np.int64(1) << i, np.int64(1) << j
    for row in range((h + height - 1) >> j):
        bottom = b + min(row << j, h - height)
        for column in range((w + length - 1) >> i):
            left = a + min(column << i, w - length)
            out[n, 0], out[n, 1], out[n, 2], out[n, 3] = left, bottom, i, j
            n += 1
    return n


# ── from keys to grid points ────────────────────────────────────────────────────────────────────


@part
def grid_point(cut, key):
    """The last cut at or before a key; the first cut is the first key of all."""
    low, high = np.int64(0), np.int64(len(cut))
    while high - low > 1:
        middle = (low + high) // 2
        if cut[middle] <= key:
            low = middle
        else:
            high = middle
    return low


@part
def _is_aligned(cut, first, last, lo, hi):
    """Whether grid points first..last stand for exactly the keys lo..hi, and are several.

    One grid point alone is widened to a side of 1, which holds its neighbour too.
    """
    end = cut[last + 1] - 1 if last + 1 < len(cut) else MAX_KEY
    return first < last and cut[first] == lo and end == hi


@part
def _predicate_on(expressions, predicates, slot, attr):
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        if predicates.attr[expressions.code[k]] == attr:
            return np.int64(expressions.code[k])
    return np.int64(-1)


@part
def _place(grid, expressions, predicates, slot, inexact, overlapped, most, rectangle):
    """Write (a, b, w, h) of an expression; returns what is left to test, -1 when it has no place.

    It has none without a predicate on both attributes: it must match events without the other one.
    `inexact` is how ranges are tested that do not end on grid lines.
    """
    on_x = _predicate_on(expressions, predicates, slot, grid.shape[X_ATTR])
    on_y = _predicate_on(expressions, predicates, slot, grid.shape[Y_ATTR])
    if on_x < 0 or on_y < 0:
        return -1
    left = grid_point(grid.cut_x, predicates.lo[on_x])
    right = grid_point(grid.cut_x, predicates.hi[on_x])
    bottom = grid_point(grid.cut_y, predicates.lo[on_y])
    top = grid_point(grid.cut_y, predicates.hi[on_y])
    w, h = max(right - left, np.int64(1)), max(top - bottom, np.int64(1))
    if n_vcrs(w, h, grid.shape[KX], grid.shape[KY], overlapped) > most:
        return -1
    rectangle[0], rectangle[1], rectangle[2], rectangle[3] = left, bottom, w, h
    tests = 0
    if not (
        _is_aligned(grid.cut_x, left, right, predicates.lo[on_x], predicates.hi[on_x])
        and _is_aligned(grid.cut_y, bottom, top, predicates.lo[on_y], predicates.hi[on_y])
    ):
        tests = inexact
    is_one = predicates.n_intervals[on_x] == 1 and predicates.n_intervals[on_y] == 1
    if expressions.size[slot] > 2 or not is_one:
        tests |= MORE
    return tests


@part
def _decompose(grid, rectangle, overlapped, out):
    a, b, w, h = rectangle[0], rectangle[1], rectangle[2], rectangle[3]
    if overlapped:
        return overlapped_decomposition(a, b, w, h, grid.shape[KX], grid.shape[KY], out)
    return simple_decomposition(a, b, w, h, grid.shape[KX], grid.shape[KY], out)


@part
def _item(slot, tests, rectangle, piece):
    """An id as the list of one of its VCRs has it."""
    item = np.int64(slot) << FLAGS | tests
    if piece[0] + (np.int64(1) << piece[2]) == rectangle[0] + rectangle[2]:
        item |= RIGHT
    if piece[1] + (np.int64(1) << piece[3]) == rectangle[1] + rectangle[3]:
        item |= TOP
    return item


@part
def _id_of(grid, piece):
    return vcr_id(
        piece[0], piece[1], piece[2], piece[3],
        len(grid.cut_x), grid.shape[KX], grid.shape[KY],
    )  # fmt: skip


# ── lists of activated VCRs ─────────────────────────────────────────────────────────────────────


@part
def list_of(active, pairs, id_):
    """The list of a VCR, -1 when it is not activated."""
    if len(active.chain) > 0:
        which = np.int64(active.table[_chain_of(active, id_)]) - 1
        while which >= 0 and active.owner[which] != id_:
            which = np.int64(active.chain[which]) - 1
        return which
    if len(active.table) > 0:
        return np.int64(active.table[id_]) - 1
    return find_pair(pairs, id_)


@part
def _chain_of(active, id_):
    """The place of a VCR in the paper's hash (2.2.3): randomised, then divided by a prime."""
    h = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) % np.uint64(len(active.table)))


@part
def _enter(active, pairs, id_, which):
    """Let a VCR lead to its list."""
    if len(active.chain) > 0:
        at = _chain_of(active, id_)
        active.chain[which] = active.table[at]
        active.table[at] = which + 1
    elif len(active.table) > 0:
        active.table[id_] = which + 1
    else:
        put_pair(pairs, id_, which)


@part
def _forget(active, pairs, id_, which):
    """Let a VCR lead to nothing."""
    if len(active.chain) > 0:
        at = _chain_of(active, id_)
        if active.table[at] == which + 1:
            active.table[at] = active.chain[which]
            return
        before = np.int64(active.table[at]) - 1
        while active.chain[before] != which + 1:
            before = np.int64(active.chain[before]) - 1
        active.chain[before] = active.chain[which]
    elif len(active.table) > 0:
        active.table[id_] = 0
    else:
        remove_pair(pairs, id_)


@kernel
def enter_all(active, pairs):
    """Enter all lists into an emptied table of chains."""
    for which in range(active.count[HIGH]):
        _enter(active, pairs, active.owner[which], which)


@part
def _activate(active, pairs, id_):
    """The list of a VCR, which has one from now on; there is room for it."""
    which = list_of(active, pairs, id_)
    if which >= 0:
        return which
    which = active.count[FREE]
    if which >= 0:
        active.count[FREE] = ~active.owner[which]
    else:
        which = active.count[HIGH]
        active.count[HIGH] += 1
    active.owner[which] = id_
    _enter(active, pairs, id_, which)
    return which


@part
def _deactivate(active, pairs, id_, which):
    _forget(active, pairs, id_, which)
    active.owner[which] = ~active.count[FREE]
    active.count[FREE] = which


@part
def _write_box(active, grid, expressions, predicates, slot):
    on_x = _predicate_on(expressions, predicates, slot, grid.shape[X_ATTR])
    on_y = _predicate_on(expressions, predicates, slot, grid.shape[Y_ATTR])
    row = active.box[slot]
    row[0], row[1] = predicates.lo[on_x], predicates.hi[on_x]
    row[2], row[3] = predicates.lo[on_y], predicates.hi[on_y]


@part
def _inexact(active):
    """How inexact ranges are tested: where boxes are not kept, with all other predicates."""
    return BOX if len(active.box) > 0 else MORE


@kernel
def insert_more(vcrs, uses, expressions, predicates, slots, first, overlapped, parts):
    """Insert expressions first..; returns how many are done, and what is full or DONE.

    One that did not get in whole is inserted again: what is in a list already stays.  `home` says
    which expressions have no place here.  With `uses`, VCRs are activated and their ids counted
    there, and nothing is put into lists yet.
    """
    grid, active, pairs, lists = vcrs.grid, vcrs.active, vcrs.pairs, vcrs.lists
    rectangle, pieces = parts.rectangle, parts.pieces
    is_count = len(uses) > 0
    inexact = BOX if is_count else _inexact(active)
    for s in range(first, len(slots)):
        slot = slots[s]
        tests = _place(
            grid, expressions, predicates, slot, inexact, overlapped, len(pieces), rectangle
        )
        if tests < 0:
            active.home[slot] = REST
            continue
        n = _decompose(grid, rectangle, overlapped, pieces)
        if active.count[HIGH] + n > len(active.owner):
            return s, LISTS_FULL
        if len(active.table) == 0 and not has_places(pairs, n):
            return s, MAP_FULL
        if is_count:
            active.count[N_INEXACT] += tests & BOX
        elif tests & BOX:
            _write_box(active, grid, expressions, predicates, slot)
        for p in range(n):
            which = _activate(active, pairs, _id_of(grid, pieces[p]))
            if is_count:
                uses[which] += 1
            elif not insert_id(lists, which, _item(slot, tests, rectangle, pieces[p])):
                return s, ITEMS_FULL
        active.home[slot] = PLACED
    return len(slots), DONE


@kernel
def reserve_all(lists, uses):
    """Room for what comes, one list behind the other; the arena is large enough."""
    for which in range(len(uses)):
        reserve(lists, which, uses[which])


@kernel
def needed_room(uses):
    """Items of the arena that `reserve_all` takes."""
    total = np.int64(0)
    for n in uses:
        if n > 0:
            total += capacity(room_for(n))
    return total


@kernel
def remove_all(vcrs, expressions, predicates, slots, overlapped, parts):
    """Delete expressions that are PLACED: decompose again, and leave every list."""
    grid, active, pairs, lists = vcrs.grid, vcrs.active, vcrs.pairs, vcrs.lists
    rectangle, pieces = parts.rectangle, parts.pieces
    inexact = _inexact(active)
    for slot in slots:
        tests = _place(
            grid, expressions, predicates, slot, inexact, overlapped, len(pieces), rectangle
        )
        n = _decompose(grid, rectangle, overlapped, pieces)
        for p in range(n):
            id_ = _id_of(grid, pieces[p])
            which = list_of(active, pairs, id_)
            remove_id(lists, which, _item(slot, tests, rectangle, pieces[p]))
            if lists.size[which] == 0:
                _deactivate(active, pairs, id_, which)
        active.home[slot] = NOT_HELD
