"""Near misses and the reasons of misses: what rule authors ask for.

`near` looks at every expression of the table once, in a kernel (`near_kernels`).  Its predicates
are those of the table: predicates on one attribute of a conjunction are one (`x > 3 AND x < 9`).
Subscriptions that are linked to a context are left out: their values are not in the event.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.decode import decode_predicate
from matchwood.encode.events import EventBatch, encode_event
from matchwood.encode.expression_kernels import CONJUNCTION, TREE
from matchwood.engine.answers.explain import absence_or_value, explain
from matchwood.engine.answers.near_kernels import lacking_one
from matchwood.engine.input.fields import moment_of
from matchwood.engine.matches import Id
from matchwood.index.core.query_kernels import Events
from matchwood.kernel.verify_kernels import Board
from matchwood.lang.nodes import Expr

if TYPE_CHECKING:
    from matchwood.engine.segments.view import Part, View
    from matchwood.engine.stores.store import Store


@dataclass(frozen=True, slots=True, repr=False)
class NearMiss:
    """A subscription that would match if one more predicate held."""

    id: Id
    missing: Expr
    """The predicate."""
    found: str
    """What the event has instead."""

    def __str__(self) -> str:
        return f"{self.id!r} lacks {self.missing}: {self.found}"

    def __repr__(self) -> str:
        return f"NearMiss(id={self.id!r}, missing={str(self.missing)!r}, found={self.found!r})"


def near_misses(view: View, event: Mapping[str, Any], k: int) -> list[NearMiss]:
    """At most k subscriptions that lack exactly one predicate: highest priority, then order."""
    found: list[tuple[int, int, Store, int, int]] = []
    now = time.time_ns() // 1000
    for part in view.searched:
        store = part.store
        slots, preds = _lacking_one(part, encode_event(store.attributes, event))
        columns, order = store.subscriptions.columns, store.subscriptions.order
        alive = columns.expiries(slots) > now
        slots, preds = slots[alive], preds[alive]
        priority = columns.priorities(slots)
        first = np.lexsort((order[slots], ~priority))[:k]
        found += [
            (-int(priority[at]), int(order[slots[at]]), store, int(slots[at]), int(preds[at]))
            for at in first.tolist()
        ]
    found.sort(key=lambda each: each[:2])
    misses = []
    for _, _, store, slot, pred in found[:k]:
        id_ = store.subscriptions.ids_of(np.array([slot])).tolist()[0]
        missing = decode_predicate(store.table, store.attributes, pred)
        misses.append(NearMiss(id_, missing, absence_or_value(missing, event)))
    return misses


def _lacking_one(part: Part, encoded: EventBatch) -> tuple[np.ndarray, np.ndarray]:
    store = part.store
    layout = store.table.layout
    groups = [part.living(store.table.slots_of(kind)) for kind in (CONJUNCTION, TREE)]
    if store.contexts is not None:
        groups = [slots[~store.contexts.is_linked(slots)] for slots in groups]
    conjunctions, trees = (np.ascontiguousarray(slots, np.int32) for slots in groups)
    n = len(conjunctions) + len(trees)
    n_attributes = len(store.attributes) + 1
    board = Board(np.full(n_attributes, -1, np.int64), np.zeros(n_attributes, np.int64))
    longest = int(layout.size[trees].max(initial=0)) + 1
    out = np.empty((2, n), np.int32)
    used = lacking_one(
        layout, store.table.predicates.layout, conjunctions, trees, Events(*encoded), board,
        np.empty((2, longest), np.int32), out,
    )  # fmt: skip
    return out[0, :used], out[1, :used]


def reasons(store: Store, id_: Id, event: Mapping[str, Any], now: int) -> list[str]:
    """Why a subscription does not match an event; empty if it does."""
    slot = store.subscriptions.find(id_)
    values = store.context_values(id_)
    found = explain(id_, store.expression(id_), store.attributes, event, values)
    expires = int(store.subscriptions.columns.expiries(np.array([slot]))[0])
    if expires <= now:
        return [f"it expired at {moment_of(expires)}", *found.reasons]
    return list(found.reasons)
