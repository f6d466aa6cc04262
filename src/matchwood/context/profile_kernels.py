"""Kernels over profiles: subscriptions laid out for testing one after the other in their contexts.

Layout   (P profiles, m leaves, n indexes; entry e = p * n + k is profile p in index k)
         leaf   int64[m, 4]    what a predicate tests: see the names below
         jump   int32[m, 2]    next leaf when it holds and when not, or MATCH, or FAIL
         start  int64[P+1]     slice of leaves that belongs to a profile; those of its entries first
         slot   int32[P]       expression, -1 when deleted
         row    int32[P]       row of its context in the cells, -1: it has none
         need   uint8[P]       indexes that hold it; 0: a candidate for every event
         entry  int32[P*n, 3]  first leaf, number of leaves, first link; n = 0 leaves: not held
         link   int32[L, 5]    ENTRY, LEAF, NEXT and PREVIOUS of the same cell, SIBLING of the entry
         loose  int32[]        profiles that no index holds
         wrong  uint8[P*n]     false positives of an entry since it was escalated

         cells  int64[R, C, 4] of context row and column: KEY, SAFE_LO, SAFE_HI, LINK; while a new
                               key stays in the safe range, no index has to know of it
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.predicate_kernels import in_set
from matchwood.index.marker_kernels import MAX_KEY, MIN_KEY
from matchwood.index.verify_kernels import holds
from matchwood.jit import part

STATIC, VALUE, ABSENCE, RELATION, OWN_RELATION, NEVER = range(6)
"""Kinds of leaves: event in a set; context's value in a set; context's value absent; event against
context; context against context; types not known yet."""

EQ, NE, LT, LE, GT, GE = range(6)
PLAIN, FLOAT_OFFSET, INT_OFFSET = range(3)

WHAT, LOW, HIGH, REF = range(4)
"""Columns of `leaf`.  WHAT packs kind, operator, kind of offset, attribute (or left column) and
context column; LOW is the offset of a relation."""

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
    entry: np.ndarray
    link: np.ndarray
    loose: np.ndarray
    wrong: np.ndarray
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
def float_of(key):
    """The double that a key stands for."""
    return np.int64(key if key >= 0 else key ^ MAX_KEY).view(np.float64)


@part
def key_of_float(value):
    """The key of a double."""
    if value != value:
        return np.int64(NAN_KEY)
    bits = np.float64(value + 0.0).view(np.int64)
    return bits if bits >= 0 else bits ^ MAX_KEY


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
def _has_key(events, entry, key):
    """Whether an entry of several intervals allows a key."""
    if len(events.more) == 0 or events.more[entry] < 0:
        return True
    which = events.more[entry]
    first = events.more_start[which]
    return in_set(
        events.more_lo, events.more_hi, first, events.more_start[which + 1] - first, key, key
    )


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
    if kind == STATIC:
        return holds(
            events, stamp, board_event, board_entry, leaf_attr(what),
            leaf[at, LOW], leaf[at, HIGH], leaf[at, REF], predicates,
        )  # fmt: skip
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
    entry = board_entry[attr]
    if not _compares(events.lo[entry], events.hi[entry], op, c):
        return False
    return op != EQ or _has_key(events, entry, c)


@part
def test(profiles, p, cells, events, stamp, board_event, board_entry, predicates, tested):
    """MATCH, or the leaf that decided against a profile; `tested` counts leaves."""
    at = profiles.start[p]
    first, row = at, profiles.row[p]
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
    if leaf_kind(what) != RELATION or row < 0:
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
    key = cells[row, leaf_col(what), KEY]
    if key == ABSENT:
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
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
    """k(e): the keys that all leaves of an entry allow."""
    lo, hi = np.int64(MIN_KEY), np.int64(MAX_KEY)
    row = profiles.row[e // n_indexes]
    first = profiles.entry[e, 0]
    for at in range(first, first + profiles.entry[e, 1]):
        low, high = leaf_range(profiles.leaf, at, row, cells)
        lo, hi = max(lo, low), min(hi, high)
        if lo > hi:
            return np.int64(MAX_KEY), np.int64(MIN_KEY)
    return lo, hi
