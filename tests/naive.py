"""The definition of correct: evaluate a tree on one event, with no cleverness.

    evaluate(expr, event)        True, False, or None for SQL's unknown
    matches(expr, event)         evaluate is True
    holds_interval(expr, event)  the event carries sets of values; see there
    can_hold(expr, event)        the same, with one value chosen per attribute; see there
    flatten(event)               nested dicts to dotted names

An event is a flat dict of raw Python values; an attribute that is missing or None is absent, and
every predicate on it except IS [NOT] NULL is unknown.  Values of the context are columns
beside those of the event: `in_context(event, context)` is such a row, with `ctx.` before their
names.  Nothing here knows of keys, intervals or
normal forms, and of the package only `lang` is imported, so that it can judge them.

Values compare as Spark SQL compares them, except that numbers are never rounded:

    bool       FALSE < TRUE
    number     ints, floats and decimals by their exact value; NaN equals NaN and is above all
               others; a float beside a decimal is the shortest decimal that reads back as it, and a
               constant with more digits than that is the nearest float beside a float
    string     by UTF-8 bytes
    timestamp  by the instant; without a zone it is UTC
    date       by the day; beside a timestamp it is midnight UTC

A string beside a timestamp or a date is read as one.

Attributes may be open: a predicate looks at values of the kind of its constant (number, string,
bool, date, timestamp), a value of another kind leaves it unknown.  `IsNull` with a kind asks for
just that.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from matchwood.lang.literals import LiteralError
from matchwood.lang.moments import read_date, read_timestamp
from matchwood.lang.nodes import (
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Relation,
    Xnor,
    Xor,
    predicates,
)

Truth = bool | None
INFINITY = float("inf")


# ── three-valued logic ──────────────────────────────────────────────────────────────────────────


def and_(truths: Iterable[Truth]) -> Truth:
    """FALSE wins, then unknown, then TRUE."""
    found = list(truths)
    return False if False in found else None if None in found else True


def or_(truths: Iterable[Truth]) -> Truth:
    """TRUE wins, then unknown, then FALSE."""
    found = list(truths)
    return True if True in found else None if None in found else False


def not_(truth: Truth) -> Truth:
    return None if truth is None else not truth


def xor(left: Truth, right: Truth) -> Truth:
    return None if left is None or right is None else left is not right


# ── values ──────────────────────────────────────────────────────────────────────────────────────


def compare(left: Any, right: Any) -> int:
    """Negative, zero or positive, as `left` is below, equal to or above `right`."""
    if isinstance(left, date) and isinstance(right, str):
        right = read_timestamp(right) if isinstance(left, datetime) else read_date(right)
    if isinstance(left, str) and isinstance(right, date):
        left = read_timestamp(left) if isinstance(right, datetime) else read_date(left)
    if isinstance(left, Decimal) and isinstance(right, float):
        right = _shortest(right)
    elif isinstance(left, float) and isinstance(right, Decimal):
        right = float(right)
    a, b = _comparable(left), _comparable(right)
    if a[0] != b[0]:
        raise TypeError(f"cannot compare {left!r} with {right!r}")
    return (a[1:] > b[1:]) - (a[1:] < b[1:])


def _shortest(value: float) -> Any:
    is_plain = value != value or value.is_integer() or value in (INFINITY, -INFINITY)
    return value if is_plain else Decimal(repr(value))


def _comparable(value: Any) -> tuple[Any, ...]:
    """The kind of a value, then what its order is made of."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, (int, float, Decimal)):
        is_nan = value != value
        return "number", is_nan, 0 if is_nan else value
    if isinstance(value, str):
        return "string", value.encode()
    if isinstance(value, datetime):
        return "time", value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return "time", datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise TypeError(f"{value!r} is not a value of the language")


HOLDS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compared(value: Any, op: str, constant: Any) -> Truth:
    """`value op constant`; unknown when either is NULL, or the value is of another kind."""
    order = None if value is None or constant is None else order_of(value, constant)
    return None if order is None else HOLDS[op](order, 0)


SAMPLES: dict[str, Any] = {
    "number": 0,
    "string": "",
    "bool": True,
    "date": date(1970, 1, 1),
    "timestamp": datetime(1970, 1, 1, tzinfo=UTC),
}
"""A constant of each kind."""


def is_of_kind(value: Any, constant: Any) -> bool:
    """Whether a value is of the kind that a predicate with this constant looks at."""
    return order_of(value, constant) is not None


def order_of(value: Any, constant: Any) -> int | None:
    """As `compare`; None for values of different kinds."""
    if type(value) in PLAIN and type(constant) in PLAIN:
        return _known_order(value, constant)
    is_value = isinstance(value, (bool, int, float, Decimal, str, date))
    return _order(value, constant) if is_value else None


def _order(value: Any, constant: Any) -> int | None:
    try:
        return compare(value, constant)
    except (TypeError, LiteralError):
        return None


PLAIN = {bool, int, float, str}
"""Types whose equal values are in every way the same; times that are equal may not be."""
_known_order = functools.lru_cache(maxsize=2**16, typed=True)(_order)


def like(value: Any, pattern: str | None) -> Truth:
    """% is any run of characters, _ any one, newlines included; backslash makes both literal."""
    if not isinstance(value, str) or pattern is None:
        return None
    regex, escaped = "", False
    for character in pattern:
        if escaped:
            regex, escaped = regex + re.escape(character), False
        elif character == "\\":
            escaped = True
        else:
            regex += {"%": ".*", "_": "."}.get(character) or re.escape(character)
    return re.fullmatch(regex, value, re.DOTALL) is not None


