"""Events as one typed Arrow table: what both engines read.

Attributes become columns, dotted names become structs, absent becomes NULL.  A `number` attribute
has no column type of its own; each table says whether it is BIGINT or DOUBLE, and its events then
carry only ints or only floats for it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from strategies import Event, Schema
from strategies import event as any_event

COLUMN_TYPES = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
}


def as_columns(schema: Schema, number: str) -> Schema:
    """The schema with `number` replaced by the column type that stands for it, int or float."""
    return {name: number if kind == "number" else kind for name, kind in schema.items()}


def column_events(rng: Random, columns: Schema, n: int) -> list[Event]:
    """Events whose values fit the columns exactly."""
    return [any_event(rng, columns) for _ in range(n)]


def to_arrow(columns: Schema, events: list[Event], time_zone: str | None) -> pa.Table:
    """The table; timestamps are in `time_zone`, or without one."""
    fields = _fields(columns, time_zone)
    rows = [nested(columns, event) for event in events]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def nested(columns: Schema, event: Event) -> dict[str, Any]:
    """`user.age` inside a dict `user`, present even when all that is in it is absent."""
    row: dict[str, Any] = {}
    for name in columns:
        *path, last = name.split(".")
        inner = row
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = event.get(name)
    return row


def _fields(columns: Schema, time_zone: str | None, prefix: str = "") -> list[pa.Field]:
    fields: dict[str, pa.Field] = {}
    for name, kind in columns.items():
        if not name.startswith(prefix):
            continue
        head, dot, _ = name.removeprefix(prefix).partition(".")
        if dot:
            inner = _fields(columns, time_zone, f"{prefix}{head}.")
            fields[head] = pa.field(head, pa.struct(inner))
        elif kind == "timestamp":
            fields[head] = pa.field(head, pa.timestamp("us", time_zone))
        else:
            fields[head] = pa.field(head, COLUMN_TYPES[kind])
    return list(fields.values())
