"""Resolve: leaf rows get attribute ids, types and keys.

Types are checked for the whole batch before anything changes, so a refused batch leaves no trace.
Keys are asked for once per attribute: a dictionary then spreads all new constants of a batch evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.attributes import Attribute, Attributes
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.keys import read_literal_problem
from matchwood.encode.leaves import ABSENT, OF_STRING, OPERATOR, PATTERN, LeafBatch
from matchwood.encode.schema import accepts, literal_type
from matchwood.errors import SchemaError
from matchwood.forms.merge_kernels import EQ, NEGATED, PRESENT, Leaves


class _Rows(NamedTuple):
    """The rows of one name of a batch."""

    name: str
    rows: np.ndarray
    at: np.ndarray  # positions of their values
    values: Sequence[Any] | np.ndarray


def resolve(
    batch: LeafBatch, attributes: Attributes, table: ExpressionTable | None = None
) -> Leaves:
    """The rows of a batch with ids and keys; raises SchemaError with a position, changing nothing.

    Dictionaries learn the constants, and `table` follows when that moved its keys.  Without a table
    constants are only looked up.
    """
    groups = list(_by_name(batch))
    for name, kind in learned_types(batch, attributes, groups).items():
        attributes.get(name, kind)
    attr = np.zeros(len(batch.attr), np.int32)
    op = np.frombuffer(batch.op, np.uint8) & np.uint8(0xFF & ~OF_STRING)
    keys = np.zeros((len(batch.values), 3), np.int64)
    for group in groups:
        attribute = attributes.get(group.name, None)
        attr[group.rows] = attribute.id
        special = (op[group.rows] & OPERATOR) >= ABSENT
        if special.any():
            _derive(batch, attributes, attribute, group.rows[special], attr, op, keys)
        if len(group.values) and attribute.keys is not None:
            plain = ~np.isin(group.at, _pattern_values(batch, group.rows[special]))
            values = group.values if plain.all() else _pick(group.values, plain)
            keys[group.at[plain]] = _literal_keys(attribute, values, table)
    return Leaves(
        attr,
        op,
        np.array(batch.start, np.int64),
        keys[:, 0].copy(),
        keys[:, 1].copy(),
        keys[:, 2].astype(np.int8),
    )


def learned_types(
    batch: LeafBatch, attributes: Attributes, groups: Sequence[_Rows] | None = None
) -> dict[str, str]:
    """Check every constant against its attribute; returns the types the batch would teach."""
    learned: dict[str, str] = {}
    for group in _by_name(batch) if groups is None else groups:
        attribute = attributes.by_name.get(group.name)
        expected = attribute.type if attribute is not None else None
        found = _types_of(group.values)
        ops = np.frombuffer(batch.op, np.uint8)[group.rows]
        needs_string = bool((ops & OF_STRING).any())
        if expected is None:
            first = "string" if needs_string and not found else None
            expected = first or (literal_type(_item(group.values[0])) if len(group.values) else None)
            if expected is None:
                continue
            learned[group.name] = expected
        if any([not accepts(expected, kind) for kind in found]) or (
            needs_string and expected != "string"
        ):
            raise _clash(batch, group, expected)
        if "string" in found and expected in ("date", "timestamp"):
            _check_moments(batch, group, expected)
    return learned


def _by_name(batch: LeafBatch) -> Iterator[_Rows]:
    """The rows of each name that a batch uses, with their values."""
    attr = np.array(batch.attr, np.int32)
    start = np.array(batch.start, np.int64)
    if len(attr) == 1 or len(batch.names) == 1:  # most single subscriptions are small
        order = np.arange(len(attr))
    else:
        order = np.argsort(attr, kind="stable")
    value_attr = np.repeat(attr, np.diff(start))
    value_order = np.argsort(value_attr, kind="stable")
    ends = np.searchsorted(attr[order], np.arange(len(batch.names) + 1))
    value_ends = np.searchsorted(value_attr[value_order], np.arange(len(batch.names) + 1))
    for code, name in enumerate(batch.names):
        rows = order[ends[code] : ends[code + 1]]
        if len(rows):
            at = value_order[value_ends[code] : value_ends[code + 1]]
            yield _Rows(name, rows, at, _pick(batch.values, at))


def _pick(values: Sequence[Any] | np.ndarray, at: np.ndarray) -> Sequence[Any] | np.ndarray:
    if isinstance(values, np.ndarray):
        return values[at]
    if at.dtype == bool:
        at = np.flatnonzero(at)
    return [values[i] for i in at.tolist()]


def _item(value: Any) -> Any:
    """A NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _types_of(values: Sequence[Any] | np.ndarray) -> set[str]:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return {literal_type(values[0].item())} if len(values) else set()
    samples = {type(value): value for value in values}
    return {literal_type(value) for value in samples.values()}


