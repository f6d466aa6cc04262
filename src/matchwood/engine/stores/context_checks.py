"""The contexts that subscriptions name, checked: an expression that refers to one must have one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
    is_none = [id_ is None for id_ in found]
    referring = reference_rows(batch) if any(is_none) else []
    owners = np.searchsorted(np.asarray(batch.row_start), referring, side="right") - 1
    for at in np.flatnonzero(np.array(is_none, bool)[owners])[:1].tolist():
        raise SchemaError(
            "expected a context for an expression that refers to one, found none: "
            "add it with context=...",
            position=batch.position[referring[at]],
        )
    return None if all(is_none) else found
