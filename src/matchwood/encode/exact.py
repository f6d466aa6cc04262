"""Numbers that neither an int of 64 bits nor a double holds: decimals with many digits.

Order.    A double stands for the shortest decimal that reads back as it (`decimal_of`).  So 0.1 the
          double, 0.1 the decimal and the constant 0.1 are one number, and all numbers have one
          order:

              0.0999999999999999999   <   0.1   <   0.1000000000000000001

Constant. Beside a double, a constant with more digits than doubles have is the nearest double, as
          in Spark; beside ints and decimals it is what is written.  So 0.1 as a double equals two
          constants, 0.1 and 0.10000000000000000001, and no single key can say that.  A predicate
          with such a constant L, whose nearest double is c, tests another attribute too, `x exact`,
          which has the value of x unless that is a double:

              x < L    ->  `x exact` < L  OR  (x < c  AND  `x exact` IS NULL)

          The encoders of events supply it for the attributes that have such constants.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from math import isinf
from typing import Any

from matchwood.lang.literals import decimal_of
from matchwood.lang.names import is_context
from matchwood.lang.nodes import And, Between, Comparison, Expr, In, IsNull, Or, Predicate

EXACT = "\0exact"
"""Ends the name of the attribute `x exact`; no name that a user may choose has a NUL in it."""


class Exact:
    """A decimal that is no int of 64 bits and no double, in one order with both."""

    __slots__ = ("value",)

    def __init__(self, value: Decimal) -> None:
        self.value = value

    def __lt__(self, other: object) -> bool:
        exact = _as_decimal(other)
        return NotImplemented if exact is None else self.value < exact

    def __gt__(self, other: object) -> bool:
        exact = _as_decimal(other)
        return NotImplemented if exact is None else self.value > exact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Exact({self.value})"

    @property
    def nearest(self) -> float:
        """The nearest double."""
        return float(self.value)

    @property
    def is_above_nearest(self) -> bool:
        return self.value > decimal_of(self.nearest)


def _as_decimal(other: object) -> Decimal | None:
    """Another number of the same order as a decimal; None for what has an order of its own."""
    if isinstance(other, Exact):
        return other.value
    if isinstance(other, float):
        return Decimal(other) if isinf(other) else decimal_of(other)
    return Decimal(other) if isinstance(other, int) else None


def has_decimal(node: Predicate) -> bool:
    """Whether a predicate has a constant with more digits than a double."""
    if isinstance(node, Comparison):
        return isinstance(node.value, Decimal)
    if isinstance(node, In):
        return Decimal in set(map(type, node.values))
    return isinstance(node, Between) and Decimal in (type(node.low), type(node.high))


def spelled_out(node: Predicate) -> Expr:
    """The same predicate for numbers of both kinds, by the law above."""
    if is_context(node.name):  # its numbers are doubles
        return _with_doubles(node)
    exact = replace(node, name=node.name + EXACT)  # type: ignore[type-var]
    absent = IsNull(exact.name, position=node.position)
    return Or((exact, And((_with_doubles(node), absent), node.position)), node.position)


def _with_doubles(node: Predicate) -> Predicate:
    if isinstance(node, Comparison):
        return replace(node, value=_nearest(node.value))
    if isinstance(node, Between):
        return replace(node, low=_nearest(node.low), high=_nearest(node.high))
    assert isinstance(node, In)
    return replace(node, values=tuple([_nearest(value) for value in node.values]))


def _nearest(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
