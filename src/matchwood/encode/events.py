"""Events as integers: an `EventBatch` (`event_batch`).

A nested mapping is present under its own name, and its fields under dotted names.  Attributes that
no subscription uses are left out; derived attributes (absences, LIKE patterns) are
filled in here.  An event with a value of the wrong type becomes an empty event and an error beside.

A dict goes one of three ways, all with the same result:

    compiled   one walk in a kernel (`dict_plan`), once enough events came since the last change
    looked up  what names and values became before (`dict_events`)
    general    everything else, and whatever the other two leave
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.computed import UNKNOWN, Inputs, compute, find_value
from matchwood.encode.dict_events import PLAIN, DictReader, Made, Shape
from matchwood.encode.event_batch import EncodedEvents, EventBatch, batch_of, batch_with, merged
from matchwood.encode.interval_events import KeySets, interval_entries
from matchwood.encode.keys import WrongValue, describe, exact_number, float_place
from matchwood.encode.kinds import MOMENTS
from matchwood.encode.memberships import computing
from matchwood.encode.plain_values import as_mapping, is_record, plain
from matchwood.errors import EventError
from matchwood.lang.cells import Cell, read_cell
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp
from matchwood.lang.nodes import Expr

__all__ = [
    "EncodedEvents", "EventBatch", "as_kind", "encode_event", "encode_events", "key_of",
    "open_entries", "typed_entries", "value_entries", "wrong_type",
]  # fmt: skip

if TYPE_CHECKING:
    from matchwood.encode.dict_plan import DictPlan

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
    if hasattr(events, "encode_entries"):
        encoded: EncodedEvents = events.encode_entries(attributes)
        return encoded
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        from matchwood.encode.arrow_events import encode_table

        return encode_table(attributes, events)
    if isinstance(events, (Mapping, Expr, str, bytes)) or not isinstance(events, Iterable):
        raise EventError(
            "expected a list of events, an Arrow table or a data frame, found "
            f"{type(events).__name__}: pass a single event to match()"
        )
    given = list(events)
    plan = _dict_plan(attributes, len(given))
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
    from matchwood.encode.dict_plan import dict_plan  # at the first match: it imports Numba

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
    unknown: list[Attribute] = []
    if attributes.computed:
        computed: dict[int, Any] = {}
        unknown = _compute(attributes, event, computed, problems)
        attrs += computed
        keys += computed.values()
    if attributes.absences:
        present = set(attrs)
        for attribute in attributes.absences:
            if attribute.id not in present and attribute not in unknown:
                attrs.append(attribute.absence_id)
                keys.append(1)
    return reader.arranged(attrs, keys)


def _made(attributes: Attributes, attribute: Attribute, value: Any) -> Made | None:
    """What a value becomes, for a `DictReader`; None where that is no plain keys."""
    follows_context = any(each.beside_id >= 0 for each in (attribute, *attribute.kinds.values()))
    if type(value) not in PLAIN or follows_context:  # keys beside a context change with its values
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


Entry = tuple[int, int | KeySets]
"""Attribute id and key, or the key sets of an interval-valued entry."""


def _entries(attributes: Attributes, event: Any, problems: list[EventError]) -> list[Entry]:
    """The entries of one event, ascending by attribute; notes what computed attributes failed."""
    kind = type(event)
    if isinstance(event, Expr):
        found: dict[int, Any] = interval_entries(attributes, event)
    elif (event := as_mapping(event)) is not None:
        found = {}
        _read(attributes, event, "", found, MAX_NESTING)
        if attributes.computed:
            unknown = _compute(attributes, event, found, problems)
            for attribute in attributes.absences:
                if attribute.id not in found and attribute not in unknown:
                    found[attribute.absence_id] = 1
            return sorted(found.items())
    else:
        raise EventError(
            "expected a mapping from attribute names to values (or an expression), a dataclass, a "
            f"named tuple or a model, found {kind.__name__}"
        )
    for attribute in attributes.absences:
        if attribute.id not in found:
            found[attribute.absence_id] = 1
    return sorted(found.items())


def with_computed(
    attributes: Attributes, batch: EventBatch, events: list[Any], is_left: list[bool]
) -> EncodedEvents:
    """Events that compiled code has read, with their computed attributes; but those that it left.

    What is wrong with an event goes to the warnings.
    """
    warnings: dict[int, list[EventError]] = {}
    if not attributes.computed:
        return EncodedEvents(batch, {}, warnings)
    attrs: list[int] = []
    keys: list[int] = []
    sizes: list[int] = []
    for number, event in enumerate(events):
        found: dict[int, Any] = {}
        if not is_left[number]:
            problems: list[EventError] = []
            found = computed_entries(attributes, event, problems)
            if problems:
                warnings[number] = problems
        sizes.append(len(found))
        attrs += found
        keys += found.values()
    return EncodedEvents(batch_with(batch, sizes, attrs, keys), {}, warnings)


def computed_entries(
    attributes: Attributes, event: Mapping[str, Any], problems: list[EventError]
) -> dict[int, int]:
    """The entries of computed attributes, and of their absences; by attribute, not in order."""
    found: dict[int, Any] = {}
    unknown = _compute(attributes, event, found, problems)
    for attribute in attributes.computing.absences:
        if attribute.id not in found and attribute not in unknown:
            found[attribute.absence_id] = 1
    return found


def _compute(
    attributes: Attributes,
    event: Mapping[str, Any],
    found: dict[int, Any],
    problems: list[EventError],
) -> list[Attribute]:
    """Add the entries of computed attributes; returns those that are unknown."""
    inputs = Inputs(event)
    unknown: list[Attribute] = []
    plan = computing(attributes)
    for membership in plan.memberships:
        value = find_value(event, membership.name)
        found.update(dict.fromkeys(membership.true_for(value, attributes, problems), 1))
    for attribute, known in zip(plan.ordinary, plan.known, strict=True):
        assert attribute.formula is not None
        key = inputs.key(attribute.formula)
        entries: Iterable[Entry] | None = known.find(key)
        if entries is None:
            before = attributes.unknown[attribute.label]
            try:
                value = compute(attributes, attribute, inputs)
            except EventError as error:
                problems.append(error)
                value = UNKNOWN
            if value is UNKNOWN:
                unknown += [attribute, *attribute.kinds.values()]
                continue
            made = [] if value is None else open_entries(attributes, attribute, value)
            if attributes.unknown[attribute.label] == before:
                known.keep(key, made)
            entries = made
        found.update(entries)
    return unknown


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
        yield attribute.beside_id, _beside(attributes.all[attribute.beside_id], value)
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


def _beside(beside: Attribute, value: Any) -> int | KeySets:
    """The key of a value among those of the context; none may be its own: see `float_place`."""
    assert beside.keys is not None
    if beside.type == "string":
        return beside.keys.key(value)
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
