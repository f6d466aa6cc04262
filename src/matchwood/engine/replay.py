"""Between a store and its log: rows of what changed, and a store from rows (`durable`, `log`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.changes import add_chunks
from matchwood.engine.collection import texts_of
from matchwood.engine.fields import FieldColumns, attributes_of, attributes_text
from matchwood.engine.loading import chunks_of_texts
from matchwood.engine.log import Row, Tail
from matchwood.errors import StorageError
from matchwood.lang.parser import parse
from matchwood.lang.tokens import MAX_TEXT

if TYPE_CHECKING:
    from matchwood.context.store import ContextStore
    from matchwood.engine.store import Store


def rows_of(store: Store, ids: list[Any]) -> list[Row]:
    """Rows of the log, in the order of addition."""
    subscriptions, contexts = store.subscriptions, store.contexts
    slots = np.array([subscriptions.slot_of[id_] for id_ in ids], np.int64)
    slots = slots[np.argsort(subscriptions.order[slots], kind="stable")]
    columns, each = subscriptions.columns, slots.tolist()
    names = subscriptions.ids_of(slots).tolist()
    texts = texts_of(store, slots, names)
    linked = [None if contexts is None else contexts.context_of(slot) for slot in each]
    return [
        Row(*row)
        for row in zip(
            names, texts, linked, columns.priorities(slots).tolist(),
            columns.expiries(slots).tolist(), columns.texts("attributes", slots),
            columns.texts("payload", slots), columns.added[slots].tolist(), strict=True,
        )
    ]  # fmt: skip


def values_of(store: Store, id_: Any) -> str | None:
    values = {} if store.contexts is None else store.contexts.values(id_)
    return attributes_text(values) if values else None


def types_of(store: Store) -> dict[str, Any]:
    """Types that expressions have given to attributes, and those of own attributes."""
    types: dict[str, Any] = {
        name: each.type for name, each in store.attributes.by_name.items() if each.type
    }
    return {"attributes": types, "own": store.subscriptions.columns.types}


def chunks_of(rows: list[Row], own_types: dict[str, str]) -> Any:
    """Chunks of rows of the log."""
    texts: list[Any] = [row.text for row in rows]
    for i, text in enumerate(texts):
        if len(text) > MAX_TEXT:  # a tree that was built in Python
            texts[i] = parse(text, limit=len(text))
    linked = [row.context for row in rows]
    fields = fields_of_rows(rows, own_types, is_new=True)
    contexts = linked if any(each is not None for each in linked) else None
    return chunks_of_texts([row.id for row in rows], texts, contexts, None, fields)


def fields_of_rows(rows: list[Row], own_types: dict[str, str], is_new: bool) -> FieldColumns:
    return FieldColumns(
        np.array([row.priority for row in rows], np.int64),
        np.array([row.expires for row in rows], np.int64),
        [row.attributes for row in rows],
        [row.payload for row in rows],
        np.array([row.added for row in rows], np.int64) if is_new else None,
        own_types,
    )


def add_rows(store: Store, rows: list[Row], own_types: dict[str, str]) -> None:
    """Add what the log has; a row that is refused is an error."""
    if rows:
        for each in add_chunks(store, chunks_of(rows, own_types)).errors:
            raise StorageError(
                f"the log has a subscription {each.id!r} that is refused: {each.error}"
            )


def set_values(store: Store, contexts: list[tuple[Any, str | None]]) -> None:
    """Give contexts the values that the log has, and no others."""
    for id_, text in contexts:
        store.set_contexts(partial(_all_values, id_, dict(attributes_of(text) or {})), False)


def _all_values(id_: Any, values: dict[str, Any], contexts: ContextStore) -> Any:
    def apply() -> None:
        contexts.remove(id_)
        contexts.set(id_, values)

    return [id_], apply


def replay(store: Store, tail: Tail, own_types: dict[str, str]) -> None:
    """Carry out what the log has beyond a store."""
    slot_of = store.subscriptions.slot_of
    gone = [slot_of[id_] for id_ in tail.gone if id_ in slot_of]
    if gone:
        store.remove(np.array(gone, np.int32))
    added: list[Row] = []
    for row in tail.rows:
        if row.id not in store.subscriptions:
            added.append(row)
            continue
        expr = parse(row.text, limit=len(row.text)) if len(row.text) > MAX_TEXT else row.text
        store.replace(row.id, expr, row.context, fields_of_rows([row], own_types, is_new=False))
    add_rows(store, added, own_types)
    set_values(store, tail.contexts)
