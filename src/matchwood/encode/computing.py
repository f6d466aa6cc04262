"""The entries of computed attributes, for one event after the other.

A formula whose inputs had the same values before is not computed again: what they became is looked
up.  Where values hardly come again, only the step from the formula's value to entries is.

    event ── values of the inputs ── known? ─────────────────► entries
                     └── formula ── its value ── known? ──────────┤
                                        └── keys (`open_entries`) ┘

Kept are entries alone: what is unknown or fails is computed each time, since it is counted.  They
belong to attributes and predicates as they are; after a change there is a new `Computing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from struct import iter_unpack, pack
from typing import Any, NamedTuple

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computed import (
    TYPE_OF_CLASS,
    UNKNOWN,
    Inputs,
    compute,
    find_value,
)
from matchwood.encode.dicts.events import LONGEST, MOST_VALUES
from matchwood.encode.grouping import Grouped, group_tests
from matchwood.encode.interval_events import KeySets
from matchwood.encode.value_entries import Entry, open_entries
from matchwood.errors import EventError
from matchwood.lang.functions.binding import Get
from matchwood.lang.functions.evaluate import PATH, Failed

HASHED = (str, int, float, bool, type(None))
"""Classes whose equal values mean the same to every function; equal decimals do not: 1.0 and 1.00
have different texts.
"""

Made = bytes | list[Entry]
"""Pairs of an attribute and a key, int64 each; a list of entries where a key is a set of keys."""

ByClass = dict[type, dict[Any, Made]]
"""What values became: by their class, then by the value."""

_NOTHING = b""


def _by_class() -> ByClass:
    return {kind: {} for kind in HASHED}


def _packed(entries: list[Entry]) -> Made:
    if any(isinstance(key, KeySets) for _, key in entries):
        return entries
    return pack(f"{2 * len(entries)}q", *chain.from_iterable(entries))


class Known:
    """One computed attribute, and what values of its inputs became before."""

    __slots__ = (
        "_absences", "_by_result", "_formula", "_gets", "_label", "_n_missed", "attribute",
        "by_value", "by_values", "inputs", "is_kept",
    )  # fmt: skip

    def __init__(self, attribute: Attribute, absences: Iterable[Attribute]) -> None:
        assert attribute.formula is not None
        self.attribute, self._formula = attribute, attribute.formula
        self.inputs = self._formula.inputs
        self.is_kept = not follows_context(attribute)
        """Whether values are kept: not if they change with contexts, or hardly come again."""
        self.by_value = _by_class()
        """Of a formula with one input."""
        self.by_values: dict[tuple[Any, ...], Made] = {}
        """Of any other formula: by the classes of its inputs' values, and the values."""
        self._by_result = _by_class()
        self._gets: dict[type, Get | None] = {}
        self._label = attribute.label
        mine = (attribute, *attribute.kinds.values())
        self._absences = [each for each in absences if each in mine]
        self._n_missed = 0

    def work_out(
        self,
        attributes: Attributes,
        event: Mapping[str, Any],
        values: tuple[Any, ...],
        problems: list[EventError],
    ) -> tuple[Made, bool]:
        """The entries for values of inputs that are not known, and whether they may be kept."""
        if len(values) == 1 and (quick := self.quickly(values[0])) is not None:
            return quick, True
        unknown, label = attributes.unknown, self._label
        before = unknown.get(label, 0)
        try:
            value = compute(attributes, self.attribute, Inputs(event))
        except EventError as error:
            problems.append(error)
            return _NOTHING, False
        if value is UNKNOWN:
            return _NOTHING, False
        known = self._by_result.get(type(value))
        made = None if known is None else known.get(value)
        if made is None:
            is_partial = unknown.get(label, 0)
            made = self._made(attributes, value)
            if known is not None and unknown.get(label, 0) == is_partial:
                self._put(known, value, made)
        return made, unknown.get(label, 0) == before

    def quickly(self, value: Any) -> Made | None:
        """What the value of the one input becomes, where its result became something before.

        None: `work_out` tells, and counts what is unknown or fails.
        """
        kind = type(value)
        if kind not in self._gets:
            type_ = TYPE_OF_CLASS.get(kind)
            self._gets[kind] = None if type_ is None else self._formula.plain((type_,))
        get = self._gets[kind]
        if get is None:
            return None
        try:
            found = get({self.inputs[0]: value})
            return self._by_result[type(found)].get(found)
        except (Failed, ArithmeticError, ValueError, KeyError):
            return None

    def keep(self, values: tuple[Any, ...], made: Made, n_events: int) -> bool:
        """Note what the values of the inputs became; False: from now on nothing is kept.

        n_events  those that there were since there is this object, known values or not
        """
        self._n_missed += 1
        if self._n_missed > MOST_VALUES and n_events < 2 * self._n_missed:
            self.is_kept = False
            for kept in (self.by_values, *self.by_value.values()):
                kept.clear()
        elif len(values) == 1:
            known = self.by_value.get(type(values[0]))
            if known is not None:
                self._put(known, values[0], made)
        else:
            kinds = tuple(map(type, values))
            is_short = all(
                kind is not str or len(v) <= LONGEST for kind, v in zip(kinds, values, strict=True)
            )
            if is_short and all(kind in HASHED for kind in kinds):
                self._put(self.by_values, (*kinds, *values), made)
        return self.is_kept

    def _put(self, known: dict[Any, Made], value: Any, made: Made) -> None:
        if not self.is_kept or (type(value) is str and len(value) > LONGEST):
            return
        if len(known) >= MOST_VALUES:
            known.clear()
        known[value] = made

    def _made(self, attributes: Attributes, value: Any) -> Made:
        found = [] if value is None else open_entries(attributes, self.attribute, value)
        present = {attr for attr, _ in found}
        found += [(each.absence_id, 1) for each in self._absences if each.id not in present]
        return _packed(found)


