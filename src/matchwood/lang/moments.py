"""Dates and timestamps: the value of `DATE '...'` and `TIMESTAMP '...'`.

The forms are Spark's, in a session whose time zone is UTC: `2026`, `2026-1`, `2026-01-31`, then a
space or T, hours, minutes, seconds, a fraction cut to microseconds, and a zone as Z, UTC, GMT or an
offset.  Refused, though Spark takes them: words and times that depend on the day they are read
('now', 'today', '03:04'), and names of regions, since their rules differ from machine to machine.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from matchwood.lang.literals import LiteralError

_BLANKS = " \t\n\r\f\v"
_CLOCK = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))? *(Z|[A-Z]*[-+0-9:]*))?)?"
_DATE = re.compile(r"\+?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    rf"\+?([0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_CLOCK})?)?)?"
)
_ZONE = re.compile(r"(?:UTC|GMT|UT)?(?:([-+])(.*))?")
_OFFSETS = tuple(
    re.compile(form)
    for form in (
        "([0-9]{1,2})(?::([0-9]{1,2}))?",
        "([0-9]{1,2}):([0-9]{2}):([0-9]{2})",
        "([0-9]{2})([0-9]{2})([0-9]{2})?",
    )
)
_EPOCH = "epoch"


def read_date(text: str) -> date:
    """The day a DATE literal names; what follows a space or T is ignored, as in Spark."""
    body = text.strip(_BLANKS)
    if body.lower() == _EPOCH:
        return date(1970, 1, 1)
    found = _DATE.fullmatch(body)
    try:
        if found is None:
            raise ValueError
        year, month, day = found.groups()
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        raise LiteralError(
            f"expected a date such as DATE '2026-01-31', found {text[:40]!r}: "
            "years 0001 to 9999, no names of days"
        ) from None


def read_timestamp(text: str, *, zoned: bool = True) -> datetime:
    """The time that a TIMESTAMP literal names, in UTC; TIMESTAMP_NTZ ignores the zone, as Spark."""
    body = text.strip(_BLANKS)
    if body.lower() == _EPOCH:
        return datetime(1970, 1, 1, tzinfo=UTC)
    found = _TIMESTAMP.fullmatch(body)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        instant = datetime(
            int(year), int(month or 1), int(day or 1),
            int(hour or 0), int(minute or 0), int(second or 0),
            int((fraction or "")[:6].ljust(6, "0")), UTC,
        )  # fmt: skip
        offset = _offset(zone or "Z")
        return instant - offset if zoned else instant
    except (ValueError, OverflowError):
        raise LiteralError(
            "expected a timestamp such as TIMESTAMP '2026-01-31 23:59:59.5+01:00', "
            f"found {text[:40]!r}: years 0001 to 9999, the zone as Z, UTC or an offset"
        ) from None


def _offset(zone: str) -> timedelta:
    """How far east of UTC a zone lies."""
    named = _ZONE.fullmatch("" if zone == "Z" else zone)
    if named is None:
        raise ValueError(zone)
    sign, figures = named.groups()
    if sign is None:
        return timedelta()
    form = next(filter(None, (form.fullmatch(figures) for form in _OFFSETS)), None)
    if form is None:
        raise ValueError(zone)
    hours, minutes, seconds = (int(part or 0) for part in (*form.groups(), None)[:3])
    east = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or east > timedelta(hours=18):
        raise ValueError(zone)
    return -east if sign == "-" else east
