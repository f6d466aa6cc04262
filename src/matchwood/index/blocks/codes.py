"""Kernels that turn keys into codes: which cut points there are, and what predicates become."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.words import (
    INTERVAL,
    MASK,
    MOST_CODE,
    MOST_MASK,
    POOLED,
    cell,
    cell_at,
    cell_high,
    cell_kind,
    cell_low,
    code_of,
    pooled_cell,
)
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel, part


class Coded(NamedTuple):
    """Predicates in codes, by id; only while blocks are built."""

    cell: np.ndarray  # int64[P], see `words`; behind a MASK follow words made from its intervals
    interval_low: np.ndarray  # int32[], as predicates.interval_lo
    interval_high: np.ndarray  # int32[]
    odds: np.ndarray  # float64[P], how likely an event satisfies each


@kernel
def ends_of(predicates, preds, lowest, highest, n_ends):
    """Per attribute: how many ends its predicates have, the lowest and the highest cut."""
    for pred in preds:
        attr = predicates.attr[pred]
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            if lo != MIN_KEY:
                n_ends[attr] += 1
                lowest[attr] = min(lowest[attr], lo)
                highest[attr] = max(highest[attr], lo)
            if hi != MAX_KEY:
                n_ends[attr] += 1
                lowest[attr] = min(lowest[attr], hi + 1)
                highest[attr] = max(highest[attr], hi + 1)


@kernel
def mark_ends(predicates, preds, lowest, mark_start, marks, attrs, cuts):
    """Mark cuts where an attribute has marks, append the others; returns the number of those."""
    n = np.int64(0)
    for pred in preds:
        attr = np.int64(predicates.attr[pred])
        begin = mark_start[attr]
        has_marks = begin < mark_start[attr + 1]
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            for cut, is_cut in (
                (lo, lo != MIN_KEY),
                (hi if hi == MAX_KEY else hi + 1, hi != MAX_KEY),
            ):
                if is_cut and has_marks:
                    marks[begin + (cut - lowest[attr])] = 1
                elif is_cut:
                    attrs[n], cuts[n] = attr, cut
                    n += 1
    return n


@kernel
def lay_dense(mark_start, marks, codes):
    """Write the tables of attributes that have marks: as many places as marks."""
    for attr in range(len(mark_start) - 1):
        if mark_start[attr] == mark_start[attr + 1]:
            continue
        code = np.int64(1)
        for i in range(mark_start[attr], mark_start[attr + 1]):
            code += np.int64(marks[i])
            codes.dense[i] = code
        codes.n[attr] = code


@kernel
def guide_codes(codes):
    """Write the guides of the cuts."""
    for attr in range(len(codes.n)):
        begin, end = codes.guide_start[attr], codes.guide_start[attr + 1]
        if begin == end:
            continue
        first, last = codes.cut_start[attr], codes.cut_start[attr + 1] - 1
        at, low, shift = first + 1, np.uint64(codes.low[attr]), np.uint64(codes.shift[attr])
        for i in range(begin, end - 1):
            bound = np.uint64(i - begin) << shift
            while at < last and np.uint64(codes.cut[at + 1]) - low <= bound:
                at += 1
            codes.guide[i] = at - first
        codes.guide[end - 1] = last - first


@kernel
def guide_places(codes, first_key, places):
    """Write the codes that spaces begin with, and their guides."""
    for dim in range(len(places.dim_start) - 1):
        first, last = places.dim_start[dim], places.dim_start[dim + 1] - 1
        if last < first:
            continue
        for position in range(first, last + 1):
            places.first_code[position] = code_of(codes, np.int64(dim >> 1), first_key[position])
        begin, end = places.guide_start[dim], places.guide_start[dim + 1]
        at = first
        for i in range(begin, end - 1):
            while at < last and places.first_code[at + 1] <= 1 + ((i - begin) << places.shift[dim]):
                at += 1
            places.guide[i] = at - first
        places.guide[end - 1] = last - first


@kernel
def encode_predicates(predicates, preds, codes, coded):
    """Predicates in codes; returns the words of the pool that they need."""
    needed = np.int64(0)
    for pred in preds:
        attr, n = np.int64(predicates.attr[pred]), np.int64(predicates.n_intervals[pred])
        low = code_of(codes, attr, predicates.lo[pred])
        high = code_of(codes, attr, predicates.hi[pred])
        if n > 1:
            first = predicates.interval_start[pred]
            for i in range(first, first + n):
                coded.interval_low[i] = code_of(codes, attr, predicates.interval_lo[i])
                coded.interval_high[i] = code_of(codes, attr, predicates.interval_hi[i])
        if high > MOST_CODE or (n > 1 and (high - low) >> 6 >= MOST_MASK):
            coded.cell[pred] = pooled_cell(attr, needed)
            needed += 1 + 2 * n
        else:
            coded.cell[pred] = cell(INTERVAL if n == 1 else MASK, attr, low, high)
    return needed


@kernel
def fill_pool(predicates, preds, codes, coded, pool):
    """Write the sets of POOLED predicates where `encode_predicates` has put them."""
    for pred in preds:
        if cell_kind(coded.cell[pred]) != POOLED:
            continue
        at, n = cell_at(coded.cell[pred]), np.int64(predicates.n_intervals[pred])
        pool[at] = n
        if n == 1:
            pool[at + 1] = code_of(codes, predicates.attr[pred], predicates.lo[pred])
            pool[at + 2] = code_of(codes, predicates.attr[pred], predicates.hi[pred])
            continue
        first = predicates.interval_start[pred]
        for i in range(n):
            pool[at + 1 + 2 * i] = coded.interval_low[first + i]
            pool[at + 2 + 2 * i] = coded.interval_high[first + i]


@part
def hull(coded, pool, pred):
    """The lowest and the highest code of a predicate."""
    cell = coded.cell[pred]
    low, high = cell_low(cell), cell_high(cell)
    if cell_kind(cell) == POOLED:
        at = cell_at(cell)
        low, high = np.int64(pool[at + 1]), np.int64(pool[at + 2 * np.int64(pool[at])])
    return low, high
