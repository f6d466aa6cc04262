"""Context changes: contexts that change between the events of one batch.

    events     0   1   2 | 3   4 | 5            one batch for indexes that know no contexts
    contexts             ▲       ▲              three for the one that does
                      changes before events 3 and 5

A call of an index costs more than a few events do, so only the index of subscriptions with a
context is called anew after every change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Hits, Index
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.verify_kernels import COUNTERS


class ContextChange(NamedTuple):
    """A change of contexts that events from number `event` on see, and none before."""

    event: int
    change: Callable[[], None]


def search_between(
    index: Index, events: EventBatch, scratch: Scratch, changes: Sequence[ContextChange]
) -> Hits:
    """Search events before, between and after the changes, which ascend; makes all of them."""
    parts = []
    for first, last in _runs(events.n_events, changes):
        if len(index):
            index.settle()
            parts.append(index.search(part_of(events, first, last), scratch))
            index.absorb(scratch)
    if not parts:
        n = events.n_events
        none = np.zeros(len(COUNTERS), np.int64)
        return Hits(np.zeros(n + 1, np.int64), np.empty(0, np.int32), none)
    before = np.cumsum([0, *[len(each.slots) for each in parts]])
    ends = [each.offsets[1:] + at for each, at in zip(parts, before, strict=False)]
    return Hits(
        np.concatenate([np.zeros(1, np.int64), *ends]),
        np.concatenate([each.slots for each in parts]),
        np.sum([each.counters for each in parts], axis=0),
    )


def _runs(n: int, changes: Sequence[ContextChange]) -> Iterator[tuple[int, int]]:
    """First and last + 1 of the events between two changes, each after its change."""
    at = 0
    for event, change in changes:
        if event > at:
            yield at, event
            at = event
        change()
    if n > at:
        yield at, n


def part_of(events: EventBatch, first: int, last: int) -> EventBatch:
    """Events first .. last - 1 of a batch; they share its key sets."""
    start = events.start[first : last + 1]
    inside = slice(int(start[0]), int(start[-1]))
    more = events.more[inside] if len(events.more) else events.more
    return EventBatch(
        start - start[0], events.attr[inside], events.lo[inside], events.hi[inside],
        more, events.more_start, events.more_lo, events.more_hi,
    )  # fmt: skip
