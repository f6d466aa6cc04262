"""Matches: the result of a batch, without a Python object per match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from matchwood.errors import EventError

if TYPE_CHECKING:
    import pyarrow as pa

Id = int | str


class Found(NamedTuple):
    """Which slots match each event of a batch: `slots[offsets[e]:offsets[e + 1]]` those of e."""

    offsets: np.ndarray
    slots: np.ndarray
    errors: dict[int, EventError]
    counters: dict[str, int]
    warnings: dict[int, list[EventError]] = {}  # noqa: RUF012 - never written


class Matches(Sequence[list[Id]]):
    """Which subscriptions match each event of a batch.

    `matches[e]` is the list of ids that match event e, in the order they were added.

    offsets   int64, one more than there are events
    ids       the ids of event e are `ids[offsets[e]:offsets[e + 1]]`; int64, or object for strings
    errors    event number -> EventError for events that could not be read; they match nothing
    warnings  event number -> what computed attributes failed for it (division by zero, overflow, a
              cast); predicates on them were unknown, the event's other matches are there
    counters  the work done: events, nodes, candidates, predicates, matches
    """

    def __init__(
        self,
        offsets: np.ndarray,
        ids: np.ndarray,
        errors: dict[int, EventError],
        counters: dict[str, int],
        warnings: dict[int, list[EventError]] | None = None,
    ) -> None:
        self.offsets = offsets
        self.ids = ids
        self.errors = errors
        self.counters = counters
        self.warnings = warnings if warnings is not None else {}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, event: int) -> list[Id]: ...

    @overload
    def __getitem__(self, event: slice) -> list[list[Id]]: ...

    def __getitem__(self, event: int | slice) -> Any:
        if isinstance(event, slice):
            return [self[e] for e in range(*event.indices(len(self)))]
        e = range(len(self))[event]
        return self.ids[self.offsets[e] : self.offsets[e + 1]].tolist()

    def __iter__(self) -> Iterator[list[Id]]:
        return (self[e] for e in range(len(self)))

    def to_arrow(self) -> pa.Table:
        """One row per match: `event`, the number of the event, and `subscription`, its id."""
        import pyarrow as pa

        events = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return pa.table({"event": events, "subscription": ids_to_arrow(self.ids)})

    def to_lists(self) -> pa.Table:
        """One row per event: `event` and `subscriptions`, the list of its ids."""
        import pyarrow as pa

        lists = pa.LargeListArray.from_arrays(self.offsets, ids_to_arrow(self.ids))
        return pa.table({"event": np.arange(len(self)), "subscriptions": lists})

    def __repr__(self) -> str:
        bad = f", {len(self.errors)} bad events" if self.errors else ""
        return f"<Matches: {len(self)} events, {len(self.ids)} matches{bad}>"


def ids_to_arrow(ids: np.ndarray) -> pa.Array:
    """Ids as an Arrow array: int64, or strings as soon as the matcher has a string id.

    The type then never depends on which ids a batch happens to match; ints among strings become
    their text.
    """
    import pyarrow as pa

    if ids.dtype != object:
        return pa.array(ids)
    return pa.array([str(id_) for id_ in ids.tolist()], pa.string())
