"""Which attributes get an index: those that leave the fewest candidates, by a sample.

The score of an attribute is the share of all profiles that an index on it is expected to rule out:
the share that can be indexed on it, times the chance that one profile's range does not hold a
point of another's.  Profiles whose context has no value yet count by the shape of their ranges.
"""

from __future__ import annotations

import numpy as np

from matchwood.context.profile_kernels import EQ, RELATION, Profiles
from matchwood.context.profiles import Compiled, no_profiles
from matchwood.context.update_kernels import leaf_ranges
from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY

SAMPLE, POINTS = 4_000, 200
_GUESS_POINT, _GUESS_RANGE = 0.01, 0.4
"""Chances that a range of unknown values holds a key: of a single key, and of another range."""


def choose_attributes(
    compiled: Compiled, rows: np.ndarray, cells: np.ndarray, most: int
) -> np.ndarray:
    """Up to `most` attribute ids, the best first."""
    n = len(compiled.slots)
    if not n or not most:
        return np.empty(0, np.int64)
    rng = np.random.default_rng(n)
    chosen = np.zeros(n, bool)
    chosen[rng.choice(n, min(n, SAMPLE), replace=False)] = True
    at = np.flatnonzero(chosen[compiled.profile] & (compiled.index_attr >= 0))
    lo, hi = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
    profiles = _view(compiled, rows)
    leaf_ranges(profiles, cells, at, compiled.profile[at], lo, hi)
    attr, owner = compiled.index_attr[at], compiled.profile[at]
    is_point = (compiled.leaf[at, 0] & 7 == RELATION) & ((compiled.leaf[at, 0] >> 3) & 7 == EQ)
    scores = {
        each: _score(owner[mine], lo[mine], hi[mine], is_point[mine], rng) / min(n, SAMPLE)
        for each in np.unique(attr).tolist()
        for mine in [attr == each]
    }
    best = sorted(scores, key=lambda each: (-scores[each], each))
    return np.array([each for each in best if scores[each] > 0][:most], np.int64)


def _score(
    owner: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    is_point: np.ndarray,
    rng: np.random.Generator,
) -> float:
    """How many profiles of the sample the attribute rules out for one event."""
    profiles, which = np.unique(owner, return_inverse=True)
    low = np.full(len(profiles), MIN_KEY, np.int64)
    high = np.full(len(profiles), MAX_KEY, np.int64)
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
    points_only = np.ones(len(profiles), bool)
    np.logical_and.at(points_only, which, is_point)
    unknown = ~known
    rules_out += float((unknown & points_only).sum()) * (1 - _GUESS_POINT)
    rules_out += float((unknown & ~points_only).sum()) * (1 - _GUESS_RANGE)
    return rules_out


def _view(compiled: Compiled, rows: np.ndarray) -> Profiles:
    """Just enough of a `Profiles` to ask for ranges of leaves."""
    return no_profiles()._replace(
        leaf=compiled.leaf, jump=compiled.jump, slot=compiled.slots, row=rows
    )
