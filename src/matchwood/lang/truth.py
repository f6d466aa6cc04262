"""Whether an expression is TRUE, FALSE or unknown, asked inside of another one.

`e IS TRUE` and its kin are never unknown themselves, so a NOT above them must find both answers.
They are written with predicates alone:

    is_true(x = 5)      ->  x = 5 AND (x = 0) IS NOT NULL
    is_false(x = 5)     ->  NOT x = 5 AND (x = 0) IS NOT NULL
    is_unknown(x = 5)   ->  (x = 0) IS NULL
    is_true(a AND b)    ->  is_true(a) AND is_true(b)
    is_false(a AND b)   ->  is_false(a) OR is_false(b)
    is_unknown(a AND b) ->  NOT (is_true(a AND b) OR is_false(a AND b))
    is_true(a XOR b)    ->  is_true(a) AND is_false(b) OR is_false(a) AND is_true(b)

`(x = 0) IS NULL` is how `IsNull(x, kind="number")` is written: where a comparison with a number is
unknown, whatever the number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from matchwood.lang import nodes

SAMPLES: dict[str, Any] = {
    "number": 0,
    "string": "",
    "bool": True,
    "date": date(1970, 1, 1),
    "timestamp": datetime(1970, 1, 1, tzinfo=UTC),
}
"""The kinds of constants, and the constant that stands for each in text."""

MAX_LEAVES = 64
"""Predicates of an expression whose truth is written out; each test may double them, so beyond it
the expression is computed as a whole."""


def kind_of_constant(value: Any) -> str | None:
    """The kind of values that a predicate with this constant looks at; None: no constant."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, date):
        return "timestamp" if isinstance(value, datetime) else "date"
    return None


def kind_of_constants(values: Iterable[Any]) -> str | None:
    """The one kind of a predicate's constants; None when they are of several."""
    kinds = {kind_of_constant(value) for value in values}
    if len(kinds) == 1:
        return kinds.pop()
    return "timestamp" if kinds == {"date", "timestamp"} else None


def is_simple(expr: nodes.Expr) -> bool:
    """Whether the truth of an expression can be written out."""
    return _n_leaves(expr) <= MAX_LEAVES


def _n_leaves(expr: nodes.Expr) -> int:
    """How many predicates `is_true` and `is_false` have, about; beyond the limit: it cannot be."""
    if isinstance(expr, nodes.Relation):
        return MAX_LEAVES + 1
    below = sum([_n_leaves(each) for each in nodes.children(expr)])
    if isinstance(expr, (nodes.Xor, nodes.Xnor)):
        return 2 * below
    if isinstance(expr, nodes.Predicate):
        return MAX_LEAVES + 1 if _kind(expr) is _SEVERAL else 1
    return below


def is_true(expr: nodes.Expr) -> nodes.Expr:
    """`expr IS TRUE`, of a simple expression."""
    if isinstance(expr, (nodes.And, nodes.Or)):
        return _joined(type(expr), [is_true(each) for each in expr.operands], expr.position)
    if isinstance(expr, nodes.Not):
        return is_false(expr.operand)
    if isinstance(expr, (nodes.Xor, nodes.Xnor)):
        return _differ(expr, isinstance(expr, nodes.Xor))
    if isinstance(expr, nodes.Const):
        return expr if expr.value else nodes.FALSE
    assert isinstance(expr, nodes.Predicate)
    if _mixes_moments(expr):
        return is_true(_bounds(expr))
    if isinstance(expr, nodes.IsNull):
        return expr
    if isinstance(expr, nodes.In) and None in expr.values:
        known = tuple([value for value in expr.values if value is not None])
        if expr.negated or not known:
            return nodes.FALSE
        expr = replace(expr, values=known)
    return nodes.And((expr, _is_null(expr, negated=True)), expr.position)


