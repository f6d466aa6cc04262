"""Schema: the type of each attribute, declared or learned from its first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from matchwood.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = ("bool", "number", "int", "float", "string", "timestamp", "date")

_ACCEPTS = {
    "bool": {"bool"},
    "number": {"number"},
    "int": {"number"},
    "float": {"number"},
    "string": {"string"},
    "timestamp": {"timestamp", "date", "string"},
    "date": {"date", "timestamp", "string"},
}
"""Which literals an attribute of each type can be compared with.  A string beside a date or a
timestamp is read as one, as Spark does."""


class Schema(Mapping[str, str]):
    """Declared types by attribute name.

    >>> Schema(price="float", user={"age": "int"})
    Schema({'price': 'float', 'user.age': 'int'})
    """

    def __init__(self, types: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._types: dict[str, str] = {}
        self._declare("", {**(types or {}), **more})

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """The types of an Arrow schema's columns; columns of other types are left out."""
        from matchwood.encode.arrow_types import type_of_arrow

        return cls({field.name: kind for field in schema if (kind := type_of_arrow(field.type))})

    def _declare(self, prefix: str, types: Mapping[str, Any]) -> None:
        for name, kind in types.items():
            if isinstance(kind, Mapping):
                self._declare(f"{prefix}{name}.", kind)
            elif kind in TYPES:
                self._types[prefix + name] = kind
            else:
                raise SchemaError(
                    f"expected one of {', '.join(TYPES)} as the type of {prefix + name!r}, "
                    f"found {kind!r}"
                )

    def __getitem__(self, name: str) -> str:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __repr__(self) -> str:
        return f"Schema({self._types!r})"


def literal_type(value: object) -> str:
    """The type that a literal gives an attribute at its first use."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, datetime):
        return "timestamp"
    if isinstance(value, date):
        return "date"
    raise SchemaError(
        f"expected a bool, int, float, Decimal, str, datetime or date as a constant, "
        f"found {type(value).__name__} {value!r}"
    )


def accepts(attribute_type: str, literal: str) -> bool:
    """Whether an attribute of one type can be compared with a literal of another."""
    return literal in _ACCEPTS[attribute_type]
