"""Tables and data frames as columns of Arrow, in the forms that `encode.arrow.columns` reads.

A struct is a column under its own name, and its fields are columns under dotted names.  A table
that has no such columns is read row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.values import plain_values, stored, texts
from matchwood.errors import EventError


def as_table(frame: Any) -> pa.Table | None:
    """Anything with Arrow's interface as a table; None when its columns mix types."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    try:
        if hasattr(frame, "iloc"):  # pandas: its index is no attribute
            return pa.Table.from_pandas(frame, preserve_index=False)
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def as_rows(frame: Any) -> list[dict[str, Any]]:
    """A data frame that Arrow cannot hold, row by row."""
    if hasattr(frame, "to_dicts"):
        rows: list[dict[str, Any]] = frame.to_dicts()
        return rows
    if not hasattr(frame, "to_dict") or not frame.columns.is_unique:
        raise EventError(
            f"expected a table with one column per name, found {type(frame).__name__} that Arrow "
            "cannot read: rename or convert its columns"
        )
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def whole_columns(table: pa.Table) -> list[tuple[str, pa.Array]] | None:
    """The columns as `flat_columns` gives them; None where Arrow cannot put some together, such as
    chunks with different dictionaries that hold nulls: they are read row by row.
    """
    try:
        return [(name, texts(column)) for name, column in flat_columns(table)]
    except pa.ArrowException:
        return None


def has_union(kind: pa.DataType) -> bool:
    """Whether a union, which mixes types, is in a type: it can only be read row by row."""
    if isinstance(kind, pa.BaseExtensionType):
        return has_union(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return has_union(kind.value_type)
    if pa.types.is_struct(kind):
        return any(has_union(field.type) for field in kind)
    return bool(pa.types.is_union(kind))


def table_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, whatever its columns hold."""
    columns = [plain_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def readable(column: pa.Array) -> pa.Array:
    """A column in one of the forms that `columns` reads."""
    column = _decoded(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_decimal(column.type) and column.type.bit_width < 128:
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if pa.types.is_dictionary(column.type):
        words = readable(column.dictionary)
        column = pa.DictionaryArray.from_arrays(column.indices, words)
        return column.dictionary_decode() if words.null_count else column
    return column


def readable_table(table: pa.Table) -> pa.Table:
    """A table whose columns are all in such a form."""

    def column(each: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([readable(chunk) for chunk in each.chunks])

    columns = [column(each) if each.num_chunks else each for each in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def flat_columns(table: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """The columns of a table by name, structs first, then their fields by dotted names."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        yield from _flat_column(name, whole)


def _flat_column(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    array = _decoded(array)
    yield name, array
    if pa.types.is_struct(array.type):
        for field, child in zip(array.type, _fields(array), strict=True):
            yield from _flat_column(f"{name}.{field.name}", child)


def _decoded(column: pa.Array) -> pa.Array:
    """A column as it is stored, without runs; structs without a dictionary, too."""
    column = stored(column)
    if pa.types.is_run_end_encoded(column.type):
        return _decoded(pc.run_end_decode(column))
    if pa.types.is_dictionary(column.type) and pa.types.is_struct(column.type.value_type):
        return column.dictionary_decode()
    return column


def _fields(array: pa.StructArray) -> list[pa.Array]:
    """The fields of a struct, null where the struct is null."""
    fields = [_decoded(array.field(i)) for i in range(array.type.num_fields)]
    if all(each.type == field.type for each, field in zip(fields, array.type, strict=True)):
        return list(array.flatten())
    # runs have no place for nulls of their own: `flatten` would leave them out
    names = [field.name for field in array.type]
    return list(pa.StructArray.from_arrays(fields, names, mask=array.is_null()).flatten())
