"""Fields: what a subscription may have besides its expression and context, as users give it.

| field      | given as                                                          | kept as    |
|------------|-------------------------------------------------------------------|------------|
| priority   | an int of 64 bits; None: 0                                        | int64      |
| expires    | datetime, date, or seconds since 1970 (UTC); None: never          | int64, µs  |
| attributes | a mapping; in tables also a struct, a map from strings, JSON text | JSON text  |
| payload    | what JSON can hold: dict, list, str, int, float, bool, None       | JSON text  |

A datetime without a time zone is UTC, a date its midnight in UTC.  A subscription does not match at
or after the time it expires.

Own attributes hold the values that events may have.  Those that JSON has no form for are kept as an
object with one key that no user can write (`_TAGS`).  The entries of a map of texts are kept as a
list of pairs, because its values are read as what a filter compares them with (`own_attributes`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matchwood.encode.events import MAX_NESTING
from matchwood.encode.plain_values import plain
from matchwood.engine.input.payloads import payload_text
from matchwood.errors import FormatError, MatchwoodError, SubscriptionError

if TYPE_CHECKING:
    import pyarrow as pa

NEVER = 2**63 - 1
"""The expiry of what does not expire."""

FIELDS = ("priority", "attributes", "expires", "payload")
"""Columns of a table of subscriptions that become fields."""

JSON_COLUMN = {b"matchwood": b"json"}
"""Metadata of a column that holds JSON, as `Matcher.to_arrow` writes it."""

MAX_OWN = MAX_NESTING - 1
"""Deepest nesting of own attributes: a filter reads them as an event, below a name, too."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TAGS: dict[str, Callable[[str], Any]] = {
    "\0date": date.fromisoformat,
    "\0time": datetime.fromisoformat,
    "\0decimal": Decimal,
}


