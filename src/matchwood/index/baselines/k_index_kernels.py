"""Kernels of `k_index` that build it: enumerate predicates over segments, count what that takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.segment_kernels import (
    has_segments,
    interval,
    is_cut,
    segment_of,
    span,
)
from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.jit import kernel


class KIndexLayout(NamedTuple):
    """See `k_index.py` for the table of arrays."""

    first: np.ndarray
    arity: np.ndarray
    start: np.ndarray
    item: np.ndarray


@kernel
def post_attributes(segments, expressions, predicates, slots, low, high, end, item):
    """Post expressions under every segment of their predicates on attributes low .. high - 1.

    end   by segment, where its next posting is written

    A few attributes at a time, so that the ends of their lists stay in the caches.
    """
    for slot in slots:
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            pred = expressions.code[k]
            if low <= predicates.attr[pred] < high:
                for i in range(predicates.n_intervals[pred]):
                    lo, hi = interval(predicates, pred, i)
                    first, last = span(segments, predicates.attr[pred], lo, hi)
                    for segment in range(first, last + 1):
                        item[end[segment]] = slot
                        end[segment] += 1


@kernel
def count_postings(segments, predicates, preds, uses, n_in_segment):
    """Postings in each segment when the predicates, which are aligned, are enumerated.

    They are added up as differences: entry i is how many more segment i has than the one before.
    """
    for pred in preds:
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, predicates.attr[pred], lo, hi)
            n_in_segment[first] += uses[pred]
            n_in_segment[last + 1] -= uses[pred]


@kernel
def bound_more(segments, predicates, preds, extra, wide):
    """By how many postings there may be more with these predicates; notes their ends.

    See `k_index_bound` for the arrays by attribute.
    """
    total = np.int64(0)
    for pred in preds:
        attr = predicates.attr[pred]
        covered, is_wide, new = np.int64(0), False, np.int64(0)
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            new += not is_cut(segments, attr, lo)
            new += hi != MAX_KEY and not is_cut(segments, attr, hi + 1)
            covered += 1
            if lo < hi:
                is_wide = True
                if has_segments(segments, attr):
                    covered += segment_of(segments, attr, hi) - segment_of(segments, attr, lo)
        extra[attr] += new
        total += new * wide[attr] + covered
        if is_wide:
            total += extra[attr]
            wide[attr] += 1
    return total
