"""Attributes: names to dense ids, each with its type and its keys.

Some attributes are *derived*: the event encoder supplies them, no event names them.

    absence of x       present (key 1) exactly when x is absent       for  x IS NULL
    x LIKE '%a_b%'     0 or 1 whenever x is present                   for  general patterns

`x IS NOT NULL` needs none of this: it is the full set of keys of x.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from matchwood.encode.keys import DictionaryKeys, Keys, keys_for
from matchwood.encode.like import compile_pattern
from matchwood.encode.predicates import PredicateTable
from matchwood.encode.schema import Schema


@dataclass(slots=True)
class Pattern:
    """A general LIKE pattern of a string attribute, supplied as an attribute of its own."""

    attr_id: int
    regex: re.Pattern[str]


@dataclass(slots=True)
class Attribute:
    id: int
    name: str
    type: str | None
    keys: Keys | None
    absence_id: int = -1
    patterns: dict[str, Pattern] = field(default_factory=dict)
    source: int = -1  # derived: the attribute it comes from
    pattern: str | None = None  # derived from a pattern: which

    @property
    def is_derived(self) -> bool:
        return self.source >= 0


class Attributes:
    """All attributes of one matcher."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.by_name: dict[str, Attribute] = {}
        self.all: list[Attribute] = []
        self.absences: list[Attribute] = []  # attributes whose absence some subscription asks for
        self._free: list[int] = []  # ids of derived attributes that were dropped
        for name, kind in (schema or {}).items():
            self.get(name, kind)

    def __len__(self) -> int:
        return len(self.all)

    def get(self, name: str, kind: str | None) -> Attribute:
        """The attribute of that name, made at its first use; learns its type when it had none."""
        attribute = self.by_name.get(name)
        if attribute is None:
            attribute = self._new(name, None, None)
            self.by_name[name] = attribute
        if attribute.type is None and kind is not None:
            attribute.type = kind
            attribute.keys = keys_for(kind)
        return attribute

    def absence(self, attribute: Attribute) -> int:
        """The id of the derived attribute that is present exactly when this one is absent."""
        if attribute.absence_id < 0:
            attribute.absence_id = self._derive(attribute, None).id
            self.absences.append(attribute)
        return attribute.absence_id

    def pattern(self, attribute: Attribute, pattern: str) -> int:
        """The id of the derived attribute that tells whether a string fits a LIKE pattern."""
        found = attribute.patterns.get(pattern)
        if found is None:
            derived = self._derive(attribute, pattern)
            found = attribute.patterns[pattern] = Pattern(derived.id, compile_pattern(pattern))
        return found.attr_id

    def drop_derived(self, derived: int) -> None:
        """Stop supplying a derived attribute that no predicate tests any more."""
        attribute = self.all[self.all[derived].source]
        pattern = self.all[derived].pattern
        if pattern is None:
            attribute.absence_id = -1
            self.absences.remove(attribute)
        else:
            del attribute.patterns[pattern]
        self._free.append(derived)

    @property
    def n_derived(self) -> int:
        """How many derived attributes are supplied."""
        return len(self.all) - len(self.by_name) - len(self._free)

    def forget_unused(self, predicates: PredicateTable) -> None:
        """Drop dictionary constants that no predicate of the table has as an end any more."""
        ids, ends = predicates.ends()
        order = np.argsort(ids, kind="stable")
        ids, ends = ids[order], ends[order]
        for attribute in self.all:
            if isinstance(attribute.keys, DictionaryKeys):
                mine = slice(*np.searchsorted(ids, (attribute.id, attribute.id + 1)))
                attribute.keys.dictionary.keep(ends[mine])

    def schema(self) -> Schema:
        """The types known so far."""
        return Schema({each.name: each.type for each in self.by_name.values() if each.type})

    def _derive(self, attribute: Attribute, pattern: str | None) -> Attribute:
        id_ = self._free.pop() if self._free else len(self.all)
        name = (
            f"{attribute.name} IS NULL" if pattern is None else f"{attribute.name} LIKE {pattern!r}"
        )
        derived = Attribute(
            id_, name, "bool", keys_for("bool"), source=attribute.id, pattern=pattern
        )
        self.all[id_ : id_ + 1] = [derived]
        return derived

    def _new(self, name: str, kind: str | None, keys: Keys | None) -> Attribute:
        attribute = Attribute(len(self.all), name, kind, keys)
        self.all.append(attribute)
        return attribute
