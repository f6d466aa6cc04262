"""Events and values as programs have them, made plain: mappings of Python's own values.

    events   mappings; dataclasses, named tuples, pydantic models, attrs classes, pandas Series,
             rows of a record array
    values   a plain Enum is its value, a UUID its text, bytes their UTF-8 text where they are one;
             pandas' NA and NaT, and NumPy's NaT, are absent

No library is imported for this: objects are known by what they offer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from uuid import UUID


def as_mapping(event: Any) -> Mapping[str, Any] | None:
    """An event as a mapping from names to values; None when it is nothing of that kind."""
    if isinstance(event, Mapping):
        return event
    reader = _reader(type(event))
    return None if reader is None else reader(event)


def is_record(value: Any) -> bool:
    """Whether a value inside of an event has fields, as a nested mapping has."""
    return not isinstance(value, Mapping) and _reader(type(value)) is not None


_READERS: dict[type, Callable[[Any], Mapping[str, Any]] | None] = {}


def _reader(kind: type) -> Callable[[Any], Mapping[str, Any]] | None:
    """What reads the fields of a class, found once for each."""
    try:
        return _READERS[kind]
    except KeyError:
        reader = _READERS[kind] = _find_reader(kind)
        return reader


def _find_reader(kind: type) -> Callable[[Any], Mapping[str, Any]] | None:
    if kind in (str, int, float, bool, bytes, list, type(None)):
        return None
    if is_dataclass(kind):
        names = [each.name for each in fields(kind)]
        return lambda event: {name: getattr(event, name) for name in names}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return lambda event: event._asdict()
    pydantic = getattr(kind, "model_fields", None)
    if isinstance(pydantic, Mapping) and hasattr(kind, "model_dump"):
        known = list(pydantic)
        return lambda event: {name: getattr(event, name) for name in known}
    attrs = getattr(kind, "__attrs_attrs__", None)
    if attrs is not None:
        members = [each.name for each in attrs]
        return lambda event: {name: getattr(event, name) for name in members}
    if kind.__name__ == "Series" and kind.__module__.startswith("pandas."):
        return _series
    if kind.__module__ == "numpy" and kind.__name__ in ("record", "void"):
        return lambda event: {name: event[name] for name in event.dtype.names or ()}
    return None


def _series(event: Any) -> Mapping[str, Any]:
    """A row of a data frame: NaN stands for an absent value, as in frames of objects."""
    found = event.to_dict()
    return {name: value for name, value in found.items() if value == value or _is_container(value)}


def _is_container(value: Any) -> bool:
    return isinstance(value, (list, tuple, Mapping)) or hasattr(value, "__array__")


def plain(value: Any) -> Any:
    """A value of a type that is none of Python's own as one that is; None: absent."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return value
    kind = type(value).__name__
    if kind in ("NAType", "NaTType") or (kind == "datetime64" and value != value):
        return None
    return value
