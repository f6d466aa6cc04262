"""Dicts to entries, quickly: what a value becomes is looked up, and worked out at its first use.

Most events have names and values that were there before: a country, a category, a flag.  So each
name has a table from values to entries, one for each of Python's own types (1, 1.0 and True are
equal, and not the same to a predicate).  What is in no table goes the general way (`events`).

The order of the entries is looked up, too: events of one program have few shapes, and a shape is
the sequence of attributes that it supplies.

A reader belongs to the attributes as they are; after a change of them there is a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matchwood.encode.attribute import Attribute
    from matchwood.encode.attributes import Attributes

MOST_VALUES = 4_096
"""Values that a table has before it is emptied."""
MOST_NAMES = 10_000
"""Names, and shapes, likewise: events may have any number of names that no subscription uses."""
LONGEST = 100
"""Longer strings are no category; they would fill the memory and not come back."""

PLAIN = frozenset((str, int, float, bool, list, dict))
"""Types of values that are what they look like."""

Made = tuple[tuple[int, ...], tuple[int, ...], int]
"""Attributes, their keys, and how many kinds of predicates the value leaves unknown."""


class Shape(NamedTuple):
    """The entries of events that supply the same attributes in the same order."""

    attr: np.ndarray  # ascending
    attrs: tuple[int, ...]  # the same
    in_order: Callable[[list[int]], Any] | None  # keys in that order; None: they are


class Entries(NamedTuple):
    """Entries of an event that is being read."""

    attrs: list[int]
    keys: list[int]
    unknown: list[tuple[str, int]]  # attributes whose values leave so many kinds unknown


class DictReader:
    """What names and values become; see the module's docstring.

    make(attribute, value) gives the entries of a value, or None where they are no plain keys.
    """

    def __init__(
        self,
        attributes: Attributes,
        make: Callable[[Attributes, Attribute, Any], Made | None],
        deepest: int,
    ) -> None:
        self.changes = attributes.changes
        self._attributes = attributes
        self._make = make
        self._deepest = deepest
        self._tables: dict[str, dict[type, dict[Any, Made]] | None] = {}
        self._shapes: dict[tuple[int, ...], Shape] = {}

    def read(self, event: dict[str, Any]) -> tuple[list[int], list[int]] | None:
        """Attributes and keys of an event; None where it has to go the general way."""
        found = Entries([], [], [])
        if not self._read(event, "", found, self._deepest):
            return None
        for label, n in found.unknown:
            self._attributes.unknown[label] += n
        return found.attrs, found.keys

    def _read(self, event: dict[str, Any], prefix: str, found: Entries, deeper: int) -> bool:
        attrs, keys, _ = found
        tables = self._tables
        for name, value in event.items():
            if value is None:
                continue
            if prefix:
                name = f"{prefix}{name}"
            kind = type(value)
            if kind is dict and not (deeper and self._read(value, f"{name}.", found, deeper - 1)):
                return False
            try:
                table = tables[name]
            except KeyError:
                table = self._new_table(name)
            except TypeError:
                return False
            if table is None:
                if kind not in PLAIN:  # it may have fields, which have names of their own
                    return False
                continue
            try:
                made = table[kind][value]
            except (KeyError, TypeError):
                worked_out = self._work_out(name, kind, value)
                if worked_out is None:
                    return False
                made = worked_out
            attrs += made[0]
            keys += made[1]
            if made[2]:
                found.unknown.append((self._attributes.by_name[name].label, made[2]))
        return True

    def _new_table(self, name: str) -> dict[type, dict[Any, Made]] | None:
        if len(self._tables) >= MOST_NAMES:
            self._tables = {}
        attribute = self._attributes.by_name.get(name)
        is_used = attribute is not None and not attribute.is_hidden
        table: dict[type, dict[Any, Made]] | None = None
        if is_used:
            table = {str: {}, int: {}, float: {}, bool: {}}
        self._tables[name] = table
        return table

    def _work_out(self, name: str, kind: type, value: Any) -> Made | None:
        made = self._make(self._attributes, self._attributes.by_name[name], value)
        table = self._tables.get(name)
        values = None if table is None else table.get(kind)
        if made is not None and values is not None and value == value:
            if len(values) >= MOST_VALUES:
                values.clear()
            if kind is not str or len(value) <= LONGEST:
                values[value] = made
        return made

    def arranged(self, attrs: list[int], keys: list[int]) -> tuple[Shape, Any] | None:
        """The shape of an event, and its keys in that order; None where one is supplied twice."""
        sequence = tuple(attrs)
        shape = self._shapes.get(sequence)
        if shape is None:
            order = sorted(range(len(attrs)), key=attrs.__getitem__)
            ascending = tuple(attrs[i] for i in order)
            if len(set(ascending)) < len(ascending):
                return None
            is_ascending = len(order) < 2 or ascending == sequence
            in_order = None if is_ascending else itemgetter(*order)
            shape = Shape(np.array(ascending, np.int32), ascending, in_order)
            if len(self._shapes) >= MOST_NAMES:
                self._shapes = {}
            self._shapes[sequence] = shape
        return shape, keys if shape.in_order is None else shape.in_order(keys)
