"""The tables that generators make: predicates, and the entries of events.

    predicates   id, attribute, operator, values   one row a predicate, as `Matcher.add_many` takes
    entries      event, attribute, value           one row an attribute of an event

Events of 15 attributes among 30,000 would be nearly empty rows of a wide table, so entries are the
form that generators make and benchmarks encode.  `wide_events` and `event_dicts` turn them into
what `Matcher.match_many` and people take.

`value` and `values` are of one type, or structs with one field per type, of which one is not null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.kernel.arrays import offsets_of


def coded(codes: np.ndarray, names: list[str]) -> pa.DictionaryArray:
    """Strings as codes into a list of names."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names))


def predicate_table(
    row: np.ndarray,
    attribute: pa.DictionaryArray,
    operator: pa.DictionaryArray,
    n_values: np.ndarray,
    values: pa.Array,
) -> pa.Table:
    """Conjunctions: predicate i, of subscription row[i], has the next n_values[i] values."""
    ends = offsets_of(n_values).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(ends), values)
    return pa.table({"id": row, "attribute": attribute, "operator": operator, "values": lists})


def entry_table(row: np.ndarray, attribute: pa.DictionaryArray, value: pa.Array) -> pa.Table:
    """Entries: number i belongs to event row[i]."""
    return pa.table({"event": row, "attribute": attribute, "value": value})


class Entries:
    """An entry table as arrays, for the events first .. last - 1."""

    def __init__(self, table: pa.Table, first: int, last: int) -> None:
        attribute = _whole(table.column("attribute").unify_dictionaries())
        self.event = table.column("event").to_numpy() - first
        self.names: list[str] = attribute.dictionary.to_pylist()
        self.code = attribute.indices.to_numpy(zero_copy_only=False)
        self.value = _whole(table.column("value"))
        self.n_events = last - first
        order = np.argsort(self.code, kind="stable")
        ends = np.searchsorted(self.code[order], np.arange(len(self.names) + 1))
        self._parts = [order[ends[i] : ends[i + 1]] for i in range(len(self.names))]

    def part(self, code: int) -> tuple[np.ndarray, pa.Array]:
        """The entries of one name: their positions and their values, of one type."""
        at = self._parts[code]
        values = self.value.take(pa.array(at))
        if pa.types.is_struct(values.type):
            fields = values.flatten()
            values = min(fields, key=lambda field: field.null_count)
        return at, values


def wide_events(table: pa.Table, first: int, last: int) -> pa.Table:
    """Events first .. last - 1 as rows, one column per attribute, null where it is absent."""
    entries = Entries(table, first, last)
    columns = {}
    for code, name in enumerate(entries.names):
        at, values = entries.part(code)
        position = np.full(entries.n_events, -1, np.int64)
        position[entries.event[at]] = np.arange(len(at))
        columns[name] = values.take(pa.array(position, mask=position < 0))
    if not columns:
        return pa.table({"": pa.nulls(entries.n_events)})
    return pa.table(columns)


def event_dicts(table: pa.Table, first: int, last: int) -> list[dict[str, Any]]:
    """Events first .. last - 1 as mappings from names to values."""
    found: list[dict[str, Any]] = [{} for _ in range(last - first)]
    columns = (table.column(name).to_pylist() for name in ("event", "attribute", "value"))
    for event, name, value in zip(*columns, strict=True):
        if isinstance(value, dict):
            value = next(each for each in value.values() if each is not None)
        found[event - first][name] = value
    return found


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
