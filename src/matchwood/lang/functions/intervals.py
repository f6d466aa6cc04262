"""Arithmetic of dates, timestamps and intervals, in UTC.

timestamp ± interval                    a timestamp; months end where the month does
date ± interval of days, of months      a date; ± any other interval  ->  a timestamp
string ± interval of microseconds       a string: the timestamp that it reads as, and moved
timestamp - timestamp, date - date      an interval
date ± int                              a date
interval ± interval, interval * int     an interval
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from matchwood.lang.functions.casts import caster
from matchwood.lang.functions.registry import Binding, extend
from matchwood.lang.functions.times import months_later, moved
from matchwood.lang.functions.types import Failed, TypeProblem, common
from matchwood.lang.intervals import DAYS, MICROSECONDS, MONTHS, WHOLE, Interval, Span

_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_READ_AS = ("date", "timestamp", "string", "void")


def _is_moment(kind: Any) -> bool:
    return kind in ("date", "timestamp") or isinstance(kind, Span)


def _interval(amount: int, type_: Span) -> Interval:
    try:
        return Interval(amount, type_)
    except OverflowError as error:
        raise Failed(str(error)) from None


def _later(instant: datetime, interval: Interval) -> datetime:
    if interval.type.kind == MONTHS:
        day = months_later(date(instant.year, instant.month, instant.day), interval.amount)
        return instant.replace(year=day.year, month=day.month, day=day.day)
    try:
        return instant + timedelta(microseconds=interval.amount)
    except OverflowError:
        raise Failed("a time outside the years 1 to 9999") from None


def _refused(left: Any, op: str, right: Any) -> TypeProblem:
    return TypeProblem(f"{left} {op} {right}")


def _moving(kind: Any, span: Span, op: str) -> tuple[Any, Callable[[Any, Interval], Any]]:
    """The type of a value plus or minus an interval, and what adds one."""
    if kind == "void":
        return span, lambda value, interval: None
    if kind == "timestamp":
        return kind, _later
    if kind == "date" and span.kind == MONTHS:
        return kind, lambda day, interval: months_later(day, interval.amount)
    if kind == "date" and span == DAYS:
        return kind, lambda day, interval: moved(day, interval.amount // _DAY)
    if kind == "date":
        midnight = caster("date", "timestamp")
        return "timestamp", lambda day, interval: _later(midnight(day), interval)
    if kind == "string" and span.kind == MICROSECONDS:
        read, written = caster("string", "timestamp"), caster("timestamp", "string")
        return kind, lambda text, interval: written(_later(read(text), interval))
    raise _refused(kind, op, span)


def _sum(types: Sequence[Any]) -> Binding:
    left, right = types
    if isinstance(left, Span) and isinstance(right, Span):
        to = common(left, right)
        return to, lambda a, b: _interval(a.amount + b.amount, to)
    if isinstance(right, Span):
        return _moving(left, right, "+")
    if isinstance(left, Span):
        kind, later = _moving(right, left, "+")
        return kind, lambda interval, value: later(value, interval)
    if tuple(types) == ("date", "int"):
        return "date", moved
    if tuple(types) == ("int", "date"):
        return "date", lambda n, day: moved(day, n)
    if "void" in types:
        return "timestamp", lambda a, b: None
    raise _refused(left, "+", right)


def _difference(types: Sequence[Any]) -> Binding:
    left, right = types
    if isinstance(left, Span) and isinstance(right, Span):
        to = common(left, right)
        return to, lambda a, b: _interval(a.amount - b.amount, to)
    if isinstance(right, Span):
        kind, later = _moving(left, right, "-")
        return kind, lambda value, interval: later(value, _negative(interval))
    if left in _READ_AS and right in _READ_AS:
        kind = "timestamp" if "timestamp" in types else "date"
        span = WHOLE[MICROSECONDS] if kind == "timestamp" else DAYS
        of_left, of_right = caster(left, kind), caster(right, kind)
        return span, lambda a, b: _interval((of_left(a) - of_right(b)) // _MICROSECOND, span)
    if tuple(types) == ("date", "int"):
        return "date", lambda day, n: moved(day, -n)
    raise _refused(left, "-", right)


def _product(types: Sequence[Any]) -> Binding:
    left, right = types
    whole = ("int", "bigint", "void")
    if isinstance(left, Span) and right in whole:
        to = WHOLE[left.kind]
        return to, lambda interval, n: _interval(interval.amount * n, to)
    if isinstance(right, Span) and left in whole:
        to = WHOLE[right.kind]
        return to, lambda n, interval: _interval(interval.amount * n, to)
    raise TypeProblem(f"{left} * {right}: an interval is multiplied by whole numbers alone")


def _negative(interval: Interval) -> Interval:
    return _interval(-interval.amount, interval.type)


def _of_one(evaluate: Callable[[Interval], Interval]) -> Callable[[Sequence[Any]], Binding]:
    def bind(types: Sequence[Any]) -> Binding:
        if not isinstance(types[0], Span):
            raise TypeProblem(f"{types[0]}, where it takes a number or an interval")
        return types[0], evaluate

    return bind


extend("+", _is_moment, _sum)
extend("-", _is_moment, _difference)
extend("*", _is_moment, _product)
extend("negative", _is_moment, _of_one(_negative))
extend("positive", _is_moment, _of_one(lambda interval: interval))
extend("abs", _is_moment, _of_one(lambda each: _interval(abs(each.amount), each.type)))
