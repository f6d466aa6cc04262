"""Values of Arrow columns as Python objects, where some of them cannot be made.

A string that is no UTF-8 becomes its bytes, a moment that Python's types cannot hold a `Misfit`.
No type of ours takes either, so what refuses them names the row.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_UNMADE = (ValueError, OverflowError)  # UnicodeDecodeError is a ValueError


class Misfit:
    """A value that Python cannot hold."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As `to_pylist`, and never fails for the sake of one value."""
    try:
        return list(column.to_pylist())
    except _UNMADE:
        return [python_value(scalar) for scalar in column]


def python_value(scalar: pa.Scalar) -> Any:
    """As `as_py`, and never fails."""
    try:
        return scalar.as_py()
    except _UNMADE:
        pass
    if isinstance(scalar, pa.DictionaryScalar):
        return python_value(scalar.value)
    if is_text(scalar.type):
        return scalar.as_buffer().to_pybytes()
    number = getattr(scalar, "value", None)
    return Misfit(f"{scalar.type} {number}" if isinstance(number, int) else str(scalar.type))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's strings."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def stored(column: pa.Array) -> pa.Array:
    """A column of an extension type as the column that it is stored as."""
    while isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column
