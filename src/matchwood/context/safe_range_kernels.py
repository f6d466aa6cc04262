"""Links from a context's value to the entries that depend on it, and safe ranges of values.

Safe range.  While the key of a cell is in it, k(e) of every entry that the cell is linked to stays
in K(e).  It is found from K(e) by undoing operator and offset; adding an offset keeps the order of
doubles, so the ends alone need to be tried.

Empty k(e).  A value may leave its safe range while k(e) is empty, because another value is absent
or crosses it, and K(e) stays.  K(e) then says nothing of that value, so for each cell of the entry
only the present key is safe: the change that ends the emptiness is followed, whichever it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.context.agile_kernels import (
    GBU,
    PARTIAL,
    Following,
)
from matchwood.context.leaf_kernels import (
    ABSENCE,
    ABSENT,
    BAND,
    EQ,
    FLOAT_OFFSET,
    GE,
    GT,
    HIGH,
    KEY,
    LE,
    LINK,
    LOW,
    LOWEST_FLOAT,
    LT,
    NAN_KEY,
    NE,
    PLAIN,
    SAFE_HI,
    SAFE_LO,
    WHAT,
    context_side,
    float_of,
    is_linked,
    is_of_context,
    key_of_float,
    leaf_kind,
    leaf_offset,
    leaf_op,
    leaf_range,
    linked_col,
    moved,
)
from matchwood.context.member_kernels import (
    ENTRY,
    FREE_LINK,
    LEAF,
    N_LINKS,
    NEXT_LINK,
    PREVIOUS_LINK,
    SIBLING,
    Members,
    entry_range,
)
from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY, Structure
from matchwood.kernel.jit import part


class Indexed(NamedTuple):
    """Subscriptions, the values they refer to, and the indexes that hold their entries."""

    members: Members
    s: Structure
    cells: np.ndarray
    n_indexes: int  # that a subscription is in, at most
    following: Following


@part
def _unmoved(c, offset_kind, offset, upward):
    """The last key (first, if not upward) that an offset takes no further than c."""
    if offset_kind == PLAIN:
        return c
    if offset_kind == FLOAT_OFFSET:
        if upward and c >= NAN_KEY:
            return np.int64(MAX_KEY)
        if not upward and c <= LOWEST_FLOAT:
            return np.int64(MIN_KEY)
        c = min(max(c, LOWEST_FLOAT), NAN_KEY)
        key = key_of_float(float_of(c) - np.int64(offset).view(np.float64))
        for _ in range(4):
            found, _over = moved(key, offset_kind, offset)
            if (found <= c) if upward else (found >= c):
                return key
            key += -1 if upward else 1
        return np.int64(MIN_KEY) if upward else np.int64(MAX_KEY)
    if c == MAX_KEY or c == MIN_KEY:
        return c
    if (offset > 0 and c < MIN_KEY + offset) or (offset < 0 and c > MAX_KEY + offset):
        return np.int64(MIN_KEY) if upward else np.int64(MAX_KEY)
    return c - offset


@part
def _safe_of_context(leaf, at, key):
    """The keys of a cell on the same side of a leaf on the context alone; absent is its own."""
    if key == ABSENT:
        return np.int64(ABSENT), np.int64(ABSENT)
    lo, hi, side = np.int64(MIN_KEY + 1), np.int64(MAX_KEY), context_side(leaf, at, key)
    if leaf_kind(leaf[at, WHAT]) == ABSENCE:
        return lo, hi
    if side < 0:
        return lo, leaf[at, LOW] - 1
    if side > 0:
        return leaf[at, HIGH] + 1, hi
    return max(lo, leaf[at, LOW]), leaf[at, HIGH]


@part
def _safe(x, at, e, key, row):
    """The keys of a cell for which leaf `at` keeps k(e) inside K(e)."""
    members, s = x.members, x.s
    mode, scope, k = x.following.mode, x.following.scope, np.int64(members.listed[e])
    what = members.leaf[at, WHAT]
    if is_of_context(what):
        return _safe_of_context(members.leaf, at, key)
    if mode >= GBU and members.entry[e, 1] > 1:
        lo, hi = entry_range(members, e, x.n_indexes, x.cells)
        if lo > hi:
            return key, key
    op, kind, offset = leaf_op(what), leaf_offset(what), members.leaf[at, LOW]
    other = offset
    if leaf_kind(what) == BAND:
        op, other = EQ, members.leaf[at, HIGH]
    first, last = s.range[e, 0], s.range[e, 1]
    if members.is_tree[e // x.n_indexes] != 0 and not (first == MIN_KEY and last == MAX_KEY):
        # What a leaf allows is part of k(e) whatever the others allow: its open side, too.
        if op == NE or (op >= GT and last != MAX_KEY) or (LT <= op <= LE and first != MIN_KEY):
            return key, key
    if op == NE:
        return np.int64(MIN_KEY + 1), np.int64(MAX_KEY)
    if mode == PARTIAL and first == MIN_KEY and last == MAX_KEY:
        # Out of the scope, and it stays so while this leaf alone keeps it out.
        lo, hi = leaf_range(members.leaf, at, row, x.cells)
        if op != GE and op != GT and hi > scope[k, 1] and scope[k, 1] < MAX_KEY - 1:
            return _unmoved(scope[k, 1] + 2, kind, other, False), np.int64(MAX_KEY)
        if op != LE and op != LT and lo < scope[k, 0] and scope[k, 0] > MIN_KEY + 2:
            return np.int64(MIN_KEY + 1), _unmoved(scope[k, 0] - 2, kind, offset, True)
        return key, key
    if mode < GBU or first > last:
        return key, key
    lo, hi = np.int64(MIN_KEY + 1), np.int64(MAX_KEY)
    if (op == EQ or op == GE or op == GT) and first != MIN_KEY:
        lo = _unmoved(first - 1 if op == GT else first, kind, offset, False)
    if (op == EQ or op == LE or op == LT) and last != MAX_KEY:
        hi = _unmoved(last + 1 if op == LT else last, kind, other, True)
    return max(lo, np.int64(MIN_KEY + 1)), hi


@part
def refresh(x, row, col):
    """Set the safe range of a cell, from all that is linked to it."""
    members, cells = x.members, x.cells
    lo, hi = np.int64(MIN_KEY), np.int64(MAX_KEY)
    at = cells[row, col, LINK]
    while at >= 0:
        e = np.int64(members.link[at, ENTRY])
        low, high = _safe(x, members.link[at, LEAF], e, cells[row, col, KEY], row)
        lo, hi = max(lo, low), min(hi, high)
        at = np.int64(members.link[at, NEXT_LINK])
    cells[row, col, SAFE_LO], cells[row, col, SAFE_HI] = lo, hi


@part
def refresh_entry(x, e):
    """Set the safe ranges of all cells that an entry depends on."""
    members = x.members
    row = members.row[e // x.n_indexes]
    at = np.int64(members.entry[e, 2])
    while at >= 0:
        what = members.leaf[members.link[at, LEAF], WHAT]
        refresh(x, row, linked_col(what))
        at = np.int64(members.link[at, SIBLING])


@part
def tighten(x, e):
    """Let only the present keys be safe in cells of relations of an entry whose k(e) is empty."""
    members, cells = x.members, x.cells
    row = members.row[e // x.n_indexes]
    at = np.int64(members.entry[e, 2])
    while at >= 0:
        what = members.leaf[members.link[at, LEAF], WHAT]
        if not is_of_context(what):
            cell = cells[row, linked_col(what)]
            cell[SAFE_LO], cell[SAFE_HI] = cell[KEY], cell[KEY]
        at = np.int64(members.link[at, SIBLING])


@part
def link_entry(members, cells, e, row):
    """Link the cells of an entry's relations to it; there must be room."""
    first = members.entry[e, 0]
    for at in range(first, first + members.entry[e, 1]):
        what = members.leaf[at, WHAT]
        if not is_linked(what) or row < 0:
            continue
        link = members.count[FREE_LINK]
        if link >= 0:
            members.count[FREE_LINK] = members.link[link, NEXT_LINK]
        else:
            link = members.count[N_LINKS]
            members.count[N_LINKS] += 1
        head = cells[row, linked_col(what), LINK]
        members.link[link, ENTRY] = e
        members.link[link, LEAF] = at
        members.link[link, NEXT_LINK] = head
        members.link[link, PREVIOUS_LINK] = -1
        members.link[link, SIBLING] = members.entry[e, 2]
        members.entry[e, 2] = link
        cells[row, linked_col(what), LINK] = link
        if head >= 0:
            members.link[head, PREVIOUS_LINK] = link


@part
def unlink_entry(x, e):
    """Remove all links to an entry."""
    members, cells = x.members, x.cells
    row = members.row[e // x.n_indexes]
    at = np.int64(members.entry[e, 2])
    while at >= 0:
        col = linked_col(members.leaf[members.link[at, LEAF], WHAT])
        after, before = members.link[at, NEXT_LINK], members.link[at, PREVIOUS_LINK]
        if before >= 0:
            members.link[before, NEXT_LINK] = after
        else:
            cells[row, col, LINK] = after
        if after >= 0:
            members.link[after, PREVIOUS_LINK] = before
        sibling = np.int64(members.link[at, SIBLING])
        members.link[at, NEXT_LINK] = members.count[FREE_LINK]
        members.count[FREE_LINK] = at
        refresh(x, row, col)
        at = sibling
    members.entry[e, 2] = -1
