"""Events from Arrow tables and data frames, column by column.

A struct is present under its own name, and its fields under dotted names.  A column of another type
than its attribute's spoils only the events that have a value in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.encode.arrow.column_entries import known_entries
from matchwood.encode.arrow.computed import Given, computed_entries
from matchwood.encode.arrow.made import Entries
from matchwood.encode.arrow.tables import (
    as_rows,
    as_table,
    readable,
    table_rows,
    whole_columns,
)
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computing import computing
from matchwood.encode.events import EncodedEvents, EventBatch, encode_events
from matchwood.errors import EventError

_INT64 = pa.int64().id


def encode_table(attributes: Attributes, frame: Any, given: Given | None = None) -> EncodedEvents:
    """Encode a table of events, perhaps with computed attributes that are given."""
    table = as_table(frame)
    if table is None:
        return encode_events(attributes, as_rows(frame))
    columns = whole_columns(table)
    if columns is None:
        return encode_events(attributes, table_rows(table))
    errors: dict[int, EventError] = {}
    entries: list[Entries] = []
    seen: set[int] = set()
    for name, column in columns:
        attribute = attributes.by_name.get(name)
        if attribute is None or attribute.is_hidden:
            continue
        if attribute.id in seen:
            raise EventError(
                f"expected one column for attribute {name!r}, found two: "
                "a dotted name and a struct's field, or the same name twice"
            )
        seen.add(attribute.id)
        entries += _column_entries(attributes, attribute, readable(column), errors)
    warnings: dict[int, list[EventError]] = {}
    if attributes.computed:
        entries += computed_entries(attributes, columns, table.num_rows, warnings, given)
    entries += absence_entries(attributes, entries, table.num_rows)
    return EncodedEvents(_assemble(entries, table.num_rows, errors), errors, warnings)


def _column_entries(
    attributes: Attributes, attribute: Attribute, column: pa.Array, errors: dict[int, EventError]
) -> Iterator[Entries]:
    if column.null_count == len(column):
        return
    rows = _present(column)
    if column.type.id == _INT64 and _is_plain_int(attributes, attribute):
        values = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
        yield Entries(attribute.id, rows, values[rows])
        return
    known = column if len(rows) == len(column) else column.drop_null()
    yield from known_entries(attributes, attribute, known, rows, errors)


def _present(column: pa.Array) -> np.ndarray:
    """The rows that are not null."""
    bits = column.buffers()[0] if column.null_count else None
    if bits is None:  # not all kinds of columns have one
        return column.is_valid().to_numpy(zero_copy_only=False).nonzero()[0]
    n = column.offset + len(column)
    found = np.unpackbits(np.frombuffer(bits, np.uint8), count=n, bitorder="little")
    rows: np.ndarray = found[column.offset :].view(bool).nonzero()[0]  # bool is counted faster
    return rows


def _is_plain_int(attributes: Attributes, attribute: Attribute) -> bool:
    """Whether an int is its own key, and nothing is derived from it."""
    keys = attribute.keys
    if keys is None or keys.type != "int" or attribute.patterns or attribute.beside_id >= 0:
        return False
    return attributes.exact(attribute) is None


def absence_entries(attributes: Attributes, entries: list[Entries], n: int) -> list[Entries]:
    """Where attributes that are not computed, and whose absence is asked for, have no entry."""
    if not attributes.absences:
        return []
    absences = attributes.absences
    if attributes.computed:
        absences = computing(attributes).plain_absences
    rows_of: dict[int, list[np.ndarray]] = {}
    for each in entries:
        rows_of.setdefault(each.attr, []).append(each.rows)
    found = []
    for attribute in absences:
        is_absent = np.ones(n, bool)
        for rows in rows_of.get(attribute.id, ()):
            is_absent[rows] = False
        absent = np.flatnonzero(is_absent)
        found.append(Entries(attribute.absence_id, absent, np.ones(len(absent), np.int64)))
    return found


def _assemble(entries: list[Entries], n: int, errors: dict[int, EventError]) -> EventBatch:
    """Columns to rows: entries of an event side by side, ascending by attribute."""
    entries = sorted(entries, key=lambda entry: entry.attr)
    rows, keys = (
        np.concatenate([np.empty(0, np.int64), *[getattr(each, name) for each in entries]])
        for name in ("rows", "keys")
    )
    sizes = [len(each.rows) for each in entries]
    attr = np.repeat(np.array([each.attr for each in entries], np.int32), sizes)
    # of 16 bits NumPy sorts by radix
    order = np.argsort(rows.astype(np.uint16) if n <= 2**16 else rows, kind="stable")
    if errors:
        keep = np.ones(n, bool)
        keep[list(errors)] = False
        order = order[keep[rows[order]]]
    last = keys = keys[order]
    if any(each.hi is not None and each.hi is not each.keys for each in entries):
        his = [each.keys if each.hi is None else each.hi for each in entries]
        last = np.concatenate(his)[order]
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows[order], minlength=n), out=start[1:])
    return EventBatch(start, attr[order], keys, last)
