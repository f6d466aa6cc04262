"""CAST, as Spark's ANSI mode does it: what does not fit fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import ROUND_DOWN, Decimal
from typing import Any

from matchwood.lang.cast_texts import BLANKS, BOOLS, INTEGER, SPECIAL
from matchwood.lang.functions.types import (
    BOUNDS,
    Dec,
    Failed,
    TypeProblem,
    checked,
    fit,
    is_number,
)
from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp

TYPE_NAMES = {
    "int": "int", "integer": "int", "bigint": "bigint", "long": "bigint", "double": "double",
    "string": "string", "boolean": "boolean", "date": "date", "timestamp": "timestamp",
    "decimal": "decimal(10,0)", "dec": "decimal(10,0)", "numeric": "decimal(10,0)",
}  # fmt: skip
"""Names of types that a cast may have, and the canonical one."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,6})?")


def type_named(name: str) -> Any:
    """The type of a canonical name."""
    if name.startswith("decimal("):
        precision, scale = name[8:-1].split(",")
        return Dec(int(precision), int(scale))
    return name


def caster(kind: Any, to: Any) -> Callable[[Any], Any]:
    """What casts a value of one type to another; TypeProblem where there is no such cast."""
    if kind in (to, "void"):
        return lambda value: value
    if to in BOUNDS:
        return _to_integer(kind, to)
    makers = {"double": _to_double, "string": _to_string, "boolean": _to_boolean}
    makers |= {"date": _to_date, "timestamp": _to_timestamp}
    if isinstance(to, Dec):
        return _to_decimal(kind, to)
    return makers[to](kind)


def _refused(kind: Any, to: Any) -> TypeProblem:
    return TypeProblem(f"a cast from {kind} to {to}")


def _to_integer(kind: Any, to: str) -> Callable[[Any], int]:
    def of_double(value: float) -> int:
        if value != value or abs(value) == float("inf"):
            raise Failed(f"{value} does not fit {to}")
        return checked(int(value), to)

    def of_string(value: str) -> int:
        body = value.strip(BLANKS)
        if len(body) > 40 or not INTEGER.fullmatch(body):
            raise Failed(f"{value[:40]!r} is no {to}")
        return checked(int(body), to)

    if kind in BOUNDS:
        return lambda value: checked(value, to)
    if kind == "boolean":
        return int
    if kind == "double":
        return of_double
    if isinstance(kind, Dec):
        return lambda value: checked(int(value.to_integral_value(ROUND_DOWN)), to)
    if kind == "string":
        return of_string
    raise _refused(kind, to)


def _to_double(kind: Any) -> Callable[[Any], float]:
    def of_string(value: str) -> float:
        body = value.strip(BLANKS)
        if SPECIAL.fullmatch(body) or _NUMBER.fullmatch(body):
            return float(body)
        raise Failed(f"{value[:40]!r} is no double")

    if is_number(kind) or kind == "boolean":
        return float
    if kind == "string":
        return of_string
    raise _refused(kind, "double")


def _to_decimal(kind: Any, to: Dec) -> Callable[[Any], Decimal | None]:
    def of_string(value: str) -> Decimal:
        body = value.strip(BLANKS)
        if not _NUMBER.fullmatch(body) or len(body) > 200:
            raise Failed(f"{value[:40]!r} is no decimal")
        number = Decimal(body)
        if number.adjusted() > 60:
            raise Failed(f"{value[:40]!r} has more digits than {to}")
        return fit(number, to)

    def of_double(value: float) -> Decimal | None:
        if value != value or abs(value) == float("inf"):
            return None  # as in Spark, in ANSI mode, too
        return fit(Decimal(repr(value)), to)

    if kind in BOUNDS or isinstance(kind, Dec) or kind == "boolean":
        return lambda value: fit(Decimal(value), to)
    if kind == "double":
        return of_double
    if kind == "string":
        return of_string
    raise _refused(kind, to)


def _to_string(kind: Any) -> Callable[[Any], str]:
    if kind in BOUNDS:
        return str
    if kind == "boolean":
        return lambda value: "true" if value else "false"
    if kind == "date":
        return lambda value: str(value.isoformat())
    if kind == "timestamp":
        return _timestamp_text
    if isinstance(kind, Dec):
        return lambda value: format(value, "f")
    raise TypeProblem(f"a cast from {kind} to string: Java's spelling of doubles is its own")


def _timestamp_text(value: datetime) -> str:
    text = value.strftime("%H:%M:%S")
    text = f"{value.year:04d}-{value.month:02d}-{value.day:02d} {text}"
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def _to_boolean(kind: Any) -> Callable[[Any], bool]:
    def of_string(value: str) -> bool:
        found = BOOLS.get(value.strip(BLANKS).lower())
        if found is None:
            raise Failed(f"{value[:40]!r} is no boolean")
        return found

    if is_number(kind):
        return lambda value: bool(value != 0)
    if kind == "string":
        return of_string
    raise _refused(kind, "boolean")


def _to_date(kind: Any) -> Callable[[Any], date]:
    def of_string(value: str) -> date:
        try:
            return read_date(value)
        except LiteralError as error:
            raise Failed(str(error)) from None

    if kind == "timestamp":
        return lambda value: date(value.year, value.month, value.day)
    if kind == "string":
        return of_string
    raise _refused(kind, "date")


def midnight(value: date) -> datetime:
    """A date as the timestamp of its start."""
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _to_timestamp(kind: Any) -> Callable[[Any], datetime]:
    def of_string(value: str) -> datetime:
        try:
            return read_timestamp(value)
        except LiteralError as error:
            raise Failed(str(error)) from None

    if kind == "date":
        return midnight
    if kind == "string":
        return of_string
    raise _refused(kind, "timestamp")
