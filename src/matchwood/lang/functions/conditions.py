"""Conditions inside of computed attributes: AND, OR, NOT, comparisons, IN, LIKE, exists, forall.

A comparison of values of two kinds is unknown, as it is outside of computed attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matchwood.lang.functions.binding import SPECIAL, Bound, Get, Row, Types, bind, boolean
from matchwood.lang.functions.casts import caster, midnight
from matchwood.lang.functions.collections import same
from matchwood.lang.functions.numbers import order_key
from matchwood.lang.functions.regex import RegexProblem, regex
from matchwood.lang.functions.types import (
    Arr,
    Dec,
    Failed,
    Mixed,
    TypeProblem,
    check_ordered,
    common,
    is_number,
)
from matchwood.lang.literals import decimal_of
from matchwood.lang.patterns import compile_pattern
from matchwood.lang.scalars import Attr, Call, Lambda, Lit, Scalar, Var, parts

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _connected(node: Call, types: Types, decisive: bool) -> Bound:
    """AND and OR: one value decides, else a NULL leaves it unknown."""
    gets = [boolean(each, types) for each in node.args]

    def connected(row: Row) -> bool | None:
        found: bool | None = not decisive
        for get in gets:
            value = get(row)
            if value is decisive:
                return decisive
            if value is None:
                found = None
        return found

    return "boolean", connected


def _and(node: Call, types: Types) -> Bound:
    return _connected(node, types, decisive=False)


def _or(node: Call, types: Types) -> Bound:
    return _connected(node, types, decisive=True)


def _not(node: Call, types: Types) -> Bound:
    get = boolean(node.args[0], types)

    def negation(row: Row) -> bool | None:
        value = get(row)
        return None if value is None else not value

    return "boolean", negation


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """What makes two values comparable: numbers compare exactly, a string beside a date is one."""
    if left == "string" and right in ("date", "timestamp"):
        return caster(left, right), None
    if right == "string" and left in ("date", "timestamp"):
        return None, caster(right, left)
    if is_number(left) and is_number(right):
        if "double" in (left, right) and (isinstance(left, Dec) or isinstance(right, Dec)):
            return (_exact if left == "double" else None), (_exact if right == "double" else None)
        return None, None
    check_ordered(common(left, right))
    if {left, right} == {"date", "timestamp"}:
        return (midnight if left == "date" else None), (midnight if right == "date" else None)
    return None, None


def _exact(value: float) -> Any:
    """A double beside decimals; a list of doubles may have ints in it."""
    return decimal_of(float(value)) if value == value and abs(value) != float("inf") else value


def _comparison(
    left: Scalar, right: Scalar, kinds: tuple[Any, Any], types: Types
) -> tuple[Any, Any] | None:
    """What makes two values comparable; None when they are of two kinds.

    Two constants of two kinds are refused: nothing will ever make them comparable.
    """
    try:
        to_left, to_right = _comparable(*kinds)
    except TypeProblem:
        if not any(map(_reads, (left, right))):
            raise
        types.n_unknown += 1
        return None
    if isinstance(right, Lit) and _reads(left):
        to_left = _unless_unread(to_left)
    if isinstance(left, Lit) and _reads(right):
        to_right = _unless_unread(to_right)
    return to_left, to_right


def _reads(node: Scalar) -> bool:
    """Whether a tree reads an event or a lambda's parameter."""
    if isinstance(node, (Attr, Var)):
        return True
    return any(map(_reads, parts(node)))


def _unless_unread(convert: Any) -> Any:
    """A string beside a date or a timestamp that does not read as one: as a value of another kind.

    Only beside a constant; where Spark casts one value of an event to the type of another, its
    error is an error here.
    """
    if convert is None:
        return None

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except Failed:
            return None

    return converted


