"""What one value of an event becomes: entries, that is attributes and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.interval_events import KeySets
from matchwood.encode.keys import WrongValue, describe, exact_number, float_place
from matchwood.encode.kinds import MOMENTS
from matchwood.errors import EventError
from matchwood.lang.cells import Cell, read_cell
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp

Entry = tuple[int, int | KeySets]
"""Attribute id and key, or the key sets of an interval-valued entry."""


def value_entries(attributes: Attributes, attribute: Attribute, value: Any) -> Iterable[Entry]:
    """The entry of a value, and those of the attributes derived from it."""
    if attribute.keys is not None:
        return typed_entries(attributes, attribute, value)
    return open_entries(attributes, attribute, value)


def open_entries(attributes: Attributes, attribute: Attribute, value: Any) -> list[Entry]:
    """The entries of an open attribute's value: its presence, and its value for each kind.

    Predicates on kinds that the value is not of stay unknown; that is counted.
    """
    entries: list[Entry] = [(attribute.id, 0)] if attribute.is_asked else []
    for kind, each in attribute.kinds.items():
        try:
            if type(value) is Cell:
                entries += typed_entries(attributes, each, read_cell(kind, value))
            elif each.is_plain and each.keys is not None:  # the usual case, without a generator
                entries.append((each.id, each.keys.key(value)))
            else:
                entries += typed_entries(attributes, each, as_kind(kind, value))
        except (EventError, TypeError, ValueError, ArithmeticError):
            attributes.unknown[attribute.label] += 1
    return entries


def as_kind(kind: str, value: Any) -> Any:
    """A value as one of a kind: only strings become something else, beside dates and times.

    What is not of the kind is given back as it is, for the keys to refuse.
    """
    if kind in MOMENTS and isinstance(value, str):
        try:
            return read_timestamp(value) if kind == "timestamp" else read_date(value)
        except LiteralError:
            return value
    return value


def typed_entries(attributes: Attributes, attribute: Attribute, value: Any) -> Iterator[Entry]:
    """The entry of a value of the attribute's type, and those of the attributes derived from it."""
    yield attribute.id, key_of(attribute, value)
    for pattern in attribute.patterns.values():
        yield pattern.attr_id, int(pattern.regex.fullmatch(value) is not None)
    if attribute.beside_id >= 0:
        yield attribute.beside_id, _derived_keys(attributes.all[attribute.beside_id], value)
    if attribute.exact_id >= 0 and not _is_double(value):
        exact = attributes.exact(attribute)
        if exact is not None:
            yield exact.id, key_of(exact, value)


def key_of(attribute: Attribute, value: Any) -> int:
    """The key of a value, or an EventError that names the attribute."""
    assert attribute.keys is not None
    try:
        return attribute.keys.key(value)
    except WrongValue as wrong:
        raise wrong_type(attribute, str(wrong)) from None
    except (TypeError, ValueError, ArithmeticError):  # someone else's type, half like ours
        raise wrong_type(attribute, describe(value)) from None


def _derived_keys(derived: Attribute, value: Any) -> int | KeySets:
    """The key of a value among those of the context; none may be its own: see `float_place`."""
    assert derived.keys is not None
    if derived.type == "string":
        return derived.keys.key(value)
    lo, hi = float_place(exact_number(value))
    return lo if lo == hi else KeySets(((lo, hi),))


def _is_double(value: Any) -> bool:
    """Whether a number is a double, not an int or a decimal; a decimal NaN is one, too."""
    if isinstance(value, Decimal):
        return not value.is_finite()
    return isinstance(value, (float, np.floating))


def wrong_type(attribute: Attribute, found: str) -> EventError:
    return EventError(
        f"attribute {attribute.label!r}: expected {attribute.type}, found {found}; "
        "change the event, or declare another type for the attribute with Schema"
    )
