"""Search an index as an engine does: settle, search, and let it learn."""

from __future__ import annotations

from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Hits, Index
from matchwood.index.core.scratch import Scratch


def searched(index: Index, events: EventBatch, scratch: Scratch) -> Hits:
    """The hits of a batch of events."""
    index.settle()
    hits = index.search(events, scratch)
    index.absorb(scratch)
    return hits
