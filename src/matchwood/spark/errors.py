"""Rows of the errors DataFrame: what was left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from matchwood.errors import PositionedError

ERROR_FIELDS = (
    "of string, id string, error string, message string, line int, column int, excerpt string"
)
"""`of` is subscription or event (in a stream also record), or attribute: a computed one that failed
for an event, whose other predicates were matched.  Line, column and excerpt point into a text,
counted from 1."""

ATTRIBUTE = "attribute"
IS_MATCHED = f"(error IS NULL OR error.of = '{ATTRIBUTE}')"
"""Of rows with matches: whether the event was matched."""

ERROR_TYPE = pa.struct(
    [(name, pa.int32() if kind == "int" else pa.string())
     for name, kind in (each.split() for each in ERROR_FIELDS.split(", "))]
)  # fmt: skip
ERROR_STRUCT = "struct<" + ", ".join(":".join(e.split()) for e in ERROR_FIELDS.split(", ")) + ">"


def error_row(of: str, id_: Any, error: Exception) -> dict[str, Any]:
    """What is wrong with one row."""
    row = {"of": of, "id": None if id_ is None else str(id_), "error": type(error).__name__}
    if isinstance(error, PositionedError) and error.line:
        excerpt = str(error).partition("\n")[2]
        position = {"line": error.line, "column": error.column, "excerpt": excerpt}
        return {**row, "message": error.message, **position}
    return {**row, "message": str(error), "line": None, "column": None, "excerpt": None}


def failed_row(id_: Any, problems: Sequence[Exception]) -> dict[str, Any]:
    """Which computed attributes of one event failed."""
    row = error_row(ATTRIBUTE, id_, problems[0])
    return {**row, "message": "; ".join(map(str, problems))}
