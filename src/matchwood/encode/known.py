"""One computed attribute, and the entries that values of its inputs became before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from itertools import chain
from struct import pack
from typing import Any

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computed import UNKNOWN, Inputs, compute
from matchwood.encode.dicts.events import LONGEST, MOST_VALUES
from matchwood.encode.interval_events import KeySets
from matchwood.encode.value_entries import Entry, open_entries
from matchwood.errors import EventError
from matchwood.lang.cells import CELL
from matchwood.lang.functions.binding import Get
from matchwood.lang.functions.evaluate import Failed, plain_input
from matchwood.lang.functions.types import PLAIN_TYPES

HASHED = (str, int, float, bool, date, datetime, type(None))
"""Classes whose equal values mean the same to every function; equal decimals do not: 1.0 and 1.00
have different texts.
"""

_CLASSES: dict[type, Any] = PLAIN_TYPES | {date: "date", datetime: "timestamp"}
"""Types by the classes that tell them."""

Made = bytes | list[Entry]
"""Pairs of an attribute and a key, int64 each; a list of entries where a key is a set of keys."""

ByClass = dict[type, dict[Any, Made]]
"""What values became: by their class, then by the value."""

COMPUTE = object()
"""Instead of a result: `work_out` finds it, and counts what is unknown or fails."""

FAILS = (Failed, ArithmeticError, ValueError)
"""What a formula may raise."""

_NOTHING = b""
_LONG = 2**63


def _by_class() -> ByClass:
    return {kind: {} for kind in HASHED}


def _is_long(value: Any) -> bool:
    """Whether a value is no int of more than 64 bits, which is a decimal."""
    return type(value) is not int or -_LONG <= value < _LONG


def _utc(value: Any) -> Any:
    """A value as formulas take it, if its class alone tells what has to be done."""
    return plain_input(value) if type(value) is datetime else value


def packed(entries: list[Entry]) -> Made:
    """Entries as they are kept."""
    if any(isinstance(key, KeySets) for _, key in entries):
        return entries
    return pack(f"{2 * len(entries)}q", *chain.from_iterable(entries))


class Known:
    """One computed attribute, and what values of its inputs became before."""

    __slots__ = (
        "_formula", "_gets", "_n_missed", "absences", "attribute", "by_result", "by_value",
        "by_values", "direct", "inputs", "is_kept", "label",
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
        self.by_result = _by_class()
        """What the formula's values became."""
        self.direct: dict[type, Get] = {}
        """The functions of `_gets` for one input, by its class, if they take any value of it."""
        self._gets: dict[tuple[type, ...], Get | None] = {}
        self.label = attribute.label
        mine = (attribute, *attribute.kinds.values())
        self.absences = [each for each in absences if each in mine]
        self._n_missed = 0

    def work_out(
        self,
        attributes: Attributes,
        inputs: Inputs,
        values: tuple[Any, ...],
        problems: list[EventError],
    ) -> tuple[Made, bool]:
        """The entries for values of inputs that are not known, and whether they may be kept."""
        quick = self.quickly(values)
        if quick is not None:
            return quick, True
        unknown, label = attributes.unknown, self.label
        before = unknown.get(label, 0)
        try:
            value = compute(attributes, self.attribute, inputs)
        except EventError as error:
            problems.append(error)
            return _NOTHING, False
        if value is UNKNOWN:
            return _NOTHING, False
        known = self.by_result.get(type(value))
        made = None if known is None else known.get(value)
        if made is None:
            is_partial = unknown.get(label, 0)
            made = self._made(attributes, value)
            if known is not None and unknown.get(label, 0) == is_partial:
                self._put(known, value, made)
        return made, unknown.get(label, 0) == before

    def of(self, values: Sequence[Any]) -> Made:
        """What values of the inputs became; KeyError if that is not known, TypeError for a list."""
        if len(values) == 1:
            return self.by_value[type(values[0])][values[0]]
        return self.by_values[*map(type, values), *values]

    def quickly(self, values: tuple[Any, ...]) -> Made | None:
        """What values of the inputs become, where their result became something before.

        None: `work_out` tells, and counts what is unknown or fails.
        """
        kinds, row = tuple(map(type, values)), dict(zip(self.inputs, values, strict=True))
        get = self._gets[kinds] if kinds in self._gets else self._get(kinds)
        if get is None or (int in kinds and not all(map(_is_long, row.values()))):
            return None
        if datetime in kinds:
            row = {name: _utc(value) for name, value in row.items()}
        try:
            found = get(row)
            return self.by_result[type(found)].get(found)
        except (KeyError, *FAILS):
            return None

    def _get(self, kinds: tuple[type, ...]) -> Get | None:
        """The function for inputs of these classes; None if a class does not say the type."""
        types = tuple([_CLASSES.get(kind) for kind in kinds])
        is_told = None not in types and CELL not in types
        get = self._gets[kinds] = self._formula.plain(types) if is_told else None
        if get is not None and len(kinds) == 1 and kinds[0] not in (int, datetime):
            self.direct[kinds[0]] = get
        return get

    def look_up(self, columns: Sequence[list[Any]]) -> list[Made | None]:
        """What the values of the inputs became before, event by event; None: `work_out` tells.

        columns  for each input, its values in all events
        """
        if not self.is_kept:
            return self._quickly(columns)
        if len(columns) == 1:
            return self._kept(columns[0])
        kinds = [map(type, each) for each in columns]
        try:
            return list(map(self.by_values.get, zip(*kinds, *columns, strict=True)))
        except TypeError:  # a list has no hash
            return [None] * len(columns[0])

    def _kept(self, values: list[Any]) -> list[Made | None]:
        by_value, kinds = self.by_value, set(map(type, values))
        if len(kinds) == 1:  # the usual case, without a step of Python for each value
            known = by_value.get(kinds.pop())
            return [None] * len(values) if known is None else list(map(known.get, values))
        if kinds <= by_value.keys():
            return [by_value[type(each)].get(each) for each in values]
        return [by_value[type(each)].get(each) if type(each) in by_value else None
                for each in values]  # fmt: skip

    def _quickly(self, columns: Sequence[list[Any]]) -> list[Made | None]:
        """As `quickly` for each event: with one call each where the columns have a class each."""
        rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True)
        kinds = [set(map(type, each)) for each in columns]
        if any(len(each) != 1 or int in each or datetime in each for each in kinds):
            return list(map(self.quickly, rows))
        classes = tuple([each.pop() for each in kinds])
        get = self._gets[classes] if classes in self._gets else self._get(classes)
        if get is None:
            return [None] * len(columns[0])
        found: list[Made | None] = []
        name, names, by_result = self.inputs[0], self.inputs, self.by_result
        is_single, row = len(names) == 1, {}
        for values in rows:
            try:
                if is_single:
                    row[name] = values[0]
                else:
                    row.update(zip(names, values, strict=True))
                result = get(row)
                found.append(by_result[type(result)].get(result))
            except (KeyError, *FAILS):
                found.append(None)
        return found

    def results(self, columns: Sequence[list[Any]]) -> list[Any]:
        """The formula's value for each combination of values of the inputs.

        COMPUTE where it fails or leaves something unknown, or where classes do not tell types.
        """
        columns = [list(map(_utc, each)) for each in columns]
        found: list[Any] = []
        names, kinds, get = self.inputs, None, None
        for values in zip(*columns, strict=True):
            if (now := tuple(map(type, values))) != kinds:
                kinds = now
                get = self._gets[kinds] if kinds in self._gets else self._get(kinds)
            try:
                if get is None or not all(map(_is_long, values)):
                    found.append(COMPUTE)
                else:
                    found.append(get(dict(zip(names, values, strict=True))))
            except FAILS:
                found.append(COMPUTE)
        return found

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
        found += [(each.absence_id, 1) for each in self.absences if each.id not in present]
        return packed(found)


def follows_context(attribute: Attribute) -> bool:
    """Whether keys of an attribute's values change with the values of contexts."""
    return any(each.beside_id >= 0 for each in (attribute, *attribute.kinds.values()))
