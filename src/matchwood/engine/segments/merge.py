"""Merge: several parts of a view as one store, without what is gone.

Subscriptions are taken in the order of addition.  Their expressions are not read again: they move
from table to table (`encode.translate`), so a merged store has the dictionaries, predicates and
indexes of one that was loaded at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from matchwood.encode.translate import Source, Translation
from matchwood.engine.input.fields import NEVER, FieldColumns, agreed_types
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.store import Facts, Store

if TYPE_CHECKING:
    from matchwood.engine.segments.view import Part

STEP = 256
"""Subscriptions that are moved between two pauses of a merge in the background."""


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
    pause = pause or (lambda: None)
    store = blank(parts[-1].store, is_segment)
    left = [part.slots() for part in parts]
    sources = [
        Source(part.store.attributes, part.store.table, slots)
        for part, slots in zip(parts, left, strict=True)
    ]
    translation = Translation(sources, store.attributes, pause)
    added = []
    for some in _steps(parts, left, step):
        facts = _facts(parts, some)
        rows = translation.rows(some.part_of, some.slot_of)
        slots = store.move_in(facts, rows)
        for number in np.unique(some.part_of).tolist():
            at = np.flatnonzero(some.part_of == number)
            for i, attrs in translation.left_out(number, some.slot_of[at]):
                store.table.take_merged(np.repeat(slots[at[i]], len(attrs)), np.array(attrs))
        added.append(slots)
        pause()
    for part in parts:
        part.store.table.shut()
    if added:
        for error in store.insert(np.concatenate(added)).values():
            raise error
    store.settle()
    store.settled_change()
    if is_segment:
        store.freeze()
    return store


class _Step(NamedTuple):
    """Some subscriptions: the number of each one's part, its slot there, its place in the order."""

    part_of: np.ndarray
    slot_of: np.ndarray
    order: np.ndarray


def _steps(parts: Sequence[Part], left: list[np.ndarray], step: int | None) -> Iterator[_Step]:
    """What is left in some parts, in the order of addition."""
    part_of = np.repeat(np.arange(len(parts)), [len(each) for each in left])
    slot_of = np.concatenate(left)
    order = np.concatenate(
        [part.store.subscriptions.order[at] for part, at in zip(parts, left, strict=True)]
    )
    ranks = np.argsort(order, kind="stable")
    part_of, slot_of, order = part_of[ranks], slot_of[ranks], order[ranks]
    n = len(order)
    size = max(1, n if step is None else step)
    for first in range(0, n, size):
        at = slice(first, first + size)
        yield _Step(part_of[at], slot_of[at], order[at])


def _facts(parts: Sequence[Part], some: _Step) -> Facts:
    """Ids, texts and fields."""
    n = len(some.order)
    ids, texts, attribute_texts, payload = np.full((4, n), None, object)
    priority, expires = np.zeros(n, np.int64), np.full(n, NEVER)
    added = np.zeros(n, np.int64)
    types: dict[str, str] | None = None
    has_payload = False
    for number in np.unique(some.part_of).tolist():
        at = np.flatnonzero(some.part_of == number)
        slots = some.slot_of[at]
        subscriptions = parts[number].store.subscriptions
        columns = subscriptions.columns
        priority[at], expires[at] = columns.priorities(slots), columns.expiries(slots)
        added[at] = columns.added[slots]
        ids[at] = subscriptions.ids_of(slots).tolist()
        texts[at] = subscriptions.texts.some(slots)
        if columns.attributes is not None:
            types = columns.types if types is None else agreed_types(types, columns.types)
            attribute_texts[at] = columns.texts("attributes", slots)
        if columns.payload is not None:
            has_payload = True
            payload[at] = columns.texts("payload", slots)
    fields = FieldColumns(
        priority, expires, None if types is None else attribute_texts.tolist(),
        payload.tolist() if has_payload else None, added, types,
    )  # fmt: skip
    return Facts(ids.tolist(), texts.tolist(), fields, some.order)
