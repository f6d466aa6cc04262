"""The integers of events, and how they are put together.

Layout   (n events, m entries, an entry being one attribute of one event)
         start  int64[n+1]  slice of entries that belongs to an event
         attr   int32[m]    attribute ids, ascending within an event
         lo, hi int64[m]    the value's key (lo == hi), or the hull of an interval-valued entry
         more   int32[m]    -1, or which set below an entry has; empty when no entry has one
         more_start int64[k+1], more_lo, more_hi int64[]   those sets: sorted disjoint intervals

A number between two neighbouring doubles, beside a context, has lo = hi + 1: the double above it
and the one below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from matchwood.encode.interval_events import KeySets
from matchwood.errors import EventError
from matchwood.kernel.arrays import offsets_of, slices

if TYPE_CHECKING:
    from matchwood.encode.attributes import Attributes

_NO_SETS = np.empty(0, np.int32)
_NO_STARTS = np.zeros(1, np.int64)
_NO_KEYS = np.empty(0, np.int64)


class EventBatch(NamedTuple):
    """Encoded events; see the module's docstring for the arrays."""

    start: np.ndarray
    attr: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    more: np.ndarray = _NO_SETS
    more_start: np.ndarray = _NO_STARTS
    more_lo: np.ndarray = _NO_KEYS
    more_hi: np.ndarray = _NO_KEYS

    @property
    def n_events(self) -> int:
        return len(self.start) - 1

    @property
    def are_values(self) -> bool:
        """Whether all entries are single values, and none is a set of keys."""
        return self.lo is self.hi or bool((self.lo == self.hi).all())


class EncodedEvents(NamedTuple):
    """A batch, and what was wrong with the events that could not be encoded.

    warnings  what was wrong with computed attributes of events that are in the batch all the same
    others    the same events in the integers of further parts of a view (`Matcher.encode`)
    view      what they were encoded for, where it has parts
    """

    batch: EventBatch
    errors: dict[int, EventError]
    warnings: dict[int, list[EventError]] = {}  # noqa: RUF012 - never written
    others: tuple[EncodedEvents, ...] = ()
    view: Any = None


def part_of(events: EventBatch, first: int, last: int) -> EventBatch:
    """Events first .. last - 1 of a batch; they share its key sets."""
    start = events.start[first : last + 1]
    inside = slice(int(start[0]), int(start[-1]))
    more = events.more[inside] if len(events.more) else events.more
    return EventBatch(
        start - start[0], events.attr[inside], events.lo[inside], events.hi[inside],
        more, events.more_start, events.more_lo, events.more_hi,
    )  # fmt: skip


class Slices(Protocol):
    """Events that are encoded slice by slice."""

    n_events: int
    is_free: bool
    """Whether slices may be encoded by several threads at a time, each with attributes `apart`: no
    code of users runs, and nothing is changed that all of them see."""
    n_slow: int
    """Columns that cost some time in each slice, however few events it has."""

    def part(self, attributes: Attributes, first: int, last: int) -> EncodedEvents:
        """Events first .. last - 1."""
        ...


class Encoded:
    """Events that were encoded at once, as slices."""

    is_free = True
    n_slow = 0

    def __init__(self, events: EncodedEvents) -> None:
        self._events = events
        self.n_events = events.batch.n_events

    def part(self, attributes: Attributes, first: int, last: int) -> EncodedEvents:
        events = self._events
        if last - first == self.n_events:
            return events
        return EncodedEvents(
            part_of(events.batch, first, last),
            {e - first: error for e, error in events.errors.items() if first <= e < last},
            {e - first: each for e, each in events.warnings.items() if first <= e < last},
        )


def batch_of(
    start: Sequence[int], attrs: Sequence[int], found: Sequence[int | KeySets]
) -> EventBatch:
    """Events from lists: where each begins, and attributes and keys of all entries."""
    attr = np.array(attrs, np.int32)
    starts = np.array(start, np.int64)
    if set(map(type, found)) <= {int}:
        keys = np.array(found, np.int64)
        return EventBatch(starts, attr, keys, keys)
    lo, hi, more = [], [], []
    more_start, more_lo, more_hi = [0], [], []
    for key in found:
        sets = key if isinstance(key, KeySets) else KeySets(((key, key),))
        lo.append(sets.intervals[0][0])
        hi.append(sets.intervals[-1][1])
        more.append(len(more_start) - 1 if len(sets.intervals) > 1 else -1)
        if len(sets.intervals) > 1:
            more_lo += [low for low, _ in sets.intervals]
            more_hi += [high for _, high in sets.intervals]
            more_start.append(len(more_lo))
    return EventBatch(
        starts,
        attr,
        np.array(lo, np.int64),
        np.array(hi, np.int64),
        np.array(more, np.int32),
        np.array(more_start, np.int64),
        np.array(more_lo, np.int64),
        np.array(more_hi, np.int64),
    )


def batch_with(batch: EventBatch, more: Sequence[bytes]) -> EventBatch:
    """A batch of plain entries with more for each event: pairs of an attribute and a key, int64."""
    pairs = np.frombuffer(b"".join(more), np.int64).reshape(-1, 2)
    if not len(pairs):
        return batch
    from matchwood.encode.added_kernels import Entries, join_entries  # imports Numba

    read = Entries(batch.start, batch.attr, batch.lo)
    sizes = np.fromiter(map(len, more), np.int64, len(more)) // pairs[0].nbytes
    start = offsets_of(sizes)
    added = Entries(start, pairs[:, 0].astype(np.int32), pairs[:, 1].copy())
    n = len(batch.attr) + len(pairs)
    joined = Entries(np.zeros(len(start), np.int64), np.empty(n, np.int32), np.empty(n, np.int64))
    n_ids = 1 + max(int(batch.attr.max(initial=0)), int(added.attr.max()))
    join_entries(
        read, added, joined, np.empty(n_ids, np.int64), np.zeros(n_ids // 64 + 1, np.int64)
    )
    return EventBatch(joined.start, joined.attr, joined.key, joined.key)


def merged(batch: EventBatch, numbers: list[int], encoded: EncodedEvents) -> EncodedEvents:
    """Events of a batch that had no entries get those that were made by hand."""
    hand = encoded.batch
    sizes = np.diff(batch.start)
    sizes[numbers] = np.diff(hand.start)
    start = offsets_of(sizes)
    is_hand = np.zeros(len(sizes), bool)
    is_hand[numbers] = True
    from_hand = slices(start[:-1][is_hand], sizes[is_hand])
    from_batch = slices(start[:-1][~is_hand], sizes[~is_hand])

    def joined(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        column = np.empty(int(start[-1]), mine.dtype)
        column[from_batch], column[from_hand] = mine, theirs
        return column

    attr, lo, hi = map(joined, batch[1:4], hand[1:4])
    more = hand.more
    if len(hand.more):
        more = np.full(int(start[-1]), -1, np.int32)
        more[from_hand] = hand.more
    return EncodedEvents(
        EventBatch(start, attr, lo, hi, more, hand.more_start, hand.more_lo, hand.more_hi),
        {numbers[i]: error for i, error in encoded.errors.items()},
        {numbers[i]: found for i, found in encoded.warnings.items()},
    )
