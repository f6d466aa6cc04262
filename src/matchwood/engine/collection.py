"""What a person expects of a collection: ids, items, lookup, batches, copies, a readable form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.batches import Batch, Step, carry_out
from matchwood.engine.changes import replace_chunks
from matchwood.engine.input.fields import JSON_COLUMN, NEVER, attributes_of, moment_of
from matchwood.engine.input.loading import BatchReport, load_batches
from matchwood.engine.input.payloads import payload_of
from matchwood.engine.matches import html_table, ids_to_arrow
from matchwood.engine.metrics import measured
from matchwood.engine.stores.subscriptions import Id

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.changes import Target
    from matchwood.engine.segments.view import Part, View
    from matchwood.engine.stores.store import Store


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as it is held: its text as written, and its fields."""

    id: Id
    text: str
    context: Id | None = None
    priority: int = 0
    payload: Any = None
    attributes: dict[str, Any] | None = None
    expires: datetime | None = None
    added: datetime | None = None


def records(store: Store, slots: np.ndarray) -> list[Subscription]:
    """The subscriptions in some slots."""
    subscriptions, contexts = store.subscriptions, store.contexts
    columns = subscriptions.columns
    attribute_dicts = [attributes_of(text) for text in columns.texts("attributes", slots)]
    ids: list[Id] = subscriptions.ids_of(slots).tolist()
    linked = [None if contexts is None else contexts.context_of(slot) for slot in slots.tolist()]
    return [
        Subscription(*fields)
        for fields in zip(
            ids,
            texts_of(store, slots, ids),
            linked,
            columns.priorities(slots).tolist(),
            map(payload_of, columns.texts("payload", slots)),
            [dict(each) if isinstance(each, list) else each for each in attribute_dicts],
            map(moment_of, columns.expiries(slots).tolist()),
            map(moment_of, columns.added[slots].tolist()),
            strict=True,
        )
    ]


def texts_of(store: Store, slots: np.ndarray, ids: list[Id]) -> list[str]:
    """Texts as written, or decoded where there is none."""
    texts = store.subscriptions.texts.some(slots)
    return [
        str(store.expression(id_)) if text is None else text
        for id_, text in zip(ids, texts, strict=True)
    ]


