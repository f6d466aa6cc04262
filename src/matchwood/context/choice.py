"""Which indexes there are, and which of them hold a subscription.

Every attribute of the event that subscriptions test has an index.  A subscription is in those on
its most selective attributes, `width` of them at most.  The selectivity of an attribute is the
chance, by a sample, that the range of one subscription does not hold a point of another's.
Subscriptions whose context has no value yet count by the shape of their ranges.  One more index,
`every`, holds subscriptions that test the context alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.context.leaf_kernels import EQ, RELATION, WHAT, word_kind, word_op
from matchwood.context.member_kernels import Members, leaf_ranges
from matchwood.context.members import Compiled, no_members
from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY

MOST_LISTS = 4_096
"""Indexes, at most: those that rule out most."""

EVERY = -1
"""The attribute of the index that every event asks."""

SAMPLE, POINTS = 4_000, 200
_GUESS_POINT, _GUESS_RANGE = 0.01, 0.4
"""Chances that a range of unknown values holds a key: of a single key, and of another range."""


class Choice(NamedTuple):
    """The indexes of a filter."""

    attrs: np.ndarray  # int64, the attribute of each; EVERY: asked by every event
    score: np.ndarray  # float64, how selective each is
    of_attr: np.ndarray  # int32, by attribute: its index, -1: none
    width: int  # indexes that a subscription is in, at most
    every_width: np.ndarray  # int64[2], `every` and `width`, for kernels

    @property
    def n_lists(self) -> int:
        return len(self.attrs)

    @property
    def every(self) -> int:
        """The index of subscriptions on the context alone, -1: none."""
        return int(self.every_width[0])

    def lists_of(self, attrs: np.ndarray) -> np.ndarray:
        """The index on each attribute, -1: none."""
        if not len(self.of_attr):
            return np.full(len(attrs), -1, np.int32)
        known = (attrs >= 0) & (attrs < len(self.of_attr))
        found: np.ndarray = np.where(known, self.of_attr[np.where(known, attrs, 0)], -1)
        return found


def no_choice() -> Choice:
    """No indexes."""
    nothing = np.empty(0, np.int64)
    return Choice(nothing, np.empty(0), np.empty(0, np.int32), 0, np.array([-1, 0]))


def choose_attributes(
    compiled: Compiled, rows: np.ndarray, cells: np.ndarray, width: int
) -> Choice:
    """Indexes for these subscriptions."""
    if not len(compiled.slots) or not width:
        return no_choice()
    scores = _scores(compiled, rows, cells)
    best = sorted(scores, key=lambda each: (-scores[each][0] * scores[each][1], each))[:MOST_LISTS]
    best = [each for each in best if scores[each][0] > 0]
    is_of_context = compiled.is_of_context
    attrs = [*best, EVERY] if is_of_context.any() else best
    if not attrs:
        return no_choice()
    of_attr = np.full(max(attrs) + 1, -1, np.int32)
    of_attr[best] = np.arange(len(best))
    score = [*(scores[each][0] for each in best), *([0.0] if is_of_context.any() else [])]
    every = len(attrs) - 1 if attrs[-1] == EVERY else -1
    return Choice(
        np.array(attrs, np.int64), np.array(score), of_attr, width, np.array([every, width])
    )


def _scores(
    compiled: Compiled, rows: np.ndarray, cells: np.ndarray
) -> dict[int, tuple[float, int]]:
    """By attribute: how selective it is, and how many leaves are on it."""
    n = len(compiled.slots)
    rng = np.random.default_rng(n)
    chosen = np.zeros(n, bool)
    chosen[rng.choice(n, min(n, SAMPLE), replace=False)] = True
    known, counts = np.unique(compiled.index_attr[compiled.index_attr >= 0], return_counts=True)
    sampled = chosen[compiled.member] & (compiled.index_attr >= 0)
    rare = np.setdiff1d(known, compiled.index_attr[sampled])  # few, since the sample has none
    at = np.flatnonzero(sampled | np.isin(compiled.index_attr, rare))
    lo, hi = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
    leaf_ranges(_view(compiled, rows), cells, at, compiled.member[at], lo, hi)
    owner = compiled.member[at]
    what = compiled.leaf[at, WHAT]
    is_point = (word_kind(what) == RELATION) & (word_op(what) == EQ)
    order = np.argsort(compiled.index_attr[at], kind="stable")
    ends = np.searchsorted(compiled.index_attr[at][order], known, side="right")
    found, begin = {}, 0
    for attr, end, count in zip(known.tolist(), ends.tolist(), counts.tolist(), strict=True):
        mine = order[begin:end]
        found[attr] = _score(owner[mine], lo[mine], hi[mine], is_point[mine], rng), count
        begin = end
    return found


def _score(
    owner: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    is_point: np.ndarray,
    rng: np.random.Generator,
) -> float:
    """The share of the subscriptions that have the attribute that it rules out for one event."""
    members, which = np.unique(owner, return_inverse=True)
    low = np.full(len(members), MIN_KEY, np.int64)
    high = np.full(len(members), MAX_KEY, np.int64)
    np.maximum.at(low, which, lo)
    np.minimum.at(high, which, hi)
    known = low <= high
    ends = np.where(low[known] != MIN_KEY, low[known], high[known])
    ends = ends[(ends != MIN_KEY) & (ends != MAX_KEY)]
    rules_out = 0.0
    if len(ends):
        points = rng.choice(ends, min(len(ends), POINTS), replace=False)
        holds = (low[known, None] <= points) & (points <= high[known, None])
        rules_out += float(known.sum() * (1 - holds.mean()))
    points_only = np.ones(len(members), bool)
    np.logical_and.at(points_only, which, is_point)
    unknown = ~known
    rules_out += float((unknown & points_only).sum()) * (1 - _GUESS_POINT)
    rules_out += float((unknown & ~points_only).sum()) * (1 - _GUESS_RANGE)
    return rules_out / len(members)


def _view(compiled: Compiled, rows: np.ndarray) -> Members:
    """A `Members` that has only what the kernel for ranges of leaves reads."""
    return no_members()._replace(
        leaf=compiled.leaf, jump=compiled.jump, slot=compiled.slots, row=rows
    )
