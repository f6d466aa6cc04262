"""Kernels of `k_index` that change it: enumerate predicates over segments, take them back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.segment_kernels import (
    has_segments,
    interval,
    is_aligned,
    is_cut,
    segment_of,
    span,
)
from matchwood.kernel.id_list_kernels import insert_id, remove_id
from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.jit import kernel, part

LISTS_FULL, ITEMS_FULL = -1, -2
"""Why an insertion stopped: what has to grow."""

HIGH, FREE = range(2)
"""Positions in `count`: list ids ever handed out, the first free one or NONE."""

PENDING = 0
"""The list of expressions with an end that is no cut."""

NONE = -1


class KIndexLayout(NamedTuple):
    """See `k_index.py` for the table of arrays; the lists themselves are `IdLists`."""

    first: np.ndarray
    next: np.ndarray
    arity: np.ndarray
    held: np.ndarray
    count: np.ndarray


@part
def _list_of(index, segment, k, make):
    """The list of a segment for size k, made if asked for; NONE when there is none (or no room)."""
    before, which = np.int64(NONE), np.int64(index.first[segment])
    while which != NONE and index.arity[which] < k:
        before, which = which, np.int64(index.next[which])
    if which != NONE and index.arity[which] == k:
        return which
    if not make:
        return np.int64(NONE)
    fresh = index.count[FREE]
    if fresh != NONE:
        index.count[FREE] = index.next[fresh]
    elif index.count[HIGH] < len(index.next):
        fresh = index.count[HIGH]
        index.count[HIGH] += 1
    else:
        return np.int64(NONE)
    index.arity[fresh], index.next[fresh] = k, which
    if before == NONE:
        index.first[segment] = fresh
    else:
        index.next[before] = fresh
    return fresh


@part
def _drop_list(index, segment, which):
    """Forget a list that became empty."""
    if index.first[segment] == which:
        index.first[segment] = index.next[which]
    else:
        before = index.first[segment]
        while index.next[before] != which:
            before = index.next[before]
        index.next[before] = index.next[which]
    index.next[which] = index.count[FREE]
    index.count[FREE] = which


@part
def _all_aligned(segments, predicates, expressions, slot):
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        if not is_aligned(segments, predicates, expressions.code[k]):
            return False
    return True


@part
def _enumerate(index, lists, segments, predicates, pred, size, slot):
    """Post an expression under every segment of a predicate; 0, or what is full."""
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        first, last = span(segments, predicates.attr[pred], lo, hi)
        for segment in range(first, last + 1):
            which = _list_of(index, segment, size, True)
            if which == NONE:
                return LISTS_FULL
            if not insert_id(lists, which, slot):
                return ITEMS_FULL
    return 0


@kernel
def post_expressions(index, lists, segments, expressions, predicates, slots, first):
    """Insert expressions first..; returns how many are done, and what is full or 0.

    An expression that did not get in whole is inserted again: what is there already stays.
    """
    for i in range(first, len(slots)):
        slot = slots[i]
        begin, size = expressions.start[slot], expressions.size[slot]
        if not _all_aligned(segments, predicates, expressions, slot):
            if not insert_id(lists, PENDING, slot):
                return i, ITEMS_FULL
        else:
            for k in range(begin, begin + size):
                pred = expressions.code[k]
                full = _enumerate(index, lists, segments, predicates, pred, size, slot)
                if full:
                    return i, full
        index.held[slot] = True
    return len(slots), 0


@kernel
def post_attributes(index, lists, segments, expressions, predicates, slots, first, low, high):
    """Insert aligned expressions first.. under their predicates on attributes low..high - 1.

    Like `post_expressions`.  A few attributes at a time, so that the ends of their lists stay in
    the caches.
    """
    for i in range(first, len(slots)):
        slot = slots[i]
        begin, size = expressions.start[slot], expressions.size[slot]
        for k in range(begin, begin + size):
            pred = expressions.code[k]
            if low <= predicates.attr[pred] < high:
                full = _enumerate(index, lists, segments, predicates, pred, size, slot)
                if full:
                    return i, full
    return len(slots), 0


@kernel
def unpost_expressions(index, lists, segments, expressions, predicates, slots):
    """Delete expressions; lists that become empty go too."""
    for slot in slots:
        index.held[slot] = False
        if not _all_aligned(segments, predicates, expressions, slot):
            remove_id(lists, PENDING, slot)
            continue
        begin, size = expressions.start[slot], expressions.size[slot]
        for k in range(begin, begin + size):
            pred = expressions.code[k]
            for i in range(predicates.n_intervals[pred]):
                lo, hi = interval(predicates, pred, i)
                first, last = span(segments, predicates.attr[pred], lo, hi)
                for segment in range(first, last + 1):
                    which = _list_of(index, segment, size, False)
                    remove_id(lists, which, slot)
                    if lists.size[which] == 0:
                        _drop_list(index, segment, which)


@kernel
def count_postings(segments, predicates, preds, uses):
    """Postings that enumerating the predicates takes; they are aligned."""
    total = np.int64(0)
    for pred in preds:
        n = np.int64(0)
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, predicates.attr[pred], lo, hi)
            n += last - first + 1
        total += n * np.int64(uses[pred])
    return total


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
