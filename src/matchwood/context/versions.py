"""Versions: what holds for events between which the values of some contexts change.

    event      0    1    2    3    4    5          one window of events
    ann        ├── ann 0 ──┼─── ann 1 ────┤        values before and after an update at event 2
    bob        ├──── bob 0 ─────┼─ bob 1 ─┤        ... at event 3
    others     ──────────────────────────          one search

Idea.    What is linked to contexts that change is there once for each version of its context, and
         tested for the events of that version.  The rest is found by one search of all events, or,
         where there are many events, in the same way (`event_ranges`).  No index is asked then,
         and none has to follow in between.
Cost.    That of `event_ranges`; a copy takes some 200 bytes, so windows are cut where there are
         many (`MOST_COPIES`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.context.event_ranges import EventRanges, Tested, chosen_entries
from matchwood.context.member_kernels import N_MEMBERS, Members
from matchwood.context.table import KEY
from matchwood.index.core.protocol import Hits

if TYPE_CHECKING:
    from matchwood.context.cif import Cif
    from matchwood.context.store import ContextStore
    from matchwood.encode.events import EventBatch
    from matchwood.index.core.scratch import Scratch

MOST_COPIES = 2**17
"""Copies in a window, at most."""

FEW_MEMBERS = 64
"""Up to so many subscriptions an event, a window is searched without the index."""

Updates = Sequence[tuple[Any, Mapping[str, Any]]]
"""Contexts and the values that they get."""


class _Timed(NamedTuple):
    """Versions of the contexts that change in a window."""

    row: np.ndarray  # of each version, that of its context
    first: np.ndarray  # first event that sees it
    last: np.ndarray  # and the one after the last
    cells: np.ndarray


class Versions:
    """The subscriptions of an index by the contexts that they are linked to, as they are now."""

    def __init__(self, index: Cif, store: ContextStore) -> None:
        self._index, self._store = index, store
        members, self.made_for = index.members, index.layout_version
        rows = members.row[: int(members.count[N_MEMBERS])]
        living = np.flatnonzero(members.slot[: len(rows)] >= 0)
        living = living[np.argsort(rows[living], kind="stable")]
        n_unlinked = int(np.searchsorted(rows[living], 0))
        self._unlinked, self._members = living[:n_unlinked], living[n_unlinked:]
        self._start = np.searchsorted(rows[self._members], np.arange(store.n_rows + 1))
        self._entries = chosen_entries(index, living)
        _, entry = self._entries.of(living)
        self._lists = np.unique(members.listed[entry[entry >= 0]])

    def n_copies(self, updates: Updates) -> int:
        """How many subscriptions are linked to the contexts of updates, at every mention."""
        rows = [self._store.known_row(context) for context, _ in updates]
        return sum(self._n_linked(row) for row in rows if row is not None)

    def _n_linked(self, row: int) -> int:
        if row + 1 >= len(self._start):
            return 0
        return int(self._start[row + 1] - self._start[row])

    def search(
        self, events: EventBatch, scratch: Scratch, changes: Sequence[tuple[int, Updates]]
    ) -> Hits:
        """What holds for events, with the changes before the events they are numbered by; they are
        not made, and no event is before the first one.
        """
        index, n = self._index, events.n_events
        timed = self._timed(n, changes)
        ranges = EventRanges(events, index.choice, self._lists)
        found = [self._search_copies(timed, ranges, scratch)] if len(timed.row) else []
        is_changed = np.zeros(len(self._start), bool)
        is_changed[timed.row] = True
        if len(self._unlinked) + len(self._members) <= FEW_MEMBERS * n:
            rest = self._members[~is_changed[index.members.row[self._members]]]
            rest = np.sort(np.concatenate([self._unlinked, rest]))
            found.append(self._search_members(rest, n, ranges, scratch))
        else:
            hits = index.search(events, scratch)
            index.absorb(scratch)
            rows = index.members.row[index.member_of[hits.slots]]
            found.append(_some(hits, (rows < 0) | ~is_changed[rows]))
        return found[0] if len(found) == 1 else _merged(found)

    def _search_members(
        self, members: np.ndarray, n: int, ranges: EventRanges, scratch: Scratch
    ) -> Hits:
        index = self._index
        at, entry = self._entries.of(members)
        tested = Tested(
            index.members, self._store.cells, members[at], entry, index.members.listed[entry],
            index.choice.width, np.zeros(len(at), np.int64), np.full(len(at), n),
        )  # fmt: skip
        return ranges.search(index, tested, scratch)

    def _search_copies(self, timed: _Timed, ranges: EventRanges, scratch: Scratch) -> Hits:
        """Test members with every version of their contexts, for the events that see it."""
        index, width = self._index, self._index.choice.width
        chosen, version = self._copies(timed.row)
        at, entry = self._entries.of(chosen)
        looked_up = np.where(entry < 0, -1, entry + (at - chosen[at]) * width)
        tested = Tested(
            self._copied(chosen, version), timed.cells, at, looked_up, index.members.listed[entry],
            width, timed.first[version[at]], timed.last[version[at]],
        )  # fmt: skip
        found = ranges.search(index, tested, scratch)
        return found._replace(slots=index.members.slot[chosen[found.slots]])

    def _timed(self, n_events: int, changes: Sequence[tuple[int, Updates]]) -> _Timed:
        """A version for every state of a context; one that no event sees is written over."""
        steps = [
            (event, row, self._store.encoded(values))
            for event, updates in changes
            for context, values in updates
            if (row := self._store.known_row(context)) is not None and self._n_linked(row)
        ]
        rows: list[int] = []
        first: list[int] = []
        last: list[int] = []
        newest: dict[int, int] = {}
        cells = np.empty((2 * len(steps), *self._store.cells.shape[1:]), np.int64)
        for event, row, values in steps:
            at = newest.get(row)
            if at is None or first[at] < event:
                before = self._store.cells[row] if at is None else cells[at]
                begins = (0, event) if at is None and event > 0 else (event,)
                if at is not None:
                    last[at] = event
                for begin in begins:
                    at = newest[row] = len(rows)
                    cells[at] = before
                    rows.append(row)
                    first.append(begin)
                    last.append(n_events if begin == event else event)
            for col, key in values:
                cells[at, col, KEY] = key
        since, until = np.array(first, np.int64), np.array(last, np.int64)
        return _Timed(np.array(rows, np.int64), since, until, cells)

    def _copies(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The subscriptions that are linked to rows, and the number of the row that each is for."""
        begin, size = self._start[rows], self._start[rows + 1] - self._start[rows]
        version = np.repeat(np.arange(len(rows)), size)
        return self._members[np.repeat(begin, size) + _counted(size)], version

    def _copied(self, chosen: np.ndarray, version: np.ndarray) -> Members:
        """Copies of members, with their entries."""
        p, n = self._index.members, len(chosen)
        size = p.start[chosen + 1] - p.start[chosen]
        leaves = np.repeat(p.start[chosen], size) + _counted(size)
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
        count = np.zeros_like(p.count)
        count[N_MEMBERS] = n
        width = self._index.choice.width
        entries = (chosen[:, None] * width + np.arange(width)).ravel()
        entry = p.entry[entries]
        entry[:, 0] += np.repeat(start[:-1] - p.start[chosen], width).astype(np.int32)
        return Members(
            leaf=p.leaf[leaves], jump=p.jump[leaves],
            start=start, slot=np.arange(n, dtype=np.int32), row=version.astype(np.int32),
            need=np.zeros(n, np.uint8), is_tree=p.is_tree[chosen], entry=entry,
            listed=p.listed[:0], link=p.link[:0], loose=p.loose[:0], wrong=p.wrong[:0],
            spent=p.spent[:0], count=count,
        )  # fmt: skip


def _some(hits: Hits, stays: np.ndarray) -> Hits:
    """Hits without some of them."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(stays)])
    return Hits(ends[hits.offsets], hits.slots[stays], hits.counters)


def _merged(parts: Sequence[Hits]) -> Hits:
    """The hits of the same events."""
    events = np.concatenate([_events_of(each) for each in parts])
    order = np.argsort(events, kind="stable")
    return Hits(
        np.sum([each.offsets for each in parts], axis=0),
        np.concatenate([each.slots for each in parts])[order],
        np.sum([each.counters for each in parts], axis=0),
    )


def _events_of(hits: Hits) -> np.ndarray:
    return np.repeat(np.arange(len(hits.offsets) - 1), np.diff(hits.offsets))


def _counted(sizes: np.ndarray) -> np.ndarray:
    """0 .. size - 1, for one size after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
