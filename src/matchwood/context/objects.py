"""Nested values of contexts, as flat ones.

A nested mapping sets its fields under dotted names, and its own name to an *object*: present, of
no value.  A field that is set makes its objects present as well, an object that is set to None
loses its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matchwood.encode.events import MAX_NESTING
from matchwood.errors import EventError


def flat_values(
    values: Mapping[str, Any], prefix: str, deeper: int = MAX_NESTING
) -> Iterable[tuple[str, Any]]:
    """Dotted names and values of a nested mapping, and {} for each object that it makes present."""
    for name, value in values.items():
        if not isinstance(name, str):
            raise wrong_name(name)
        if value is not None:
            for above in objects_above(name):
                yield prefix + above, {}
        if isinstance(value, Mapping):
            if deeper == 0:
                raise EventError(
                    f"expected values nested at most {MAX_NESTING} deep, found more: "
                    "flatten them, or break the loop in them"
                )
            yield prefix + name, {}
            yield from flat_values(value, f"{prefix}{name}.", deeper - 1)
        else:
            yield prefix + name, value


def wrong_name(name: object) -> EventError:
    """The error for a name that is no string."""
    return EventError(f"expected names of values as str, found {type(name).__name__}")


def objects_above(name: str) -> list[str]:
    """The objects that a dotted name goes through."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def is_struct(column: Any) -> bool:
    """Whether an Arrow column has fields."""
    import pyarrow as pa

    return bool(pa.types.is_struct(column.type))


def with_objects(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flat values of a context and {} for the objects above them, unless these have values."""
    above: dict[str, Any] = {each: {} for name in values for each in objects_above(name)}
    return {**above, **values}


def without_objects(values: dict[str, Any]) -> dict[str, Any]:
    """Flat values of a context without objects that have a field among them."""
    above = {each for name in values for each in objects_above(name)}
    return {name: value for name, value in values.items() if value != {} or name not in above}
