"""Elementary segments of every attribute: the stretches of keys that predicates tell apart.

    predicates   x in 2..5,  x in 4..9            cuts of x   MIN  2  4  6  10
    segments     MIN..1   2..3   4..5   6..9   10..MAX

A predicate whose ends are cuts is a union of whole segments, and all keys of a segment satisfy the
same predicates.  Cuts stay as they are until the owner makes them anew (`segments.py`).

Layout   (A attributes, C cuts)
         attr_start int64[A+1]   slice of cuts that belongs to an attribute, empty for unknown ones
         cut        int64[C]     first key of a segment, ascending; the first of a slice is MIN_KEY
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.sort_kernels import last_not_above


class Segments(NamedTuple):
    """See the module's docstring for the arrays."""

    attr_start: np.ndarray
    cut: np.ndarray


@part
def has_segments(segments, attr):
    if attr + 1 >= len(segments.attr_start):
        return False
    return segments.attr_start[attr] < segments.attr_start[attr + 1]


@part
def segment_of(segments, attr, key):
    """Position of the segment that a key falls into; the attribute has segments."""
    first, end = segments.attr_start[attr], segments.attr_start[attr + 1]
    return last_not_above(segments.cut, first, end, key)


@part
def is_cut(segments, attr, key):
    """Whether a segment begins with a key."""
    return has_segments(segments, attr) and segments.cut[segment_of(segments, attr, key)] == key


@part
def span(segments, attr, lo, hi):
    """First and last segment of lo..hi; -1, -1 when its ends are no cuts."""
    nothing = np.int64(-1)
    if not has_segments(segments, attr):
        return nothing, nothing
    first = segment_of(segments, attr, lo)
    if segments.cut[first] != lo:
        return nothing, nothing
    last = segments.attr_start[attr + 1] - 1
    if hi != MAX_KEY:
        last = segment_of(segments, attr, hi)
        if last + 1 == segments.attr_start[attr + 1] or segments.cut[last + 1] != hi + 1:
            return nothing, nothing
    return first, last


@part
def interval(predicates, pred, i):
    """The i-th interval of a predicate, wherever it is kept."""
    if predicates.n_intervals[pred] == 1:
        return predicates.lo[pred], predicates.hi[pred]
    at = predicates.interval_start[pred] + i
    return predicates.interval_lo[at], predicates.interval_hi[at]


@part
def is_aligned(segments, predicates, pred):
    """Whether a predicate is a union of whole segments."""
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        first, _ = span(segments, predicates.attr[pred], lo, hi)
        if first < 0:
            return False
    return True
