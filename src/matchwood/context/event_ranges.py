"""Event ranges: many events searched with many subscriptions, the events put in order instead.

    events by the key of an attribute    e4 e0 e7 e2 e9 e1 e5
    keys that a subscription allows             └─ range ─┘      and of these it is tested for those
                                                                 that see the values of its context

Idea.    An index of subscriptions has to follow every update of a context; the order of a batch of
         events has not.  What a subscription's entry in an index allows is where it can match.
Cost.    A sort of the events by the attributes that subscriptions are looked up by, two binary
         searches a subscription, and a test for every pair that is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from matchwood.context.cif_kernels import NOTHING, filter_chosen
from matchwood.context.cif_layout_kernels import Filter, Lists
from matchwood.context.member_kernels import Members, entry_ranges
from matchwood.context.range_kernels import ByKey, Ranges, place_pairs
from matchwood.encode.event_batch import part_of
from matchwood.index.core.protocol import Hits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matchwood.context.choice import Choice
    from matchwood.context.cif import Cif
    from matchwood.encode.events import EventBatch
    from matchwood.index.core.scratch import Scratch

MOST_PAIRS = 2**21
"""Events and subscriptions that are tested with each other at once, at most."""

ALL_EVENTS = 2**62
"""The end of the range of a subscription that every event is tested with."""


class Tested(NamedTuple):
    """Subscriptions to test, once for each entry, and the events that each is tested for."""

    members: Members
    cells: np.ndarray
    number: np.ndarray  # of each, its number among the members, ascending
    entry: np.ndarray  # what it is looked up by, -1: nothing, so it is tested for all
    listed: np.ndarray  # the index that the entry belongs to
    width: int  # entries of a member
    first: np.ndarray  # the first event that it is tested for
    last: np.ndarray  # and the one after the last


class Entries(NamedTuple):
    """By member of an index, the entries that it is looked up by: where one holds it can match."""

    start: np.ndarray
    entry: np.ndarray  # -1: none

    def of(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of some members, and positions among these."""
        size = self.start[members + 1] - self.start[members]
        before = np.repeat(np.cumsum(size) - size, size)
        at = np.repeat(self.start[members], size) + np.arange(len(before)) - before
        return np.repeat(np.arange(len(members)), size), self.entry[at]


def chosen_entries(index: Cif, members: np.ndarray) -> Entries:
    """What members are looked up by.

    Of one that all of its indexes have to find it is the entry in the index that most have: so
    events are put in order few times.  Of others, as an OR of several attributes, all entries.
    """
    p, choice = index.members, index.choice
    n, width = len(p.slot), choice.width
    if not width:
        return Entries(np.arange(n + 1), np.full(n, -1, np.int64))
    is_held = (p.entry[: n * width, 1] > 0).reshape(n, width) & (p.need > 0)[:, None]
    listed = p.listed[: n * width].reshape(n, width)
    weight = np.bincount(listed[members][is_held[members]], minlength=choice.n_lists) + 1
    if choice.every >= 0:
        weight[choice.every] = 0
    best = np.argmax(np.where(is_held, weight[listed], -1), axis=1)
    n_held = is_held.sum(axis=1)
    is_chosen = np.arange(width) == best[:, None]
    is_chosen[(n_held > 0) & (p.need < n_held)] = True
    is_chosen &= is_held | (n_held == 0)[:, None]
    entry = np.where(is_held, np.arange(n * width).reshape(n, width), -1)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_chosen.sum(axis=1))])
    return Entries(start, entry[is_chosen])


