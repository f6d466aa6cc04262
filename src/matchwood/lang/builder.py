"""Expressions built in Python: `attr("price").between(20, 40) & ~attr("format").isin("paperback")`.

The result is the very tree that the text gives.  Wrong types are a TypeError; a value, a name or a
pattern that the language cannot hold is a ParseError, as it would be in text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isnan
from typing import Any

from matchwood.errors import ParseError
from matchwood.lang.literals import INT_MAX, INT_MIN, MAX_NUMBER, NAN, LiteralError, number
from matchwood.lang.names import problem, written
from matchwood.lang.nodes import Between, Boolean, Comparison, Expr, In, IsNull, Like, Value
from matchwood.lang.patterns import canonical, starts_with


def attr(name: str) -> Attribute:
    """An attribute to build expressions with.

    >>> str((attr("price") < 20) & attr("in_stock"))
    'price < 20 AND in_stock'
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the attribute's name as str, found {type(name).__name__}")
    trouble = problem(name)
    if trouble:
        raise ParseError(f"expected an attribute, found {name!r}: {trouble}")
    return Attribute(str(name))


class Attribute(Boolean):
    """A named attribute; alone it is a boolean, compared it is a predicate."""

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def expression(self) -> Expr:
        return Comparison(self.name, "=", True)

    def __eq__(self, value: object) -> Expr:  # type: ignore[override]
        return Comparison(self.name, "=", as_value(value))

    def __ne__(self, value: object) -> Expr:  # type: ignore[override]
        return Comparison(self.name, "<>", as_value(value))

    def __lt__(self, value: object) -> Expr:
        return Comparison(self.name, "<", as_value(value))

    def __le__(self, value: object) -> Expr:
        return Comparison(self.name, "<=", as_value(value))

    def __gt__(self, value: object) -> Expr:
        return Comparison(self.name, ">", as_value(value))

    def __ge__(self, value: object) -> Expr:
        return Comparison(self.name, ">=", as_value(value))

    def between(self, low: object, high: object) -> Expr:
        """From low to high, both included."""
        return Between(self.name, as_value(low), as_value(high))

    def isin(self, *values: Any) -> Expr:
        """One of the values, given one by one or as one list; None stands for NULL."""
        if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str):
            values = tuple(values[0])
        if not values:
            raise ParseError(
                f"expected at least one value, found none: {self.name} in no value at all is FALSE"
            )
        return In(self.name, tuple(None if v is None else as_value(v) for v in values))

    def like(self, pattern: str) -> Expr:
        r"""Matches the pattern: % is any text, _ any character, a backslash makes them plain."""
        try:
            return Like(self.name, canonical(_text(pattern, "a pattern")))
        except LiteralError as error:
            raise ParseError(str(error)) from None

    def startswith(self, prefix: str) -> Expr:
        """Starts with this very text."""
        return Like(self.name, starts_with(_text(prefix, "a prefix")))

    def is_null(self) -> Expr:
        return IsNull(self.name)

    def is_not_null(self) -> Expr:
        return IsNull(self.name, negated=True)

    def __repr__(self) -> str:
        return f"attr({self.name!r})"

    def __str__(self) -> str:
        return written(self.name)


def as_value(value: object) -> Value:
    """The value as the tree keeps it: plain Python types, timestamps in UTC."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, "a value")
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return NAN if isnan(value) else float(value)
    if isinstance(value, datetime):
        return _moment(value)
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
        return "compare an attribute with a value; two attributes cannot be compared"
    if isinstance(value, bytes):
        return "decode it to str first"
    if isinstance(value, Iterable):
        return "write .isin(values) to test for several values"
    return "convert it to one of these first"


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected {what} as str, found {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParseError(
            f"expected {what} in Unicode, found a lone surrogate in {value!r}"
        ) from None
    return str(value)


def _integer(value: int) -> int | float:
    if INT_MIN <= value <= INT_MAX:
        return value
    try:
        return float(value)
    except OverflowError:
        raise ParseError("expected a number up to 1.8e308, found a larger integer") from None


def _decimal(value: Decimal) -> int | float:
    if not value.is_finite():
        return NAN if value.is_nan() else float(value)
    try:
        if abs(value.adjusted()) > MAX_NUMBER:
            raise LiteralError(f"expected a number up to 1.8e308, found {value}: it cannot be held")
        return number(format(value, "f"))
    except LiteralError as error:
        raise ParseError(str(error)) from None


def _moment(value: datetime) -> datetime:
    try:
        moment = value.astimezone(UTC) if value.tzinfo else value
        return datetime(
            moment.year, moment.month, moment.day,
            moment.hour, moment.minute, moment.second, moment.microsecond, UTC,
        )  # fmt: skip
    except (ValueError, TypeError, OverflowError):
        raise TypeError(f"expected a moment from year 1 to 9999, found {value!r}") from None


def _from_numpy(scalar: Any) -> object:
    """A NumPy scalar as a Python object; datetime64 in microseconds, but days stay dates."""
    plain = scalar.item()
    if type(scalar).__name__ == "datetime64" and not isinstance(plain, date):
        plain = scalar.astype("datetime64[us]").item()
    return plain
