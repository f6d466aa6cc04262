"""Pieces: what was found in each part of a view, and how they become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from matchwood.engine.answers.choices import best
from matchwood.engine.matches import Found, Later, joined_warnings, kept
from matchwood.engine.segments.join_kernels import join

if TYPE_CHECKING:
    from matchwood.engine.stores.subscriptions import Subscriptions


class Piece:
    """What was found in a part whose subscriptions stay as they are."""

    def __init__(self, found: Found, subscriptions: Subscriptions) -> None:
        self.found = found
        self._subscriptions = subscriptions

    def __len__(self) -> int:
        return len(self.found.slots)

    @property
    def ids(self) -> np.ndarray:
        return self._subscriptions.ids_of(self.found.slots)

    @property
    def ids_or_later(self) -> np.ndarray | Later:
        """The same, looked up when they are asked for if they are never changed."""
        frozen = self._subscriptions.frozen_ids
        return self.ids if frozen is None else Later(frozen, self.found.slots)

    @property
    def order(self) -> np.ndarray:
        """Numbers in the order of addition."""
        order: np.ndarray = self._subscriptions.order[self.found.slots]
        return order

    @property
    def priority(self) -> np.ndarray:
        return self._subscriptions.columns.priorities(self.found.slots)

    def without(self, events: Sequence[int]) -> Piece:
        """The same with nothing for some events."""
        return Piece(kept(self.found, self._keep(events)), self._subscriptions)

    def of_events(self, first: int, last: int) -> Piece:
        """The same for some events alone; work is counted with the first event."""
        found = self.found
        a, b = found.offsets[first], found.offsets[last]
        keep = np.zeros(len(found.slots), bool)
        keep[a:b] = True
        some = TakenPiece(self, keep)
        some.found = Found(
            found.offsets[first : last + 1] - a,
            found.slots[a:b],
            {e - first: error for e, error in found.errors.items() if first <= e < last},
            dict.fromkeys(found.counters, 0) if first else found.counters,
            {e - first: each for e, each in found.warnings.items() if first <= e < last},
        )
        return some

    def _keep(self, events: Sequence[int]) -> np.ndarray:
        sizes = np.diff(self.found.offsets)
        wrong = np.zeros(len(sizes), bool)
        wrong[events] = True
        return ~np.repeat(wrong, sizes)


class TakenPiece(Piece):
    """What was found in a part that may change: all that is needed of it is copied."""

    def __init__(self, piece: Piece, keep: slice | np.ndarray = slice(None)) -> None:
        self.found = piece.found if isinstance(keep, slice) else kept(piece.found, keep)
        self._ids, self._order = piece.ids[keep].copy(), piece.order[keep].copy()
        self._priority = piece.priority[keep].copy()

    @property
    def ids(self) -> np.ndarray:
        return self._ids

    @property
    def ids_or_later(self) -> np.ndarray | Later:
        return self._ids

    @property
    def order(self) -> np.ndarray:
        return self._order

    @property
    def priority(self) -> np.ndarray:
        return self._priority

    def without(self, events: Sequence[int]) -> Piece:
        return TakenPiece(self, self._keep(events))


def joined(pieces: Sequence[Piece], limit: int | None) -> tuple[Found, Sequence[Piece]]:
    """What was found in several parts as one, in the order of addition, and the pieces of it.

    Its slots are positions among all that was found, piece after piece.  What is wrong with an
    event for one part is wrong for all: the pieces have nothing for it.
    """
    errors = {e: error for each in pieces for e, error in each.found.errors.items()}
    if errors:
        pieces = [each.without(list(errors)) for each in pieces]
    founds = [each.found for each in pieces]
    order = [each.order for each in pieces]
    start = np.cumsum([0, *map(len, order)])
    offsets = np.zeros(len(founds[0].offsets), np.int64)
    take = np.empty(start[-1], np.int64)
    all_offsets = np.array([each.offsets for each in founds])
    at = np.empty(len(founds), np.int64)
    join(all_offsets, start, np.concatenate(order), at, offsets, take)
    warnings = joined_warnings([found.warnings for found in founds])
    counters = {name: sum([f.counters[name] for f in founds]) for name in founds[0].counters}
    counters["events"] = founds[0].counters["events"]
    result = Found(offsets, take, errors, counters, warnings)
    if limit is not None:
        result = best(result, np.concatenate([each.priority for each in pieces]), limit)
    return result, pieces
