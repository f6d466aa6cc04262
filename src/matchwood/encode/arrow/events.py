"""Events from Arrow tables and data frames, column by column.

A struct is present under its own name, and its fields under dotted names.  A column of another type
than its attribute's spoils only the events that have a value in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.encode.arrow.column_entries import known_entries
from matchwood.encode.arrow.computed import Given, computed_entries
from matchwood.encode.arrow.made import Entries
from matchwood.encode.arrow.plan import (
    TablePlan,
    columns_of,
    repeated,
    table_plan,
    with_entries,
)
from matchwood.encode.arrow.row_kernels import Columns, count_entries, write_entries
from matchwood.encode.arrow.tables import (
    as_rows,
    as_table,
    has_map,
    readable,
    table_rows,
    whole_columns,
)
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computing import Problems, computing
from matchwood.encode.event_batch import Encoded, EncodedEvents, EventBatch, Slices
from matchwood.encode.events import slices_of
from matchwood.errors import EventError

_NONE_WRONG = np.empty(0, np.bool_)


def encode_table(attributes: Attributes, frame: Any, given: Given | None = None) -> EncodedEvents:
    """Encode a table of events, perhaps with computed attributes that are given."""
    found = table_slices(attributes, frame, given)
    return found.part(attributes, 0, found.n_events)


def table_slices(attributes: Attributes, frame: Any, given: Given | None = None) -> Slices:
    """A table of events, to be encoded slice by slice; in whole where it has computed attributes.

    What they become is found once for each distinct combination of values in the table.
    """
    table = as_table(frame)
    if table is None:
        return slices_of(attributes, as_rows(frame))
    plan = table_plan(attributes, table.schema, table.num_rows)
    if plan.has_union:
        return slices_of(attributes, table_rows(table))
    names = attributes.in_events() if has_map(table.schema) else ()
    columns = whole_columns(table.select(plan.left), names)
    inputs = whole_columns(table, names) if attributes.computed or names else columns
    if columns is None or inputs is None:
        if given is not None:
            raise EventError("expected one column for each name beside computed ones, found two")
        return slices_of(attributes, table_rows(table))
    slices = TableSlices(attributes, plan, table, columns)
    if not attributes.computed:
        return slices
    if given is None and len({name for name, _ in inputs}) < len(inputs):
        # which of two columns with one name a row has only the row tells
        return slices_of(attributes, table_rows(table))
    warnings: Problems = {}
    made = list(computed_entries(attributes, inputs, table.num_rows, warnings, given))
    return Encoded(slices.encoded(attributes, 0, table.num_rows, made)._replace(warnings=warnings))


class TableSlices:
    """The rows of a table; see `event_batch.Slices`."""

    is_free = True

    def __init__(
        self,
        attributes: Attributes,
        plan: TablePlan,
        table: pa.Table,
        columns: list[tuple[str, pa.Array]],
    ) -> None:
        self.n_events = table.num_rows
        self._plan = plan
        self._read, self._kept = columns_of(plan, table)
        self._left: list[tuple[Attribute, pa.Array]] = []
        seen = set(plan.read_ids)
        for name, column in columns:
            attribute = attributes.by_name.get(name)
            if attribute is None or attribute.is_hidden:
                continue
            if attribute.id in seen:
                raise repeated(name)
            seen.add(attribute.id)
            self._left.append((attribute, readable(column)))
        self.n_slow = len(self._left)

    def part(self, attributes: Attributes, first: int, last: int) -> EncodedEvents:
        return self.encoded(attributes, first, last, [])

    def encoded(
        self, attributes: Attributes, first: int, last: int, made: list[Entries]
    ) -> EncodedEvents:
        """Some events with entries that were made before."""
        plan, n = self._plan, last - first
        errors: dict[int, EventError] = {}
        entries = list(made)
        for attribute, column in self._left:
            some = column if n == self.n_events else column.slice(first, n)
            entries += _column_entries(attributes, attribute, some, errors)
        for at, label, more in plan.unknown if n else ():
            attributes.unknown[label] += more * self._n_present(at, first, last)
        entries += absence_entries(attributes, entries, n, plan.present_ids)
        batch = assemble(entries, n, errors, plan, self._read, first)
        return EncodedEvents(batch, errors)

    def _n_present(self, at: int, first: int, last: int) -> int:
        """How many values a column that is read has in some rows."""
        assert self._kept is not None
        column = self._kept.column(at)
        return last - first - int(column.slice(first, last - first).null_count)


def _column_entries(
    attributes: Attributes, attribute: Attribute, column: pa.Array, errors: dict[int, EventError]
) -> Iterator[Entries]:
    if column.null_count == len(column):
        return
    rows = _present(column)
    if pa.types.is_nested(column.type):  # of which Arrow cannot always take some values
        known = pa.DictionaryArray.from_arrays(pa.array(rows), column)
    else:
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


def absence_entries(
    attributes: Attributes, entries: list[Entries], n: int, others: Collection[int] = ()
) -> list[Entries]:
    """Where attributes that are not computed, and whose absence is asked for, have no entry.

    others  attributes that are left out
    """
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
        if attribute.id in others:
            continue
        is_absent = np.ones(n, bool)
        for rows in rows_of.get(attribute.id, ()):
            is_absent[rows] = False
        absent = np.flatnonzero(is_absent)
        found.append(Entries(attribute.absence_id, absent, np.ones(len(absent), np.int64)))
    return found


def assemble(
    entries: list[Entries],
    n: int,
    errors: Collection[int],
    plan: TablePlan,
    columns: Columns,
    first: int,
) -> EventBatch:
    """Columns to rows: entries of an event side by side, ascending by attribute.

    entries  of n events, besides those of the columns that the plan reads, from row `first` on
    """
    is_wrong = _NONE_WRONG
    if errors:
        is_wrong = np.zeros(n, np.bool_)
        is_wrong[list(errors)] = True
    start = np.zeros(n + 1, np.int64)
    if not n:
        return EventBatch(start, np.empty(0, np.int32), *[np.empty(0, np.int64)] * 2)
    runs = with_entries(plan.runs, entries)
    count_entries(columns, runs, first, is_wrong, start)
    attr, lo = np.empty(int(start[-1]), np.int32), np.empty(int(start[-1]), np.int64)
    write_entries(columns, runs, plan.bound, first, is_wrong, start[:-1].copy(), attr, lo)
    hi = lo
    if any(each.hi is not None and each.hi is not each.keys for each in entries):
        ends = [each if each.hi is None else each._replace(keys=each.hi) for each in entries]
        runs, hi = with_entries(plan.runs, ends), np.empty_like(lo)
        write_entries(columns, runs, plan.bound, first, is_wrong, start[:-1].copy(), attr, hi)
    return EventBatch(start, attr, lo, hi)
