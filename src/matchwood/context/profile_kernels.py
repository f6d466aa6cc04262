"""Kernels over profiles: subscriptions laid out for testing one after the other in their contexts.

Layout   (P profiles, m leaves; a profile is in n indexes at most, p * n .. p * n + n - 1 are its
         entries)
         leaf   int64[m, 4]    what a predicate tests: see the names below
         jump   int32[m, 2]    next leaf when it holds and when not, or MATCH, or FAIL
         start  int64[P+1]     slice of leaves that belongs to a profile; of its entries first, of a
                               tree copies of them last, which no jump leads to
         slot   int32[P]       expression, -1 when deleted
         row    int32[P]       row of its context in the cells, -1: it has none
         is_tree uint8[P]      0: all leaves must hold, jumps need not be looked at
         need   uint8[P]       indexes that find it when it matches; 0: a candidate for every event
         entry  int32[P*n, 3]  first leaf, number of leaves, first link; 0 leaves: not held
         listed int32[P*n]     the index that holds an entry
         link   int32[L, 5]    ENTRY, LEAF, NEXT and PREVIOUS of the same cell, SIBLING of the entry
         loose  int32[]        profiles that no index holds
         wrong  uint8[P*n]     false positives of an entry since it was escalated
         spent  uint8[P*n]     how often it was found since then, by some of the events

         cells  int64[R, C, 4] of context row and column: KEY, SAFE_LO, SAFE_HI, LINK; while a new
                               key stays in the safe range, no index has to know of it
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.interval_kernels import in_set
from matchwood.kernel.jit import part
from matchwood.kernel.verify_kernels import Board, Posted, holds

STATIC, VALUE, ABSENCE, RELATION, OWN_RELATION, NEVER, BAND = range(7)
"""Kinds of leaves: event in a set; context's value in a set; context's value absent; event against
context; context against context; types not known yet; event between two offsets of one value, which
is two relations in one: half the memory, and one look at the cell."""

EQ, NE, LT, LE, GT, GE = range(6)
PLAIN, FLOAT_OFFSET, INT_OFFSET = range(3)

WHAT, LOW, HIGH, REF = range(4)
"""Columns of `leaf`.  WHAT packs kind, operator, kind of offset, attribute (or left column) and
context column; LOW is the offset of a relation, LOW and HIGH are those of a band."""

KEY, SAFE_LO, SAFE_HI, LINK = range(4)
ABSENT = MIN_KEY
"""The key of a context's value that is not there; no value has it."""

ENTRY, LEAF, NEXT_LINK, PREVIOUS_LINK, SIBLING = range(5)
MATCH, FAIL = -1, -2
NAN_KEY = 0x7FF8000000000000
LOWEST_FLOAT = -(0x7FF0000000000000) - 1


class Profiles(NamedTuple):
    """See the module's docstring."""

    leaf: np.ndarray
    jump: np.ndarray
    start: np.ndarray
    slot: np.ndarray
    row: np.ndarray
    need: np.ndarray
    is_tree: np.ndarray
    entry: np.ndarray
    listed: np.ndarray
    link: np.ndarray
    loose: np.ndarray
    wrong: np.ndarray
    spent: np.ndarray
    count: np.ndarray


@part
def leaf_kind(what):
    return what & 7


@part
def leaf_op(what):
    return (what >> 3) & 7


@part
def leaf_offset(what):
    return (what >> 6) & 3


@part
def leaf_attr(what):
    return (what >> 8) & 0xFFFFFFF


@part
def leaf_col(what):
    return what >> 36


@part
def is_own(what):
    """Whether a leaf is on one value of the context alone."""
    return leaf_kind(what) == VALUE or leaf_kind(what) == ABSENCE


@part
def is_linked(what):
    """Whether the range of a leaf depends on a value of the context."""
    return leaf_kind(what) == RELATION or leaf_kind(what) == BAND or is_own(what)


@part
def linked_col(what):
    """The column of the value that the range of a leaf depends on."""
    return leaf_attr(what) if is_own(what) else leaf_col(what)


@part
def own_side(leaf, at, key):
    """Where a value lies for a leaf on the context alone: 0 where the leaf may hold, -1 below, 1
    above.  Gaps of a set of intervals count as inside.
    """
    if leaf_kind(leaf[at, WHAT]) == ABSENCE:
        return 0 if key == ABSENT else 1
    if key == ABSENT or key < leaf[at, LOW]:
        return -1
    return 1 if key > leaf[at, HIGH] else 0


@part
def float_of(key):
    """The double that a key stands for."""
    return np.int64(key ^ ((key >> 63) & MAX_KEY)).view(np.float64)


@part
def key_of_float(value):
    """The key of a double."""
    if value != value:
        return np.int64(NAN_KEY)
    bits = np.float64(value + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & MAX_KEY)


