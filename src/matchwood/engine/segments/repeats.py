"""Repeats: equal events of a batch are searched once."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from matchwood.encode.event_batch import EventBatch
from matchwood.engine.segments.repeat_kernels import find_equal_events, repeat_hits
from matchwood.kernel.arrays import doubled, offsets_of, slices

_LEAST = 8
"""Events of a batch from which looking for equal ones is worth the call."""
_SEED = np.int64(int.from_bytes(os.urandom(8), signed=True))
"""Another one in each process, so that no list of events is bad."""
_MOST, _SAMPLE = 4096, 512
"""Events up to which all are looked at, and how many of more: if these differ, all are searched."""
_RANDOM = np.random.default_rng()


class Repeats(NamedTuple):
    """Distinct events, and which of them each event is."""

    batch: EventBatch
    number: np.ndarray

    def all_hits(
        self, offsets: np.ndarray, slots: np.ndarray, errors: Collection[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and slots of all events, from those of the distinct ones; none for errors."""
        sizes = np.diff(offsets)[self.number]
        sizes[list(errors)] = 0
        all_offsets = offsets_of(sizes)
        all_slots = np.empty(int(all_offsets[-1]), np.int32)
        repeat_hits(offsets, slots, self.number, all_offsets, all_slots)
        return all_offsets, all_slots


def repeats_of(events: EventBatch) -> Repeats | None:
    """The distinct events of a batch; None if most are, or some entries are no single values."""
    n = events.n_events
    if n < _LEAST or len(events.more) or events.lo is not events.hi:
        return None
    if n > _MOST and len(_distinct(events, _sample(n))[1]) == _SAMPLE:
        return None
    number, kept = _distinct(events, np.arange(n, dtype=np.int32))
    if len(kept) > n - n // _LEAST:
        return None
    sizes = np.diff(events.start)[kept]
    at = slices(events.start[kept], sizes)
    keys = events.lo[at]
    start = offsets_of(sizes)
    return Repeats(EventBatch(start, events.attr[at], keys, keys), number)


def _distinct(events: EventBatch, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the distinct events each of some is, and the first of each."""
    n = len(rows)
    table = np.full(doubled(16, 2 * n + 1), -1, np.int32)
    number, first = np.empty(n, np.int32), np.empty(n, np.int32)
    return number, first[: find_equal_events(events, rows, _SEED, table, number, first)]


def _sample(n: int) -> np.ndarray:
    """Some of n events, each once."""
    step = n // _SAMPLE
    return (np.arange(_SAMPLE) * step + _RANDOM.integers(0, step, _SAMPLE)).astype(np.int32)
