"""Computed attributes of a table: each formula once per distinct combination of its inputs.

    columns of the inputs ── codes ── distinct combinations ── formula (`computing`) ── entries
                               └──────────────── rows that have each ──────────────────────┘

Columns of lists, maps and structs have no codes: what reads them is computed row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.column_entries import open_column
from matchwood.encode.arrow.made import Entries, made_entries, of_rows
from matchwood.encode.arrow.tables import readable
from matchwood.encode.arrow.values import plain_values, python_values, texts
from matchwood.encode.attributes import Attributes
from matchwood.encode.computed import GivenInputs
from matchwood.encode.computing import Computing, Problems, computing
from matchwood.encode.known import COMPUTE, Known, Made
from matchwood.lang.functions.evaluate import PATH

FEW = 1024
"""Combinations that are looked up or computed one by one; more of them as a column."""

_KIND = {str: {"string"}, bool: {"bool"}, int: {"number"}, float: {"number"}}
"""The kind of predicates by the class of a result."""


_BITS = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}


class Coded(NamedTuple):
    """A column: its values, and which of them each row has."""

    values: list[Any]
    codes: np.ndarray | None
    """None: row i has value i."""

    def by_row(self) -> list[Any]:
        """The value of every row."""
        if self.codes is None:
            return self.values
        return [self.values[code] for code in self.codes.tolist()]


class Given(NamedTuple):
    """Computed attributes that are columns already, by their names.

    is_doubtful  rows of which they say nothing; those have the inputs, all others need not
    """

    columns: Mapping[str, pa.Array]
    is_doubtful: np.ndarray


def computed_entries(
    attributes: Attributes,
    flat: Sequence[tuple[str, pa.Array]],
    n: int,
    warnings: Problems,
    given: Given | None = None,
) -> Iterator[Entries]:
    """Entries of computed attributes and of their absences, in a table of n rows."""
    plan = computing(attributes)
    plan.note_events(n)
    columns = dict(flat)
    coded: dict[str, Coded] = {}

    def column(path: str) -> Coded:
        if path not in coded:
            coded[path] = _column(columns, path, n)
        return coded[path]

    for known in plan.known:
        made = None if given is None else given.columns.get(known.attribute.name)
        if given is None or made is None:
            inputs = [column(name) for name in known.inputs]
            yield from _of_formula(plan, known, inputs, n, warnings)
            continue
        yield from _of_column(attributes, known, made, ~given.is_doubtful)
        rows = np.flatnonzero(given.is_doubtful)
        if len(rows):
            part = {name: columns[name].take(pa.array(rows)) for name in known.inputs}
            inputs = [_column(part, name, len(rows)) for name in known.inputs]
            problems: Problems = {}
            for each in _of_formula(plan, known, inputs, len(rows), problems):
                yield each._replace(rows=rows[each.rows])
            for row, found in problems.items():
                warnings.setdefault(int(rows[row]), []).extend(found)
    for tests in plan.grouped:
        yield from made_entries(plan.grouped_column(tests, column(tests.name).by_row(), warnings))


def _column(columns: Mapping[str, pa.Array], path: str, n: int) -> Coded:
    """The values of an input, perhaps behind keys of maps."""
    name, *keys = path.split(PATH)
    column = columns.get(name)
    if column is None:
        return Coded([None], np.zeros(n, np.int64))
    if not keys and (found := _coded(column)) is not None:
        return found
    values = plain_values(column)
    for key in keys:
        values = [each.get(key) if isinstance(each, Mapping) else None for each in values]
    return Coded(values, None)


def _coded(column: pa.Array) -> Coded | None:
    """A column of plain values with codes; None for others.

    Doubles are compared by their bits: 0.0 and -0.0 are two values.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind):
        return None
    if pa.types.is_string_view(kind):  # of which `dictionary_encode` has nulls as empty texts
        column, kind = column.cast(pa.large_string()), pa.large_string()
    bits = _BITS.get(kind)
    try:
        found = pc.dictionary_encode(column if bits is None else column.view(bits), "encode")
    except pa.ArrowException:  # a type that Arrow does not hash
        return None
    words = found.dictionary if bits is None else found.dictionary.view(kind)
    codes = found.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Coded(python_values(words), codes)


