"""Events from Arrow tables and data frames, column by column.

A struct is present under its own name, and its fields under dotted names.  A column of another type
than its attribute's spoils only the events that have a value in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.tables import (
    as_rows,
    as_table,
    plain_value,
    readable,
    table_rows,
    whole_columns,
)
from matchwood.encode.arrow.values import Misfit, is_text, python_value, python_values
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.columns import column_keys, float_places, is_double
from matchwood.encode.computed import UNKNOWN, GivenInputs, compute
from matchwood.encode.computing import computing
from matchwood.encode.events import EncodedEvents, EventBatch, encode_events
from matchwood.encode.grouping import Grouped
from matchwood.encode.interval_events import KeySets
from matchwood.encode.keys import describe
from matchwood.encode.kinds import MOMENTS
from matchwood.encode.value_entries import as_kind, open_entries, wrong_type
from matchwood.errors import EventError
from matchwood.lang.functions.evaluate import PATH

_INT64 = pa.int64().id


class Entries(NamedTuple):
    """One attribute's part of a batch: which events have it, and their keys."""

    attr: int
    rows: np.ndarray
    keys: np.ndarray
    hi: np.ndarray | None = None  # where an entry's last key is not its first


def encode_table(attributes: Attributes, frame: Any) -> EncodedEvents:
    """Encode a table of events."""
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
    unknown: dict[int, list[int]] = {}
    if attributes.computed:
        entries += _computed_entries(attributes, columns, table.num_rows, warnings, unknown)
    entries += absence_entries(attributes, entries, table.num_rows, unknown)
    return EncodedEvents(_assemble(entries, table.num_rows, errors), errors, warnings)


def _computed_entries(
    attributes: Attributes,
    flat: Sequence[tuple[str, pa.Array]],
    n: int,
    warnings: dict[int, list[EventError]],
    unknown: dict[int, list[int]],
) -> Iterator[Entries]:
    """Entries of computed attributes, row by row over the columns that they read."""
    every = attributes.computed.values()
    needed = {name.split(PATH)[0] for each in every for name in _inputs(each)}
    columns: dict[str, list[Any]] = {}
    for name, column in flat:
        if name in needed:
            columns[name] = [plain_value(each) for each in python_values(column)]
    nothing = [None] * n
    plan = computing(attributes)
    for tests in plan.grouped:
        values = _input(columns, tests.name, nothing)
        yield from grouped_rows(attributes, tests, values, warnings)
    for attribute in plan.ordinary:
        inputs = [_input(columns, name, nothing) for name in _inputs(attribute)]
        rows = zip(*inputs, strict=True) if inputs else [()] * n
        yield from computed_rows(attributes, attribute, enumerate(rows), warnings, unknown)


def grouped_rows(
    attributes: Attributes,
    tests: Grouped,
    values: Sequence[Any],
    warnings: dict[int, list[EventError]],
) -> Iterator[Entries]:
    """Entries of the attributes that are TRUE, given the value of the input in every row."""
    rows: dict[int, list[int]] = {}
    for row, value in enumerate(values):
        problems: list[EventError] = []
        for id_ in tests.true_for(value, attributes, problems):
            rows.setdefault(id_, []).append(row)
        if problems:
            warnings.setdefault(row, []).extend(problems)
    for id_, where in rows.items():
        yield Entries(id_, np.array(where, np.int64), np.ones(len(where), np.int64))


def _inputs(attribute: Attribute) -> list[str]:
    assert attribute.formula is not None
    return attribute.formula.inputs


def _input(columns: dict[str, list[Any]], path: str, nothing: list[Any]) -> list[Any]:
    name, *keys = path.split(PATH)
    values = columns.get(name, nothing)
    for key in keys:
        values = [each.get(key) if isinstance(each, Mapping) else None for each in values]
    return values


def computed_rows(
    attributes: Attributes,
    attribute: Attribute,
    rows: Iterable[tuple[int, Sequence[Any]]],
    warnings: dict[int, list[EventError]],
    unknown: dict[int, list[int]],
) -> Iterator[Entries]:
    """Entries of one computed attribute, given the values of its inputs by row.

    unknown  gets the rows where it is neither NULL nor known
    """
    found: dict[int, tuple[list[int], list[int], list[int]]] = {}
    names = _inputs(attribute)
    for row, values in rows:
        try:
            value = compute(
                attributes, attribute, GivenInputs(dict(zip(names, values, strict=True)))
            )
        except EventError as error:
            warnings.setdefault(row, []).append(error)
            value = UNKNOWN
        if value is UNKNOWN:
            for each in (attribute, *attribute.kinds.values()):
                unknown.setdefault(each.id, []).append(row)
            continue
        if value is None:
            continue
        for id_, key in open_entries(attributes, attribute, value):
            first, last = key.intervals[0] if isinstance(key, KeySets) else (key, key)
            at, lo, hi = found.setdefault(id_, ([], [], []))
            at.append(row)
            lo.append(first)
            hi.append(last)
    for id_, (at, lo, hi) in found.items():
        keys = np.array(lo, np.int64)
        last_keys = None if lo == hi else np.array(hi, np.int64)
        yield Entries(id_, np.array(at, np.int64), keys, last_keys)


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


