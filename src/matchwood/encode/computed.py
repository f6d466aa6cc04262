"""Computed attributes of events: each distinct one is computed once per event.

A computed attribute is open (`kinds`): its value is looked at by predicates of its own kind.  Where
Spark raises an error for the row (division by zero, overflow, a cast that fails) it is unknown, and
so are the predicates on it; the event is reported, and its other matches stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.plain_values import as_mapping, is_record, plain
from matchwood.errors import EventError
from matchwood.lang.functions.evaluate import PATH, Failed, TypeProblem

MISSING = object()
UNKNOWN = object()
"""The value of a computed attribute that is neither NULL nor known: even IS NULL is unknown."""


def find_value(event: Mapping[str, Any], name: str) -> Any:
    """The value of an attribute by its dotted name, and of keys of maps behind it; None: absent."""
    name, *keys = name.split(PATH)
    value = _find(event, name)
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _find(event: Mapping[str, Any], name: str) -> Any:
    found = event.get(name, MISSING)
    if found is not MISSING:
        return as_mapping(found) if is_record(found) else plain(found)
    head, dot, tail = name.partition(".")
    while dot:
        inner = event.get(head)
        if is_record(inner):
            inner = as_mapping(inner)
        if isinstance(inner, Mapping):
            value = _find(inner, tail)
            if value is not None:
                return value
        more, dot, tail = tail.partition(".")
        head = f"{head}.{more}"
    return None


def compute(attributes: Attributes, attribute: Attribute, values: list[Any]) -> Any:
    """The value of a computed attribute: None for NULL, UNKNOWN where values are of other kinds,
    an EventError where Spark would raise one.
    """
    assert attribute.formula is not None
    try:
        value, is_partial = attribute.formula.evaluate(values)
        if is_partial:
            attributes.unknown[attribute.label] += 1
        return value
    except TypeProblem:
        attributes.unknown[attribute.label] += 1
        return UNKNOWN
    except Failed as problem:
        attributes.failed[attribute.label] += 1
        raise EventError(
            f"computed attribute {attribute.label!r}: expected a value, found an error: {problem}; "
            "predicates on it are unknown for this event"
        ) from None
