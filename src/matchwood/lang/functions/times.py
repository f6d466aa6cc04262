"""Functions of dates and timestamps, in UTC."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from matchwood.lang.functions.registry import Binding, argument, define
from matchwood.lang.functions.types import Failed

_GROUP = "dates and timestamps"


def moved(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise Failed("a day outside the years 1 to 9999") from None


def months_later(day: date, months: int) -> date:
    month = day.year * 12 + day.month - 1 + months
    year, month = divmod(month, 12)
    if not 1 <= year <= 9999:
        raise Failed("a day outside the years 1 to 9999")
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


def _make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise Failed(f"{year}-{month}-{day} is no day") from None


_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
_CLOCK_UNITS = {
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
    "MILLISECOND": "millisecond", "MICROSECOND": "microsecond",
}  # fmt: skip


def _first_day(unit: str, day: date) -> date:
    if unit == "week":
        return moved(day, -day.weekday())
    month = 1 if unit == "year" else day.month
    if unit == "quarter":
        month = (day.month - 1) // 3 * 3 + 1
    return date(day.year, month, 1)


def _trunc(day: date, unit: str) -> date | None:
    found = _UNITS.get(unit.upper())
    return None if found is None else _first_day(found, day)


def _date_trunc(unit: str, instant: datetime) -> datetime | None:
    found = _UNITS.get(unit.upper())
    if found is not None:
        day = _first_day(found, instant.date())
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    found = _CLOCK_UNITS.get(unit.upper())
    if found is None:
        return None
    zeros = {"second": 0, "minute": 1, "hour": 2, "day": 3}
    if found in zeros:
        fields = ("second", "minute", "hour")[: zeros[found]]
        return instant.replace(microsecond=0, **dict.fromkeys(fields, 0))  # type: ignore[arg-type]
    if found == "millisecond":
        return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
    return instant


def _day_or_moment(name: str) -> Any:
    """Parts of the clock are those of a timestamp; a date has none but zero."""

    def bind(types: Sequence[Any]) -> Binding:
        to = argument("timestamp", types[0])

        def part(value: Any) -> int:
            return int(getattr(value if to is None else to(value), name))

        return "int", part

    return bind


def _unix(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


define("year", "date", "int", lambda day: day.year, group=_GROUP, total="date, timestamp")
define(
    "quarter",
    "date",
    "int",
    lambda day: (day.month + 2) // 3,
    group=_GROUP,
    total="date, timestamp",
)
define("month", "date", "int", lambda day: day.month, group=_GROUP, total="date, timestamp")
define(
    "day",
    "date",
    "int",
    lambda day: day.day,
    group=_GROUP,
    aliases="dayofmonth",
    total="date, timestamp",
)
define(
    "dayofweek",
    "date",
    "int",
    lambda day: day.isoweekday() % 7 + 1,
    group=_GROUP,
    total="date, timestamp",
)
define("weekday", "date", "int", lambda day: day.weekday(), group=_GROUP, total="date, timestamp")
define(
    "dayofyear",
    "date",
    "int",
    lambda day: day.timetuple().tm_yday,
    group=_GROUP,
    total="date, timestamp",
)
define(
    "weekofyear",
    "date",
    "int",
    lambda day: day.isocalendar()[1],
    group=_GROUP,
    total="date, timestamp",
)
define("hour", "timestamp", "int", group=_GROUP, bind=_day_or_moment("hour"), total="timestamp")
define("minute", "timestamp", "int", group=_GROUP, bind=_day_or_moment("minute"), total="timestamp")
define("second", "timestamp", "int", group=_GROUP, bind=_day_or_moment("second"), total="timestamp")
define("date_add", "date int", "date", moved, group=_GROUP, aliases="dateadd")
define("date_sub", "date int", "date", lambda day, n: moved(day, -n), group=_GROUP)
define("datediff", "date date", "int", lambda a, b: (a - b).days, group=_GROUP,
       aliases="date_diff", total="date date")  # fmt: skip
define("add_months", "date int", "date", months_later, group=_GROUP)
define("last_day", "date", "date", lambda day: moved(months_later(day.replace(day=1), 1), -1),
       group=_GROUP)  # fmt: skip
define("make_date", "int int int", "date", _make_date, group=_GROUP)
define("trunc", "date string", "date", _trunc, group=_GROUP)
define("date_trunc", "string timestamp", "timestamp", _date_trunc, group=_GROUP)
define("to_date", "date", "date", lambda day: day, group=_GROUP)
define("unix_seconds", "timestamp", "bigint", _unix, group=_GROUP, total="timestamp")