# ── expressions ─────────────────────────────────────────────────────────────────────────────────


def evaluate(expr: Expr, event: Mapping[str, Any]) -> Truth:
    """What SQL makes of the expression on a row where absent attributes are NULL."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, And):
        return and_(evaluate(operand, event) for operand in expr.operands)
    if isinstance(expr, Or):
        return or_(evaluate(operand, event) for operand in expr.operands)
    if isinstance(expr, Not):
        return not_(evaluate(expr.operand, event))
    if isinstance(expr, Xor):
        return xor(evaluate(expr.left, event), evaluate(expr.right, event))
    if isinstance(expr, Xnor):
        return not_(xor(evaluate(expr.left, event), evaluate(expr.right, event)))
    if isinstance(expr, Relation):
        return compared(event.get(expr.name), expr.op, moved(event.get(expr.reference), expr))
    if isinstance(expr, Predicate):
        return test(expr, event.get(expr.name))
    raise TypeError(f"{type(expr).__name__} is not a node of the language")


class Declared(int):
    """A value of a context whose type is declared int: offsets are added exactly."""


def moved(value: Any, relation: Relation) -> Any:
    """The context's value with the offset: added as 64-bit floats, unless it is declared int."""
    if isinstance(value, Declared):
        return int(value) + relation.offset
    is_moved = relation.offset != 0 or isinstance(relation.offset, float)
    return float(value) + relation.offset if value is not None and is_moved else value


def in_context(event: Mapping[str, Any], context: Mapping[str, Any] | None) -> dict[str, Any]:
    """The row that an expression sees: an event cannot supply a value of the context."""
    row = {name: value for name, value in event.items() if not name.startswith("ctx.")}
    return row | {f"ctx.{name}": value for name, value in flatten(context or {}).items()}


def test(predicate: Predicate, value: Any) -> Truth:
    """One predicate on one value."""
    if isinstance(predicate, IsNull):
        is_null = value is None
        if predicate.kind is not None and value is not None:
            is_null = not is_of_kind(value, SAMPLES[predicate.kind])
        return is_null is not predicate.negated
    if isinstance(predicate, Comparison):
        return compared(value, predicate.op, predicate.value)
    if isinstance(predicate, Between):
        truth = and_((compared(value, ">=", predicate.low), compared(value, "<=", predicate.high)))
    elif isinstance(predicate, In):
        truth = or_(compared(value, "=", constant) for constant in predicate.values)
    elif isinstance(predicate, Like):
        truth = like(value, predicate.pattern)
    else:
        raise TypeError(f"{type(predicate).__name__} is not a predicate of the language")
    return not_(truth) if predicate.negated else truth


test.__test__ = False  # the language's word; pytest must not collect it


def matches(expr: Expr, event: Mapping[str, Any]) -> bool:
    """A subscription matches when its expression is TRUE: neither FALSE nor unknown."""
    return evaluate(expr, event) is True


# ── events that carry predicates instead of values ──────────────────────────────────────────────


def holds_interval(expr: Expr, event: Mapping[str, tuple[Any, ...]]) -> bool:
    """Every predicate, by itself, can be satisfied by some value that the event allows.

    The event maps an attribute to the values it may take (a missing one is absent).  Negations are
    first pushed down to the predicates and XOR / XNOR written out; then AND and OR are taken over
    "some allowed value makes this predicate TRUE".  Because each predicate chooses for itself,
    `x > 3 AND x < 5` holds for x in (2, 7): merge such pairs, or ask `can_hold`.
    """
    return _possible(expr, event, wanted=True)


def _possible(expr: Expr, event: Mapping[str, tuple[Any, ...]], wanted: bool) -> bool:
    """Can the expression be TRUE (wanted) or FALSE (not wanted)?"""
    if isinstance(expr, Const):
        return expr.value is wanted
    if isinstance(expr, (And, Or)):
        # NOT (a AND b)  ->  NOT a OR NOT b
        every = isinstance(expr, And) is wanted
        return (all if every else any)(_possible(o, event, wanted) for o in expr.operands)
    if isinstance(expr, Not):
        return _possible(expr.operand, event, not wanted)
    if isinstance(expr, (Xor, Xnor)):
        # a XOR b  ->  a AND NOT b  OR  NOT a AND b
        differ = isinstance(expr, Xor) is wanted
        return any(
            _possible(expr.left, event, left) and _possible(expr.right, event, left is not differ)
            for left in (True, False)
        )
    assert isinstance(expr, Predicate)
    return any(test(expr, value) is wanted for value in event.get(expr.name, (None,)))


def can_hold(expr: Expr, event: Mapping[str, tuple[Any, ...]]) -> bool:
    """Some choice of one allowed value per attribute makes the whole expression TRUE.

    Implies `holds_interval`; the two agree when no attribute is used twice.  Tries every
    combination: for small domains.
    """
    names = sorted({predicate.name for predicate in predicates(expr)})
    choices = product(*(event.get(name, (None,)) for name in names))
    return any(matches(expr, dict(zip(names, choice, strict=True))) for choice in choices)


# ── nesting ─────────────────────────────────────────────────────────────────────────────────────


def flatten(event: Mapping[str, Any]) -> dict[str, Any]:
    """`{"user": {"age": 30}}` to `{"user.age": 30}`."""
    return dict(_leaves(event, ""))


def _leaves(event: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in event.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
