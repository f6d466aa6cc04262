"""Clashes: why leaf rows do not fit the type of their attribute, with the position in the text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from matchwood.encode.keys import read_literal_problem
from matchwood.encode.kinds import shown
from matchwood.encode.leaves import ABSENT, OF_STRING, OPERATOR, LeafBatch
from matchwood.encode.merge_kernels import PRESENT
from matchwood.encode.schema import accepts, literal_type
from matchwood.errors import SchemaError
from matchwood.lang.names import is_context


def several_kinds(batch: LeafBatch, row: int, name: str) -> SchemaError:
    """The error for constants of several kinds in one row."""
    return SchemaError(
        f"expected constants of one kind beside {shown(name)!r}, found several: compare with each "
        "kind on its own and join the comparisons with OR",
        position=batch.position[row],
    )


def clash(
    batch: LeafBatch, name: str, rows: Sequence[int] | np.ndarray, expected: str
) -> SchemaError:
    """The error for the first row of a group that does not fit its attribute's type."""
    for row in rows:
        if batch.op[row] & OF_STRING and expected != "string":
            return SchemaError(
                f"attribute {shown(name)!r} is of type {expected}: expected a string "
                "attribute for LIKE; compare with = < > or BETWEEN instead",
                position=batch.position[row],
            )
        for value in batch.values[batch.start[row] : batch.start[row + 1]]:
            found = literal_type(item_of(value))
            if not accepts(expected, found):
                return SchemaError(
                    f"attribute {shown(name)!r} is of type {expected}: expected a {expected} "
                    f"constant, found {found} {value!r}; {_way_out(name, expected, value)}",
                    position=batch.position[row],
                )
    raise AssertionError("a clash without a clashing row")


_CASTS = {int: "BIGINT", float: "DOUBLE", Decimal: "DOUBLE", date: "DATE", datetime: "TIMESTAMP"}
"""What Spark casts a string to beside a constant, where the text says which."""


def _way_out(name: str, expected: str, value: Any) -> str:
    kind = _CASTS.get(type(item_of(value)))
    if expected == "string" and kind is not None and not is_context(name):
        return f"compare it as a string, or write cast({shown(name)} AS {kind})"
    return "change the constant, or declare the attribute's type with Schema"


def not_comparable(
    batch: LeafBatch, name: str, rows: Sequence[int] | np.ndarray, expected: str
) -> SchemaError:
    """The error for the first row of a group that compares what only has presence."""
    row = next(row for row in rows if batch.op[row] & OPERATOR not in (ABSENT, PRESENT))
    return SchemaError(
        f"attribute {shown(name)!r} is of type {expected}: expected IS NULL or IS NOT NULL, "
        "found a comparison; compare a column of another type",
        position=batch.position[row],
    )


def check_moments(
    batch: LeafBatch, name: str, rows: Sequence[int] | np.ndarray, expected: str
) -> None:
    """Strings beside a date or timestamp attribute must read as one."""
    for row in rows:
        for value in batch.values[batch.start[row] : batch.start[row + 1]]:
            problem = read_literal_problem(expected, value) if isinstance(value, str) else None
            if problem:
                raise SchemaError(
                    f"attribute {shown(name)!r} is of type {expected}: {problem}",
                    position=batch.position[row],
                )


def item_of(value: Any) -> Any:
    """A NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
