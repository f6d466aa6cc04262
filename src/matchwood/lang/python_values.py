"""Values of Python programs as the tree keeps them.

A wrong type is a TypeError, a value that the language cannot hold a ParseError, as in text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isnan
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.literals import (
    INT_MAX,
    INT_MIN,
    MAX_NUMBER,
    NAN,
    LiteralError,
    held,
    number,
)
from matchwood.lang.nodes import Boolean, Value


def as_value(value: object) -> Value:
    """The value as the tree keeps it: plain Python types, timestamps in UTC."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return as_text(value, "a value")
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return NAN if isnan(value) else float(value)
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    if isinstance(value, Decimal):
        return _decimal(value)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return as_value(_from_numpy(value))
    raise TypeError(
        f"expected bool, int, float, str, datetime or date, found {type(value).__name__}: "
        + _advice(value)
    )


def _advice(value: object) -> str:
    if value is None:
        return "write .is_null() or .is_not_null()"
    if isinstance(value, Boolean):
        return "compare an attribute with a value"
    if isinstance(value, bytes):
        return "decode it to str first"
    if isinstance(value, Iterable):
        return "write .isin(values) to test for several values"
    return "convert it to one of these first"


def as_text(value: object, what: str) -> str:
    """A str that UTF-8 can hold; `what` names it in the error."""
    if not isinstance(value, str):
        raise TypeError(f"expected {what} as str, found {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParseError(
            f"expected {what} in Unicode, found a lone surrogate in {value!r}"
        ) from None
    return str(value)


def _integer(value: int) -> int | float | Decimal:
    if INT_MIN <= value <= INT_MAX:
        return value
    try:
        return held(Decimal(value), float(value))
    except OverflowError:
        raise ParseError("expected a number up to 1.8e308, found a larger integer") from None


def _decimal(value: Decimal) -> int | float | Decimal:
    if not value.is_finite():
        return NAN if value.is_nan() else float(value)
    try:
        if abs(value.adjusted()) > MAX_NUMBER:
            raise LiteralError(f"expected a number up to 1.8e308, found {value}: it cannot be held")
        return number(format(value, "f"))
    except LiteralError as error:
        raise ParseError(str(error)) from None


def _timestamp(value: datetime) -> datetime:
    try:
        utc = value.astimezone(UTC) if value.tzinfo else value
        return datetime(
            utc.year, utc.month, utc.day,
            utc.hour, utc.minute, utc.second, utc.microsecond, UTC,
        )  # fmt: skip
    except (ValueError, TypeError, OverflowError):
        raise TypeError(f"expected a timestamp from year 1 to 9999, found {value!r}") from None


def _from_numpy(scalar: Any) -> object:
    """A NumPy scalar as a Python object; datetime64 in microseconds, but days stay dates."""
    plain = scalar.item()
    if type(scalar).__name__ == "datetime64" and not isinstance(plain, date):
        plain = scalar.astype("datetime64[us]").item()
    return plain
