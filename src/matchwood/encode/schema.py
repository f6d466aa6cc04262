"""Schema: the type of each attribute, declared or learned from its first use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from matchwood.errors import SchemaError
from matchwood.lang.cast_texts import BLANKS, BOOLS, INTEGER, SPECIAL
from matchwood.lang.truth import kind_of_constant

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
    "object": set(),
}
"""Which literals an attribute of each type can be compared with.  A string beside a date or a
timestamp is read as one, as Spark does."""


class Schema(Mapping[str, str]):
    """Declared types by attribute name.

    strict  refuse subscriptions that name an attribute which is not declared

    >>> Schema(price="float", user={"age": "int"})
    Schema({'price': 'float', 'user.age': 'int'})
    """

    def __init__(
        self, types: Mapping[str, Any] | None = None, /, *, strict: Any = False, **more: Any
    ) -> None:
        if not isinstance(strict, bool):  # an attribute of that name
            more["strict"], strict = strict, False
        self.is_strict: bool = strict
        self._types: dict[str, str] = {}
        if types is not None and not isinstance(types, Mapping):
            raise SchemaError(
                f"expected a mapping from names to types, found {type(types).__name__}"
            )
        self._declare("", {**(types or {}), **more})

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """The types of an Arrow schema's columns; columns of other types are left out."""
        from matchwood.encode.arrow.types import type_of_arrow

        return cls({field.name: kind for field in schema if (kind := type_of_arrow(field.type))})

    def _declare(self, prefix: str, types: Mapping[str, Any]) -> None:
        for name, kind in types.items():
            if not isinstance(name, str):
                raise SchemaError(
                    f"expected names of attributes to be str, found {type(name).__name__} {name!r}"
                )
            if isinstance(kind, Mapping):
                self._declare(f"{prefix}{name}.", kind)
            elif kind in TYPES:
                self._types[prefix + name] = kind
            else:
                raise SchemaError(
                    f"expected one of {', '.join(TYPES)} as the type of {prefix + name!r}, "
                    f"found {kind!r}"
                )

    def check_name(self, name: str) -> str | None:
        """What is wrong with a name that is not declared; None if it is, or nothing need be."""
        if not self.is_strict or name in self._types:
            return None
        if any(each.startswith(f"{name}.") for each in self._types):
            return None  # a struct, whose fields are declared
        near = get_close_matches(name, self._types, 1)
        hint = f"did you mean {near[0]!r}?" if near else "declare it, or leave strict out"
        return f"expected an attribute that the schema declares, found {name!r}: {hint}"

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
    kind = kind_of_constant(value)
    if kind is None:
        raise SchemaError(
            f"expected a bool, int, float, Decimal, str, datetime or date as a constant, "
            f"found {type(value).__name__} {value!r}"
        )
    return kind


_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[dDfF]?")


def coerced(attribute_type: str, text: str) -> bool | int | float | None:
    """A string beside an attribute of another type, as Spark casts it; None where that fails.

    >>> coerced("int", " 10 "), coerced("int", "10.5"), coerced("float", "1e2")
    (10, None, 100.0)
    """
    body = text.strip(BLANKS)
    if attribute_type == "bool":
        return BOOLS.get(body.lower())
    if attribute_type == "int":
        return _integer(body)
    if attribute_type in ("float", "number"):
        return double_of(body)
    return None


def _integer(body: str) -> int | None:
    value = int(body) if len(body) < 25 and INTEGER.fullmatch(body) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def double_of(body: str) -> float | None:
    """The double that a trimmed text stands for; None if it stands for none."""
    if SPECIAL.fullmatch(body):
        return float(body)
    return float(body.rstrip("dDfF")) if _DECIMAL.fullmatch(body) else None


def accepts(attribute_type: str, literal: str) -> bool:
    """Whether an attribute of one type can be compared with a literal of another."""
    return literal in _ACCEPTS[attribute_type]
