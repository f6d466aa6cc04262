"""Intervals: the value of `INTERVAL '1' DAY`, and its text.

Two kinds, as in Spark, that are never mixed: months (YEAR, MONTH) and microseconds (DAY, HOUR,
MINUTE, SECOND).  Both have the fields that their text names, since a date plus an interval of days
alone is a date, and plus any other of microseconds a timestamp.

    INTERVAL 1 day 2 hours                 ->  INTERVAL '1 02' DAY TO HOUR
    INTERVAL 2 weeks                       ->  INTERVAL '14' DAY
    INTERVAL '1-2' YEAR TO MONTH               as it is
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from matchwood.lang.literals import LiteralError

MONTHS, MICROSECONDS = "months", "microseconds"
FIELDS = {MONTHS: ("YEAR", "MONTH"), MICROSECONDS: ("DAY", "HOUR", "MINUTE", "SECOND")}
_SIZES = {
    "YEAR": 12, "MONTH": 1, "WEEK": 7 * 86_400_000_000, "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}  # fmt: skip
_MOST = {MONTHS: 2**31 - 1, MICROSECONDS: 2**63 - 1}
_FIELD_OF = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
UNITS = {name + s: name for name in _SIZES for s in ("", "S")}
"""Words for units, in upper case, and the unit that each is."""
HINT = "write INTERVAL '1' DAY, INTERVAL 1 day 2 hours or INTERVAL '1 02:03:04' DAY TO SECOND"

_NUMBER = re.compile(r"\s*([-+]?)([0-9]{1,19})(?:\.([0-9]{0,9}))?\s*", re.ASCII)
_CLOCK = "([0-9]{1,2})"
_RANGES = {
    MONTHS: (r"([0-9]{1,10})", "-" + _CLOCK),
    MICROSECONDS: (r"([0-9]{1,19})", " " + _CLOCK, ":" + _CLOCK, ":" + _CLOCK),
}
_LIMITS = {"MONTH": 12, "HOUR": 24, "MINUTE": 60, "SECOND": 60}


class Span(NamedTuple):
    """The type of an interval: its kind, and its first and last field."""

    kind: str
    first: int
    last: int

    def __str__(self) -> str:
        names = FIELDS[self.kind]
        first, last = names[self.first].lower(), names[self.last].lower()
        return f"interval {first}" + (f" to {last}" if first != last else "")


DAYS = Span(MICROSECONDS, 0, 0)
WHOLE = {MONTHS: Span(MONTHS, 0, 1), MICROSECONDS: Span(MICROSECONDS, 0, 3)}
"""The types with all fields."""


@dataclass(frozen=True, order=True, slots=True)
class Interval:
    """So many months or microseconds; those of one kind compare by their amount."""

    amount: int
    type: Span = field(compare=False)

    def __post_init__(self) -> None:
        if abs(self.amount) > _MOST[self.type.kind]:
            raise OverflowError(f"an interval of {self.amount} {self.type.kind}")

    def __str__(self) -> str:
        """The text that reads as this interval."""
        names = FIELDS[self.type.kind][self.type.first : self.type.last + 1]
        rest, text = abs(self.amount), ""
        for name in names:
            n, rest = divmod(rest, _SIZES[name])
            if text:
                mark = {"MONTH": "-", "HOUR": " "}.get(name, ":")
                text += mark + (str(n) if name == "MONTH" else f"{n:02d}")
            else:
                text = str(n)
        if rest:  # behind the last field: only seconds have a fraction
            text += f".{rest:06d}".rstrip("0")
        sign = "-" if self.amount < 0 else ""
        fields = names[0] if len(names) == 1 else f"{names[0]} TO {names[-1]}"
        return f"INTERVAL '{sign}{text}' {fields}"


def wider(left: Span, right: Span) -> Span:
    """The type that has the fields of two of one kind, and those between."""
    return Span(left.kind, min(left.first, right.first), max(left.last, right.last))


def read_units(pairs: Sequence[tuple[str, str]]) -> Interval:
    """The interval of numbers and units: `1 day 2 hours`; LiteralError."""
    amount, fields = 0, set()
    for text, word in pairs:
        unit = UNITS.get(word.upper())
        found = _NUMBER.fullmatch(text)
        if unit is None or found is None or (found[3] is not None and unit != "SECOND"):
            what = "a unit such as DAY" if unit is None else f"a whole number of {word}"
            shown = word if unit is None else text
            raise LiteralError(f"expected {what} in an interval, found {shown[:40]!r}: {HINT}")
        sign, digits, fraction = found.groups()
        size = int(digits) * _SIZES[unit] + int((fraction or "")[:6].ljust(6, "0"))
        amount += -size if sign == "-" else size
        fields.add(_FIELD_OF.get(unit, unit))
    kind = MONTHS if fields & {*FIELDS[MONTHS]} else MICROSECONDS
    if not fields <= {*FIELDS[kind]}:
        raise LiteralError(
            "expected an interval of months or of days and times, found both: they cannot be "
            "compared, add two intervals one after the other"
        )
    places = [FIELDS[kind].index(each) for each in fields]
    return _checked(amount, Span(kind, min(places), max(places)))


def read_range(text: str, first: str, last: str) -> Interval:
    """The interval of `'1 02:03:04' DAY TO SECOND`; LiteralError."""
    kind = MONTHS if first in FIELDS[MONTHS] else MICROSECONDS
    names = FIELDS[kind]
    if first not in names or last not in names or names.index(first) >= names.index(last):
        raise LiteralError(f"expected YEAR TO MONTH or DAY TO SECOND, found {first} TO {last}")
    type_ = Span(kind, names.index(first), names.index(last))
    used = names[type_.first : type_.last + 1]
    form = _RANGES[kind][0] + "".join(_RANGES[kind][type_.first + 1 : type_.last + 1])
    fraction = r"(?:\.([0-9]{1,9}))?" if last == "SECOND" else "()"
    found = re.fullmatch(f"([-+]?){form}{fraction}", text.strip(), re.ASCII)
    numbers = [] if found is None else list(map(int, found.groups()[1:-1]))
    is_good = all(n < _LIMITS[name] for name, n in zip(used[1:], numbers[1:], strict=False))
    if found is None or not is_good:
        example = Interval(0, type_)
        raise LiteralError(f"expected an interval such as {example}, found {text[:40]!r}")
    amount = sum(n * _SIZES[name] for name, n in zip(used, numbers, strict=True))
    amount += int((found.groups()[-1] or "")[:6].ljust(6, "0"))
    return _checked(-amount if found[1] == "-" else amount, type_)


def _checked(amount: int, type_: Span) -> Interval:
    try:
        return Interval(amount, type_)
    except OverflowError as error:
        raise LiteralError(f"expected an interval that 64 bits hold, found {error}") from None
