"""Adding the entries of computed attributes to an event that compiled code has read."""

from __future__ import annotations

from struct import pack

import numpy as np

from matchwood.encode.added_kernels import ADDING, Adding, add_entries
from matchwood.encode.event_batch import EventBatch
from matchwood.kernel.bound import Binding

END = pack("2q", -1, 0)
"""Comes behind the entries that are added to an event."""


class AddedEntries:
    """Adds entries to one event after the other, in the same arrays; belongs to one thread."""

    def __init__(self, events: EventBatch, n_attributes: int) -> None:
        held, marks = np.empty(n_attributes, np.int64), np.zeros(n_attributes // 64 + 1, np.int64)
        self._binding = Binding(ADDING)  # keeps the arrays
        self._bound = self._binding.of(Adding(*events[:3], held, marks))

    def add(self, pairs: bytes) -> None:
        """Add entries, for which there is room: an attribute and a key each, int64, and END."""
        add_entries(self._bound, id(pairs))