class Keep:
    """Stands for "as it is" where None is a value."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Any = Keep()


class FieldColumns(NamedTuple):
    """Fields of some subscriptions, in one form; None: all have the default, or keep theirs."""

    priority: np.ndarray | None = None
    expires: np.ndarray | None = None
    attributes: Sequence[str | None] | None = None
    payload: Sequence[str | None] | None = None
    added: np.ndarray | None = None
    """When they were added, in microseconds; None: now."""
    types: dict[str, str] | None = None
    """Types that the column `attributes` declares, where it is a struct or a map."""

    def part(self, rows: Sequence[int]) -> FieldColumns:
        """The fields of some rows."""
        if self is NO_FIELDS:
            return self
        at = np.asarray(rows, np.int64)
        return FieldColumns(
            None if self.priority is None else self.priority[at],
            None if self.expires is None else self.expires[at],
            None if self.attributes is None else [self.attributes[row] for row in rows],
            None if self.payload is None else [self.payload[row] for row in rows],
            None if self.added is None else self.added[at],
            self.types,
        )


NO_FIELDS = FieldColumns()


def joined(rows: Sequence[FieldColumns]) -> FieldColumns:
    """The fields of several subscriptions, each given alone, as columns."""

    def numbers(name: str, default: int) -> np.ndarray | None:
        given = [getattr(each, name) for each in rows]
        if all(each is None for each in given):
            return None
        return np.array([default if each is None else each[0] for each in given], np.int64)

    def texts(name: str) -> list[str | None] | None:
        found = [None if (each := getattr(row, name)) is None else each[0] for row in rows]
        return None if all(text is None for text in found) else found

    return FieldColumns(
        numbers("priority", 0), numbers("expires", NEVER), texts("attributes"), texts("payload"),
        numbers("added", 0), joined_types(rows),
    )  # fmt: skip


def joined_types(rows: Iterable[FieldColumns]) -> dict[str, str] | None:
    """One type for each own attribute of these subscriptions; None if they have no attributes."""
    types: dict[str, str] | None = None
    for row in rows:
        if row.attributes is not None and row.attributes[0] is not None:
            types = (row.types or {}) if types is None else agreed_types(types, row.types)
    return types


def agreed_types(types: dict[str, str], more: dict[str, str] | None) -> dict[str, str]:
    """Types that both declare alike, or one alone; that of every attribute only if both do."""
    both = {**types, **(more or {})}
    differ = {name for name in both if types.get(name, both[name]) != both[name]}
    if types.get("") != (more or {}).get(""):
        differ.add("")
    return {name: kind for name, kind in both.items() if name not in differ}


def with_given(old: FieldColumns, given: FieldColumns) -> FieldColumns:
    """The fields of a subscription after a replacement, which keeps what is not given."""
    named = {name: value for name, value in given._asdict().items() if value is not None}
    both = old._replace(**named)
    return both if given.attributes is None else both._replace(types=given.types)


def fields_of(
    priority: Any = KEEP, attributes: Any = KEEP, expires: Any = KEEP, payload: Any = KEEP
) -> FieldColumns:
    """The fields of one subscription; SubscriptionError for a value that is none."""
    return FieldColumns(
        None if priority is KEEP else np.array([read_priority(priority)], np.int64),
        None if expires is KEEP else np.array([read_expires(expires)], np.int64),
        None if attributes is KEEP else [attributes_text(attributes)],
        None if payload is KEEP else [payload_text(payload)],
    )


def fields_of_new(priority: Any, attributes: Any, expires: Any, payload: Any) -> FieldColumns:
    """The same of a new subscription, where a default need not be given."""
    if type(priority) is int and priority == 0 and attributes is expires is payload is None:
        return NO_FIELDS
    return fields_of(priority, attributes, expires, payload)


def read_columns(columns: Mapping[str, Any], refused: dict[int, Exception]) -> FieldColumns:
    """Fields of many from lists or Arrow columns by name; bad values join the refused rows."""
    found: dict[str, Any] = {}
    for name, column in columns.items():
        kind = getattr(column, "type", None)
        if name == "attributes" and kind is not None:
            found["types"] = declared_types(kind)
        moments = _micros(column) if name == "expires" and kind is not None else None
        values = [] if moments is not None else _each(_READERS[name], column, refused)
        is_number = name in ("priority", "expires")
        found[name] = np.array(values, np.int64) if is_number else values
        if moments is not None:
            found[name] = moments
    return FieldColumns(**found)


def _each(read: Any, column: Any, refused: dict[int, Exception]) -> list[Any]:
    from matchwood.encode.arrow.values import python_values

    values: list[Any] = python_values(column) if hasattr(column, "type") else list(column)
    for row, value in enumerate(values):
        try:
            values[row] = read(value)
        except SubscriptionError as error:
            refused.setdefault(row, error)
            values[row] = read(None)
    return values


def _micros(column: pa.ChunkedArray) -> np.ndarray | None:
    """Microseconds of an Arrow column of timestamps or dates, without a Python object each."""
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return None
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    try:
        micros = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(micros.fill_null(NEVER).to_numpy(), np.int64)


def declared_types(kind: pa.DataType) -> dict[str, str]:
    """The types that a column of own attributes declares; "" names that of every attribute."""
    import pyarrow as pa

    from matchwood.encode.arrow.types import type_of_arrow
    from matchwood.encode.schema import Schema

    if pa.types.is_struct(kind):
        return dict(Schema(type_of_arrow(kind)))
    if pa.types.is_map(kind):
        every = type_of_arrow(kind.item_type)
        if isinstance(every, str) and every != "string":
            return {"": every}
    return {}


# -- single values -----------------------------------------------------------------------------


def read_priority(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, np.integer):
        value = int(value)
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise SubscriptionError(
            "expected a whole number of 64 bits as priority, found "
            f"{type(value).__name__} {str(value)[:60]}"
        )
    return value


def read_count(value: Any, what: str, otherwise: str) -> int:
    """A whole number from 1; MatchwoodError for anything else, with what to do `otherwise`."""
    if isinstance(value, np.integer):
        value = int(value)
    if type(value) is not int or value < 1:
        raise MatchwoodError(
            f"expected {what} to be a whole number from 1, found {value!r}: {otherwise}"
        )
    return min(value, 2**63 - 1)


def read_expires(value: Any) -> int:
    """A time in microseconds since 1970; NEVER for None and what else is absent in events."""
    value = plain(value)
    return NEVER if value is None else read_moment(value, "expires")


def read_moment(value: Any, what: str) -> int:
    """A datetime, a date or seconds since 1970 as microseconds."""
    given, value = value, plain(value)
    if isinstance(value, np.datetime64):
        value = str(value)[:26]
        with suppress(ValueError):  # beyond the calendar
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        now_micros = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        delta = now_micros - _EPOCH
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    if isinstance(value, date):
        return (value.toordinal() - _EPOCH.toordinal()) * 86_400_000_000
    if isinstance(value, np.generic):
        value = value.item()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and abs(value) < 2**63 / 1e6:
        return int(value * 1_000_000) if isinstance(value, int) else round(value * 1e6)
    raise SubscriptionError(
        f"expected {what} to be a datetime, a date or seconds since 1970, "
        f"found {type(given).__name__} {str(given)[:60]!r}"
    )


def moment_of(micros: int) -> datetime | None:
    """The datetime of microseconds since 1970, in UTC; None for never or beyond the calendar."""
    from datetime import timedelta

    try:
        return None if micros == NEVER else _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def attributes_text(value: Any) -> str | None:
    """Own attributes as they are kept."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value, object_hook=_untagged)
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise SubscriptionError(
                f"attributes: expected a JSON object, found no JSON: {error}"
            ) from None
        if not isinstance(value, dict):
            raise SubscriptionError(
                f"attributes: expected a JSON object, found {type(value).__name__}"
            )
    elif isinstance(value, list) and all(isinstance(each, tuple) for each in value):
        # entries of a map: texts are read as what filters compare them with
        value = value if all(isinstance(v, str | None) for _, v in value) else dict(value)
    elif not isinstance(value, Mapping):
        raise SubscriptionError(
            "attributes: expected a mapping from names to values, "
            f"found {type(value).__name__} {str(value)[:60]!r}"
        )
    _check_names(value, MAX_OWN)
    try:
        return json.dumps(dict(value) if isinstance(value, Mapping) else value, default=_tagged)
    except (TypeError, ValueError, RecursionError) as error:
        raise SubscriptionError(f"attributes: expected values of events, found {error}") from None


