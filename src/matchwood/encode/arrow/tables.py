"""Tables and data frames as columns of Arrow, in the forms that `encode.arrow.columns` reads.

A struct is a column under its own name, and its fields are columns under dotted names; so are those
values of a map whose dotted names are asked for.  A table that has no such columns is read row by
row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.values import is_text, plain_values, python_values, stored, texts
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


def whole_columns(table: pa.Table, names: Collection[str]) -> list[tuple[str, pa.Array]] | None:
    """The columns as `flat_columns` gives them; None: they have to be read row by row.

    So it is where Arrow cannot put some together, such as chunks with different dictionaries that
    hold nulls, and where a name in a map is that of another column, too: which of them a row has
    only the row tells.
    """
    try:
        found = [(name, texts(column)) for name, column in flat_columns(table, names)]
    except pa.ArrowException:
        return None
    if has_map(table.schema) and len({name for name, _ in found}) < len(found):
        return None
    return found


def has_union(schema: pa.Schema) -> bool:
    """Whether some column holds unions, which mix types: they can only be read row by row."""
    return any(_has_inside(pa.types.is_union, kind) for kind in schema.types)


def has_map(schema: pa.Schema) -> bool:
    """Whether some column holds maps, itself or in the fields of structs."""
    return any(_has_inside(pa.types.is_map, kind) for kind in schema.types)


def _has_inside(test: Callable[[pa.DataType], bool], kind: pa.DataType) -> bool:
    """Whether a test holds for a type, or for one of those that `flat_columns` looks into."""
    if test(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _has_inside(test, kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _has_inside(test, kind.value_type)
    if pa.types.is_map(kind):
        return _has_inside(test, kind.item_type)
    return pa.types.is_struct(kind) and any(_has_inside(test, field.type) for field in kind)


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


def flat_columns(table: pa.Table, names: Collection[str] = ()) -> Iterator[tuple[str, pa.Array]]:
    """The columns of a table by name: structs and maps, then what is in them, by dotted names.

    names  those that may be in use; of maps nothing else is given
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        yield from _flat_column(name, whole, names)


def _flat_column(
    name: str, array: pa.Array, names: Collection[str]
) -> Iterator[tuple[str, pa.Array]]:
    array = _decoded(array)
    yield name, array
    if pa.types.is_struct(array.type):
        for field, child in zip(array.type, _fields(array), strict=True):
            yield from _flat_column(f"{name}.{field.name}", child, names)
    elif pa.types.is_map(array.type):
        for key, values in _values_of_map(array, _keys_below(name, names)):
            yield from _flat_column(f"{name}.{key}", values, names)


def _keys_below(name: str, names: Collection[str]) -> list[str]:
    """The keys that lead from a name to some of others: `b` and `b.c` from `a` to `a.b.c`."""
    found: dict[str, None] = {}
    for each in names:
        if each.startswith(f"{name}."):
            steps = each[len(name) + 1 :].split(".")
            found.update(dict.fromkeys(".".join(steps[:n]) for n in range(1, len(steps) + 1)))
    return list(found)


def _values_of_map(array: pa.MapArray, keys: list[str]) -> Iterator[tuple[str, pa.Array]]:
    """For each of some keys the values that a column of maps has there, if it has any."""
    if not keys:
        return
    start = array.offsets.to_numpy()
    known, values = array.keys, readable(array.items)
    if pa.types.is_dictionary(known.type):
        known = known.dictionary_decode()
    if not is_text(known.type):  # named as in a dict
        known = pa.array([f"{each}" for each in python_values(known)], pa.string())
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    for key in keys:
        at = pc.equal(known, pa.scalar(key, known.type)).to_numpy(zero_copy_only=False).nonzero()[0]
        at = at[(at >= start[0]) & (at < start[-1])]
        row = np.searchsorted(start, at, "right") - 1
        at, row = at[~is_null[row]], row[~is_null[row]]
        if len(at):
            chosen = np.full(len(array), -1, np.int64)
            chosen[row] = at  # of entries with one key the last, as in a dict
            yield key, values.take(pa.array(chosen, mask=chosen < 0))


def _decoded(column: pa.Array) -> pa.Array:
    """A column as it is stored, without runs; structs and maps without a dictionary, too."""
    column = stored(column)
    if pa.types.is_run_end_encoded(column.type):
        return _decoded(pc.run_end_decode(column))
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        if pa.types.is_struct(kind) or pa.types.is_map(kind):
            return _decoded(column.dictionary_decode())
    return column


def _fields(array: pa.StructArray) -> list[pa.Array]:
    """The fields of a struct, null where the struct is null."""
    fields = [_decoded(array.field(i)) for i in range(array.type.num_fields)]
    if all(each.type == field.type for each, field in zip(fields, array.type, strict=True)):
        return list(array.flatten())
    # runs have no place for nulls of their own: `flatten` would leave them out
    names = [field.name for field in array.type]
    return list(pa.StructArray.from_arrays(fields, names, mask=array.is_null()).flatten())
