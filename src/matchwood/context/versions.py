"""Versions: what holds for events between which the values of some contexts change.

    event      0    1    2    3    4    5          one window of events
    ann        ├── ann 0 ──┼─── ann 1 ────┤        values before and after an update at event 2
    bob        ├──── bob 0 ─────┼─ bob 1 ─┤        ... at event 3
    others     ──────────────────────────          one search

Idea.    What is linked to no context that changes is found by one search of all events.  The rest
         is tested for every event, with a copy of a subscription for each version of its context;
         what holds counts for the events of that version.  No index follows meanwhile.
Cost.    Events times copies, each a short test; so windows are cut where that grows (`MOST_TESTS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.context.cif_kernels import NOTHING, Filter, Lists, filter_batch
from matchwood.context.member_kernels import N_MEMBERS, Members
from matchwood.context.table import KEY
from matchwood.index.core.protocol import Hits

if TYPE_CHECKING:
    from matchwood.context.cif import Cif
    from matchwood.context.store import ContextStore
    from matchwood.encode.events import EventBatch
    from matchwood.index.core.scratch import Scratch

MOST_TESTS = 2**16
"""Tests of copies in a window, at most: about what its search costs where updates are many."""

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
        is_linked = (members.slot[: len(rows)] >= 0) & (rows >= 0)
        linked = np.flatnonzero(is_linked)
        self._members = linked[np.argsort(rows[linked], kind="stable")]
        self._start = np.searchsorted(rows[self._members], np.arange(store.n_rows + 1))

    def n_copies(self, updates: Updates) -> int:
        """How many subscriptions are linked to the contexts of updates, at every mention."""
        rows = [self._store.known_row(context) for context, _ in updates]
        return sum(self._n_linked(row) for row in rows if row is not None)

    def _n_linked(self, row: int) -> int:
        if row + 1 >= len(self._start):
            return 0
        return int(self._start[row + 1] - self._start[row])

    def replaced(
        self,
        hits: Hits,
        events: EventBatch,
        scratch: Scratch,
        changes: Sequence[tuple[int, Updates]],
    ) -> Hits:
        """What holds, with the changes before the events they are numbered by, from what holds
        without them.
        """
        timed = self._timed(events.n_events, changes)
        if not len(timed.row):
            return hits
        chosen, version = self._copies(timed.row)
        found = self._search(chosen, version, timed.cells, events, scratch)
        event, copy = _events_of(found), found.slots
        at = version[copy]
        holds = (timed.first[at] <= event) & (event < timed.last[at])
        slots = self._index.members.slot[chosen]
        is_changed = np.zeros(len(self._index.member_of), bool)
        is_changed[slots] = True
        stays = ~is_changed[hits.slots]
        events_of_all = np.concatenate([_events_of(hits)[stays], event[holds]])
        order = np.argsort(events_of_all, kind="stable")
        sizes = np.bincount(events_of_all, minlength=events.n_events)
        return Hits(
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            np.concatenate([hits.slots[stays], slots[copy[holds]]])[order],
            hits.counters + found.counters,
        )

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
        return _Timed(np.array(rows, np.int64), np.array(first), np.array(last), cells)

    def _copies(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The subscriptions that are linked to rows, and the number of the row that each is for."""
        begin, size = self._start[rows], self._start[rows + 1] - self._start[rows]
        version = np.repeat(np.arange(len(rows)), size)
        return self._members[np.repeat(begin, size) + _counted(size)], version

    def _search(
        self,
        chosen: np.ndarray,
        version: np.ndarray,
        cells: np.ndarray,
        events: EventBatch,
        scratch: Scratch,
    ) -> Hits:
        """Test copies of members, each in the row of its version; slots are numbers of copies."""
        index, p, n = self._index, self._index.members, len(chosen)
        size = p.start[chosen + 1] - p.start[chosen]
        leaves = np.repeat(p.start[chosen], size) + _counted(size)
        count = np.zeros_like(p.count)
        count[N_MEMBERS] = n
        copies = Members(
            leaf=p.leaf[leaves], jump=p.jump[leaves],
            start=np.concatenate([np.zeros(1, np.int64), np.cumsum(size)]),
            slot=np.arange(n, dtype=np.int32), row=version.astype(np.int32),
            need=np.zeros(n, np.uint8), is_tree=p.is_tree[chosen], entry=p.entry[:0],
            listed=p.listed[:0], link=p.link[:0], loose=p.loose[:0], wrong=p.wrong[:0],
            spent=p.spent[:0], count=count,
        )  # fmt: skip
        lists = Lists(index.choice.of_attr, -1, 0)
        read = Filter(copies, index.structure, cells, lists, NOTHING)
        scratch.begin()
        step = scratch.step(filter_batch, events, read, index.new_search(n), index.predicates)
        hits = scratch.run(events, index.n_attributes, step)
        scratch.end()
        return hits


def _events_of(hits: Hits) -> np.ndarray:
    return np.repeat(np.arange(len(hits.offsets) - 1), np.diff(hits.offsets))


def _counted(sizes: np.ndarray) -> np.ndarray:
    """0 .. size - 1, for one size after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