def is_false(expr: nodes.Expr) -> nodes.Expr:
    """`expr IS FALSE`, of a simple expression."""
    if isinstance(expr, (nodes.And, nodes.Or)):
        kind = nodes.Or if isinstance(expr, nodes.And) else nodes.And
        return _joined(kind, [is_false(each) for each in expr.operands], expr.position)
    if isinstance(expr, nodes.Not):
        return is_true(expr.operand)
    if isinstance(expr, (nodes.Xor, nodes.Xnor)):
        return _differ(expr, isinstance(expr, nodes.Xnor))
    if isinstance(expr, nodes.Const):
        return nodes.Const(expr.value is False, expr.position)
    assert isinstance(expr, nodes.Predicate)
    if isinstance(expr, (nodes.In, nodes.Like, nodes.Between)):
        return is_true(replace(expr, negated=not expr.negated))
    if isinstance(expr, nodes.IsNull):
        return replace(expr, negated=not expr.negated)
    return nodes.And((nodes.Not(expr, expr.position), _is_null(expr, negated=True)), expr.position)


def is_unknown(expr: nodes.Expr, position: int = -1) -> nodes.Expr:
    """`expr IS UNKNOWN`, of a simple expression."""
    if isinstance(expr, nodes.Not):
        return is_unknown(expr.operand, position)
    if isinstance(expr, nodes.Const):
        return nodes.Const(expr.value is None, position)
    if isinstance(expr, nodes.IsNull):
        return nodes.Const(False, position)
    is_list_with_null = isinstance(expr, nodes.In) and None in expr.values
    if isinstance(expr, nodes.Predicate) and not is_list_with_null and not _mixes_moments(expr):
        return replace(_is_null(expr, negated=False), position=position)
    return nodes.Not(_joined(nodes.Or, [is_true(expr), is_false(expr)], position), position)


def _differ(expr: nodes.Xor | nodes.Xnor, is_wanted: bool) -> nodes.Expr:
    """Both sides are known, and differ or (not wanted) are equal."""
    left, right = expr.left, expr.right
    first, second = (is_false, is_true) if is_wanted else (is_true, is_false)
    return nodes.Or(
        (nodes.And((is_true(left), first(right))), nodes.And((is_false(left), second(right))))
    )


def _mixes_moments(leaf: nodes.Predicate) -> bool:
    """Whether the bounds of BETWEEN say two things of a string: a date, and a timestamp."""
    if not isinstance(leaf, nodes.Between) or type(leaf.low) is type(leaf.high):
        return False
    return isinstance(leaf.low, date) and isinstance(leaf.high, date)


def _bounds(leaf: nodes.Predicate) -> nodes.Expr:
    """BETWEEN as two comparisons."""
    assert isinstance(leaf, nodes.Between)
    low = nodes.Comparison(leaf.name, ">=", leaf.low, leaf.position)
    high = nodes.Comparison(leaf.name, "<=", leaf.high, leaf.position)
    both = nodes.And((low, high), leaf.position)
    return nodes.Not(both, leaf.position) if leaf.negated else both


def _joined(
    kind: type[nodes.And] | type[nodes.Or], parts: list[nodes.Expr], position: int
) -> nodes.Expr:
    """A chain of its own kind alone, as texts have it."""
    flat: list[nodes.Expr] = []
    for each in parts:
        flat += each.operands if isinstance(each, kind) else (each,)
    return kind(tuple(flat), position) if len(flat) > 1 else flat[0]


_SEVERAL = object()


def _kind(leaf: nodes.Predicate) -> Any:
    """The kind of values that a predicate looks at; _SEVERAL when its constants are of several."""
    if isinstance(leaf, nodes.IsNull):
        return None
    if isinstance(leaf, nodes.Like):
        return "string"
    if isinstance(leaf, nodes.Comparison):
        values: tuple[Any, ...] = (leaf.value,)
    elif isinstance(leaf, nodes.Between):
        values = (leaf.low, leaf.high)
    else:
        assert isinstance(leaf, nodes.In)
        values = tuple([value for value in leaf.values if value is not None])
        if not values:
            return "string"
    kind = kind_of_constants(values)
    return _SEVERAL if kind is None else kind


def _is_null(leaf: nodes.Predicate, negated: bool) -> nodes.IsNull:
    return nodes.IsNull(leaf.name, negated, leaf.position, _kind(leaf))
