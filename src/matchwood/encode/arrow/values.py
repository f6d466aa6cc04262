"""Values of Arrow columns as Python objects, where some of them cannot be made.

A string that is no UTF-8 becomes its bytes, a moment that Python's types cannot hold a `Misfit`.
Nanoseconds are rounded down to microseconds, unless pandas is there, whose moments have them.
No type of ours takes either, so what refuses them names the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_UUID_HIGH = np.array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34])
"""Where the text of a UUID has the higher digit of each byte."""

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


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As `python_values`, with maps as dicts, inside of other values, too."""
    values, made = python_values(column), _with_dicts(column.type)
    if made is None:
        return values
    return [made(each) if isinstance(each, (list, dict)) else each for each in values]


def _with_dicts(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes dicts of the maps in a value of a type, which are lists of pairs; None: none are.

    The type tells: an empty map looks as an empty list.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return _with_dicts(kind.storage_type)
    if pa.types.is_map(kind):
        item = _with_dicts(kind.item_type)
        if item is None:
            return dict
        return lambda pairs: {k: None if each is None else item(each) for k, each in pairs}
    if pa.types.is_struct(kind):
        fields = {field.name: made for field in kind if (made := _with_dicts(field.type))}
        if not fields:
            return None
        return lambda value: {
            name: fields[name](each) if name in fields and each is not None else each
            for name, each in value.items()
        }
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _with_dicts(kind.value_type)
    if _is_list(kind):
        made = _with_dicts(kind.value_type)
        if made is None:
            return None
        return lambda values: [None if each is None else made(each) for each in values]
    return None


def _is_list(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list,
        pa.types.is_list_view, pa.types.is_large_list_view,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def python_value(scalar: pa.Scalar) -> Any:
    """As `as_py`, and never fails."""
    try:
        return scalar.as_py()
    except _UNMADE:
        pass
    kind = scalar.type
    if isinstance(scalar, pa.DictionaryScalar):
        return python_value(scalar.value)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # which pandas alone holds
        return python_value(pa.scalar(scalar.value // 1_000, pa.timestamp("us", kind.tz)))
    if _is_list(kind):
        return python_values(scalar.values)
    if is_text(kind):
        return scalar.as_buffer().to_pybytes()
    number = getattr(scalar, "value", None)
    return Misfit(f"{kind} {number}" if isinstance(number, int) else str(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's strings."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def stored(column: pa.Array) -> pa.Array:
    """A column of an extension type as the column that it is stored as, or stands for."""
    while isinstance(column, pa.ExtensionArray):
        name, column = column.type.extension_name, column.storage
        if name == "arrow.bool8":
            column = pc.not_equal(column, 0)
        elif name == "arrow.uuid":
            column = _uuid_texts(column)
    return column


def _uuid_texts(column: pa.Array) -> pa.Array:
    """What `str` says of the UUIDs of 16 bytes each."""
    data = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    data = data[16 * column.offset : 16 * (column.offset + len(column))].reshape(-1, 16)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    found = np.full((len(column), 36), ord("-"), np.uint8)
    found[:, _UUID_HIGH], found[:, _UUID_HIGH + 1] = digits[data >> 4], digits[data & 15]
    texts = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(36), len(column), [None, pa.py_buffer(found.tobytes())]
    )
    known = texts.cast(pa.binary()).view(pa.string())
    return pc.if_else(column.is_valid(), known, None) if column.null_count else known


def texts(column: pa.Array) -> pa.Array:
    """A column of bytes as one of texts, as far as they are UTF-8; others as they are."""
    if pa.types.is_dictionary(column.type):
        words = column.dictionary
        known = texts(stored(words))
        if known.type == words.type:
            return column
        return pa.DictionaryArray.from_arrays(column.indices, known)
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    if pa.types.is_binary(column.type):
        return column.view(pa.string())
    return column.view(pa.large_string()) if pa.types.is_large_binary(column.type) else column
