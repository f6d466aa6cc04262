"""Kernels over leaves: the predicates of subscriptions, tested in the contexts they refer to.

Layout   leaf   int64[m, 4]    WHAT, packed: see the functions below; LOW, HIGH, REF
         cells  int64[R, C, 4] of context row and column: KEY, SAFE_LO, SAFE_HI, LINK; while a new
                               key stays in the safe range, no index has to be changed
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.interval_kernels import in_set
from matchwood.kernel.jit import part
from matchwood.kernel.verify_kernels import Board, holds

STATIC, VALUE, ABSENCE, RELATION, CONTEXT_RELATION, NEVER, BAND = range(7)
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

NAN_KEY = 0x7FF8000000000000
LOWEST_FLOAT = -(0x7FF0000000000000) - 1


class Hulls(NamedTuple):
    """The part of a posted event that `lead` reads: first and last key of its entries."""

    lo: np.ndarray
    hi: np.ndarray
    stamp: int
    board: Board


def leaf_word(kind: Any, attr: Any, op: int = 0, offset: int = PLAIN, col: int = 0) -> Any:
    """WHAT of a leaf; kind and attr may be arrays."""
    return kind | (op << 3) | (offset << 6) | (attr << 8) | (col << 36)


def word_kind(what: Any) -> Any:
    return what & 7


def word_op(what: Any) -> Any:
    return (what >> 3) & 7


def word_offset(what: Any) -> Any:
    return (what >> 6) & 3


def without_op(what: Any) -> Any:
    return what & ~np.int64(7 << 3)


def with_kind(what: Any, kind: int) -> Any:
    return (what & ~np.int64(7)) | kind


leaf_kind, leaf_op, leaf_offset = part(word_kind), part(word_op), part(word_offset)
"""The same for kernels."""


@part
def leaf_attr(what):
    return (what >> 8) & 0xFFFFFFF


@part
def leaf_col(what):
    return what >> 36


@part
def is_of_context(what):
    """Whether a leaf is on one value of the context alone."""
    return leaf_kind(what) == VALUE or leaf_kind(what) == ABSENCE


@part
def is_linked(what):
    """Whether the range of a leaf depends on a value of the context."""
    return leaf_kind(what) == RELATION or leaf_kind(what) == BAND or is_of_context(what)


@part
def linked_col(what):
    """The column of the value that the range of a leaf depends on."""
    return leaf_attr(what) if is_of_context(what) else leaf_col(what)


@part
def context_side(leaf, at, key):
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
    of all subscriptions fail on either side, which no processor can guess.
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
def context_leaf_holds(leaf, at, row, cells, predicates):
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
def leaf_holds(leaf, at, row, cells, event):
    """Whether leaf `at` is TRUE for the posted event in the context of a row."""
    what = leaf[at, WHAT]
    kind = leaf_kind(what)
    if kind == BAND:  # first: what most leaves are
        attr = leaf_attr(what)
        if row < 0 or event.board.event[attr] != event.stamp:
            return False
        key = cells[row, leaf_col(what), KEY]
        return key != ABSENT and _in_band(
            event.events, event.board.entry[attr], key, what, leaf[at, LOW], leaf[at, HIGH]
        )
    if kind == STATIC:
        return holds(event, leaf_attr(what), leaf[at, LOW], leaf[at, HIGH], leaf[at, REF])
    if kind == NEVER or row < 0:
        return False
    if kind != RELATION:
        return context_leaf_holds(leaf, at, row, cells, event.predicates)
    key = cells[row, leaf_col(what), KEY]
    attr = leaf_attr(what)
    if key == ABSENT or event.board.event[attr] != event.stamp:
        return False
    op = leaf_op(what)
    c, over = moved(key, leaf_offset(what), leaf[at, LOW])
    if over != 0:
        return _beyond(op, over)
    return _entry_compares(event.events, event.board.entry[attr], op, c)


@part
def is_decided(leaf, at):
    """Whether `lead` decides such a leaf, so that where it stops the leaf has failed."""
    kind = leaf_kind(leaf[at, WHAT])
    if kind == BAND:
        return leaf_offset(leaf[at, WHAT]) == FLOAT_OFFSET
    return kind == STATIC and leaf[at, REF] >= 0


@part
def lead(leaf, at, end, row, cells, hulls):
    """The first leaf of a conjunction, from `at` on, that fails or is not decided here.

    Decided are bands of doubles and single intervals, without a call: a call hands over every
    array of a layout, which costs several times what the test does.
    """
    while at < end:
        what = leaf[at, WHAT]
        if not is_decided(leaf, at):
            return at
        attr = leaf_attr(what)
        if hulls.board.event[attr] != hulls.stamp:
            return at
        entry = hulls.board.entry[attr]
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
        if not ((hulls.hi[entry] >= first) & (hulls.lo[entry] <= last)):
            return at
        at += 1
    return at


@part
def leaf_range(leaf, at, row, cells):
    """The keys of the event for which a leaf can hold in the context as it is: its hull."""
    what = leaf[at, WHAT]
    if leaf_kind(what) == STATIC:
        return leaf[at, LOW], leaf[at, HIGH]
    if not is_linked(what) or row < 0:
        return np.int64(MAX_KEY), np.int64(MIN_KEY)
    key = cells[row, linked_col(what), KEY]
    if is_of_context(what):  # the context alone: every key of the event, or none
        if context_side(leaf, at, key) == 0:
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
