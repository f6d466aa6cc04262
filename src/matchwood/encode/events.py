"""Events as integers: an `EventBatch` (`event_batch`).

A nested mapping is present under its own name, and its fields under dotted names.  Attributes that
no subscription uses are left out; derived attributes (absences, LIKE patterns) are
filled in here.  An event with a value of the wrong type becomes an empty event and an error beside.

A dict goes one of three ways, all with the same result:

    compiled   one walk in a kernel (`dicts/plan`), once enough events came since the last change
    looked up  what names and values became before (`dicts/events`)
    general    everything else, and whatever the other two leave
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computing import computing
from matchwood.encode.dicts.events import PLAIN, DictReader, Made, Shape
from matchwood.encode.event_batch import (
    Encoded,
    EncodedEvents,
    EventBatch,
    Slices,
    batch_of,
    batch_with,
    merged,
)
from matchwood.encode.interval_events import KeySets, interval_entries
from matchwood.encode.known import follows_context
from matchwood.encode.plain_values import as_mapping, is_record, plain
from matchwood.encode.value_entries import Entry, value_entries
from matchwood.errors import EventError
from matchwood.lang.nodes import Expr

__all__ = ["EncodedEvents", "EventBatch", "encode_event", "encode_events"]

if TYPE_CHECKING:
    from matchwood.encode.dicts.plan import DictPlan

AT_ONCE = 1_024
"""Events whose computed attributes are found together, one formula after the other."""

MAX_NESTING = 50
"""Deepest nesting of mappings inside an event."""


def encode_event(attributes: Attributes, event: Any) -> EventBatch:
    """One event; raises EventError."""
    if type(event) is dict:
        plan = _dict_plan(attributes, 1)
        compiled = None if plan is None else plan.read(attributes, event)
        if compiled is not None:
            attr, key = compiled
            batch = EventBatch(np.array((0, len(key)), np.int64), attr, key, key)
            return with_computed(attributes, batch, [event], [False]).batch
        quick = _quick(attributes, event, [])
        if quick is not None:
            shape, keys = quick
            key = np.array(keys, np.int64)
            return EventBatch(np.array((0, len(key)), np.int64), shape.attr, key, key)
    entries = _entries(attributes, event, [])
    return batch_of([0, len(entries)], [attr for attr, _ in entries], [key for _, key in entries])


def encode_events(attributes: Attributes, events: Any) -> EncodedEvents:
    """Many events: a sequence of dicts (or expressions), an Arrow table, a data frame."""
    found = slices_of(attributes, events)
    return found.part(attributes, 0, found.n_events)


def slices_of(attributes: Attributes, events: Any) -> Slices:
    """Many events, to be encoded slice by slice."""
    if hasattr(type(events), "event_slices"):  # its own: a frame may have a column of any name
        slices: Slices = events.event_slices(attributes)
        return slices
    if hasattr(events, "encode_entries"):
        return Encoded(events.encode_entries(attributes))
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        from matchwood.encode.arrow.events import table_slices

        return table_slices(attributes, events)
    if isinstance(events, (Mapping, Expr, str, bytes)) or not isinstance(events, Iterable):
        raise EventError(
            "expected a list of events, an Arrow table or a data frame, found "
            f"{type(events).__name__}: pass a single event to match()"
        )
    return ListSlices(attributes, list(events))


class ListSlices:
    """A list of dicts and other events, which no other code can change."""

    is_free = False  # an event may run any code; and dicts are read with the interpreter's lock
    n_slow = 0

    def __init__(self, attributes: Attributes, events: list[Any]) -> None:
        self._events = events
        self.n_events = len(events)
        _dict_plan(attributes, len(events))

    def part(self, attributes: Attributes, first: int, last: int) -> EncodedEvents:
        given = self._events
        if last - first < self.n_events:
            given = given[first:last]
        plan = _dict_plan(attributes, 0)
        if plan is None:
            return _encode_list(attributes, given)
        start, attr, key, is_left = plan.read_many(attributes, given)
        read = with_computed(attributes, EventBatch(start, attr, key, key), given, is_left.tolist())
        left = np.flatnonzero(is_left).tolist()
        if not left:
            return read
        others = merged(read.batch, left, _encode_list(attributes, [given[i] for i in left]))
        return others._replace(warnings={**read.warnings, **others.warnings})


def _dict_plan(attributes: Attributes, n: int) -> DictPlan | None:
    """How compiled code reads n dicts; None: it does not, or not yet."""
    plan: DictPlan | None = attributes.dict_plan
    if plan is not None and plan.changes == attributes.changes:
        return plan
    from matchwood.encode.dicts.plan import dict_plan  # at the first match: it imports Numba

    return dict_plan(attributes, n)


def _encode_list(attributes: Attributes, events: Iterable[Any]) -> EncodedEvents:
    """Events one by one."""
    start, errors = [0], {}
    warnings: dict[int, list[EventError]] = {}
    attrs: list[int] = []
    keys: list[int | KeySets] = []
    for number, event in enumerate(events):
        problems: list[EventError] = []
        try:
            quick = _quick(attributes, event, problems) if type(event) is dict else None
            if quick is not None:
                attrs += quick[0].attrs
                keys += quick[1]
            else:
                problems.clear()
                entries = _entries(attributes, event, problems)
                attrs += [attr for attr, _ in entries]
                keys += [key for _, key in entries]
        except EventError as error:
            errors[number] = error
        if problems:
            warnings[number] = problems
        start.append(len(attrs))
    return EncodedEvents(batch_of(start, attrs, keys), errors, warnings)


def _quick(
    attributes: Attributes, event: dict[str, Any], problems: list[EventError]
) -> tuple[Shape, Any] | None:
    """The shape and the keys of an event by what is known of its values; None: go on slowly."""
    reader: DictReader | None = attributes.dict_reader
    if reader is None or reader.changes != attributes.changes:
        reader = attributes.dict_reader = DictReader(attributes, _made, MAX_NESTING)
    found = reader.read(event)
    if found is None:
        return None
    attrs, keys = found
    absences = attributes.absences
    if attributes.computed:
        plan = computing(attributes)
        if plan.follows_context:
            return None
        absences = plan.plain_absences
        computed = plan.entries(event, problems)
        attrs += computed[0]
        keys += computed[1]
    if absences:
        present = set(attrs)
        for attribute in absences:
            if attribute.id not in present:
                attrs.append(attribute.absence_id)
                keys.append(1)
    return reader.arranged(attrs, keys)


def _made(attributes: Attributes, attribute: Attribute, value: Any) -> Made | None:
    """What a value becomes, for a `DictReader`; None where that is no plain keys."""
    if type(value) not in PLAIN or follows_context(attribute):
        return None
    label = attribute.label
    before = attributes.unknown.pop(label, 0)
    entries = dict(value_entries(attributes, attribute, value))
    n_unknown = attributes.unknown.pop(label, 0)
    if before:
        attributes.unknown[label] = before
    if "." in attribute.name:  # it could come twice
        entries.setdefault(attribute.id, 0)
    keys = tuple(entries.values())
    if any(isinstance(key, KeySets) for key in keys):
        return None
    return tuple(entries), keys, n_unknown  # type: ignore[return-value]


def _entries(attributes: Attributes, event: Any, problems: list[EventError]) -> list[Entry]:
    """The entries of one event, ascending by attribute; notes what computed attributes failed."""
    kind, absences = type(event), attributes.absences
    if isinstance(event, Expr):
        found: dict[int, Any] = interval_entries(attributes, event)
    elif (event := as_mapping(event)) is not None:
        found = {}
        _read(attributes, event, "", found, MAX_NESTING)
        if attributes.computed:
            plan = computing(attributes)
            absences = plan.plain_absences
            found.update(zip(*plan.entries(event, problems), strict=True))
    else:
        raise EventError(
            "expected a mapping from attribute names to values (or an expression), a dataclass, a "
            f"named tuple or a model, found {kind.__name__}"
        )
    for attribute in absences:
        if attribute.id not in found:
            found[attribute.absence_id] = 1
    return sorted(found.items())


def with_computed(
    attributes: Attributes, batch: EventBatch, events: Iterable[Any], is_left: list[bool]
) -> EncodedEvents:
    """Events that compiled code has read, with their computed attributes; but those that it left.

    What is wrong with an event goes to the warnings.
    """
    warnings: dict[int, list[EventError]] = {}
    if not attributes.computed:
        return EncodedEvents(batch, {}, warnings)
    added = [b""] * len(is_left)
    plan = computing(attributes)
    given = iter(events)
    for first in range(0, len(is_left), AT_ONCE):
        left = is_left[first : first + AT_ONCE]
        read = list(islice(given, len(left)))
        numbers: Sequence[int] = range(first, first + len(left))
        if any(left):
            numbers = [number for number, each in zip(numbers, left, strict=True) if not each]
            read = [read[number - first] for number in numbers]
        problems: dict[int, list[EventError]] = {}
        for number, entries in zip(numbers, plan.packed_many(read, problems), strict=True):
            added[number] = entries
        warnings.update({numbers[i]: problems[i] for i in sorted(problems)})
    return EncodedEvents(batch_with(batch, added), {}, warnings)


def _read(
    attributes: Attributes,
    event: Mapping[str, Any],
    prefix: str,
    found: dict[int, Any],
    deeper: int,
) -> None:
    by_name = attributes.by_name
    for name, value in event.items():
        if value is None:
            continue
        if type(value) not in PLAIN:
            value = plain(value)
            if value is None:
                continue
            if is_record(value):
                value = as_mapping(value)
        if isinstance(value, Mapping):  # present itself, and what its fields are
            if deeper == 0:
                raise EventError(
                    f"expected mappings nested at most {MAX_NESTING} deep, found more: "
                    "flatten the event, or break the loop in it"
                )
            _read(attributes, value, f"{prefix}{name}.", found, deeper - 1)
        attribute = by_name.get(f"{prefix}{name}" if prefix else name)
        if attribute is None or attribute.is_hidden:
            continue
        if attribute.id in found:
            raise EventError(
                f"expected attribute {attribute.name!r} once, found it twice: "
                "as a dotted name and inside a nested mapping"
            )
        found.update(value_entries(attributes, attribute, value))
        if "." in attribute.name:  # it could come twice
            found.setdefault(attribute.id, 0)
