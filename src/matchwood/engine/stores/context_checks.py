"""The contexts that subscriptions name, checked: an expression that refers to one must have one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import reference_rows
from matchwood.engine.input.given import Given, placed
from matchwood.engine.stores.ids import check_id
from matchwood.engine.stores.subscriptions import Id
from matchwood.errors import SchemaError


def checked_context(batch: LeafBatch, context: Any, expr: Given) -> Id | None:
    try:
        contexts = checked_contexts(batch, [context], [0])
    except SchemaError as error:
        raise placed(error, expr) from None
    return None if contexts is None else contexts[0]


def checked_contexts(
    batch: LeafBatch, contexts: Sequence[Any] | None, rows: Sequence[int]
) -> list[Id | None] | None:
    """The contexts of a batch, checked; an expression that refers to one must have one."""
    found: list[Id | None] = [None] * len(rows)
    if contexts is not None:
        found = [contexts[row] for row in rows]
        for i, id_ in enumerate(found):
            found[i] = None if id_ is None else check_id(id_, "a context's id")
    for row in reference_rows(batch):
        owner = bisect_right(batch.row_start, row) - 1
        if found[owner] is None:
            raise SchemaError(
                "expected a context for an expression that refers to one, found none: "
                "add it with context=...",
                position=batch.position[row],
            )
    return None if all(id_ is None for id_ in found) else found
