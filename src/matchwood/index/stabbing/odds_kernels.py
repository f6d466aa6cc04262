"""How likely events have an attribute and satisfy a predicate, as far as subscriptions tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part

EVENT_SIZE = 16.0
"""Attributes that an event is taken to have, as long as none has been seen."""


def presences_of(uses: np.ndarray, total: Any) -> np.ndarray:
    """As `presence_of`, for several attributes."""
    named = EVENT_SIZE * uses / max(int(total), 1)
    found: np.ndarray = named / (1.0 + named)
    return found


@part
def presence_of(uses, total):
    """How likely an event has an attribute that so many of all predicates are on."""
    named = EVENT_SIZE * uses / max(total, np.int64(1))
    return named / (1.0 + named)


@part
def share_between(predicates, pred, low, high):
    """The share that a set covers of the keys between its attribute's outermost constants.

    An open end reaches one key beyond them.
    """
    first, last = np.float64(low) - 1.0, np.float64(high) + 1.0
    covered = 0.0
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        a = first if lo == MIN_KEY else max(np.float64(lo), first)
        b = last if hi == MAX_KEY else min(np.float64(hi), last)
        covered += max(b - a + 1.0, 0.0)
    return covered / (last - first + 1.0)