class Collection:
    """The methods of a matcher that treat it as a collection; iterating gives ids."""

    _view: View
    _locate: Callable[[View, Any], tuple[Part, int]]
    _reading: Callable[[], AbstractContextManager[View]]
    _changing: Callable[..., AbstractContextManager[Target]]
    _as_stores: Callable[..., AbstractContextManager[tuple[Store, Store | None]]]

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids())

    def __reversed__(self) -> Iterator[Id]:
        return reversed(self.ids())

    def __getitem__(self, id: Id) -> Subscription:
        """The subscription of an id; SubscriptionError if there is none."""
        with self._reading() as view:
            part, slot = self._locate(view, id)
            return records(part.store, np.array([slot], np.int32))[0]

    def ids(self) -> list[Id]:
        """All ids, in the order the subscriptions were added."""
        with self._reading() as view:
            found: list[Id] = _in_order(
                view, lambda store, slots: store.subscriptions.ids_of(slots)
            ).tolist()
            return found

    def items(self) -> Iterator[tuple[Id, Subscription]]:
        """Pairs of id and subscription, as they are now, in the order they were added."""
        with self._reading() as view:
            found = _in_order(view, lambda store, slots: _objects(records(store, slots)))
        return iter([(each.id, each) for each in found.tolist()])

    def to_arrow(self) -> pa.Table:
        """All subscriptions as a table that `add_many` takes: id, expr, context and fields."""
        import pyarrow as pa

        with self._reading() as view:
            columns = {name: _in_order(view, read) for name, read in _COLUMNS.items()}
            found = {
                "id": ids_to_arrow(columns["id"], view.id_kind),
                "expr": pa.array(columns["expr"], pa.large_string()),
                "context": _contexts(columns["context"].tolist()),
                "priority": pa.array(columns["priority"]),
                "expires": _moments(columns["expires"], columns["expires"] == NEVER),
                "attributes": pa.array(columns["attributes"], pa.string()),
                "payload": pa.array(columns["payload"], pa.string()),
                "added": _moments(columns["added"], None),
            }
        fields = [
            pa.field(name, column.type, metadata=JSON_COLUMN if name in _JSON else None)
            for name, column in found.items()
        ]
        return pa.Table.from_arrays(list(found.values()), schema=pa.schema(fields))

    def priorities(self) -> np.ndarray:
        """Priorities by slot, for owners of columns (see `find`): as `arrow_ids` numbers them."""
        with self._reading() as view:
            facts = [part.store.subscriptions for part in view.searched]
            return np.concatenate(
                [each.columns.priorities(np.arange(each.n_slots)) for each in facts]
            )

    def own_types(self) -> dict[str, str] | None:
        """The types that tables of own attributes declared; None where there are no attributes."""
        with self._reading() as view:
            types = view.own_types
            return None if types is None else dict(types)

    @measured
    def replace_many(self, subscriptions: Any, *, processes: int | None = None) -> BatchReport:
        """As `add_many`, but an id that is there gets the new expression and keeps its position.

        It keeps its context and the fields that the rows do not give.
        """
        chunks = list(load_batches(subscriptions, processes))  # may use this matcher
        has_contexts = any(chunk.contexts is not None for chunk in chunks)
        with self._changing(bound=has_contexts) as target:
            return replace_chunks(target, chunks)

    @measured
    def clear(self) -> None:
        """Forget all subscriptions; contexts keep their values."""
        with self._changing() as target:
            target.clear()

    def batch(self) -> Batch:
        """Changes that happen together, all or none, when the `with` block ends (`batches`)."""
        return Batch(self)  # type: ignore[arg-type]

    @measured
    def _batch(
        self, check: Callable[[Target], None], steps: Iterable[Step], has_context: bool
    ) -> None:
        with self._changing(bound=has_context) as target:
            carry_out(target, check, steps)

    def __repr__(self) -> str:
        n, store = len(self._view), self._view.head
        contexts = self._view.contexts
        more = f", {len(contexts):,} contexts" if contexts is not None else ""
        name = store.routing.name
        return f"<{type(self).__name__}: {n:,} subscriptions, index {name!r}{more}>"

    def _repr_html_(self) -> str:
        with self._reading() as view:
            first = [(part, slots[at < 10], at[at < 10]) for part, slots, at in view.in_order()]
            ranked: dict[int, Subscription] = {}
            for part, slots, at in first:
                ranked |= dict(zip(at.tolist(), records(part.store, slots), strict=True))
            rows = [each for _, each in sorted(ranked.items())]
        shown = [(repr(each.id), each.text[:200], each.priority) for each in rows]
        return html_table(repr(self).strip("<>"), ("id", "expression", "priority"), shown)

    # -- copies ------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling carries the whole matcher; the copy is independent and lives in memory."""
        from matchwood.engine.snapshots.copies import new_matcher, state_of

        with self._as_stores(is_compact=True) as (store, linked):
            return new_matcher, (state_of(store, linked), type(self))


_JSON = ("attributes", "payload")


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _linked(store: Store, slots: np.ndarray) -> np.ndarray:
    contexts = store.contexts
    return _objects([None if contexts is None else contexts.context_of(s) for s in slots.tolist()])


_COLUMNS: dict[str, Callable[[Store, np.ndarray], np.ndarray]] = {
    "id": lambda store, slots: store.subscriptions.ids_of(slots),
    "expr": lambda store, slots: _objects(
        texts_of(store, slots, store.subscriptions.ids_of(slots).tolist())
    ),
    "context": _linked,
    "priority": lambda store, slots: store.subscriptions.columns.priorities(slots),
    "expires": lambda store, slots: store.subscriptions.columns.expiries(slots),
    "attributes": lambda s, slots: _objects(s.subscriptions.columns.texts("attributes", slots)),
    "payload": lambda s, slots: _objects(s.subscriptions.columns.texts("payload", slots)),
    "added": lambda store, slots: store.subscriptions.columns.added[slots],
}
"""The columns of `to_arrow`, part by part."""


def _in_order(view: View, read: Callable[[Store, np.ndarray], np.ndarray]) -> np.ndarray:
    """What is read of each part's subscriptions, in the order of all of them."""
    found = [(read(part.store, slots), at) for part, slots, at in view.in_order()]
    if len(found) == 1:
        return found[0][0]
    columns = [column for column, _ in found]
    kinds = {column.dtype for column in columns}
    whole = np.empty(sum(map(len, columns)), columns[0].dtype if len(kinds) == 1 else object)
    for column, at in found:
        whole[at] = column
    return whole


def _contexts(linked: list[Id | None]) -> pa.Array:
    ids = np.array(linked, object)
    none = np.array([each is None for each in linked], bool)
    kinds = {type(each) for each in linked if each is not None}
    kind = "mixed" if len(kinds) > 1 else "int" if int in kinds else "str"
    return ids_to_arrow(ids, kind, none if none.any() else None)


def _moments(micros: np.ndarray, missing: np.ndarray | None) -> pa.Array:
    import pyarrow as pa

    return pa.array(micros, pa.timestamp("us", "UTC"), mask=missing)
