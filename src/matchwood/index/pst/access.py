"""Kernels for access predicates: which predicate of an expression holds most seldom?

    odds   presence of the attribute x share of its events that a predicate takes

Both are counted, once events have been seen: `attr_seen` events had the attribute, `space_seen` of
them fell into each space.  Until then an attribute is taken to be present as often as expressions
name it, and a predicate to hold for the share of the keys between the attribute's lowest and
highest constant that it covers; one constant among n has at least one in n.

The paper's own rule for the time without events is there as well: = before IN before BETWEEN before
< and > before NOT IN before <>, and the narrower first.

Layout   (A attributes)
         uses    int64[A]   predicates of held expressions on an attribute
         lo, hi  int64[A]   its lowest and highest constant so far; lo > hi: none
         values  int64[A]   about how many different constants it has
         seen    int64[A]   sampled events that had it
         total   int64[2]   USES: all predicates, SEEN: sampled events
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.pst.spaces import is_open, next_places, position_of
from matchwood.index.stabbing.odds_kernels import presence_of
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import either, kernel, part

USES, SEEN = range(2)
ENOUGH = 64
"""Sampled events from which on counts are believed."""

MOST_LOOKED_AT = 32
"""A set of more intervals counts as its hull."""


class Statistics(NamedTuple):
    """See the module's docstring for the arrays."""

    uses: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    values: np.ndarray
    seen: np.ndarray
    total: np.ndarray


@part
def note_predicate(statistics, predicates, pred, step):
    """Count a predicate of expressions that come (step: how many) or of one that goes (-1)."""
    attr = predicates.attr[pred]
    statistics.uses[attr] += step
    statistics.total[USES] += step
    if step < 0:
        return
    lo, hi = predicates.lo[pred], predicates.hi[pred]
    if lo == MIN_KEY and predicates.n_intervals[pred] > 1:
        lo = predicates.interval_hi[predicates.interval_start[pred]]
    if hi == MAX_KEY and predicates.n_intervals[pred] > 1:
        last = predicates.interval_start[pred] + predicates.n_intervals[pred] - 1
        hi = predicates.interval_lo[last]
    for end in (lo, hi):
        if end != MIN_KEY and end != MAX_KEY:
            statistics.lo[attr] = min(statistics.lo[attr], end)
            statistics.hi[attr] = max(statistics.hi[attr], end)


@part
def note_expression(statistics, expressions, predicates, slot, step):
    """Count the predicates of an expression that comes (step: 1) or goes (-1)."""
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        note_predicate(statistics, predicates, expressions.code[k], step)


@kernel
def note_used(statistics, predicates, uses):
    """Count predicates that `uses[predicate]` new expressions have, in the table's order."""
    for pred in range(len(uses)):
        if uses[pred] > 0:
            note_predicate(statistics, predicates, np.int64(pred), np.int64(uses[pred]))


@part
def presence(statistics, attr):
    """How likely an event has an attribute."""
    if statistics.total[SEEN] >= ENOUGH:
        return (statistics.seen[attr] + 1.0) / (statistics.total[SEEN] + 2.0)
    return presence_of(statistics.uses[attr], statistics.total[USES])


@part
def width(statistics, predicates, pred):
    """The share of an attribute's keys that a predicate covers."""
    attr = predicates.attr[pred]
    low, high = statistics.lo[attr], statistics.hi[attr]
    if low > high:
        return 1.0
    covered = 0.0
    n = np.int64(predicates.n_intervals[pred])
    if n > MOST_LOOKED_AT:
        lo, hi = max(predicates.lo[pred], low), min(predicates.hi[pred], high)
        covered = np.float64(hi) - np.float64(lo) + 1.0
    else:
        for i in range(n):
            lo, hi = interval(predicates, pred, i)
            lo, hi = max(lo, low), min(hi, high)
            if lo <= hi:
                covered += np.float64(hi) - np.float64(lo) + 1.0
    share = covered / (np.float64(high) - np.float64(low) + 1.0)
    return min(1.0, max(share, n / (1.0 + max(statistics.values[attr], n))))


