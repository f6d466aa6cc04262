"""Verify: the answers of the indexes against a scan of every expression, in production."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.events import EncodedEvents, encode_events
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, TREE
from matchwood.engine.answers.choices import Choice
from matchwood.engine.answers.explain import Explanation, explain
from matchwood.engine.matches import Id
from matchwood.errors import EventError
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.segments.view import View
    from matchwood.engine.stores.store import Store

WITH_EXPIRED = Choice(now=-(2**62))
"""Expired subscriptions are compared, too."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A subscription that the indexes and a scan answer differently for an event."""

    event: Any
    number: int
    id: Id
    is_found: bool
    """Whether the indexes say that it matches; the scan says the opposite."""
    explanation: Explanation | None

    def __str__(self) -> str:
        says = "matches by the index and not by a scan" if self.is_found else (
            "matches by a scan and not by the index"
        )  # fmt: skip
        why = "" if self.explanation is None else f"\n{self.explanation}"
        return f"event {self.number}: {self.id!r} {says}{why}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found; true if indexes and scan agree."""

    events: int
    matches: int
    difference: Difference | None = None
    errors: dict[int, EventError] = field(default_factory=dict)
    """Event number -> why it could not be read; nothing was compared for it."""

    def __bool__(self) -> bool:
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        bad = f"; {len(self.errors):,} events could not be read" if self.errors else ""
        return f"{self.events:,} events, {self.matches:,} matches: indexes and scan agree{bad}"


def sampled(events: Any, sample: int | None, seed: int) -> Any:
    """Some of many events, drawn by a seed; what holds no events is left to `encode_events`."""
    is_one = isinstance(events, (Mapping, str, bytes)) or not hasattr(events, "__len__")
    if sample is None or is_one or sample >= len(events):
        return events
    rows = sorted(Random(seed).sample(range(len(events)), sample))
    if hasattr(events, "iloc"):
        return events.iloc[rows]
    if hasattr(events, "schema"):  # Arrow, polars
        return events.take(rows) if hasattr(events, "take") else events[rows]
    held = events if isinstance(events, Sequence) else list(events)
    return [held[row] for row in rows]


def verified(view: View, events: Any, reader: Reader) -> Verification:
    """Compare, part by part; the first difference is explained."""
    n, total = 0, 0
    errors: dict[int, EventError] = {}
    first: tuple[int, Store, int, bool] | None = None
    for part in view.searched:
        store = part.store
        encoded = encode_events(store.attributes, events)
        found = part.find(encoded, reader, WITH_EXPIRED)
        expected = _scanned(store, encoded)
        errors |= encoded.errors
        n, total = len(found.offsets) - 1, total + len(found.slots)
        for e in range(n):
            by_index = set(found.slots[found.offsets[e] : found.offsets[e + 1]].tolist())
            by_scan = set() if e in encoded.errors else expected[e]
            differ = np.array(sorted(by_index ^ by_scan), np.int32)
            differ = part.living(differ) if len(differ) else differ
            if len(differ) and (first is None or e < first[0]):
                slot = int(differ[0])
                first = e, store, slot, slot in by_index
                break
    if first is None:
        return Verification(n, total, None, errors)
    e, store, slot, is_found = first
    return Verification(e + 1, total, _explained(store, events, e, slot, is_found), errors)


def _scanned(store: Store, encoded: EncodedEvents) -> Sequence[set[int]]:
    """Slots that hold for each event, from the table of expressions alone."""
    table = store.table
    always = set(table.slots_of(ALWAYS).tolist())
    slots = np.concatenate([table.slots_of(CONJUNCTION), table.slots_of(TREE)]).astype(np.int32)
    parts = [("scan", slots)]
    if store.contexts is not None:
        linked = store.contexts.is_linked(slots)
        parts = [("scan", slots[~linked]), ("no_index", slots[linked])]
    found = [set(always) for _ in range(encoded.batch.n_events)]
    for name, part in parts:
        if len(part):
            index: Any = find_index(name).build(table, part)
            index.contexts = store.contexts
            index.settle()
            hits = index.search(encoded.batch, Scratch())
            for e, each in enumerate(found):
                each.update(hits.slots[hits.offsets[e] : hits.offsets[e + 1]].tolist())
    table.shut()
    return found


def _explained(store: Store, events: Any, number: int, slot: int, is_found: bool) -> Difference:
    id_: Id = store.subscriptions.ids_of(np.array([slot])).tolist()[0]
    event = events[number] if isinstance(events, Sequence) else None
    explanation = None
    if isinstance(event, dict):
        values = store.context_values(id_)
        explanation = explain(id_, store.expression(id_), store.attributes, event, values)
    return Difference(event, number, id_, is_found, explanation)
