"""Events of predicates, judged by concrete values: the definition of correct, without keys.

    Witnesses(kind, leaves).truths(expr)     which values make an expression TRUE, which FALSE
    requirements(conjunction)                what must be satisfied, attribute by attribute

An event of predicates allows, for each attribute, a set of values; an attribute that it does not
mention is NULL.  A conjunction is satisfied when for each attribute that it tests there is one
value that the event allows and that makes all its predicates on the attribute TRUE.  A disjunction
of conjunctions is satisfied when one of them is.

Whether such a value exists is decided by trying: `Witnesses` lists enough values of a type that
one lies in every place where a predicate with the given constants can change its truth:

    every constant, and the value right before and right after it where the type has one;
    for strings, which have none right before: a longer one after every constant;
    the smallest and the largest value of the type, NULL.

A value exists when an event of values can carry it: two booleans, ints of 64 bits, doubles with
both infinities and NaN (a `number` may be a decimal between two of them, too), strings from '' on,
days of 32 bits, microseconds of 64 bits.  Moments are
counted in microseconds since 1970, because Arrow carries moments that Python's types cannot.

Two predicates stand apart and choose for themselves: IS NULL, and a LIKE pattern with a wildcard
before its end, which every event satisfies that allows more than a list of values
(docs/semantics.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from matchwood.lang.nodes import (
    And,
    Between,
    Comparison,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    predicates,
)
from naive import Truth, compared, like

DAY = 86_400_000_000
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TINY = Fraction(1, 10**400)


# ── moments as microseconds ─────────────────────────────────────────────────────────────────────


def in_microseconds(value: Any) -> Any:
    """A date or datetime as an int; any other value as it is."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * DAY
    return value


def plain(node: Expr) -> Expr:
    """The expression with its moments in microseconds."""
    if isinstance(node, (And, Or)):
        return type(node)(tuple(plain(operand) for operand in node.operands))
    if isinstance(node, Comparison):
        return replace(node, value=in_microseconds(node.value))
    if isinstance(node, Between):
        return replace(node, low=in_microseconds(node.low), high=in_microseconds(node.high))
    if isinstance(node, In):
        return replace(node, values=tuple(in_microseconds(value) for value in node.values))
    return node


# ── values to try ───────────────────────────────────────────────────────────────────────────────


def _ints(constant: float) -> Iterator[int]:
    if math.isinf(constant) or constant != constant:
        return
    for whole in {math.floor(constant), math.ceil(constant)}:
        yield from (whole - 1, whole, whole + 1)


