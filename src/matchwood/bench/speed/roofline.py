"""A roofline: what a search has to read, and how fast this machine could read it.

bytes touched   of an event: what its candidates and tested predicates take in the index, by the
                work counters and the sizes of the structure
reached         bytes touched / time
roof            the rate at which one core copies memory that no cache holds

Far below the roof, time is spent on waiting for single cache lines or on instructions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

LINE = 64
"""Bytes of a cache line: a candidate that lies alone costs one, whatever it is."""
CELL = 8


class Reading(NamedTuple):
    """The roofline of one case."""

    case: str
    kilobytes: float
    gb_per_second: float
    roof: float
    least_micros: float
    """µs an event at the roof."""


@cache
def roof() -> float:
    """GB/s that one core reads and writes."""
    source = np.ones(1 << 25)
    target = np.empty_like(source)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        np.copyto(target, source)
        times.append(time.perf_counter() - began)
    return 2 * source.nbytes / min(times) / 1e9


def reading(
    case: str, index: Mapping[str, Any], counters: Mapping[str, int], n_events: int, micros: float
) -> Reading:
    """What the search of a batch reads: an estimate from its work counters.

    index  `stats` of the index
    """
    work = {name: value / n_events for name, value in counters.items()}
    if "records" in index:  # column blocks: candidates lie side by side
        rows = index.get("in_rows", 0) / max(1, index["records"])
        size = work["candidates"] * (4 + 8 * rows)
    elif "terms" in index:  # slots of a run lie side by side
        size = work["candidates"] * 4
    else:
        size = work["candidates"] * LINE
    size += CELL * work["predicates"] + LINE * work["nodes"] + 4 * work["matches"]
    return Reading(case, size / 1e3, size / micros / 1e3, roof(), size / roof() / 1e3)
