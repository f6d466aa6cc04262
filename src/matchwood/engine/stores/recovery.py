"""Recovery: a store built again from its facts (see `savepoint`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.schema import Schema
from matchwood.engine.input.loading import chunks_of_texts, numbered
from matchwood.engine.segments.planned import Planned
from matchwood.engine.stores.routing import Routing, attribute_settings
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id, Subscriptions
from matchwood.errors import MatchwoodError
from matchwood.lang.parser import parse
from matchwood.lang.tokens import MAX_TEXT


def settled(store: Store) -> Store:
    """The store to go on with when a change was interrupted: itself, or one built again."""
    if store.pending is None:
        return store
    if not store.is_whole:
        store.pending.restore()
        return rebuilt(store)
    store.pending = None
    return store


def rebuilt(damaged: Store) -> Store:
    """A store that holds what `damaged` holds.

    That keeps its facts; its indexes are given up first, so that there is memory for new ones.
    Here memory may have run out: `take` raises where an index of an array by another has crashed.
    Subscriptions keep their order, attributes their types, contexts their values.  Raises
    MatchwoodError when a subscription has no text or is refused; both mean a defect.
    """
    damaged.routing.give_up()
    fresh = blank(damaged)
    for each in damaged.attributes.by_name.values():
        if each.type is not None:
            fresh.attributes.get(each.name, each.type)
    fresh.work = damaged.work
    _read_again(damaged, fresh)
    fresh.routing.rebuild()
    return fresh


def joined_store(first: Store, linked: Store) -> Store:
    """A store of what two hold, read again from their texts; `linked` has contexts."""
    fresh = blank(linked)
    _read_again(linked, fresh)
    _read_again(first, fresh)
    fresh.routing.rebuild()
    return fresh


def _read_again(damaged: Store, fresh: Store) -> None:
    """Add the facts of one store to another."""
    ids, texts, contexts = _facts(damaged)
    slots, order = damaged.subscriptions.slots(), damaged.subscriptions.order
    fields = damaged.subscriptions.columns.fields(slots)
    order = order.take(slots) if isinstance(order, np.ndarray) else order[slots]
    for chunk in numbered(chunks_of_texts(ids, texts, contexts, None, fields), order):
        fresh.add_chunk(fresh.admit(chunk.ids, chunk.refused), chunk)
        if chunk.refused:
            row, error = next(iter(chunk.refused.items()))
            raise MatchwoodError(
                f"expected to read subscription {chunk.ids[row]!r} again, found: {error}"
            ) from error
    if damaged.contexts is not None:
        values = fresh.with_contexts()
        values.set_each([(id_, damaged.contexts.values(id_)) for id_ in damaged.contexts.ids()])


def blank(like: Store, is_segment: bool = False) -> Store:
    """An empty store with the declared types, the index and the settings of another.

    is_segment  it is filled once and then only searched, so its indexes are planned
    """
    attributes, config = _names(like)
    table = ExpressionTable()
    routing = Planned(table) if is_segment else Routing(table, like.routing.name, config)
    return Store(attributes, table, Subscriptions(), routing)


def _facts(store: Store) -> tuple[list[Id], list[Any], list[Id | None] | None]:
    """Ids, texts and contexts of all subscriptions, in their order."""
    subscriptions, contexts = store.subscriptions, store.contexts
    slots = subscriptions.slots()
    ids = subscriptions.ids.take(slots).tolist()
    texts: list[Any] = list(subscriptions.texts.some(slots))
    if None in texts:
        missing = ids[texts.index(None)]
        raise MatchwoodError(
            f"expected the text of subscription {missing!r} to build the matcher again after an "
            "interrupted change, found none: load it again from where it came from"
        )
    for i, text in enumerate(texts):
        if len(text) > MAX_TEXT:  # a tree that was built in Python
            texts[i] = parse(text, limit=len(text))
    linked = None if contexts is None else [contexts.context_of(slot) for slot in slots.tolist()]
    return ids, texts, linked


def _names(store: Store) -> tuple[Attributes, dict[str, Any]]:
    """Attributes that stay when nothing uses them, and the settings of the index with their ids.

    These are the declared ones and those that a setting names.
    """
    known = store.attributes.by_name.values()
    is_declared = store.attributes.n_pinned.__gt__
    attributes = Attributes(
        Schema(
            {each.name: each.type for each in known if each.type and is_declared(each.id)},
            strict=store.attributes.declared.is_strict,
        ),
        store.attributes.column_types,
    )
    config = dict(store.routing.config)
    for setting in attribute_settings(store.routing.name) & config.keys():
        names = [store.attributes.all[id_].name for id_ in config[setting]]
        config[setting] = [attributes.get(name, None).id for name in names]
    attributes.n_pinned = len(attributes)
    return attributes, config
