"""What `set_context_many` takes: a table of values, a mapping, or pairs of id and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from matchwood.context.store import ContextStore
from matchwood.encode.frames import collected
from matchwood.engine.stores.ids import are_plain, check_id
from matchwood.errors import EventError

COLUMN = "context"
"""The column of a table that says whose values a row has."""


def read_updates(store: ContextStore, contexts: Any) -> tuple[list[Any], Callable[[], None]]:
    """The contexts that an update names, and a function that applies it."""
    contexts = collected(contexts)
    if hasattr(contexts, "__arrow_c_stream__") or hasattr(contexts, "__arrow_c_array__"):
        return _from_table(store, contexts)
    pairs = contexts.items() if isinstance(contexts, Mapping) else contexts
    if isinstance(contexts, (str, bytes)) or not isinstance(pairs, Iterable):
        raise EventError(
            "expected a table with a column context, a mapping from ids to values, or pairs, "
            f"found {type(contexts).__name__}"
        )
    updates: list[tuple[Any, Mapping[str, Any]]] = []
    for each in pairs:
        if (
            not isinstance(each, (tuple, list))
            or len(each) != 2
            or not isinstance(each[1], Mapping)
        ):
            raise EventError(f"expected pairs of id and values, found {str(each)[:60]!r}")
        updates.append((check_id(each[0], "a context's id"), each[1]))

    return [id_ for id_, _ in updates], lambda: store.set_each(updates)


def _from_table(store: ContextStore, frame: Any) -> tuple[list[Any], Callable[[], None]]:
    from matchwood.encode.arrow.tables import as_table, flat_columns
    from matchwood.encode.arrow.values import python_values

    table = as_table(frame)
    if table is None or COLUMN not in table.column_names:
        found = "mixed objects" if table is None else ", ".join(table.column_names)
        raise EventError(f"expected a table with a column {COLUMN!r}, found {found}")
    ids = python_values(table.column(COLUMN))
    if not are_plain(ids) and ids:
        ids = [check_id(id_, "a context's id") for id_ in ids]
    columns = dict(flat_columns(table.drop_columns([COLUMN])))
    return ids, lambda: store.set_many(ids, columns)
