"""Kernels of `vcr` that place expressions on the grid, put them into lists and remove them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.vcr.activate import (
    HIGH,
    N_INEXACT,
    Active,
    activate,
    deactivate,
    list_of,
)
from matchwood.index.vcr.decompose import (
    n_vcrs,
    overlapped_decomposition,
    simple_decomposition,
    vcr_id,
)
from matchwood.kernel.id_list_kernels import (
    IdLists,
    insert_id,
    remove_id,
)
from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import PairMap, has_places
from matchwood.kernel.sort_kernels import last_not_above

X_ATTR, Y_ATTR, KX, KY = range(4)
"""Positions in `Grid.shape`: the two attributes, log2 of the longest sides."""

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
    """The plane; see the page of this folder (`__init__`) for the table of arrays."""

    cut_x: np.ndarray
    cut_y: np.ndarray
    shape: np.ndarray
    distance: np.ndarray
    step_x: np.ndarray
    step_y: np.ndarray
    edge: np.ndarray


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


# ── from keys to grid points ────────────────────────────────────────────────────────────────────


@part
def grid_point(cut, key):
    """The last cut at or before a key; the first cut is the first key of all."""
    return last_not_above(cut, np.int64(0), np.int64(len(cut)), key)


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
def _insert(grid, expressions, predicates, slot, inexact, overlapped, most, rectangle):
    """Write (a, b, w, h) of an expression; returns what is left to test, -1 if it does not fit.

    It does not without a predicate on both attributes: it must match events without the other one.
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
    which expressions the grid cannot hold.  With `uses`, VCRs are activated and their ids counted
    there, and nothing is put into lists yet.
    """
    grid, active, pairs, lists = vcrs.grid, vcrs.active, vcrs.pairs, vcrs.lists
    rectangle, pieces = parts.rectangle, parts.pieces
    is_count = len(uses) > 0
    inexact = BOX if is_count else _inexact(active)
    for s in range(first, len(slots)):
        slot = slots[s]
        tests = _insert(
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
            which = activate(active, pairs, _id_of(grid, pieces[p]))
            if is_count:
                uses[which] += 1
            elif not insert_id(lists, which, _item(slot, tests, rectangle, pieces[p])):
                return s, ITEMS_FULL
        active.home[slot] = PLACED
    return len(slots), DONE


@kernel
def remove_all(vcrs, expressions, predicates, slots, overlapped, parts):
    """Delete expressions that are PLACED: decompose again, and leave every list."""
    grid, active, pairs, lists = vcrs.grid, vcrs.active, vcrs.pairs, vcrs.lists
    rectangle, pieces = parts.rectangle, parts.pieces
    inexact = _inexact(active)
    for slot in slots:
        tests = _insert(
            grid, expressions, predicates, slot, inexact, overlapped, len(pieces), rectangle
        )
        n = _decompose(grid, rectangle, overlapped, pieces)
        for p in range(n):
            id_ = _id_of(grid, pieces[p])
            which = list_of(active, pairs, id_)
            remove_id(lists, which, _item(slot, tests, rectangle, pieces[p]))
            if lists.size[which] == 0:
                deactivate(active, pairs, id_, which)
        active.home[slot] = NOT_HELD
