"""A frame for indexes over two attributes: a BE-Tree inside holds what they cannot.

An expression without a predicate on both attributes must match events that lack one of them, and
users mix such expressions with the others.  A list to scan would be simpler, and slow; a
BE-Tree takes every conjunction, and its kernels are compiled only when there are such expressions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.be_tree.index import BETree
from matchwood.index.core.frame import IndexFrame
from matchwood.index.core.hit_kernels import join_hits
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.arrays import prefixed, without_prefix
from matchwood.kernel.verify_kernels import EVENTS


def with_hits_of(rest: IndexFrame | None, events: EventBatch, scratch: Scratch, hits: Hits) -> Hits:
    """The hits of two indexes for the same events."""
    if rest is None or not len(rest):
        return hits
    more = rest.search(events, scratch)
    joined = np.empty(len(hits.slots) + len(more.slots), np.int32)
    join_hits(hits.offsets, hits.slots, more.offsets, more.slots, joined)
    counters = hits.counters + more.counters
    counters[EVENTS] = events.n_events
    return Hits(hits.offsets, joined, counters)


class FrameWithRest(IndexFrame):
    """The verbs, with a rest; a subclass says which slots belong to it."""

    _rest: BETree | None = None

    def _add_rest(self, slots: np.ndarray) -> None:
        if self._rest is None and len(slots):
            self._rest = BETree.build(self._table, slots)
        elif self._rest is not None:
            self._rest.insert(slots)

    def _remove_rest(self, slots: np.ndarray) -> None:
        if self._rest is not None:
            self._rest.delete(slots)

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        return with_hits_of(self._rest, events, scratch, super().search(events, scratch))

    def absorb(self, scratch: Scratch) -> None:
        super().absorb(scratch)
        if self._rest is not None:
            self._rest.absorb(scratch)

    @property
    def _n_rest(self) -> int:
        return 0 if self._rest is None else len(self._rest)

    @property
    def _rest_bytes(self) -> int:
        return 0 if self._rest is None else int(self._rest.stats()["bytes"])

    def _rest_arrays(self) -> dict[str, np.ndarray]:
        layout = {} if self._rest is None else self._rest.layout()
        return prefixed(layout, "rest_")

    def _take_rest(self, layout: Mapping[str, np.ndarray]) -> None:
        mine = without_prefix(layout, "rest_")
        self._rest = BETree.restore(self._table, mine) if mine else None