@part
def moved(key, offset_kind, offset):
    """The key of a context's value plus an offset, and -1 or 1 when that is beyond all keys."""
    if offset_kind == PLAIN:
        return key, 0
    if offset_kind == FLOAT_OFFSET:
        return key_of_float(float_of(key) + np.int64(offset).view(np.float64)), 0
    if offset > 0 and key > MAX_KEY - offset:
        return np.int64(MAX_KEY), 1
    if offset < 0 and key < MIN_KEY - offset:
        return np.int64(MIN_KEY), -1
    return key + offset, 0


@part
def _compares(lo, hi, op, c):
    """Whether some x of [lo, hi] compares with c; lo = hi + 1 stands for one x between two keys."""
    if lo > hi:
        if op == LT or op == LE:
            return hi < c
        if op == GT or op == GE:
            return lo > c
        return op == NE
    if op == LT:
        return lo < c
    if op == LE:
        return lo <= c
    if op == GT:
        return hi > c
    if op == GE:
        return hi >= c
    if op == EQ:
        return lo <= c <= hi
    return lo != hi or lo != c


@part
def _beyond(op, over):
    """Whether any x compares with what is beyond all keys."""
    if over > 0:
        return op == LT or op == LE or op == NE
    return op == GT or op == GE or op == NE


@part
def _entry_compares(events, entry, op, c):
    """Whether some x that an entry allows compares with c."""
    if len(events.more) == 0 or events.more[entry] < 0:
        return _compares(events.lo[entry], events.hi[entry], op, c)
    which = events.more[entry]
    for i in range(events.more_start[which], events.more_start[which + 1]):
        if _compares(events.more_lo[i], events.more_hi[i], op, c):
            return True
    return False


@part
def _in_band(events, entry, key, what, low, high):
    """Whether an entry can be from a value plus `low` to the value plus `high`.

    Also for an entry between two keys, lo = hi + 1: lo > c is hi >= c.  No branch for doubles: half
    of all profiles fail on either side, which no processor can guess.
    """
    if leaf_offset(what) == FLOAT_OFFSET:
        value = float_of(key)
        first = key_of_float(value + np.int64(low).view(np.float64))
        last = key_of_float(value + np.int64(high).view(np.float64))
        return (events.hi[entry] >= first) & (events.lo[entry] <= last)
    first, below = moved(key, leaf_offset(what), low)
    last, above = moved(key, leaf_offset(what), high)
    if below > 0 or above < 0:
        return False
    return (events.hi[entry] >= first) & (events.lo[entry] <= last)


@part
def own_leaf_holds(leaf, at, row, cells, predicates):
    """Whether a leaf on the context alone is TRUE in the context of a row."""
    what = leaf[at, WHAT]
    kind = leaf_kind(what)
    if kind == VALUE or kind == ABSENCE:
        key = cells[row, leaf_attr(what), KEY]
        if kind == ABSENCE or key == ABSENT:
            return kind == ABSENCE and key == ABSENT
        if key < leaf[at, LOW] or key > leaf[at, HIGH]:
            return False
        ref = leaf[at, REF]
        if ref >= 0:
            return True
        return in_set(
            predicates.interval_lo, predicates.interval_hi,
            predicates.interval_start[~ref], predicates.n_intervals[~ref], key, key,
        )  # fmt: skip
    key = cells[row, leaf_col(what), KEY]
    mine = cells[row, leaf_attr(what), KEY]
    if key == ABSENT or mine == ABSENT:
        return False
    op = leaf_op(what)
    c, over = moved(key, leaf_offset(what), leaf[at, LOW])
    return _beyond(op, over) if over != 0 else _compares(mine, mine, op, c)


@part
def leaf_holds(leaf, at, row, cells, events, stamp, board_event, board_entry, predicates):
    """Whether leaf `at` is TRUE for the posted event in the context of a row."""
    what = leaf[at, WHAT]
    kind = leaf_kind(what)
    if kind == BAND:  # first: what most leaves are
        attr = leaf_attr(what)
        if row < 0 or board_event[attr] != stamp:
            return False
        key = cells[row, leaf_col(what), KEY]
        return key != ABSENT and _in_band(
            events, board_entry[attr], key, what, leaf[at, LOW], leaf[at, HIGH]
        )
    if kind == STATIC:
        event = Posted(events, stamp, Board(board_event, board_entry), predicates)
        return holds(event, leaf_attr(what), leaf[at, LOW], leaf[at, HIGH], leaf[at, REF])
    if kind == NEVER or row < 0:
        return False
    if kind != RELATION:
        return own_leaf_holds(leaf, at, row, cells, predicates)
    key = cells[row, leaf_col(what), KEY]
    attr = leaf_attr(what)
    if key == ABSENT or board_event[attr] != stamp:
        return False
    op = leaf_op(what)
    c, over = moved(key, leaf_offset(what), leaf[at, LOW])
    if over != 0:
        return _beyond(op, over)
    return _entry_compares(events, board_entry[attr], op, c)


