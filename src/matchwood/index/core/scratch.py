"""Scratch: the memory that searches write to.  It belongs to one thread; an index is only read.

    board      attribute -> entry of the event at hand, see `verify_kernels.post_event`; stamps only
               ever rise, so it is never cleared
    out        the slots found so far; it grows when it is full, and a search that found many gives
               it away with them
    of(index)  a `Part` for every index that is searched with this scratch: stacks, marks, counters,
               and what the index learns from events, until its owner takes it over (`absorb`)

An index may grow, or be rebuilt, between two searches: it checks its part at the beginning of each.
Whatever an exception left behind in the middle of a search is thrown away by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.slot_sort_kernels import SortRoom
from matchwood.kernel.verify_kernels import COUNTERS, Batch, Board, Output

KEPT_OUT = 2**22
"""Slots of output that a scratch keeps for the next search; more are given back."""

COPIED_OUT = 2**16
"""Slots up to which the hits of a search are copied; of more the output itself is given away."""

FEW_ENTRIES = 64

_versions = count(1)


def n_attributes_of(events: EventBatch) -> int:
    """One more than the highest attribute id of events."""
    if len(events.attr) <= FEW_ENTRIES:  # a list's maximum is found before NumPy has begun
        return max(events.attr.tolist(), default=-1) + 1
    return int(events.attr.max()) + 1


def new_version() -> int:
    """A number that no structure had before: parts that were made for another one are replaced."""
    return next(_versions)


class Hits(NamedTuple):
    """Matches of a batch: event e matches `slots[offsets[e]:offsets[e + 1]]`, in any order."""

    offsets: np.ndarray  # int64[n + 1]
    slots: np.ndarray  # int32
    counters: np.ndarray  # int64[len(COUNTERS)]


class Part:
    """What one index keeps in one scratch."""

    version: int = 0
    """The version of the structure that `arrays` were made for."""
    arrays: Any = None
    """A NamedTuple of arrays that the index's kernels write to."""
    stabbing: Any = None
    """The same of a `StabbingTree` inside the index."""
    learned: Any = None
    """What was learned from events, see `absorb` of the index."""
    n_events: int = 0
    """Events since the last `absorb`."""
    binding: Any = None
    """`arrays` and the board, bound; see `IndexFrame._bound_step`."""


class Scratch:
    """One thread's memory for searches, with any number of indexes."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.board = Board(np.full(64, -1, np.int64), np.zeros(64, np.int64))
        self.out = np.empty(1024, np.int32)
        self._sort_room = _sort_room(0)
        self._stamp = 0
        self.number = new_version()
        """What was bound to this memory is kept under this number, and never used after a reset."""
        self._parts: WeakKeyDictionary[Any, Part] = WeakKeyDictionary()
        self.is_busy = False

    @property
    def event(self) -> np.ndarray:
        return self.board.event

    @property
    def entry(self) -> np.ndarray:
        return self.board.entry

    def of(self, index: Any) -> Part:
        """The part of an index, made at its first search."""
        part = self._parts.get(index)
        if part is None:
            part = self._parts[index] = index.new_part()
        return part

    def sort_room(self, n_words: int) -> SortRoom:
        """Words without a bit set, with room for n_words and a bit for each, or none.

        The caller clears the bits that it sets.
        """
        size = n_words + n_words // 64 + 2
        if size > len(self._sort_room.word):
            self._sort_room = _sort_room(size + size // 8)
        return self._sort_room if n_words else _NO_ROOM

    def begin(self) -> None:
        """A search begins: forget everything if the last one did not come to its end."""
        if self.is_busy:
            self._reset()
        self.is_busy = True

    def end(self) -> None:
        """The search is over, and this scratch is ready for the next one."""
        self.is_busy = False

    def post(self, events: EventBatch, n_attributes: int) -> int:
        """Make the board long enough for expressions and events; returns the stamp of event 0."""
        size = max(n_attributes, n_attributes_of(events))
        if size > len(self.board.event):
            size = doubled(len(self.board.event), size)
            self.board = Board(grown(self.board.event, size, -1), grown(self.board.entry, size))
        stamp = self._stamp
        self._stamp += events.n_events
        return stamp

    def next_stamp(self, n: int = 1) -> int:
        """The stamp of an event, or the first of n, for which the board is long enough."""
        stamp = self._stamp
        self._stamp = stamp + n
        return stamp

    def step(
        self, kernel: Callable[..., int], events: EventBatch, *arguments: Any
    ) -> Callable[..., int]:
        """The step that calls kernel(*arguments, batch, output)."""

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            batch = Batch(events, first, stamp, self.board)
            return kernel(*arguments, batch, Output(offsets, out, counters))

        return step

    def run(self, events: EventBatch, n_attributes: int, step: Callable[..., int]) -> Hits:
        """Search a batch: `step(first, stamp, offsets, out, counters)` returns how far it came.

        A step that stopped early found the output full: it grows, and the step goes on.
        """
        stamp = self.post(events, n_attributes)
        offsets = np.zeros(events.n_events + 1, np.int64)
        counters = np.zeros(len(COUNTERS), np.int64)
        done = 0
        while True:
            done = step(done, stamp, offsets, self.out, counters)
            if done == events.n_events:
                break
            self.out = grown(self.out, _room(len(self.out), done, events.n_events))
        slots = self.out[: offsets[-1]]
        is_copied = len(slots) < COPIED_OUT
        if is_copied:
            slots = slots.copy()
        if not is_copied or len(self.out) > KEPT_OUT:  # what nothing was written to takes no memory
            self.out = np.empty(min(len(self.out), KEPT_OUT), np.int32)
        return Hits(offsets, slots, counters)


def _sort_room(size: int) -> SortRoom:
    word = np.zeros(size, np.int64)
    return SortRoom(word, word.view(np.int32))


_NO_ROOM = _sort_room(0)


def _room(size: int, done: int, n: int) -> int:
    """Room for more output, if so much is full after some of n events: 2 to 4 times as much."""
    return min(4 * size, max(2 * size, size * n // max(done, 1)))
