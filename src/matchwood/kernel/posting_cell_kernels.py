"""Cells of `postings`: predicates in one to three words; see `postings.py` for the drawing."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part

INTERVAL, INSIDE, OUTSIDE, WIDE_SET = range(4)
WIDE = -1
"""Kinds of inline predicates."""

KIND, LOW, ATTR = 61, 23, 46
"""Where the fields of a cell begin; the upper end of an interval begins at bit 0."""

PAST = np.int64(2**23 - 1)
"""The offset of every key that lies beyond the 23 bits after an attribute's origin."""

HALF = np.int64(2**22)
MOST_KEYS = 128
"""Keys that the one or two masks of a set stand for; with two it is as long as a WIDE cell."""

MOST_ATTRIBUTES = 2**15
WORD = np.int64(0xFFFFFFFF)


# ── offsets: keys of an attribute in 32 bits ────────────────────────────────────────────────────


@part
def offset(origin, key):
    """0 before the origin, 1 at it, PAST from 2^23 - 2 keys behind it on."""
    if key < origin:
        return np.int64(0)
    behind = np.uint64(key) - np.uint64(origin)
    if behind >= np.uint64(PAST - 1):
        return PAST
    return np.int64(behind) + 1


@part
def _key(origin, off):
    if off == 0:
        return MIN_KEY
    if off == PAST:
        return MAX_KEY
    return origin + (off - 1)


@part
def _origin_of(postings, attr, lo, hi):
    """The origin of an attribute; fixed by the first end of an interval that is seen."""
    if postings.origin[attr] == MAX_KEY:
        end = lo if lo != MIN_KEY else hi
        if end == MAX_KEY:
            return np.int64(0)
        postings.origin[attr] = end - HALF if end >= MIN_KEY + HALF else MIN_KEY
    return postings.origin[attr]


@part
def _is_exact(origin, key):
    off = offset(origin, key)
    return 0 < off < PAST


@part
def _fits_masks(origin, first, last):
    is_short = np.uint64(last) - np.uint64(first) < np.uint64(MOST_KEYS)
    return is_short and _is_exact(origin, first) and _is_exact(origin, last)


# ── cells: inline predicates ────────────────────────────────────────────────────────────────────


@part
def _write_masks(word, at, predicates, pred, first, inverted):
    """Bits for the keys of a set's intervals, or (inverted) of the gaps between them."""
    start, n = predicates.interval_start[pred], predicates.n_intervals[pred]
    for i in range(start, start + n):
        lo, hi = predicates.interval_lo[i], predicates.interval_hi[i]
        if inverted:
            if i + 1 == start + n:
                break
            lo, hi = hi + 1, predicates.interval_lo[i + 1] - 1
        for key in range(lo, hi + 1):
            bit = key - first
            word[at + (bit >> 6)] |= np.int64(1) << (bit & 63)


@part
def _cell(kind, attr, low, high):
    return np.int64(kind) << KIND | attr << ATTR | low << LOW | high


@part
def write_cell(postings, predicates, pred, at):
    """Write a predicate inline at a position; returns the position behind it."""
    word = postings.word
    attr, lo, hi = np.int64(predicates.attr[pred]), predicates.lo[pred], predicates.hi[pred]
    n = predicates.n_intervals[pred]
    if attr < MOST_ATTRIBUTES and n == 1:
        origin = _origin_of(postings, attr, lo, hi)
        if (lo == MIN_KEY or _is_exact(origin, lo)) and (hi == MAX_KEY or _is_exact(origin, hi)):
            low = np.int64(0) if lo == MIN_KEY else offset(origin, lo)
            high = PAST if hi == MAX_KEY else offset(origin, hi)
            word[at] = _cell(INTERVAL, attr, low, high)
            return at + 1
    elif attr < MOST_ATTRIBUTES:
        is_open = lo == MIN_KEY and hi == MAX_KEY
        first, last = lo, hi
        if is_open:  # everything but some keys: these are the gaps between its intervals
            start = predicates.interval_start[pred]
            first = predicates.interval_hi[start] + 1
            last = predicates.interval_lo[start + n - 1] - 1
        origin = _origin_of(postings, attr, first, last)
        if first != MIN_KEY and last != MAX_KEY and _fits_masks(origin, first, last):
            low, high = offset(origin, first), offset(origin, last)
            word[at] = _cell(OUTSIDE if is_open else INSIDE, attr, low, high)
            end = at + cell_words(word[at])
            for i in range(at + 1, end):
                word[i] = 0
            _write_masks(word, at + 1, predicates, pred, first, is_open)
            return end
    word[at] = np.int64(WIDE if n == 1 else WIDE_SET) << KIND | np.int64(pred) << 32 | attr
    word[at + 1], word[at + 2] = lo, hi
    return at + 3


@part
def is_wide_cell(w):
    return w >> KIND == WIDE or w >> KIND == WIDE_SET


@part
def cell_attr(w):
    if is_wide_cell(w):
        return w & WORD
    return (w >> ATTR) & (MOST_ATTRIBUTES - 1)


@part
def cell_words(w):
    if w >> KIND == INTERVAL:
        return 1
    return 3 if is_wide_cell(w) or (w & PAST) - ((w >> LOW) & PAST) >= 64 else 2


@part
def wide_pred(w):
    return np.int32((w >> 32) & (2**29 - 1))


@part
def cell_hull(postings, at):
    """First and last key of an inline predicate."""
    w = postings.word[at]
    if is_wide_cell(w):
        return postings.word[at + 1], postings.word[at + 2]
    if w >> KIND == OUTSIDE:
        return MIN_KEY, MAX_KEY
    origin = postings.origin[cell_attr(w)]
    return _key(origin, (w >> LOW) & PAST), _key(origin, w & PAST)


@part
def cell_is(postings, at, lo, hi):
    """Whether an inline predicate is exactly the interval lo..hi."""
    kind = postings.word[at] >> KIND
    if kind == INSIDE or kind == OUTSIDE or kind == WIDE_SET:
        return False
    low, high = cell_hull(postings, at)
    return low == lo and high == hi
