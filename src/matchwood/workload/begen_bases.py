"""Base expressions of BEGen, and how many of them give a matching probability.

Base expressions are conjunctions of equalities and serve as events.  With B of them, an event
matches the n / B subscriptions derived from its own base, and by accident some of the others:

    p = 1/B + (1 - 1/B) q    ->    B = (1 - q) / (p - q)

    q   chance that an event matches a subscription of another base
        = E over the attributes k that two bases of x predicates share, of
          sum_{j >= fewest} C(k, j) (keep s)^j (1 - keep)^(x - j)  /  P(j >= fewest)
    s   chance that a derived predicate accepts an unrelated value of its attribute

The paper leaves q out: 100 bases for 1 %.  With evenly drawn attributes it is nearly nothing; with
Zipf's law two bases share their popular attributes, and short subscriptions match by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

from matchwood.workload.begen_draw_kernels import draw_distinct
from matchwood.workload.draws import Draws

UNIFORM, ZIPF = "uniform", "zipf"
DISTRIBUTIONS = (UNIFORM, ZIPF)

_SAMPLE = 1_000
"""Bases, each compared with each, that estimate how many attributes two of them share."""


class Bases(NamedTuple):
    """Base i has the attributes and values start[i] .. start[i + 1] - 1."""

    start: np.ndarray
    attr: np.ndarray
    value: np.ndarray


class Shape(NamedTuple):
    """What base expressions look like."""

    n_attributes: int
    cardinality: int
    size: int
    exponent: float
    """Attribute i has weight 1 / (i + 1)^exponent: 0 for the uniform distribution."""


def draw_bases(seed: int, shape: Shape, numbers: np.ndarray) -> Bases:
    """The bases with these numbers."""
    attr = draw_attributes(seed, "begen/bases", shape, numbers)
    value = Draws(seed, "begen/bases", numbers).below("value", shape.cardinality, shape.size)
    start = np.arange(len(numbers) + 1) * shape.size
    return Bases(start, attr.ravel().astype(np.int32), value.ravel())


def draw_attributes(seed: int, table: str, shape: Shape, numbers: np.ndarray) -> np.ndarray:
    """int64[rows, size]: different attributes, drawn one after the other by weight."""
    weights = np.arange(1.0, shape.n_attributes + 1) ** -shape.exponent
    key = Draws(seed, table, np.zeros(1)).bits("attribute")[0, 0]
    found = np.empty((len(numbers), shape.size), np.int64)
    draw_distinct(key, numbers, np.cumsum(weights), found)
    return found


@lru_cache(maxsize=64)
def kept_share(size: int, wanted: float, fewest: int) -> float:
    """Pr_pred: with it, subscriptions of at least `fewest` predicates have `wanted` on average."""
    if wanted >= size:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        sizes = _sizes(size, middle)
        enough = sizes[fewest:].sum()
        mean = (sizes * np.arange(size + 1))[fewest:].sum() / enough if enough > 0 else fewest
        low, high = (middle, high) if mean < wanted else (low, middle)
    return high


def number_of_bases(probability: float, accident: float) -> int:
    """B, rounded: 1/B is what a whole number of bases can do; 0 when accidents alone are more."""
    if accident >= probability:
        return 0
    return max(1, round((1 - accident) / (probability - accident)))


def accident(
    pairs: Mapping[tuple[int, int], float], size: int, keep: float, fewest: int, accepted: float
) -> float:
    """q of the module's docstring.

    pairs      how often two bases have so many predicates in common, and so many more attributes
    accepted   s, for an attribute whose values differ (or are not compared)
    """
    total = 0.0
    for (same, shared), share in pairs.items():
        chances = np.ones(1)  # of 0, 1, 2, ... kept predicates, all of which accept
        for chance in [1.0] * same + [accepted] * shared:
            chances = np.convolve(chances, [1 - keep, keep * chance])
        total += share * chances[fewest:].sum() * (1 - keep) ** (size - same - shared)
    return float(total / _sizes(size, keep)[fewest:].sum())


def _sizes(size: int, keep: float) -> np.ndarray:
    """The binomial distribution of the number of kept predicates."""
    j = np.arange(size + 1)
    ways = np.array([float(comb(size, k)) for k in j])
    return ways * keep**j * (1 - keep) ** (size - j)


@lru_cache(maxsize=64)
def shared_attributes(shape: Shape) -> dict[tuple[int, int], float]:
    """Pairs for `accident`; the seed is fixed, so that the number of bases does not vary with it.

    Values are even and independent, so `accepted` tells all about them.
    """
    attr = draw_attributes(0, "begen/shared", shape, np.arange(_SAMPLE))
    has = np.zeros((_SAMPLE, shape.n_attributes), np.float32)
    np.put_along_axis(has, attr, 1, axis=1)
    shared = (has @ has.T).astype(np.int64)[np.triu_indices(_SAMPLE, 1)]
    return {(0, k): n / len(shared) for k, n in enumerate(np.bincount(shared).tolist()) if n}