@part
def is_decided(leaf, at):
    """Whether `lead` decides such a leaf, so that where it stops the leaf has failed."""
    kind = leaf_kind(leaf[at, WHAT])
    if kind == BAND:
        return leaf_offset(leaf[at, WHAT]) == FLOAT_OFFSET
    return kind == STATIC and leaf[at, REF] >= 0


@part
def lead(leaf, at, end, row, cells, lo, hi, stamp, board_event, board_entry):
    """The first leaf of a conjunction, from `at` on, that fails or is not decided here.

    Decided are bands of doubles and single intervals, without a call: a call hands over every
    array of a layout, which costs several times what the test does.
    """
    while at < end:
        what = leaf[at, WHAT]
        if not is_decided(leaf, at):
            return at
        attr = leaf_attr(what)
        if board_event[attr] != stamp:
            return at
        entry = board_entry[attr]
        first, last = leaf[at, LOW], leaf[at, HIGH]
        if leaf_kind(what) == BAND:
            if row < 0:
                return at
            key = cells[row, leaf_col(what), KEY]
            if key == ABSENT:
                return at
            value = float_of(key)
            first = key_of_float(value + np.int64(first).view(np.float64))
            last = key_of_float(value + np.int64(last).view(np.float64))
        if not ((hi[entry] >= first) & (lo[entry] <= last)):
            return at
        at += 1
    return at


@part
def test(profiles, p, at, cells, events, stamp, board_event, board_entry, predicates, tested):
    """MATCH, or the leaf that decided against a profile, testing from leaf `at` on."""
    first, row = profiles.start[p], profiles.row[p]
    if profiles.is_tree[p] == 0:
        end = profiles.start[p + 1]
        while at < end and leaf_holds(
            profiles.leaf, at, row, cells, events, stamp, board_event, board_entry, predicates
        ):
            at += 1
        return np.int64(MATCH) if at == end else at
    while True:
        tested[0] += 1
        is_true = leaf_holds(
            profiles.leaf, at, row, cells, events, stamp, board_event, board_entry, predicates
        )
        to = profiles.jump[at, 0 if is_true else 1]
        if to == MATCH:
            return np.int64(MATCH)
        if to == FAIL:
            return at
        at = first + to


@part
def leaf_range(leaf, at, row, cells):
    """The keys of the event for which a leaf can hold in the context as it is: its hull."""
    what = leaf[at, WHAT]
    if leaf_kind(what) == STATIC:
        return leaf[at, LOW], leaf[at, HIGH]
    if not is_linked(what) or row < 0:
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
    key = cells[row, linked_col(what), KEY]
    if is_own(what):  # the context alone: every key of the event, or none
        if own_side(leaf, at, key) == 0:
            return np.int64(MIN_KEY), np.int64(MAX_KEY)
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
    if key == ABSENT:
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
    if leaf_kind(what) == BAND:
        lo, below = moved(key, leaf_offset(what), leaf[at, LOW])
        hi, above = moved(key, leaf_offset(what), leaf[at, HIGH])
        if below > 0 or above < 0:
            return np.int64(MAX_KEY), np.int64(MIN_KEY)
        return lo, hi
    op = leaf_op(what)
    c, over = moved(key, leaf_offset(what), leaf[at, LOW])
    if over != 0:
        if _beyond(op, over):
            return np.int64(MIN_KEY), np.int64(MAX_KEY)
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
    lo, hi = np.int64(MIN_KEY), np.int64(MAX_KEY)
    if op == EQ or op == GE:
        lo = c
    if op == EQ or op == LE:
        hi = c
    if op == GT:
        if c == MAX_KEY:
            return np.int64(MAX_KEY), np.int64(MIN_KEY)
        lo = c + 1
    if op == LT:
        if c == MIN_KEY:
            return np.int64(MAX_KEY), np.int64(MIN_KEY)
        hi = c - 1
    return lo, hi


@part
def entry_range(profiles, e, n_indexes, cells):
    """k(e): the keys that all leaves of an entry allow; of a tree the hull of what one allows."""
    p = e // n_indexes
    row, first = profiles.row[p], profiles.entry[e, 0]
    if profiles.is_tree[p] != 0:
        lo, hi = np.int64(MAX_KEY), np.int64(MIN_KEY)
        for at in range(first, first + profiles.entry[e, 1]):
            low, high = leaf_range(profiles.leaf, at, row, cells)
            if low <= high:
                lo, hi = min(lo, low), max(hi, high)
        return lo, hi
    lo, hi = np.int64(MIN_KEY), np.int64(MAX_KEY)
    for at in range(first, first + profiles.entry[e, 1]):
        low, high = leaf_range(profiles.leaf, at, row, cells)
        lo, hi = max(lo, low), min(hi, high)
        if lo > hi:
            return np.int64(MAX_KEY), np.int64(MIN_KEY)
    return lo, hi
