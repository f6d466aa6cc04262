"""Statistics of conjunctions that the planner decides by: what an event reaches, what that shares.

A conjunction is reached by its best predicate, as in `blocks` and `pst_bloom`: the one that events
satisfy most seldom.  The odds are that an event has the attribute, as far as subscriptions tell,
and a key that is accepted, all keys being equally likely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

EVENT_SIZE, SAMPLE = 16, 20_000
"""Attributes that an event is taken to have; conjunctions that statistics are made of."""


class Reach(NamedTuple):
    """Statistics of some conjunctions."""

    by_ranges: float
    """The share of them that an event reaches by something else than an equality."""
    sharing: float
    """Of those that an event reaches together: how many have a predicate on the same attribute, on
    average over their predicates, the one itself among them.  1 or less where they share nothing.
    """


def reach_of(table: ExpressionTable, slots: np.ndarray) -> Reach:
    """The statistics of conjunctions, of which there is one at least: of a sample of them."""
    x, p = table.layout, table.predicates.layout
    step = -(-len(slots) // SAMPLE)
    sample = slots[_chosen(len(slots), step)]
    size = x.size[sample].astype(np.int64)
    preds = table.codes_of(sample)
    attr, is_equality = p.attr[preds].astype(np.int64), p.lo[preds] == p.hi[preds]
    share = _shares(p, preds, attr, table.n_attributes)
    named = EVENT_SIZE * np.bincount(attr) / len(attr)
    odds = share * (named / (1.0 + named))[attr]
    begin = np.cumsum(size) - size
    by_ranges = np.minimum.reduceat(np.where(is_equality, 0.0, odds), begin).mean()
    owner = np.repeat(np.arange(len(sample)), size)
    best = np.minimum.reduceat(odds, begin)
    access = np.empty(len(sample), np.int64)
    is_best = np.flatnonzero(odds == best[owner])[::-1]
    access[owner[is_best]] = is_best  # the first of equal ones is written last
    # those that one key reaches: of equalities all with this one, of ranges a share of all
    reached = np.where(is_equality[access], 1.0, share[access])
    group = np.where(is_equality[access], len(named) + preds[access], attr[access])
    is_other = np.ones(len(preds), bool)
    is_other[access] = False
    owner, attr = owner[is_other], attr[is_other]
    _, which, count = np.unique(
        group[owner] * len(named) + attr, return_inverse=True, return_counts=True
    )
    together = (1 + step * (count[which] - 1)) * reached[owner]
    weight = best[owner]
    total = weight.sum()
    sharing = float((together * weight).sum() / total) if total > 0.0 else 0.0
    return Reach(float(by_ranges), sharing)


def _chosen(n: int, step: int) -> np.ndarray:
    """One of `step` positions below n, the same each time.

    Spread by a hash: where conjunctions come in turns, every so many of them would be alike.
    """
    spread = np.arange(n, dtype=np.uint64) * np.uint64(2654435761) & np.uint64(2**32 - 1)
    return np.flatnonzero(spread < np.uint64(2**32 // step))


def _shares(p: PredicateLayout, preds: np.ndarray, attr: np.ndarray, n: int) -> np.ndarray:
    """For each predicate the share that it accepts of the keys between the constants it is with."""
    lo, hi = p.lo[preds], p.hi[preds]
    low, high = np.full(n, MAX_KEY), np.full(n, MIN_KEY)
    for ends in (lo, hi):
        known = (ends != MIN_KEY) & (ends != MAX_KEY)
        np.minimum.at(low, attr[known], ends[known])
        np.maximum.at(high, attr[known], ends[known])
    first, last = low[attr].astype(np.float64), high[attr].astype(np.float64)
    whole = np.maximum(last - first, 0.0) + 1.0
    covered = np.minimum(hi, last) - np.maximum(lo, first) + 1.0
    share: np.ndarray = np.clip(covered / whole, 0.0, 1.0)
    n_values = p.n_intervals[preds]
    is_set = (n_values > 1) & (lo != MIN_KEY)  # an IN list: its values, not its hull
    share[is_set] = np.minimum(share[is_set], n_values[is_set] / whole[is_set])
    return share