def _days(constant: int) -> Iterator[int]:
    for day in {constant // DAY, -(-constant // DAY)}:
        yield from ((day - 1) * DAY, day * DAY, (day + 1) * DAY)


def _doubles(constant: float) -> Iterator[float]:
    try:
        nearest = float(constant)
    except OverflowError:
        nearest = math.copysign(math.inf, constant)
    if nearest == nearest:
        yield from (math.nextafter(nearest, -math.inf), nearest, math.nextafter(nearest, math.inf))


def _between_doubles(constant: float) -> Iterator[Fraction]:
    """Decimals above and below a number, closer than any double or int."""
    if not math.isinf(constant) and constant == constant:
        yield from (Fraction(constant) - _TINY, Fraction(constant) + _TINY)


def _strings(constant: str) -> Iterator[str]:
    yield from (constant, constant + "\x00", constant + "m")
    if constant.endswith("\x00"):
        yield constant[:-1]


def _after_prefix(text: str) -> str:
    """The first string after all those that begin with a text, or '' when there is none."""
    text = text.rstrip("\U0010ffff")
    if not text:
        return ""
    following = ord(text[-1]) + 1
    return text[:-1] + chr(0xE000 if following == 0xD800 else following)


def _fitting(pattern: str) -> Iterator[str]:
    """Strings that fit a LIKE pattern, and what a prefix pattern compares with."""
    text = re.sub(r"\\(.)|%|_", lambda found: found[1] or ("" if found[0] == "%" else "m"), pattern)
    yield text
    yield _after_prefix(text)


EXTREMES: dict[str, list[Any]] = {
    "bool": [False, True],
    "int": [INT_MIN, INT_MAX],
    "timestamp": [INT_MIN, INT_MAX],
    "date": [-(2**31) * DAY, (2**31 - 1) * DAY],
    "float": [-math.inf, 0.0, math.inf, math.nan],
    "number": [-math.inf, 0.0, math.inf, math.nan, INT_MIN, INT_MAX],
    "string": ["", "\U0010ffff" * 4],
}


def _neighbours(kind: str, constant: Any) -> Iterator[Any]:
    if kind == "string":
        yield from _strings(constant)
    elif kind == "date":
        yield from _days(constant)
    elif kind != "bool":
        if kind != "float":
            yield from _ints(constant)
        if kind in ("float", "number"):
            yield from _doubles(constant)
        if kind == "number":
            yield from _between_doubles(constant)


def _exists(kind: str, value: Any) -> bool:
    if kind in ("int", "timestamp") or (kind == "number" and isinstance(value, int)):
        return INT_MIN <= value <= INT_MAX
    return kind != "date" or -(2**31) <= value // DAY < 2**31


def _constants(leaf: Expr) -> Iterator[Any]:
    if isinstance(leaf, Comparison):
        yield leaf.value
    elif isinstance(leaf, Between):
        yield from (leaf.low, leaf.high)
    elif isinstance(leaf, In):
        yield from leaf.values
    elif isinstance(leaf, Like):
        yield from _fitting(leaf.pattern)


def is_general(leaf: Expr) -> bool:
    """Whether it is a LIKE with a wildcard before its end."""
    bare = re.sub(r"\\.", "x", leaf.pattern) if isinstance(leaf, Like) else ""
    return bool(set("%_") & set(bare.rstrip("%"))) or bare.endswith("_")


class Witnesses:
    """Values of one attribute to try; a set of them is an int, one bit a value."""

    def __init__(self, kind: str, leaves: Iterable[Expr]) -> None:
        constants = [c for leaf in leaves for c in _constants(leaf) if c is not None]
        values = [
            value
            for constant in constants
            for value in _neighbours(kind, constant)
            if _exists(kind, value)
        ]
        by_text = {repr(value): value for value in [*EXTREMES[kind], *values]}
        self.values = [None, *by_text.values()]
        self._atoms: dict[tuple[str, str], Sets] = {}

    def satisfying(self, expr: Expr) -> int:
        """The values that make an expression on this attribute TRUE."""
        return self.truths(expr)[0]

    def truths(self, expr: Expr) -> Sets:
        """The values that make it TRUE, and those that make it FALSE, in three-valued logic."""
        if isinstance(expr, (And, Or)):
            sets = [self.truths(operand) for operand in expr.operands]
            return _and(sets) if isinstance(expr, And) else _or(sets)
        if isinstance(expr, Not):
            return self.truths(expr.operand)[::-1]
        if isinstance(expr, Comparison):
            return self._atom(expr.op, expr.value)
        if isinstance(expr, IsNull):
            found = 1, (1 << len(self.values)) - 2
        elif isinstance(expr, Between):
            found = _and([self._atom(">=", expr.low), self._atom("<=", expr.high)])
        elif isinstance(expr, In):
            found = _or([self._atom("=", value) for value in expr.values])
        else:
            assert isinstance(expr, Like)
            found = self._atom("LIKE", expr.pattern)
        return found[::-1] if expr.negated else found

    def _atom(self, op: str, constant: Any) -> Sets:
        place = op, repr(constant)
        if place not in self._atoms:
            truths: list[Truth] = [
                like(value, constant) if op == "LIKE" else _compared(value, op, constant)
                for value in self.values
            ]
            self._atoms[place] = _bits(truths, True), _bits(truths, False)
        return self._atoms[place]


def _compared(value: Any, op: str, constant: Any) -> Truth:
    """As the naive evaluator, which knows no fractions."""
    if not isinstance(value, Fraction) or constant is None:
        return compared(value, op, constant)
    order = -1 if constant != constant else (value > constant) - (value < constant)
    return compared(order, op, 0)


Sets = tuple[int, int]


def _bits(truths: list[Truth], wanted: bool) -> int:
    return sum(1 << i for i, truth in enumerate(truths) if truth is wanted)


def _and(sets: Iterable[Sets]) -> Sets:
    true, false = -1, 0
    for more_true, more_false in sets:
        true, false = true & more_true, false | more_false
    return true, false


def _or(sets: Iterable[Sets]) -> Sets:
    false, true = _and([each[::-1] for each in sets])
    return true, false


def requirements(conjunction: Expr) -> dict[tuple[str, Expr | None], list[Expr]]:
    """The predicates that one value must satisfy together: by attribute, and what stands apart."""
    found: dict[tuple[str, Expr | None], list[Expr]] = {}
    for leaf in predicates(conjunction):
        apart = is_general(leaf) or (isinstance(leaf, IsNull) and not leaf.negated)
        found.setdefault((leaf.name, leaf if apart else None), []).append(leaf)
    return found