def known_entries(
    attributes: Attributes,
    attribute: Attribute,
    known: pa.Array,
    rows: np.ndarray,
    errors: dict[int, EventError],
) -> Iterator[Entries]:
    """Entries of values without nulls, `known[i]` that of event `rows[i]`, and what they derive."""
    if pa.types.is_binary(known.type):  # texts, as far as they are UTF-8
        known = known.view(pa.string())
    if attribute.keys is None:
        yield from _open_entries(attributes, attribute, known, rows)
        return
    keys, bad = column_keys(attribute.keys, known)
    if bad is not None:
        for i in np.flatnonzero(bad):
            errors.setdefault(int(rows[i]), wrong_type(attribute, _described(known[int(i)])))
        known = known.filter(pa.array(~bad))
        rows, keys = rows[~bad], keys[~bad]
    yield Entries(attribute.id, rows, keys)
    if attribute.patterns and len(rows):
        yield from _pattern_entries(attribute, known, rows)
    if attribute.beside_id >= 0 and len(rows):
        derived = attributes.all[attribute.beside_id]
        if derived.type == "string":
            yield Entries(derived.id, rows, column_keys(derived.keys, known)[0])
        else:
            yield Entries(derived.id, rows, *float_places(known))
    exact = attributes.exact(attribute)
    if exact is not None and len(rows) and not is_double(known.type):
        yield Entries(exact.id, rows, column_keys(exact.keys, known)[0])


def _open_entries(
    attributes: Attributes, attribute: Attribute, known: pa.Array, rows: np.ndarray
) -> Iterator[Entries]:
    """Entries of an open attribute: its presence, and its values for each kind."""
    if attribute.is_asked:
        yield Entries(attribute.id, rows, np.zeros(len(rows), np.int64))
    for kind, each in attribute.kinds.items():
        column, of_kind = known, rows
        if kind in MOMENTS:
            column = moments(kind, known)
            if column.null_count:
                of_kind = rows[column.is_valid().to_numpy(zero_copy_only=False)]
                column = column.drop_null()
        others: dict[int, EventError] = {}
        yield from known_entries(attributes, each, column, of_kind, others)
        n_unknown = len(rows) - len(of_kind) + len(others)
        if n_unknown:
            attributes.unknown[attribute.label] += n_unknown


def moments(kind: str, known: pa.Array) -> pa.Array:
    """A column of strings as dates or timestamps, null where one does not read so."""
    is_coded = pa.types.is_dictionary(known.type)
    if not is_text(known.type.value_type if is_coded else known.type):
        return known
    words = known if is_coded else pc.dictionary_encode(known)
    read = [as_kind(kind, text) for text in python_values(words.dictionary)]
    found = [None if isinstance(each, (str, bytes)) else each for each in read]
    time_type = pa.timestamp("us", "UTC") if kind == "timestamp" else pa.date32()
    return pa.array(found, time_type).take(words.indices)


def _described(value: pa.Scalar) -> str:
    found = python_value(value)
    return repr(found) if isinstance(found, Misfit) else describe(found)


def _pattern_entries(attribute: Attribute, known: pa.Array, rows: np.ndarray) -> Iterator[Entries]:
    if not pa.types.is_dictionary(known.type):
        known = pc.dictionary_encode(known)
    codes = known.indices.to_numpy(zero_copy_only=False)
    # a dictionary may hold words that no row has, null and invalid ones among them
    distinct = [each if isinstance(each, str) else "" for each in python_values(known.dictionary)]
    for pattern in attribute.patterns.values():
        fits = [pattern.regex.fullmatch(value) is not None for value in distinct]
        yield Entries(pattern.attr_id, rows, np.array(fits, np.int64)[codes])


def absence_entries(
    attributes: Attributes,
    entries: list[Entries],
    n: int,
    unknown: Mapping[int, list[int]],
) -> list[Entries]:
    """Where attributes whose absence is asked for have no entry, and are not unknown."""
    if not attributes.absences:
        return []
    rows_of: dict[int, list[np.ndarray]] = {}
    for each in entries:
        rows_of.setdefault(each.attr, []).append(each.rows)
    found = []
    for attribute in attributes.absences:
        is_absent = np.ones(n, bool)
        for rows in rows_of.get(attribute.id, ()):
            is_absent[rows] = False
        is_absent[unknown.get(attribute.id, [])] = False
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
