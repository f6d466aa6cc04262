"""Types of computed values, as Spark names them, and what they become beside each other.

An event's int is BIGINT, its float DOUBLE, its Decimal DECIMAL with its own digits; a literal int
is INT when 32 bits hold it.  `void` is the type of NULL, `cell` that of a text that may stand for
a value of any type (`cell_reading`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, NamedTuple

from matchwood.lang.cells import CELL, Cell
from matchwood.lang.intervals import Interval, Span, wider

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
BOUNDS = {"int": (INT_MIN, INT_MAX), "bigint": (LONG_MIN, LONG_MAX)}
MAX_DIGITS = 38
WIDE = Context(prec=800, Emax=10**6, Emin=-(10**6))
"""Enough digits that no exact step rounds."""


class Dec(NamedTuple):
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class Arr(NamedTuple):
    """ARRAY of one type."""

    element: Any

    def __str__(self) -> str:
        return f"array<{self.element}>"


class Mp(NamedTuple):
    """MAP or STRUCT whose keys are strings, with values of any type."""

    value: Any = None

    def __str__(self) -> str:
        return "map"


class Mixed(NamedTuple):
    """The elements of a list of several kinds, as JSON has them; Spark has no such array."""

    kinds: tuple[Any, ...]

    def __str__(self) -> str:
        return "several kinds"


class TypeProblem(Exception):
    """Arguments of types that a function does not take."""


class Failed(Exception):
    """An error that Spark raises for one row: division by zero, overflow, a cast that fails."""


def type_of(value: Any) -> Any:
    """The type of an event's value."""
    kind = PLAIN_TYPES.get(type(value))
    if kind is not None:
        if kind == "bigint" and not LONG_MIN <= value <= LONG_MAX:
            return decimal_type(Decimal(value))
        return kind
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Decimal):
        return decimal_type(value)
    if isinstance(value, datetime):
        return "timestamp"
    if isinstance(value, date):
        return "date"
    if isinstance(value, Mapping):
        return Mp()
    if isinstance(value, (list, tuple)):
        return Arr(_element_type([type_of(each) for each in value]))
    if isinstance(value, int):
        return "bigint"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    raise TypeProblem(f"a value of type {type(value).__name__}")


def _element_type(kinds: list[Any]) -> Any:
    """The type of all elements, Mixed if they have none in common."""
    element: Any = "void"
    try:
        for kind in kinds:
            element = common(element, kind)
    except TypeProblem:
        return Mixed(tuple(kinds))
    return element


def is_mixed(kind: Any) -> bool:
    """Whether a type is that of a list of several kinds."""
    return isinstance(kind, Arr) and (isinstance(kind.element, Mixed) or is_mixed(kind.element))


PLAIN_TYPES: dict[type, str] = {
    bool: "boolean", int: "bigint", float: "double", str: "string", type(None): "void",
    Cell: CELL,
}  # fmt: skip
"""Types of values that Python's own class tells; a BIGINT has 64 bits at most."""


def literal_type(value: Any) -> Any:
    """The type of a constant."""
    if isinstance(value, Interval):
        return value.type
    if isinstance(value, int) and not isinstance(value, bool) and INT_MIN <= value <= INT_MAX:
        return "int"
    return type_of(value)


def decimal_type(value: Decimal) -> Dec:
    """The narrowest type that holds a decimal."""
    if not value.is_finite():
        raise TypeProblem("a decimal that is no number")
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > MAX_DIGITS:
        raise TypeProblem(f"a decimal of more than {MAX_DIGITS} digits")
    return Dec(precision, scale)


NUMBERS = ("int", "bigint", "double")


def is_number(kind: Any) -> bool:
    return kind in NUMBERS or isinstance(kind, Dec)


def as_decimal_type(kind: Any) -> Dec:
    """The decimal type that holds all integers of a type."""
    if isinstance(kind, Dec):
        return kind
    return Dec(10, 0) if kind == "int" else Dec(20, 0)


def common(left: Any, right: Any) -> Any:
    """The type of CASE, coalesce, IN and arrays over two types."""
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    if is_number(left) and is_number(right):
        if "double" in (left, right):
            return "double"
        if isinstance(left, Dec) or isinstance(right, Dec):
            a, b = as_decimal_type(left), as_decimal_type(right)
            scale = max(a.scale, b.scale)
            whole = max(a.precision - a.scale, b.precision - b.scale)
            return bounded(whole + scale, scale)
        return "bigint"
    if {left, right} == {"date", "timestamp"}:
        return "timestamp"
    if isinstance(left, Span) and isinstance(right, Span) and left.kind == right.kind:
        return wider(left, right)
    if isinstance(left, Arr) and isinstance(right, Arr):
        return Arr(common(left.element, right.element))
    raise TypeProblem(f"{left} beside {right}")


def check_ordered(kind: Any) -> None:
    """Refuse types whose values cannot be compared."""
    if isinstance(kind, (Mp, Mixed)):
        raise TypeProblem(f"a comparison of {'maps' if isinstance(kind, Mp) else 'several kinds'}")
    if isinstance(kind, Arr):
        check_ordered(kind.element)


def bounded(precision: int, scale: int) -> Dec:
    """A decimal type of at most 38 digits: fraction digits are given up first, down to 6."""
    if precision <= MAX_DIGITS:
        return Dec(precision, scale)
    whole = precision - scale
    return Dec(MAX_DIGITS, max(MAX_DIGITS - whole, min(scale, 6)))


def checked(value: int, kind: str) -> int:
    """An integer that its type holds; Failed when it does not."""
    low, high = BOUNDS[kind]
    if not low <= value <= high:
        raise Failed(f"{value} does not fit {kind}")
    return value


def fit(value: Decimal, kind: Dec) -> Decimal:
    """A decimal rounded to the scale of its type; Failed if it has too many digits."""
    with localcontext(WIDE):
        rounded = value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
        if abs(rounded) >= Decimal(10) ** (kind.precision - kind.scale):
            raise Failed(f"{value} has more digits than {kind}")
        return rounded


def convert(kind: Any, to: Any) -> Any:
    """What turns a value of one type into the wider one; None when nothing need be done."""
    if kind == to or kind == "void":
        return None
    if to == "double":
        return float
    if isinstance(to, Dec):
        return lambda value: fit(Decimal(value), to)
    if to == "timestamp" and kind == "date":
        from matchwood.lang.functions.casts import midnight

        return midnight
    if isinstance(to, Span):
        return lambda value: Interval(value.amount, to)
    if isinstance(to, Arr) and isinstance(kind, Arr):
        inner = convert(kind.element, to.element)
        if inner is None:
            return None
        return lambda values: [None if each is None else inner(each) for each in values]
    return None