class _Lists(NamedTuple):
    """Formulas with the names of their inputs, and the tables that are asked first."""

    of_one: list[tuple[str, ByClass, Known]]
    of_two: list[tuple[str, str, dict[tuple[Any, ...], Made], Known]]
    changing: list[tuple[str, Known]]
    """Those of one input whose values hardly come again."""
    others: list[Known]


class Computing:
    """How the computed attributes of events are found."""

    def __init__(self, attributes: Attributes, key: tuple[int, int]) -> None:
        self.key = key
        """What it was made from: the changes of the attributes and of the predicate table."""
        self.ordinary: list[Attribute]
        self.grouped: list[Grouped]
        self.grouped, self.ordinary = group_tests(attributes)
        self.plain_absences: list[Attribute] = []
        """Attributes that are not computed of which it is asked whether they are NULL."""
        absences: list[Attribute] = []
        for each in attributes.absences:
            (absences if attributes.is_of_computed(each) else self.plain_absences).append(each)
        self.follows_context = any(map(follows_context, self.ordinary))
        """Whether keys may be sets of keys, which change with the values of contexts."""
        self._attributes = attributes
        self._n_events = 0
        self._known = [Known(attribute, absences) for attribute in self.ordinary]
        self._lists = self._listed()

    def entries(
        self, values: Mapping[str, Any], problems: list[EventError]
    ) -> tuple[list[int], list[Any]]:
        """Attributes, not in order, and keys: of computed attributes, and of their absences.

        What is wrong with the event, of which values are given, is added to `problems`.
        """
        attrs: list[int] = []
        keys: list[Any] = []
        for made in self._made(values, problems):
            entries = iter_unpack("qq", made) if isinstance(made, bytes) else made
            for attr, key in entries:
                attrs.append(attr)
                keys.append(key)
        return attrs, keys

    def packed(self, values: Mapping[str, Any], problems: list[EventError]) -> bytes:
        """The same as pairs of int64, where no key follows contexts."""
        return b"".join(self._made(values, problems))  # type: ignore[arg-type]

    def _made(self, values: Mapping[str, Any], problems: list[EventError]) -> list[Made]:
        """What each formula became; plain loops, since this is most of what an event costs."""
        self._n_events += 1
        get, found = values.get, []
        of_one, of_two, of_changing, of_others = self._lists  # once: a formula may change its list
        for name, by_value, known in of_one:
            read = get(name)
            try:
                found.append(by_value[type(read)][read])
            except KeyError:
                found.append(self._work_out(known, values, (read,), problems))
        for name, other, by_values, known in of_two:
            first, second = get(name), get(other)
            try:
                found.append(by_values[type(first), type(second), first, second])
            except (KeyError, TypeError):  # a list has no hash
                found.append(self._work_out(known, values, (first, second), problems))
        for name, known in of_changing:
            read = get(name)
            made = known.quickly(read)
            if made is None:
                made = self._work_out(known, values, (read,), problems)
            found.append(made)
        found += [self._found(known, values, problems) for known in of_others]
        for tests in self.grouped:
            true = tests.true_for(find_value(values, tests.name), self._attributes, problems)
            found.append(_packed([(attr, 1) for attr in true]))
        return found

    def _found(self, known: Known, event: Mapping[str, Any], problems: list[EventError]) -> Made:
        """The entries of a formula with any inputs."""
        read = tuple([find_value(event, name) for name in known.inputs])
        try:
            if len(read) == 1:
                return known.by_value[type(read[0])][read[0]]
            return known.by_values[*map(type, read), *read]
        except (KeyError, TypeError):  # a list has no hash
            return self._work_out(known, event, read, problems)

    def _work_out(
        self,
        known: Known,
        event: Mapping[str, Any],
        values: tuple[Any, ...],
        problems: list[EventError],
    ) -> Made:
        made, may_be_kept = known.work_out(self._attributes, event, values, problems)
        if may_be_kept and known.is_kept and not known.keep(values, made, self._n_events):
            self._lists = self._listed()
        return made

    def _listed(self) -> _Lists:
        """The formulas by how the values of their inputs are looked up."""
        found = _Lists([], [], [], [])
        for known in self._known:
            names = known.inputs
            if len(names) not in (1, 2) or any("." in name or PATH in name for name in names):
                found.others.append(known)
            elif len(names) == 2:
                found.of_two.append((names[0], names[1], known.by_values, known))
            elif known.is_kept:
                found.of_one.append((names[0], known.by_value, known))
            else:
                found.changing.append((names[0], known))
        return found


def follows_context(attribute: Attribute) -> bool:
    """Whether keys of an attribute's values change with the values of contexts."""
    return any(each.beside_id >= 0 for each in (attribute, *attribute.kinds.values()))


def computing(attributes: Attributes) -> Computing:
    """How computed attributes are found, made again when something has changed since."""
    table = attributes.tested_by
    key = (attributes.changes, -1 if table is None else table.n_encoded)
    found: Computing | None = attributes.computing
    if found is None or found.key != key:
        found = attributes.computing = Computing(attributes, key)
    return found
