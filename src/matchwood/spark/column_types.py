"""Types of attributes from the columns of events and of contexts.

    boolean                         bool         tinyint smallint int bigint    int
    float double                    float        decimal                        number
    string char varchar             string       timestamp timestamp_ntz        timestamp
    date                            date         array map binary collated ...  presence alone

Why.     Types that are learned from subscriptions depend on the one with the lowest id: if its
         constant is of another type than the column, every event is bad.  With the types of columns
         a subscription that does not fit is refused, and no other is affected.
Texts.   `=` of a string with a collation, such as UTF8_LCASE, is not that of its bytes, which is
         ours: it can be tested for presence and not be compared.
Names.   Fields of structs have dotted names, as events are encoded; the struct itself, as every
         column of a type that is not ours, can be tested for presence and not be compared.
Shapes.  In maps, arrays and JSON no column says what an attribute is: there types are learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from matchwood.errors import EventError
from matchwood.lang.names import CONTEXT, is_context
from matchwood.spark.shapes import ATTRIBUTES
from matchwood.spark.unknown_names import is_collated

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_TYPES = {
    "boolean": "bool",
    "byte": "int", "short": "int", "integer": "int", "long": "int",
    "float": "float", "double": "float",
    "decimal": "number",
    "string": "string", "char": "string", "varchar": "string",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp",
    "date": "date",
}  # fmt: skip
"""Our type by the name of Spark's."""

_OF_CONTEXTS = {"bool": "bool", "int": "number", "float": "number", "number": "number",
                "string": "string", "timestamp": "timestamp"}  # fmt: skip
"""Types of contexts' values.  Numbers of all types compare with each other.  A date is left out: it
compares with dates and timestamps alike, as what the first subscription compares it with."""


def types_of_events(events: StructType, shape: str, others: Sequence[str] = ()) -> dict[str, str]:
    """Types by name of attribute; empty where the shape tells none.

    others  columns that are no attributes
    """
    if shape == "struct":
        return types_of_events(events[ATTRIBUTES].dataType, "wide")  # type: ignore[arg-type]
    if shape != "wide":
        return {}
    found: dict[str, str] = {}
    for field in events:
        if field.name not in others:
            found.update(_flat(field.name, field.dataType))
    return {name: kind for name, kind in found.items() if not is_context(name)}


def types_of_contexts(contexts: StructType) -> dict[str, str]:
    """Types of `ctx.` names by the columns of a table of contexts."""
    found = types_of_events(contexts, "wide", ("context",))
    return {CONTEXT + name: _OF_CONTEXTS[kind] for name, kind in found.items()
            if kind in _OF_CONTEXTS}  # fmt: skip


def types_of_arrow(events: pa.StructType) -> dict[str, str]:
    """Types of the fields of events that came as structs."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return types_of_events(from_arrow_schema(pa.schema(list(events))), "wide")


_READS = {"number": ("int", "float"), "float": ("int", "number"), "int": ("number",),
          "timestamp": ("date",)}  # fmt: skip
"""Columns of which other types an attribute takes values of."""


def check_types(
    known: Mapping[str, str], columns: Mapping[str, str], declared: Mapping[str, str]
) -> None:
    """Refuse events whose columns cannot be read as the types of a kept index; its user answers for
    `declared` ones.
    """
    for name, kind in columns.items():
        expected = known.get(name, kind)
        if kind not in (expected, *_READS.get(expected, ())) and name not in declared:
            raise EventError(
                f"expected the column {name!r} to be {known[name]}, as when the index was built, "
                f"found {kind}: build another index, under another name"
            )


def _flat(name: str, kind: DataType) -> Iterator[tuple[str, str]]:
    from pyspark.sql.types import NullType, StructType

    if isinstance(kind, StructType):
        yield name, "struct"
        for field in kind:
            yield from _flat(f"{name}.{field.name}", field.dataType)
    elif not isinstance(kind, NullType):  # no event has a value: any comparison is unknown
        plain = None if is_collated(kind) else _TYPES.get(kind.typeName())
        yield name, plain or kind.simpleString()
