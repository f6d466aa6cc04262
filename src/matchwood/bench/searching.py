"""Search an index as its owner does: settle before, absorb after."""

from __future__ import annotations

from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Index
from matchwood.index.core.scratch import Hits, Scratch


def search(index: Index, events: EventBatch, scratch: Scratch) -> Hits:
    """The hits of a batch; the index learns from it."""
    index.settle()
    hits = index.search(events, scratch)
    index.absorb(scratch)
    return hits
