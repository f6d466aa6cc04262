"""Merge: several parts of a view as one store, without what is gone.

Subscriptions are read again from their texts, in the order of addition, so a merged store has the
dictionaries, predicates and indexes of one that was loaded at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.fields import NEVER, FieldColumns
from matchwood.engine.loading import Chunk, chunks_of_texts, numbered
from matchwood.engine.recovery import blank, readable
from matchwood.engine.store import Store
from matchwood.engine.subscription_columns import agreed_types
from matchwood.errors import MatchwoodError

if TYPE_CHECKING:
    from matchwood.engine.view import Part

STEP = 64
"""Subscriptions that are read between two pauses of a merge in the background."""


def merged(
    parts: Sequence[Part],
    pause: Callable[[], None] | None = None,
    step: int | None = None,
    is_segment: bool = True,
) -> Store:
    """A store of what is left in some parts.

    is_segment  it will only be searched
    pause  called after every `step` subscriptions; may raise to give up
    """
    store = blank(parts[-1].store, is_segment)
    slots = []
    for chunk in _chunks(parts, step):
        slots += store.add_chunk(store.admit(chunk.ids, chunk.refused), chunk)
        for row, error in chunk.refused.items():
            raise MatchwoodError(
                f"expected to read subscription {chunk.ids[row]!r} again, found: {error}"
            ) from error
        store.settled_change()
        if pause is not None:
            pause()
    if slots:
        for error in store.insert(np.concatenate(slots)).values():
            raise error
    store.settle()
    store.settled_change()
    if is_segment:
        store.freeze()
    return store


def _chunks(parts: Sequence[Part], step: int | None) -> Iterator[Chunk]:
    """What is left in some parts, in the order of addition."""
    slots = [part.slots() for part in parts]
    sizes = [len(each) for each in slots]
    part_of = np.repeat(np.arange(len(parts)), sizes)
    slot_of = np.concatenate(slots)
    order = np.concatenate(
        [part.store.subscriptions.order[at] for part, at in zip(parts, slots, strict=True)]
    )
    ranks = np.argsort(order, kind="stable")
    part_of, slot_of, order = part_of[ranks], slot_of[ranks], order[ranks]
    n = len(order)
    size = n if step is None else step
    for first in range(0, n, max(1, size)):
        at = slice(first, first + size)
        rows = [
            (part, np.flatnonzero(part_of[at] == number), slot_of[at][part_of[at] == number])
            for number, part in enumerate(parts)
        ]
        yield from _chunk(rows, order[at], None if step is None else 1)


def _chunk(
    rows: list[tuple[Part, np.ndarray, np.ndarray]], order: np.ndarray, processes: int | None
) -> Iterator[Chunk]:
    n = len(order)
    ids: list[Any] = [None] * n
    texts: list[Any] = [None] * n
    own: list[str | None] = [None] * n
    payload: list[str | None] = [None] * n
    priority, expires = np.zeros(n, np.int64), np.full(n, NEVER)
    added = np.zeros(n, np.int64)
    types: dict[str, str] | None = None
    for part, at, slots in rows:
        subscriptions = part.store.subscriptions
        columns = subscriptions.columns
        names = subscriptions.ids_of(slots).tolist()
        if columns.attributes is not None:
            types = columns.types if types is None else agreed_types(types, columns.types)
        priority[at], expires[at] = columns.priorities(slots), columns.expiries(slots)
        added[at] = columns.added[slots]
        for into, values in (
            (ids, names),
            (texts, readable(part.store, slots, names)),
            (own, columns.texts("attributes", slots)),
            (payload, columns.texts("payload", slots)),
        ):
            for row, value in zip(at.tolist(), values, strict=True):
                into[row] = value
    fields = FieldColumns(priority, expires, own, payload, added, types)
    yield from numbered(chunks_of_texts(ids, texts, None, processes, fields), order)
