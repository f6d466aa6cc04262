"""Between a store and its log: rows of what changed, and a store from rows (`durable`, `log`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.collection import texts_of
from matchwood.engine.durable.log import Row, Tail
from matchwood.engine.durable.refused import RefusedRow
from matchwood.engine.input.fields import NEVER, FieldColumns, attributes_of, attributes_text
from matchwood.engine.input.loading import Chunk, chunks_of_texts, numbered
from matchwood.engine.segments.recent import Addition, Recent
from matchwood.engine.stores.store import Store
from matchwood.errors import MatchwoodError
from matchwood.lang.parser import parse
from matchwood.lang.tokens import MAX_TEXT

if TYPE_CHECKING:
    from matchwood.context.store import ContextStore
    from matchwood.engine.changes import Target
    from matchwood.engine.segments.view import Part, View
    from matchwood.lang.nodes import Expr


def rows_of(view: View, ids: list[Any]) -> list[Row]:
    """Rows of the log, in the order of addition."""
    rows: list[Row] = []
    places: dict[Part, list[int]] = {}
    for id_ in ids:
        part, slot = view.locate(id_)
        if isinstance(part, Recent):  # no store is made for them
            rows.append(_row_of(id_, part.additions[id_]))
        else:
            places.setdefault(part, []).append(slot)
    for part, found in places.items():
        slots = np.array(found, np.int64)
        subscriptions, contexts = part.store.subscriptions, part.store.contexts
        columns = subscriptions.columns
        names = subscriptions.ids_of(slots).tolist()
        linked = [None if contexts is None else contexts.context_of(s) for s in slots.tolist()]
        columns_of_rows = zip(
            names, texts_of(part.store, slots, names), linked,
            columns.priorities(slots).tolist(), columns.expiries(slots).tolist(),
            columns.texts("attributes", slots), columns.texts("payload", slots),
            columns.added[slots].tolist(), subscriptions.order[slots].tolist(), strict=True,
        )  # fmt: skip
        rows += [Row(*row) for row in columns_of_rows]
    rows.sort(key=lambda row: row.position)
    return rows


def rows_of_additions(known: Mapping[Any, Addition | None]) -> list[Row]:
    """The same of what single changes have added, by id; None: it is gone."""
    rows = [_row_of(id_, each) for id_, each in known.items() if each is not None]
    rows.sort(key=lambda row: row.position)
    return rows


def _row_of(id_: Any, given: Addition) -> Row:
    priority, expires, attributes, payload, added, _ = given.fields
    assert added is not None
    return Row(
        id_, given.expr.text, None, 0 if priority is None else int(priority[0]),
        NEVER if expires is None else int(expires[0]),
        None if attributes is None else attributes[0],
        None if payload is None else payload[0], int(added[0]), given.order,
    )  # fmt: skip


def values_of(view: View, id_: Any) -> str | None:
    contexts = view.contexts
    values = {} if contexts is None else contexts.values(id_)
    return attributes_text(values) if values else None


def types_of(view: View) -> dict[str, Any]:
    """Types that expressions have given to attributes, and those of own attributes."""
    types: dict[str, Any] = {}
    parts = [part for part in view.parts if part is not view.recent]
    for part in parts:  # types of recent additions follow when the head takes them
        named = part.store.attributes.by_name.items()
        types |= {name: each.type for name, each in named if each.type}
    return {"attributes": types, "own": view.own_types or {}}


def chunks_of(rows: Sequence[Row], own_types: dict[str, str]) -> Iterator[Chunk]:
    """Chunks of rows of the log, with their numbers in the order of addition."""
    texts = [_given(row.text) for row in rows]
    linked = [row.context for row in rows]
    fields = fields_of_rows(rows, own_types, is_new=True)
    contexts = linked if any(each is not None for each in linked) else None
    order = np.array([row.position for row in rows], np.int64)
    ids = [row.id for row in rows]
    yield from numbered(chunks_of_texts(ids, texts, contexts, None, fields), order)


def fields_of_rows(rows: Sequence[Row], own_types: dict[str, str], is_new: bool) -> FieldColumns:
    return FieldColumns(
        np.array([row.priority for row in rows], np.int64),
        np.array([row.expires for row in rows], np.int64),
        [row.attributes for row in rows],
        [row.payload for row in rows],
        np.array([row.added for row in rows], np.int64) if is_new else None,
        own_types,
    )


def add_rows(store: Target, rows: Sequence[Row], own_types: dict[str, str]) -> list[RefusedRow]:
    """Add what the log has; returns what is refused."""
    if not rows:
        return []
    report = store.add_chunks(chunks_of(rows, own_types))
    found = [RefusedRow(rows[each.row], each.error) for each in report.errors]
    if found and isinstance(store, Store):  # numbers that the log has are not given out again
        facts = store.subscriptions
        facts.n_added = max(facts.n_added, *[each.row.position + 1 for each in found])
    return found


def set_values(store: Target, contexts: list[tuple[Any, str | None]]) -> None:
    """Give contexts the values that the log has, and no others."""
    for id_, text in contexts:
        store.set_contexts(partial(_all_values, id_, dict(attributes_of(text) or {})), False)


def _all_values(id_: Any, values: dict[str, Any], contexts: ContextStore) -> Any:
    def apply() -> None:
        contexts.remove(id_)
        contexts.set(id_, values)

    return [id_], apply


def replay(
    store: Target, tail: Tail, own_types: dict[str, str], known: Collection[Any]
) -> list[RefusedRow]:
    """Carry out what the log has beyond a matcher; returns what is refused.

    known  ids of subscriptions that were refused before.  What is held of one of them is older
           than what is refused, and forgotten; a replacement by another is an error if refused
    """
    gone = [id_ for id_ in tail.gone if store.has(id_)]
    if gone:
        store.remove_ids(gone)
    added: list[Row] = []
    for row in tail.rows:
        if not store.has(row.id):
            added.append(row)
            continue
        fields = fields_of_rows([row], own_types, is_new=False)
        try:
            store.replace(row.id, _given(row.text), row.context, fields)
        except MatchwoodError:
            if row.id not in known:
                raise
            store.remove_ids([row.id])
            added.append(row)
    refused = add_rows(store, added, own_types)
    set_values(store, tail.contexts)
    return refused


def _given(text: str) -> str | Expr:
    """What is read of a row: its text, or the tree of one that was built in Python."""
    if len(text) > MAX_TEXT:
        with suppress(MatchwoodError):  # else it is refused, as a text that is too long
            return parse(text, limit=len(text))
    return text