def _literal_keys(
    attribute: Attribute, values: Sequence[Any] | np.ndarray, table: ExpressionTable | None
) -> np.ndarray:
    keys = attribute.keys
    assert keys is not None
    inverse = None
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    elif isinstance(values, np.ndarray):
        distinct, inverse = np.unique(values, return_inverse=True)
        values = distinct.tolist()
    if table is None:
        triples = [keys.probe(value) for value in values]
    else:
        triples = keys.literals(values)
        moved = keys.take_relabelling()
        if moved is not None:
            table.rekey(attribute.id, moved)
    result = np.array(triples, np.int64).reshape(-1, 3)
    return result if inverse is None else result[inverse]


def _derive(
    batch: LeafBatch, attributes: Attributes, attribute: Attribute, rows: np.ndarray,
    attr: np.ndarray, op: np.ndarray, keys: np.ndarray,
) -> None:  # fmt: skip
    """Point rows for IS NULL and general LIKE at derived attributes."""
    for row in rows.tolist():
        if op[row] & OPERATOR == ABSENT:
            attr[row], op[row] = attributes.absence(attribute), PRESENT
        else:
            at = batch.start[row]
            attr[row] = attributes.pattern(attribute, batch.values[at])
            keys[at] = (0, 0, 0) if op[row] & NEGATED else (1, 1, 0)
            op[row] = EQ


def _pattern_values(batch: LeafBatch, rows: np.ndarray) -> list[int]:
    ops = batch.op
    return [batch.start[row] for row in rows.tolist() if ops[row] & OPERATOR == PATTERN]


def _clash(batch: LeafBatch, group: _Rows, expected: str) -> SchemaError:
    """The error for the first row of a group that does not fit its attribute's type."""
    for row in group.rows.tolist():
        values = batch.values[batch.start[row] : batch.start[row + 1]]
        if batch.op[row] & OF_STRING and expected != "string":
            return SchemaError(
                f"attribute {group.name!r} is of type {expected}: expected a string attribute "
                "for LIKE; compare with = < > or BETWEEN instead",
                position=batch.position[row],
            )
        for value in values:
            found = literal_type(_item(value))
            if not accepts(expected, found):
                return SchemaError(
                    f"attribute {group.name!r} is of type {expected}: expected a {expected} "
                    f"constant, found {found} {value!r}; change the constant, or declare the "
                    "attribute's type with Schema",
                    position=batch.position[row],
                )
    raise AssertionError("a clash without a clashing row")


def _check_moments(batch: LeafBatch, group: _Rows, expected: str) -> None:
    """Strings beside a date or timestamp attribute must read as one."""
    for row in group.rows.tolist():
        for value in batch.values[batch.start[row] : batch.start[row + 1]]:
            problem = read_literal_problem(expected, value) if isinstance(value, str) else None
            if problem:
                raise SchemaError(
                    f"attribute {group.name!r} is of type {expected}: {problem}",
                    position=batch.position[row],
                )