@part
def counted(statistics, spaces, space_seen, predicates, pred):
    """The share of an attribute's events that fell into spaces which a predicate meets."""
    attr = predicates.attr[pred]
    dim = 2 * np.int64(attr)
    if not is_open(spaces, dim) or spaces.size[dim] == 1:
        return width(statistics, predicates, pred)
    met, last = np.int64(0), np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        for position in range(first, last + 1):
            met += space_seen[spaces.item[position]]
    return min(1.0, (met + 0.5) / (statistics.seen[attr] + 1.0))


@part
def odds(statistics, spaces, space_seen, predicates, pred):
    """How likely an event satisfies a predicate."""
    here = presence(statistics, predicates.attr[pred])
    if statistics.total[SEEN] >= ENOUGH:
        return here * counted(statistics, spaces, space_seen, predicates, pred)
    return here * width(statistics, predicates, pred)


@part
def by_operator(statistics, predicates, pred):
    """The paper's ranking: the operator's number, and the width below one."""
    lo, hi, n = predicates.lo[pred], predicates.hi[pred], predicates.n_intervals[pred]
    if lo == hi:
        rank = 0.0
    elif lo != MIN_KEY and hi != MAX_KEY:
        rank = 1.0 if n > 1 else 2.0
    elif lo != MIN_KEY or hi != MAX_KEY:
        rank = 3.0
    else:
        rank = 4.0 if n > 2 else 5.0
    return rank + 0.999 * width(statistics, predicates, pred)


@part
def cost_of(statistics, spaces, space_seen, predicates, pred, ranking):
    """What the choice of access predicates makes small: odds, or (ranking = 1) the paper's rank."""
    if ranking == 1 and statistics.total[SEEN] < ENOUGH:
        return by_operator(statistics, predicates, pred)
    return odds(statistics, spaces, space_seen, predicates, pred)


@part
def choose(statistics, spaces, space_seen, expressions, predicates, slot, ranking):
    """The predicate of an expression with the least cost, and this cost."""
    begin = expressions.start[slot]
    best, least = np.int64(-1), np.inf
    for k in range(begin, begin + expressions.size[slot]):
        pred = np.int64(expressions.code[k])
        cost = cost_of(statistics, spaces, space_seen, predicates, pred, ranking)
        if cost < least:
            best, least = pred, cost
    return best, least


@kernel
def choose_all(costs, expressions, slots, access, cost):
    """The predicate with the least of `costs` (by predicate), and this cost, for each slot."""
    for i in range(len(slots)):
        begin = expressions.start[slots[i]]
        best = np.int64(expressions.code[begin])
        least = costs[best]
        for k in range(begin + 1, begin + expressions.size[slots[i]]):
            pred = np.int64(expressions.code[k])
            best = either(costs[pred] < least, pred, best)  # a wrong guess would wait for memory
            least = min(least, costs[pred])
        access[i], cost[i] = best, least


@kernel
def cost_all(statistics, spaces, space_seen, predicates, preds, ranking, cost):
    """What each of the predicates costs."""
    for i in range(len(preds)):
        cost[i] = cost_of(statistics, spaces, space_seen, predicates, preds[i], ranking)


@kernel
def carry_seen(before, seen_before, spaces, space_seen):
    """Hand the event counters of one set of spaces on to another, evenly inside a space."""
    for dim in range(0, min(len(before.size), len(spaces.size)), 2):
        if before.size[dim] == 0 or spaces.size[dim] == 0:
            continue
        first = spaces.start[dim]
        end = first + spaces.size[dim]
        while first < end:
            old = position_of(before, dim, spaces.cut[first])
            last = first
            while last + 1 < end and position_of(before, dim, spaces.cut[last + 1]) == old:
                last += 1
            share = seen_before[before.item[old]] // (last - first + 1)
            for position in range(first, last + 1):
                space_seen[spaces.item[position]] = share
            first = last + 1
