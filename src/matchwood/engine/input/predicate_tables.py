"""Subscriptions as a table of predicates: one row a predicate, the rows of one id a conjunction.

    id   attribute  operator   value      values
    7    price      BETWEEN    null       [20, 40]
    7    genre      =          classics   null

    id         int or string
    attribute  string
    operator   = == <> != < <= > >= IN, NOT IN, BETWEEN, NOT BETWEEN, LIKE, NOT LIKE, IS NULL,
               IS NOT NULL, in any case
    value      the constant, of any type; a struct with one field per type when attributes differ in
               type (the field that is not null counts)
    values     a list of such constants, for IN and BETWEEN; either column may be missing
    context    if attributes begin with ctx.: the context they belong to, the same in all rows of an
               id; to compare an attribute with a value of the context takes a text

Columns become leaf rows without a Python object per row, except for LIKE, for structs, and for
numbers that neither an int of 64 bits nor a float holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.encode.arrow.values import is_text, python_values
from matchwood.encode.exact import has_decimal
from matchwood.encode.leaves import ABSENT, OPERATORS, LeafBatch
from matchwood.encode.merge_kernels import BETWEEN, IN, NEGATED, PRESENT, and_token
from matchwood.engine.input.fields import NO_FIELDS, FieldColumns, read_columns
from matchwood.engine.input.loading import Chunk, field_columns
from matchwood.engine.input.predicate_columns import (
    OPERATOR_OF,
    UNKNOWN,
    are_plain,
    attribute_codes,
    constants,
    context_codes,
    is_exact,
    operator_codes,
    subscription_rows,
)
from matchwood.engine.input.predicate_texts import LIKE, TableTexts
from matchwood.errors import MatchwoodError, SubscriptionError
from matchwood.kernel.arrays import offsets_of, slices
from matchwood.lang.builder import attr
from matchwood.lang.nodes import Between, Comparison, In, IsNull, Like, Predicate
from matchwood.lang.python_values import as_value

SUBSCRIPTIONS_PER_CHUNK = 500_000

_SIGNS = {op: sign for sign, op in OPERATORS.items()}


def load_predicates(table: pa.Table) -> Iterator[Chunk]:
    """Chunks of leaf rows from a predicate table."""
    columns = _Columns(table)
    total = len(columns.ids)
    for first in range(0, total, SUBSCRIPTIONS_PER_CHUNK):
        last = min(first + SUBSCRIPTIONS_PER_CHUNK, total)
        yield columns.chunk(first, last, total)


class _Columns:
    """A predicate table as arrays, its rows sorted by subscription."""

    def __init__(self, table: pa.Table) -> None:
        missing = {"id", "attribute", "operator"} - set(table.column_names)
        if missing or not {"value", "values"} & set(table.column_names):
            raise SubscriptionError(
                "expected columns id, attribute, operator and value or values, "
                f"found {', '.join(table.column_names)}"
            )
        self.ids, self.row_start, self.order = subscription_rows(table.column("id"))
        names, self.is_named = attribute_codes(table.column("attribute"))
        if not (is_text(names.dictionary.type) or pa.types.is_null(names.dictionary.type)):
            raise SubscriptionError(
                f"expected strings in the column attribute, found {names.dictionary.type}"
            )
        words = python_values(names.dictionary)
        is_name = np.array([isinstance(word, str) for word in words], bool)
        # no row has the name that stands in for one that is no UTF-8: they are all refused
        named = [word if isinstance(word, str) else f"\0{code}" for code, word in enumerate(words)]
        self.names = {name: code for code, name in enumerate(named)}
        self.attr = names.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        self.is_named &= is_name[self.attr]
        self.op = operator_codes(table.column("operator"))
        self.n_values, self.values = constants(table)
        self.contexts, self.context = context_codes(table)
        self.fields = field_columns(table)
        if self.order is not None:
            self._sort(self.order)
        self.value_start = offsets_of(self.n_values)

    def _sort(self, order: np.ndarray) -> None:
        starts = np.cumsum(self.n_values) - self.n_values
        self.values = self.values[slices(starts[order], self.n_values[order])]
        self.attr, self.op, self.n_values = self.attr[order], self.op[order], self.n_values[order]
        self.is_named = self.is_named[order]
        if self.contexts:
            self.context = self.context[order]

    def chunk(self, first: int, last: int, total: int) -> Chunk:
        rows = slice(self.row_start[first], self.row_start[last])
        values = slice(self.value_start[rows.start], self.value_start[rows.stop])
        batch = LeafBatch()
        batch.names = self.names
        batch.attr = self.attr[rows]
        batch.op = self.op[rows].copy()
        batch.position = np.full(len(self.attr[rows]), -1, np.int32)
        batch.start = self.value_start[rows.start : rows.stop + 1] - values.start
        batch.values = self.values[values]
        row_start = self.row_start[first : last + 1] - rows.start
        batch.row_start = row_start
        _conjunction_code(batch, row_start)
        plain = batch
        refused = self._refused(first, last)
        kept: list[int] = list(range(last - first))
        has_like = ((batch.op & ~np.uint8(NEGATED)) == LIKE).any()
        if has_like or refused or not are_plain(batch.values):
            batch, kept = _row_by_row(batch, refused, lambda row: self._table_row(rows.start + row))
        ids, texts = self.ids[first:last], TableTexts(plain)
        contexts = None
        if self.contexts:
            contexts = [self.contexts[code] for code in self.context[self.row_start[first:last]]]
        fields = self._fields(first, last, refused)
        return Chunk(first, ids, texts, batch, kept, refused, last, total, contexts, fields)

    def _fields(self, first: int, last: int, refused: dict[int, Exception]) -> FieldColumns:
        """The fields of subscriptions: those in the first row of each."""
        if not self.fields:
            return NO_FIELDS
        rows = self.row_start[first:last]
        at = pa.array(rows if self.order is None else self.order[rows])
        return read_columns({name: each.take(at) for name, each in self.fields.items()}, refused)

    def _table_row(self, row: int) -> int:
        """The row of the table that a row of the sorted columns was."""
        return row if self.order is None else int(self.order[row])

    def _refused(self, first: int, last: int) -> dict[int, Exception]:
        rows = slice(self.row_start[first], self.row_start[last])
        op = self.op[rows]
        n = self.n_values[rows]
        plain = op & ~np.uint8(NEGATED)
        none = (plain == ABSENT) | (plain == PRESENT)
        many = plain == IN
        two = plain == BETWEEN
        wrong = np.where(none, n != 0, np.where(many, n == 0, np.where(two, n != 2, n != 1)))
        is_named = self.is_named[rows]
        wrong |= (op == UNKNOWN) | ~is_named
        refused: dict[int, Exception] = {}
        for row in np.flatnonzero(wrong).tolist():
            expression = int(np.searchsorted(self.row_start, rows.start + row, side="right")) - 1
            if not is_named[row]:
                problem = "expected an attribute, found null, or a text that is no UTF-8"
            elif op[row] == UNKNOWN:
                problem = f"expected an operator among {', '.join(OPERATOR_OF)}, found another"
            else:
                problem = (
                    f"expected one constant (two for BETWEEN, none for IS NULL), found {n[row]}"
                )
            refused.setdefault(
                expression - first, _at_row(self._table_row(rows.start + row), problem)
            )
        if not self.contexts:
            return refused
        starts = self.row_start[first:last]
        expected = np.repeat(self.context[starts], np.diff(self.row_start[first : last + 1]))
        for row in np.flatnonzero(self.context[rows] != expected).tolist():
            expression = int(np.searchsorted(self.row_start, rows.start + row, side="right")) - 1
            problem = "expected one context in all rows of an id, found another"
            refused.setdefault(expression - first, SubscriptionError(problem))
        return refused


def _at_row(row: int, problem: object) -> SubscriptionError:
    return SubscriptionError(f"predicate table, row {row}: {problem}")


def _conjunction_code(batch: LeafBatch, row_start: np.ndarray) -> None:
    """Prefix code of plain conjunctions: AND(n), then the rows."""
    n_expr, n_rows = len(row_start) - 1, int(row_start[-1])
    sizes = np.diff(row_start)
    heads = row_start[:-1] + np.arange(n_expr)
    code = np.empty(n_expr + n_rows, np.int32)
    code[heads] = and_token(1) + (sizes - 1) * (and_token(2) - and_token(1))
    body = np.ones(n_expr + n_rows, bool)
    body[heads] = False
    code[body] = np.arange(n_rows)
    batch.code = code
    batch.expr_start = np.append(heads, n_expr + n_rows)


def _row_by_row(
    batch: LeafBatch,
    refused: dict[int, Exception],
    table_row: Callable[[int], int],
) -> tuple[LeafBatch, list[int]]:
    """Leave out refused subscriptions, write LIKE and decimals as the parser would; slow."""
    fresh, kept = LeafBatch(), []
    names = list(batch.names)
    for expression in range(len(batch)):
        rows = range(int(batch.row_start[expression]), int(batch.row_start[expression + 1]))
        if expression in refused:
            continue
        row = rows.start
        leaves = []
        try:
            for row in rows:
                leaves.append(_leaf(batch, names, row))
        except MatchwoodError as error:
            refused[expression] = _at_row(table_row(row), error)
            continue
        fresh.code.append(and_token(len(leaves)))
        for leaf in leaves:
            if isinstance(leaf, Predicate):
                fresh.write_predicate(leaf)
            else:
                fresh.code.append(len(fresh.attr))
                fresh.write_row(*leaf)
        fresh.expr_start.append(len(fresh.code))
        fresh.row_start.append(len(fresh.attr))
        kept.append(expression)
    return fresh, kept


def _leaf(
    batch: LeafBatch, names: list[str], row: int
) -> Predicate | tuple[str, int, tuple[Any, ...]]:
    """A predicate, or a row whose constants are taken as they are."""
    name, op = names[batch.attr[row]], int(batch.op[row])
    values = [
        value.item() if isinstance(value, np.generic) else value
        for value in batch.values[batch.start[row] : batch.start[row + 1]]
    ]
    if op & ~NEGATED != LIKE:
        values = [as_value(value) if is_exact(value) else value for value in values]
        predicate = _predicate(name, op, values)
        return predicate if has_decimal(predicate) else (name, op, tuple(values))
    if not isinstance(values[0], str):
        raise SubscriptionError(f"expected a string pattern for LIKE, found {values[0]!r}")
    leaf = attr(name).like(values[0])
    assert isinstance(leaf, Like)
    return Like(name, leaf.pattern, bool(op & NEGATED))


def _predicate(name: str, op: int, values: Sequence[Any]) -> Predicate:
    """A row as a predicate."""
    plain, negated = op & ~NEGATED, bool(op & NEGATED)
    if plain in (ABSENT, PRESENT):
        return IsNull(name, plain == PRESENT)
    if plain == IN:
        return In(name, tuple(values), negated)
    if plain == BETWEEN:
        return Between(name, values[0], values[1], negated)
    return Comparison(name, _SIGNS[op], values[0])
