"""The entries of computed attributes, for one event or for many.

A formula whose inputs had the same values before is not computed again: what they became is looked
up.  Where values hardly come again, only the step from the formula's value to entries is.

    event ── values of the inputs ── known? ─────────────────► entries
                     └── formula ── its value ── known? ──────────┤
                                        └── keys (`open_entries`) ┘

Kept are entries alone: what is unknown or fails is computed each time, since it is counted.  They
belong to attributes and predicates as they are; after a change there is a new `Computing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import iter_unpack
from typing import Any, NamedTuple

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computed import Inputs, find_value
from matchwood.encode.grouping import Grouped, group_tests
from matchwood.encode.known import FAILS, ByClass, Known, Made, follows_context, packed
from matchwood.errors import EventError
from matchwood.lang.functions.binding import Get
from matchwood.lang.functions.evaluate import PATH

Problems = dict[int, list[EventError]]
"""What is wrong with events, by their numbers."""


class _Lists(NamedTuple):
    """Formulas with the names of their inputs, and the tables that are asked first."""

    of_one: list[tuple[str, ByClass, Known]]
    of_two: list[tuple[str, str, dict[tuple[Any, ...], Made], Known]]
    changing: list[tuple[str, dict[type, Get], ByClass, Known]]
    """Those of one input whose values hardly come again, with `Known.direct` and `by_result`."""
    others: list[Known]


LookedUp = tuple[list[Any], list[tuple[int, Known, tuple[Any, ...]]]]
"""What formulas became (`Made`, or None), and those that are left: their places in that list, and
the values of their inputs.
"""


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
        self.attributes = attributes
        self._n_events = 0
        self.known = [Known(attribute, absences) for attribute in self.ordinary]
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

    def look_up(self, values: Mapping[str, Any]) -> LookedUp:
        """What each formula became, where that is known: nothing is computed or counted.

        Plain loops, since this is most of what an event costs.
        """
        self._n_events += 1
        get = values.get
        found: list[Any] = []
        left: Any = []
        of_one, of_two, of_changing, of_others = self._lists  # once: a formula may change its list
        for name, by_value, known in of_one:
            read = get(name)
            try:
                found.append(by_value[type(read)][read])
            except KeyError:
                self._learn(known, (read,), found, left)
        for name, other, by_values, known in of_two:
            first, second = get(name), get(other)
            try:
                found.append(by_values[type(first), type(second), first, second])
            except (KeyError, TypeError):  # a list has no hash
                self._learn(known, (first, second), found, left)
        for name, direct, by_result, known in of_changing:
            read = get(name)
            try:
                result = direct[type(read)]({name: read})
                found.append(by_result[type(result)][result])
            except (KeyError, *FAILS):
                self._learn(known, (read,), found, left)
        for known in of_others:
            row = tuple([find_value(values, name) for name in known.inputs])
            try:
                found.append(known.of(row))
            except (KeyError, TypeError):
                self._learn(known, row, found, left)
        return found, left

    def finish(
        self, looked_up: LookedUp, values: Mapping[str, Any], problems: list[EventError]
    ) -> list[Made]:
        """What each formula or group of tests became; what `look_up` has left is computed."""
        found, left = looked_up
        for at, known, row in left:
            found[at] = self._work_out(known, Inputs(values), row, problems)
        for tests in self.grouped:
            true = tests.true_for(find_value(values, tests.name), self.attributes, problems)
            found.append(packed([(attr, 1) for attr in true]))
        return found

    def packed_many(self, events: Sequence[Mapping[str, Any]], problems: Problems) -> list[bytes]:
        """Entries of each of some events as pairs of int64, where no key follows contexts.

        What is wrong with an event is added to `problems` under its number.
        """
        made = self.made_many(events, problems)
        return list(map(b"".join, zip(*made, strict=True)))

    def made_many(
        self, events: Sequence[Mapping[str, Any]], problems: Problems
    ) -> list[list[Made]]:
        """For each formula or group of tests what every event has of it."""
        self.note_events(len(events))
        columns: dict[str, list[Any]] = {}

        def column(name: str) -> list[Any]:
            found = columns.get(name)
            if found is None:
                if is_flat(name):
                    found = [event.get(name) for event in events]
                else:
                    found = [find_value(event, name) for event in events]
                columns[name] = found
            return found

        made = []
        for known in self.known:
            read = list(map(column, known.inputs))
            found: list[Made | None] = [None] * len(events)
            if read:
                found = known.look_up(read)
            made.append(self.fill(found, known, read, lambda i: Inputs(events[i]), None, problems))
        for tests in self.grouped:
            values = [find_value(event, tests.name) for event in events]
            made.append(self.grouped_column(tests, values, problems))
        return made

    def note_events(self, n: int) -> None:
        """Count events of which computed attributes are asked for."""
        self._n_events += n

    def grouped_column(
        self, tests: Grouped, values: Sequence[Any], problems: Problems
    ) -> list[Made]:
        """What is TRUE of each event, given the values of the input of tests."""
        found = []
        for number, value in enumerate(values):
            wrong: list[EventError] = []
            true = tests.true_for(value, self.attributes, wrong)
            found.append(packed([(attr, 1) for attr in true]))
            if wrong:
                problems.setdefault(number, []).extend(wrong)
        return found

    def fill(
        self,
        made: list[Made | None],
        known: Known,
        columns: list[list[Any]],
        inputs: Callable[[int], Inputs],
        n_events: Sequence[int] | None,
        problems: Problems,
    ) -> list[Made]:
        """What a formula became: where that is None it is found, given the columns of its inputs.

        inputs    the same values by their number, for what has to be computed
        n_events  how many events have each of them: what is unknown or fails is counted
        """
        for number, each in enumerate(made):
            if each is None:
                wrong: list[EventError] = []
                before = self._counted(known)
                values = tuple([column[number] for column in columns])
                made[number] = self._found(known, inputs, number, values, wrong)
                if n_events is not None and n_events[number] > 1:
                    self._count_more(known, before, n_events[number] - 1)
                if wrong:
                    problems.setdefault(number, []).extend(wrong)
        return made  # type: ignore[return-value]

    def _counted(self, known: Known) -> tuple[int, int]:
        """How often a formula was unknown, and how often it failed."""
        label = known.label
        return self.attributes.unknown.get(label, 0), self.attributes.failed.get(label, 0)

    def _count_more(self, known: Known, before: tuple[int, int], n: int) -> None:
        """Count what was counted since, n times more."""
        unknown, failed = self._counted(known)
        label = known.label
        if unknown > before[0]:
            self.attributes.unknown[label] += n * (unknown - before[0])
        if failed > before[1]:
            self.attributes.failed[label] += n * (failed - before[1])

    def _made(self, values: Mapping[str, Any], problems: list[EventError]) -> list[Made]:
        return self.finish(self.look_up(values), values, problems)

    def _found(
        self,
        known: Known,
        inputs: Callable[[int], Inputs],
        number: int,
        values: tuple[Any, ...],
        problems: list[EventError],
    ) -> Made:
        """The entries of a formula, given the values of its inputs."""
        try:
            return known.of(values)
        except (KeyError, TypeError):  # a list has no hash
            return self._work_out(known, inputs(number), values, problems)

    def _work_out(
        self, known: Known, inputs: Inputs, values: tuple[Any, ...], problems: list[EventError]
    ) -> Made:
        made, may_be_kept = known.work_out(self.attributes, inputs, values, problems)
        if may_be_kept:
            self._keep(known, values, made)
        return made

    def _learn(
        self,
        known: Known,
        values: tuple[Any, ...],
        found: list[Any],
        left: list[tuple[int, Known, tuple[Any, ...]]],
    ) -> None:
        """Add what values become whose result is known; else note that `_work_out` tells."""
        made = known.quickly(values)
        if made is None:
            left.append((len(found), known, values))
        else:
            self._keep(known, values, made)
        found.append(made)

    def _keep(self, known: Known, values: tuple[Any, ...], made: Made) -> None:
        if known.is_kept and not known.keep(values, made, self._n_events):
            self._lists = self._listed()

    def _listed(self) -> _Lists:
        """The formulas by how the values of their inputs are looked up."""
        found = _Lists([], [], [], [])
        for known in self.known:
            names = known.inputs
            if len(names) not in (1, 2) or not all(map(is_flat, names)):
                found.others.append(known)
            elif len(names) == 2:
                found.of_two.append((names[0], names[1], known.by_values, known))
            elif known.is_kept:
                found.of_one.append((names[0], known.by_value, known))
            else:
                found.changing.append((names[0], known.direct, known.by_result, known))
        return found


def is_flat(name: str) -> bool:
    """Whether an input is a value of the event itself, not of something inside it."""
    return "." not in name and PATH not in name


def computing(attributes: Attributes) -> Computing:
    """How computed attributes are found, made again when something has changed since."""
    table = attributes.tested_by
    key = (attributes.changes, -1 if table is None else table.n_encoded)
    found: Computing | None = attributes.computing
    if found is None or found.key != key:
        found = attributes.computing = Computing(attributes, key)
    return found
