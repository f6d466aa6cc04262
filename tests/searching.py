"""Search an index as its owner does: settle, search, absorb, with one scratch for each index."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import COUNTERS

_scratches: WeakKeyDictionary[Any, Scratch] = WeakKeyDictionary()


def scratch_of(index: Any) -> Scratch:
    """The scratch that `search` uses for an index."""
    return _scratches.setdefault(index, Scratch())


def search(index: Any, events: EventBatch) -> Hits:
    """The hits of a batch; the index learns from it."""
    scratch = scratch_of(index)
    index.settle()
    hits: Hits = index.search(events, scratch)
    index.absorb(scratch)
    return hits


def slots_of(index: Any, event: EventBatch) -> np.ndarray:
    """The slots of a batch of one event."""
    return search(index, event).slots


def work_of(hits: Hits) -> dict[str, int]:
    """The work of a search by name: events, nodes, candidates, predicates, matches."""
    return dict(zip(COUNTERS, hits.counters.tolist(), strict=True))