def compare(node: Call, types: Types) -> Bound:
    """One of = <> < <= > >= <=>."""
    (left, get_left), (right, get_right) = (bind(each, types) for each in node.args)
    converters = _comparison(node.args[0], node.args[1], (left, right), types)
    is_safe = node.name == "<=>"
    compared_by = _COMPARISONS["=" if is_safe else node.name]
    is_text = left == right == "string"
    if converters is None:

        def unequal(row: Row) -> bool | None:
            if not is_safe:
                return None
            a, b = get_left(row), get_right(row)
            return a is None and b is None

        return "boolean", unequal
    to_left, to_right = converters

    def compared(row: Row) -> bool | None:
        a = get_left(row)
        if a is None and not is_safe:  # the right one is not computed: an error there is none
            return None
        b = get_right(row)
        if a is None or b is None:
            return (a is b) if is_safe else None
        a = a if to_left is None else to_left(a)
        b = b if to_right is None else to_right(b)
        if a is None or b is None:  # a string that is no date
            return False if is_safe else None
        if is_text:
            return compared_by(a.encode(errors="surrogatepass"), b.encode(errors="surrogatepass"))
        return compared_by(order_key(a), order_key(b))

    return "boolean", compared


def _is_null(node: Call, types: Types) -> Bound:
    _, get = bind(node.args[0], types)
    return "boolean", lambda row: get(row) is None


def _in(node: Call, types: Types) -> Bound:
    kind, get = bind(node.args[0], types)
    items = [bind(each, types) for each in node.args[1:]]
    subject = node.args[0]
    tests = [
        (_comparison(subject, each, (kind, other), types), get_item)
        for each, (other, get_item) in zip(node.args[1:], items, strict=True)
    ]

    def member(row: Row) -> bool | None:
        value = get(row)
        if value is None:
            return None
        found: bool | None = False
        for converters, get_item in tests:
            item = get_item(row)
            if item is None or converters is None:
                found = None
                continue
            to_value, to_item = converters
            a = value if to_value is None else to_value(value)
            if a is None:
                found = None
            elif same(a, item if to_item is None else to_item(item)):
                return True
        return found

    return "boolean", member


def _like(node: Call, types: Types) -> Bound:
    kind, get = bind(node.args[0], types)
    pattern = node.args[1]
    if not isinstance(pattern, Lit):
        raise TypeProblem("a pattern that is no constant")
    if kind not in ("string", "void"):
        if not _reads(node.args[0]):
            raise TypeProblem(f"{kind}, where LIKE takes a string")
        types.n_unknown += 1
        return "boolean", lambda row: None
    if node.name == "like":
        fits: Callable[[str], Any] = compile_pattern(pattern.value).fullmatch
    else:
        try:
            fits = regex(pattern.value).search
        except RegexProblem as problem:
            raise TypeProblem(str(problem)) from None

    def liked(row: Row) -> bool | None:
        value = get(row)
        return None if value is None else bool(fits(value))

    return "boolean", liked


def _unknown(row: Row) -> None:
    return None


def _quantified(node: Call, types: Types) -> Bound:
    """exists and forall, in three-valued logic."""
    kind, get = bind(node.args[0], types)
    test = node.args[1]
    if not isinstance(kind, Arr) and kind != "void":
        raise TypeProblem(f"{kind}, where it takes an array")
    if not isinstance(test, Lambda) or len(test.names) != 1:
        raise TypeProblem("no lambda of one parameter")
    name = test.names[0]
    body = test.body
    elements: tuple[Any, ...] = (kind.element,) if isinstance(kind, Arr) else ("void",)
    if isinstance(elements[0], Mixed):
        elements = elements[0].kinds
    tests: dict[Any, Get] = {}
    for each in elements:
        inner = Types({**types, name: each})
        try:
            tests[each] = boolean(body, inner)
        except TypeProblem:  # of a list of several kinds some elements may be of another one
            if len(elements) == 1:
                raise
            tests[each] = _unknown
            inner.n_unknown += 1
        types.n_unknown += inner.n_unknown
    stops = node.name == "exists"

    def quantified(row: Row) -> bool | None:
        values = get(row)
        if values is None:
            return None
        found: bool | None = not stops
        kinds = elements if len(elements) == len(values) else elements * len(values)
        for value, each in zip(values, kinds, strict=False):
            this = tests[each]({**row, name: value})
            if this is stops:
                return stops
            if this is None:
                found = None
        return found

    return "boolean", quantified


SPECIAL |= {
    "and": _and, "or": _or, "not": _not, "isnull": _is_null, "in": _in,
    "like": _like, "rlike": _like, "exists": _quantified, "forall": _quantified,
    **dict.fromkeys((*_COMPARISONS, "<=>"), compare),
}  # fmt: skip