def _of_formula(
    plan: Computing, known: Known, inputs: list[Coded], n: int, warnings: Problems
) -> Iterator[Entries]:
    """Entries of one formula in every row."""
    columns, codes = _combined(inputs, n)
    n_rows = [1] * n if codes is None else np.bincount(codes).tolist()
    made: list[Made | None] = [None] * len(n_rows)
    if known.is_kept and columns:
        made = known.look_up(columns)
    if columns and made.count(None) > FEW:
        made, entries = _by_column(plan.attributes, known, known.results(columns))
        for each in entries:
            yield each if codes is None else of_rows(each, codes, len(n_rows))

    def given(number: int) -> GivenInputs:
        values = [column[number] for column in columns]
        return GivenInputs(dict(zip(known.inputs, values, strict=True)))

    problems: Problems = {}
    filled = plan.fill(made, known, columns, given, n_rows, problems)
    if problems:
        _warn(warnings, problems, codes)
    yield from made_entries(filled, codes)


def _by_column(
    attributes: Attributes, known: Known, results: list[Any]
) -> tuple[list[Made | None], list[Entries]]:
    """Entries of a formula's results as those of a column; None: they have to be found otherwise.

    Only where results are of the one kind that predicates ask for: then nothing is unknown.
    """
    attribute = known.attribute
    left = [each is COMPUTE for each in results]
    made: list[Made | None] = [None if each else b"" for each in left]
    kinds = {type(each) for each in results if each is not None and each is not COMPUTE}
    if len(kinds) > 1 or any(attribute.kinds.keys() != _KIND.get(each) for each in kinds):
        return [None] * len(results), []
    try:
        column = pa.array([None if each is COMPUTE else each for each in results])
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return [None] * len(results), []
    return made, _of_column(attributes, known, column, ~np.array(left))


def _of_column(
    attributes: Attributes, known: Known, column: pa.Array, is_there: np.ndarray
) -> list[Entries]:
    """Entries of a formula's values, and of its absence, in the rows that are there."""
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False) & is_there)
    entries: list[Entries] = []
    if len(rows):
        values = column if len(rows) == len(column) else column.take(pa.array(rows))
        entries += open_column(attributes, known.attribute, texts(readable(values)), rows)
    for each in known.absences:
        is_absent = is_there.copy()
        for found in entries:
            if found.attr == each.id:
                is_absent[found.rows] = False
        absent = np.flatnonzero(is_absent)
        entries.append(Entries(each.absence_id, absent, np.ones(len(absent), np.int64)))
    return entries


def _combined(inputs: list[Coded], n: int) -> tuple[list[list[Any]], np.ndarray | None]:
    """Distinct combinations of values, a list for each input, and which of them each row has.

    None: row i has combination i.
    """
    if any(each.codes is None for each in inputs):
        return [each.by_row() for each in inputs], None
    codes = np.zeros(n, np.int64)
    rows = codes[:1]
    for each in inputs:  # fewer than n codes before each step, so 64 bits hold their products
        assert each.codes is not None
        rows, codes = _numbered(codes * len(each.values) + each.codes)
    return [
        [each.values[code] for code in each.codes[rows].tolist()]  # type: ignore[index]
        for each in inputs
    ], codes


def _numbered(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as dense codes: a row that has each code, and the codes of the rows."""
    found = pc.dictionary_encode(pa.array(numbers))
    codes = found.indices.to_numpy().astype(np.int64)
    rows = np.empty(len(found.dictionary), np.int64)
    rows[codes] = np.arange(len(codes))
    return rows, codes


def _warn(warnings: Problems, problems: Problems, codes: np.ndarray | None) -> None:
    """Tell the rows of each combination what is wrong with it."""
    rows_of: Any = [[row] for row in problems]
    if codes is not None:
        order = np.argsort(codes, kind="stable")
        numbers = np.array(list(problems))
        first, last = (np.searchsorted(codes[order], numbers, side) for side in ("left", "right"))
        rows_of = [order[a:b].tolist() for a, b in zip(first, last, strict=True)]
    for rows, found in zip(rows_of, problems.values(), strict=True):
        for row in rows:
            warnings.setdefault(row, []).extend(found)
