"""Kernels that find which predicates are used, and how often an event satisfies each."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.odds_kernels import presence_of, share_between
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel


@kernel
def count_leaves(expressions, predicates, slots, uses, attr_uses):
    """How often slots use each predicate and each attribute; returns the longest code."""
    longest = np.int64(0)
    for slot in slots:
        begin, size = expressions.start[slot], np.int64(expressions.size[slot])
        longest = max(longest, size)
        for k in range(begin, begin + size):
            pred = expressions.code[k]
            if pred >= 0:
                uses[pred] += 1
                attr_uses[predicates.attr[pred]] += 1
    return longest


@kernel
def find_hulls(predicates, preds, low, high):
    """The outermost constants of every attribute; low begins with MAX_KEY, high with MIN_KEY."""
    for pred in preds:
        attr = predicates.attr[pred]
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            if lo != MIN_KEY:
                low[attr], high[attr] = min(low[attr], lo), max(high[attr], lo)
            if hi != MAX_KEY:
                low[attr], high[attr] = min(low[attr], hi), max(high[attr], hi)


@kernel
def find_odds(predicates, preds, low, high, attr_uses, odds):
    """How likely an event satisfies each of `preds`, as far as subscriptions tell.

    The odds that it has the attribute, by how often that is used, times the share of the keys
    between the outermost constants that the predicate accepts.
    """
    total = np.int64(0)
    for attr in range(len(attr_uses)):
        total += attr_uses[attr]
    for i in range(len(preds)):
        pred = preds[i]
        attr = predicates.attr[pred]
        share = 1.0
        if low[attr] <= high[attr]:
            share = min(share_between(predicates, pred, low[attr], high[attr]), 1.0)
        odds[i] = share * presence_of(attr_uses[attr], total)