class EventRanges:
    """The events of a batch, by the keys that some indexes would be asked for."""

    def __init__(self, events: EventBatch, choice: Choice, lists: np.ndarray) -> None:
        self._events, self._choice = events, choice
        is_asked = np.zeros(choice.n_lists + 1, bool)
        is_asked[lists] = True
        of_entry = choice.lists_of(events.attr)
        at = np.flatnonzero(is_asked[of_entry])  # -1 is the last one, which is never asked
        event = np.searchsorted(events.start, at, side="right") - 1
        is_single = events.lo[at] == events.hi[at]
        if len(events.more):
            is_single &= events.more[at] < 0
        others = np.unique(event[~is_single])
        if len(others):
            is_kept = ~np.isin(event, others)
            at, event = at[is_kept], event[is_kept]
        order = np.lexsort((events.lo[at], of_entry[at]))
        self._keys, self._list = events.lo[at[order]], of_entry[at[order]]
        self._by_key = ByKey(event[order], others)

    def search(self, index: Cif, tested: Tested, scratch: Scratch) -> Hits:
        """What holds for the events, as the slots of members."""
        events, n = self._events, self._events.n_events
        ranges = self._ranges(tested)
        lists = Lists(index.choice.of_attr, -1, 0)
        read = Filter(tested.members, index.structure, tested.cells, lists, NOTHING)
        search = index.new_search(len(tested.members.slot))
        counts = np.zeros(n, np.int64)
        newest = np.full(n, -1, np.int64)
        place_pairs(ranges, self._by_key, 0, n, counts, newest, np.empty(0, np.int32))
        found = []
        for since, until in _parts(counts, MOST_PAIRS):
            start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[since:until])])
            pairs = np.empty(int(start[-1]) + 1, np.int32)
            newest[:] = -1
            place_pairs(ranges, self._by_key, since, until, start[:-1].copy(), newest, pairs)
            part = part_of(events, since, until)
            scratch.begin()
            step = scratch.step(filter_chosen, part, read, search, start, pairs, index.predicates)
            found.append(scratch.run(part, index.n_attributes, step))
            scratch.end()
        return joined(found)

    def _ranges(self, tested: Tested) -> Ranges:
        n, every = len(tested.number), self._choice.every
        begin, end = np.zeros(n, np.int64), np.full(n, ALL_EVENTS)
        is_listed = tested.entry >= 0
        entry, listed = tested.entry[is_listed], tested.listed[is_listed]
        low, high = np.empty(len(entry), np.int64), np.empty(len(entry), np.int64)
        entry_ranges(tested.members, tested.cells, entry, tested.width, low, high)
        at, to = np.zeros(len(entry), np.int64), np.zeros(len(entry), np.int64)
        for k in np.unique(listed).tolist():
            mine = listed == k
            if k == every:  # asked by every event, under one key
                to[mine] = np.where((low[mine] <= 0) & (high[mine] >= 0), ALL_EVENTS, 0)
                continue
            first, last = np.searchsorted(self._list, [k, k + 1])
            keys = self._keys[first:last]
            at[mine] = first + np.searchsorted(keys, low[mine])
            to[mine] = first + np.searchsorted(keys, high[mine], side="right")
        begin[is_listed], end[is_listed] = at, to
        return Ranges(tested.number, begin, end, tested.first, tested.last)


def joined(parts: Sequence[Hits]) -> Hits:
    """The hits of events that follow each other."""
    before = np.cumsum([0, *[len(each.slots) for each in parts]])
    ends = [each.offsets[1:] + at for each, at in zip(parts, before, strict=False)]
    return Hits(
        np.concatenate([np.zeros(1, np.int64), *ends]),
        np.concatenate([each.slots for each in parts]),
        np.sum([each.counters for each in parts], axis=0),
    )


def _parts(counts: np.ndarray, most: int) -> list[tuple[int, int]]:
    """First event and last + 1 of parts that have `most` in all, or are one event."""
    ends, done, n = np.cumsum(counts), 0, len(counts)
    parts = []
    while done < n:
        limit = most + (int(ends[done - 1]) if done else 0)
        until = max(done + 1, int(np.searchsorted(ends, limit, side="right")))
        parts.append((done, until))
        done = until
    return parts
