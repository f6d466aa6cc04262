"""A sample of events that come in batches, of unknown number: every event is as likely.

Each event draws a number; those with the least ones are kept.  So a batch is looked at once, and no
more than the sample and one batch are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.engine.formats.files import BATCH, EventRows


@dataclass
class _Piece:
    """Events of one batch, their numbers from 0 in the file, and what they drew."""

    events: Any
    numbers: np.ndarray
    drawn: np.ndarray

    def part(self, rows: np.ndarray) -> _Piece:
        events = self.events
        some = events.take(rows) if isinstance(events, pa.Table) else [events[row] for row in rows]
        return _Piece(some, self.numbers[rows], self.drawn[rows])


class EventSample:
    """Draws at most `size` events of some batches by a seed.

    n_seen  how many events there were
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._pieces: list[_Piece] = []
        self._most = 1.0
        self.n_seen = 0

    def add(self, batch: EventRows) -> None:
        n = len(batch.events)
        numbers = np.arange(self.n_seen, self.n_seen + n)
        self.n_seen += n
        whole = _Piece(batch.events, numbers, self._random.random(n))
        self._pieces.append(whole.part(np.flatnonzero(whole.drawn < self._most)))
        self._keep_least()

    def _keep_least(self) -> None:
        drawn = np.concatenate([each.drawn for each in self._pieces])
        if len(drawn) <= self._size:
            return
        most = np.partition(drawn, self._size - 1)[self._size - 1]
        pieces = [each.part(np.flatnonzero(each.drawn <= most)) for each in self._pieces]
        self._pieces = [each for each in pieces if len(each.numbers)]
        self._most = float(most)

    def batches(self) -> Iterator[tuple[Any, np.ndarray]]:
        """The events in their order, many at a time, and their numbers."""
        for events, numbers in _joined(self._pieces):
            for at in range(0, len(numbers), BATCH):
                yield events[at : at + BATCH], numbers[at : at + BATCH]


def _joined(pieces: Iterable[_Piece]) -> Iterator[tuple[Any, np.ndarray]]:
    """The events of neighbours together, as far as they are lists or tables of one schema."""
    group: list[_Piece] = []
    last: Any = None
    for piece in pieces:
        form = piece.events.schema if isinstance(piece.events, pa.Table) else list
        if group and form != last:
            yield _together(group)
            group = []
        last = form
        group.append(piece)
    if group:
        yield _together(group)


def _together(group: list[_Piece]) -> tuple[Any, np.ndarray]:
    events: Any = [each.events for each in group]
    is_table = isinstance(events[0], pa.Table)
    together = pa.concat_tables(events) if is_table else [each for part in events for each in part]
    return together, np.concatenate([each.numbers for each in group])
