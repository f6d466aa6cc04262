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
from matchwood.lang.functions.evaluate import PATH, Failed, TypeProblem, plain_input
from matchwood.lang.functions.types import PLAIN_TYPES, type_of

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
    found = event.get(name)
    if found is not None:
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


class Inputs:
    """The values of one event that computed attributes read, and their types, each found once."""

    __slots__ = ("_event", "row", "types")

    def __init__(self, event: Mapping[str, Any]) -> None:
        self._event = event
        self.row: dict[str, Any] = {}
        self.types: dict[str, Any] = {}

    def type_of(self, name: str) -> Any:
        """The type of an input; TypeProblem if it has a value of none."""
        found = self.types.get(name)
        if found is not None:
            return found
        value = self._event.get(name)
        kind = PLAIN_TYPES.get(type(value))
        if kind is None or value is None or (kind == "bigint" and not -_LONG <= value < _LONG):
            value = plain_input(self._find(name))
            kind = type_of(value)
        self.row[name] = value
        self.types[name] = kind
        return kind

    def _find(self, name: str) -> Any:
        return find_value(self._event, name)


class GivenInputs(Inputs):
    """The values of inputs by their names, as formulas write them."""

    __slots__ = ()

    def _find(self, name: str) -> Any:
        return self._event[name]


_LONG = 2**63


def compute(attributes: Attributes, attribute: Attribute, inputs: Inputs) -> Any:
    """The value of a computed attribute: None for NULL, UNKNOWN where values are of other kinds,
    an EventError where Spark would raise one.
    """
    formula = attribute.formula
    assert formula is not None
    try:
        types = tuple([inputs.type_of(name) for name in formula.inputs])
    except TypeProblem:
        attributes.unknown[attribute.label] += 1
        return UNKNOWN
    try:
        value, is_partial = formula.with_types(types, inputs.row)
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


def true_of(
    attributes: Attributes, tests: list[Attribute], inputs: Inputs, problems: list[EventError]
) -> list[int]:
    """Ids of the conditions among computed attributes that are TRUE, each computed."""
    found = []
    for attribute in tests:
        try:
            if compute(attributes, attribute, inputs) is True:
                found.append(attribute.kinds["bool"].id)
        except EventError as error:
            problems.append(error)
    return found
