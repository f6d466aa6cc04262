"""The shapes in which events come, and a batch of each as what the engine encodes.

    wide     a column per attribute; structs have dotted names          typed
    struct   one struct column `attributes`                             typed
    map      one column `attributes`, map<string, T>                    texts are read by type
    arrays   `attributes` array<string> and `values` array<T>           texts are read by type
    json     one column `attributes`, the text of a JSON object         dates are read by type

The column `event_id` names the event; in wide events it is an attribute, too.  `auto` takes the
shape from the columns: what `attributes` is decides, and without it every column is an attribute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.arrow.values import python_values
from matchwood.encode.attributes import Attributes
from matchwood.encode.entry_events import EntryEvents
from matchwood.encode.events import EncodedEvents, encode_events
from matchwood.engine.formats.text_files import read_json, with_moments
from matchwood.errors import EventError
from matchwood.lang.cells import read_cell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

SHAPES = ("auto", "wide", "struct", "map", "arrays", "json")
ATTRIBUTES, VALUES = "attributes", "values"


def plain_names(events: DataFrame, reserved: Sequence[str] = ()) -> DataFrame:
    """Events under names that `mapInArrow` can look up; workers give them their own (`named`).

    It takes a dot for a field of a struct, and names that differ in case alone for one.  `taken`
    are names that are needed beside.
    """
    names = events.columns
    check_once(names)
    is_odd = any(set(name) & {".", "`"} for name in names)
    if is_odd or len({name.lower() for name in [*names, *reserved]}) < len(names) + len(reserved):
        return events.toDF(*[f"matchwood_{n}" for n in range(len(names))])
    return events


def check_once(names: Sequence[str]) -> None:
    """Refuse events with two columns of one name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise EventError(
            f"expected every column once, found {twice[0]!r} twice: rename one with toDF()"
        )


def named(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """A batch under the names that its columns had before `plain_names`; further ones stay."""
    return batch.rename_columns([*names, *batch.schema.names[len(names) :]])


def find_shape(schema: StructType, shape: str, others: Sequence[str]) -> str:
    """The shape of events with a schema; `others` are the columns that are no attributes."""
    if shape not in SHAPES:
        raise EventError(f"expected a shape among {', '.join(SHAPES)}, found {shape!r}")
    types = {field.name: field.dataType for field in schema}
    found = _found(types)
    if shape in ("auto", found):
        used = {"arrays": {ATTRIBUTES, VALUES}, "wide": set(types)}.get(found, {ATTRIBUTES})
        strangers = sorted(types.keys() - used - set(others))
        if shape == "auto" and strangers:
            raise EventError(
                f"expected {', '.join([*others, *sorted(used)])} and no other column beside, "
                f"found {', '.join(strangers)}: drop them, or name the shape ({found})"
            )
        return found
    if shape == "wide":
        return "wide"
    raise EventError(
        f"expected events of the shape {shape!r}, found {found!r} (columns "
        f"{', '.join(schema.simpleString() if len(types) < 9 else types)})"
    )


def _found(types: dict[str, DataType]) -> str:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    first, second = types.get(ATTRIBUTES), types.get(VALUES)
    if isinstance(first, StructType):
        return "struct"
    if isinstance(first, StringType):
        return "json"
    if isinstance(first, MapType) and isinstance(first.keyType, StringType):
        return "map"
    is_names = isinstance(first, ArrayType) and isinstance(first.elementType, StringType)
    if is_names and isinstance(second, ArrayType):
        return "arrays"
    return "wide"


def shape_of_arrow(schema: pa.Schema) -> str:
    """The shape that the columns of a batch tell."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return _found({each.name: each.dataType for each in from_arrow_schema(schema)})


def read_events(batch: pa.RecordBatch, shape: str) -> Any:
    """A batch as `Matcher.encode` and `Matcher.match_many` take it."""
    batch = with_readable_types(batch)
    if shape == "wide":
        return pa.Table.from_batches([batch])
    column = batch.column(ATTRIBUTES)
    if shape == "struct":
        # fields of a struct that is null are null
        names = [field.name for field in column.type]
        if not names:
            return pa.table({"": pa.nulls(batch.num_rows)})
        return pa.Table.from_arrays(column.flatten(), names=names)
    if shape == "json":
        return JsonEvents(python_values(column))
    if shape == "map":
        start = _sizes(column)
        inside = slice(int(start[0]), int(start[-1]))
        rows = np.repeat(np.arange(batch.num_rows), np.diff(start))
        return EntryEvents(
            batch.num_rows, rows, column.keys[inside], column.items[inside], read_cell
        )
    return _arrays(batch)


class _Retyped:
    """The data of a batch under another schema of the same layout, by Arrow's C interface."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch, self._schema = batch, schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def with_readable_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose intervals of months, which Python's Arrow has no arrays for, are numbers.

    Nothing is compared with them: by the events' schema the attribute has presence alone.
    """
    fields = [_readable(each) for each in batch.schema]
    if all(new is old for new, old in zip(fields, batch.schema, strict=True)):
        return batch
    return pa.record_batch(_Retyped(batch, pa.schema(fields)))


def _readable(field: pa.Field) -> pa.Field:
    """A field with the same layout and a type that can be read; the same field if it can be."""
    kind = field.type
    if kind.id == pa.lib.Type_INTERVAL_MONTHS:
        return field.with_type(pa.int32())
    inner = [kind.field(n) for n in range(kind.num_fields)]
    found = [_readable(each) for each in inner]
    if all(new is old for new, old in zip(found, inner, strict=True)):
        return field
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct(found))
    if pa.types.is_map(kind):
        entry = found[0].type
        return field.with_type(pa.map_(entry.field(0), entry.field(1)))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(found[0]))
    return field


class JsonEvents:
    """Texts of JSON objects, read as the types of attributes say."""

    def __init__(self, texts: list[str | bytes | None]) -> None:
        self._texts = texts

    def encode_entries(self, attributes: Attributes) -> EncodedEvents:
        types = {name: each.type or "" for name, each in attributes.by_name.items()}
        rows, problems = self.rows(types)
        found = encode_events(attributes, rows)
        return found._replace(errors={**found.errors, **problems})

    def rows(self, types: Mapping[str, str]) -> tuple[list[Any], dict[int, EventError]]:
        """The objects, and what is wrong with those that cannot be read."""
        rows: list[Any] = []
        problems: dict[int, EventError] = {}
        for row, text in enumerate(self._texts):
            try:
                rows.append(with_moments(read_json(text or "{}"), types))
            except (ValueError, RecursionError) as error:
                rows.append({})
                problems[row] = EventError(f"expected a JSON object, found no JSON: {error}")
        return rows, problems


def _arrays(batch: pa.RecordBatch) -> EntryEvents:
    names, values = batch.column(ATTRIBUTES), batch.column(VALUES)
    errors: dict[int, EventError] = {}
    uneven = np.diff(_sizes(names)) != np.diff(_sizes(values))
    if uneven.any():
        for row in np.flatnonzero(uneven).tolist():
            errors[row] = EventError("expected as many attributes as values, found another number")
        keep = pa.array(~uneven)
        names, values = (
            pc.if_else(keep, each, pa.scalar(None, each.type)) for each in (names, values)
        )
    start = _sizes(names)
    rows = np.repeat(np.arange(batch.num_rows), np.diff(start))
    return EntryEvents(batch.num_rows, rows, names.flatten(), values.flatten(), read_cell, errors)


def _sizes(column: pa.Array) -> np.ndarray:
    """Where the items of each row begin and end; a null has none."""
    offsets: np.ndarray = column.offsets.to_numpy()
    return offsets