def _check_names(value: Any, deeper: int) -> None:
    """Refuse names that are no str, JSON would make texts of them, and deeper mappings."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if not isinstance(name, str):
                raise SubscriptionError(
                    "attributes: expected names to be str, "
                    f"found {type(name).__name__} {str(name)[:60]!r}"
                )
            if name in _TAGS:
                raise SubscriptionError(f"attributes: expected no name {name!r}: rename it")
            if isinstance(each, Mapping) and deeper == 0:
                raise SubscriptionError(
                    f"attributes: expected mappings nested at most {MAX_OWN} deep, found more: "
                    "flatten them"
                )
            _check_names(each, deeper - 1)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_names(each, deeper)


def _tagged(value: Any) -> Any:
    value = plain(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, datetime):
        return {"\0time": value.isoformat()}
    if isinstance(value, date):
        return {"\0date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"\0decimal": str(value)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} {str(value)[:60]!r}")


def _untagged(found: dict[str, Any]) -> Any:
    if len(found) == 1:
        ((name, value),) = found.items()
        if name in _TAGS:
            return _TAGS[name](value)
    return found


def attributes_of(text: str | None) -> dict[str, Any] | list[tuple[str, str | None]] | None:
    """Own attributes from what is kept: a mapping, or the entries of a map of texts."""
    if text is None:
        return None
    try:
        found = json.loads(text, object_hook=_untagged)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise FormatError(f"expected kept attributes, found {text[:60]!r}: {error}") from None
    return [(name, value) for name, value in found] if isinstance(found, list) else found


_READERS = {
    "priority": read_priority,
    "expires": read_expires,
    "attributes": attributes_text,
    "payload": payload_text,
}
