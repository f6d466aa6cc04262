"""Derived attributes: supplied for a test that no value of an event answers, dropped with the test.

See `attributes.py` for the kinds of them.
"""

from __future__ import annotations

from matchwood.encode.attribute import Attribute, Pattern, Term
from matchwood.encode.keys import DictionaryKeys, FloatKeys, Keys, keys_for
from matchwood.encode.like import compile_pattern
from matchwood.kernel.journal import Journal


class DerivedAttributes:
    """Ids of attributes, and the derived ones among them."""

    def __init__(self) -> None:
        self.by_name: dict[str, Attribute] = {}
        self.all: list[Attribute] = []
        self.absences: list[Attribute] = []  # attributes whose absence some subscription asks for
        self._free: list[int] = []  # ids of attributes that were dropped
        self.journal = Journal()
        self.context_strings = DictionaryKeys("string")
        self.changes = 0
        """How often attributes, what they supply or their constants may have changed."""
        self.version = 0  # raised when types of relations became known, or one was made

    def __len__(self) -> int:
        return len(self.all)

    def of_kind(self, attribute: Attribute, kind: str) -> Attribute:
        """The internal attribute that holds the values of one kind."""
        raise NotImplementedError

    def absence(self, attribute: Attribute) -> int:
        """The id of the derived attribute that is present exactly when this one is absent."""
        if attribute.absence_id < 0:
            attribute.absence_id = self._derive(attribute, f"{attribute.name} IS NULL").id
            if not attribute.is_context:
                self.absences.append(attribute)
        return attribute.absence_id

    def pattern(self, attribute: Attribute, pattern: str) -> int:
        """The id of the derived attribute that tells whether a string fits a LIKE pattern."""
        found = attribute.patterns.get(pattern)
        if found is None:
            derived = self._derive(attribute, f"{attribute.name} LIKE {pattern!r}")
            derived.pattern = pattern
            found = attribute.patterns[pattern] = Pattern(derived.id, compile_pattern(pattern))
        return found.attr_id

    def relation(self, attribute: Attribute, term: Term) -> int:
        """The id of the derived attribute that stands for a relation."""
        found = attribute.terms.get(term)
        if found is None:
            reference = self.all[term.context].name
            name = f"{attribute.name} {term.op} {reference} + {term.offset!r}"
            derived = self._derive(attribute, name)
            derived.term = term
            found = attribute.terms[term] = derived.id
            self.all[term.context].n_references += 1
            self.version += 1
        return found

    def compared(self, attribute: Attribute, term: Term) -> Attribute | None:
        """The attribute whose keys compare with those of the context's value, by its type.

        None while the types are not known: then no context has a value either.
        """
        kind = self.all[term.context].type
        if kind is None:
            return None
        if attribute.type is None and not attribute.is_context:
            event_kind = {"int": "number", "float": "number", "date": "day"}.get(kind, kind)
            attribute = self.of_kind(attribute, event_kind)
        if attribute.type is None:
            return None
        if attribute.is_context or (attribute.type == kind and kind not in ("number", "string")):
            return attribute
        if attribute.type == "float" and kind == "number":
            return attribute
        if attribute.beside_id < 0:
            derived = self._derive(attribute, f"{attribute.name} beside ctx")
            derived.is_beside = True
            derived.type = kind
            derived.keys = self.context_strings if kind == "string" else FloatKeys()
            attribute.beside_id = derived.id
        return self.all[attribute.beside_id]

    def settle_terms(self) -> None:
        """Let events supply what relations compare, as far as types are known."""
        self.changes += 1
        for attribute in list(self.by_name.values()):
            for term in attribute.terms:
                self.compared(attribute, term)

    def drop_derived(self, derived: int) -> None:
        """Stop supplying a derived attribute that no predicate tests any more."""
        attribute = self.all[self.all[derived].source]
        pattern = self.all[derived].pattern
        term = self.all[derived].term
        if term is not None:
            del attribute.terms[term]
            self.all[term.context].n_references -= 1
            self.version += 1
            if not attribute.terms:
                for each in (attribute, *attribute.kinds.values()):
                    self._drop_beside(each)
        elif pattern is None:
            attribute.absence_id = -1
            if not attribute.is_context:
                self.absences.remove(attribute)
        else:
            del attribute.patterns[pattern]
        self._give_back(derived)

    def _drop_beside(self, attribute: Attribute) -> None:
        if attribute.beside_id >= 0:
            self._give_back(attribute.beside_id)
            attribute.beside_id = -1

    @property
    def n_derived(self) -> int:
        """How many derived attributes are supplied."""
        return len(self.all) - len(self.by_name) - len(self._free)

    def _derive(self, attribute: Attribute, name: str) -> Attribute:
        return self._make(name, "bool", keys_for("bool"), attribute.id)

    def _new(self, name: str, kind: str | None, keys: Keys | None) -> Attribute:
        return self._make(name, kind, keys, -1)

    def _make(self, name: str, kind: str | None, keys: Keys | None, source: int) -> Attribute:
        """A new attribute under an id that was given back, or the next one."""
        id_ = self._free.pop() if self._free else len(self.all)
        attribute = Attribute(id_, name, kind, keys, source=source)
        self.all[id_ : id_ + 1] = [attribute]
        return attribute

    def _give_back(self, id_: int) -> None:
        self.journal.remember_item(self.all, id_)
        self.all[id_] = Attribute(id_, "", None, None, is_dropped=True)
        self._free.append(id_)
