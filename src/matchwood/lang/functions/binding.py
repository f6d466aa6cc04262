"""From a scalar tree to what computes it, given the types of what it reads.

What is evaluated in an order of its own (AND, CASE, comparisons, lambdas) is in `SPECIAL`, which
`conditions` and `choices` fill; all else evaluates its arguments first and is in the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from matchwood.lang.functions.casts import caster, type_named
from matchwood.lang.functions.registry import FUNCTIONS
from matchwood.lang.functions.types import Dec, Failed, TypeProblem, decimal_type, literal_type
from matchwood.lang.scalars import Attr, Call, Cast, Lambda, Lit, Scalar, Var

Row = dict[str, Any]
Get = Callable[[Row], Any]
Bound = tuple[Any, Get]


class Types(dict[str, Any]):
    """The types of what a tree reads.

    n_unknown  comparisons in the tree that values of these types leave unknown
    """

    n_unknown = 0


SPECIAL: dict[str, Callable[[Call, Types], Bound]] = {}
"""What binds its arguments itself, by name."""


def bind(node: Scalar, types: Types) -> Bound:
    """The type of an expression and what computes it, given the types of what it reads."""
    if isinstance(node, (Attr, Var)):
        name = node.name
        return types[name], lambda row: row[name]
    if isinstance(node, Lit):
        value = node.value
        return literal_type(value), lambda row: value
    if isinstance(node, Cast):
        return _bind_cast(node, types)
    if isinstance(node, Lambda):
        raise TypeProblem("a lambda outside of exists and forall")
    assert isinstance(node, Call)
    special = SPECIAL.get(node.name)
    if special is not None:
        return special(node, types)
    args = [bind(each, types) for each in node.args]
    function = FUNCTIONS[node.name]
    if isinstance(node.args[0] if node.args else None, Lit) or len(node.args) == 2:
        kind, evaluate = function.bind(_literal_digits(node, [kind for kind, _ in args]))
    else:
        kind, evaluate = function.bind([kind for kind, _ in args])
    getters = [get for _, get in args]
    if function.sees_null:
        return kind, lambda row: evaluate(*[get(row) for get in getters])
    if node.name in ("/", "%", "div"):  # the divisor is computed first, and alone if it is NULL
        return kind, null_out(lambda b, a: evaluate(a, b), getters[::-1])
    if node.name in ("concat", "||"):
        return kind, _all_first(evaluate, getters)
    others = [each.value for each in node.args[1:] if isinstance(each, Lit)]
    if len(others) == len(node.args) - 1 and None not in others:
        return kind, _with_constants(evaluate, getters[0], others)
    return kind, null_out(evaluate, getters)


def _literal_digits(node: Call, types: list[Any]) -> list[Any]:
    """Beside a decimal, a literal integer has just its own digits."""
    if node.name not in ("+", "-", "*", "/", "%") or not any(
        isinstance(each, Dec) for each in types
    ):
        return types
    found = []
    for each, kind in zip(node.args, types, strict=True):
        is_integer = isinstance(each, Lit) and kind in ("int", "bigint")
        found.append(decimal_type(Decimal(each.value)) if is_integer else kind)  # type: ignore[attr-defined]
    return found


def null_out(evaluate: Callable[..., Any], getters: list[Get]) -> Any:
    """What computes a function from its arguments; those behind one that is NULL are not computed,
    as in Spark, so that an error in them is none.
    """
    if len(getters) == 1:
        only = getters[0]

        def one(row: Row) -> Any:
            value = only(row)
            return None if value is None else evaluate(value)

        return one

    def several(row: Row) -> Any:
        values = []
        for get in getters:
            value = get(row)
            if value is None:
                return None
            values.append(value)
        return evaluate(*values)

    return several


def _with_constants(evaluate: Callable[..., Any], get: Get, others: list[Any]) -> Get:
    """As `null_out`, where all arguments but the first are constants."""

    def computed(row: Row) -> Any:
        value = get(row)
        return None if value is None else evaluate(value, *others)

    return computed


def _all_first(evaluate: Callable[..., Any], getters: list[Get]) -> Get:
    """As `null_out`, for the functions of which Spark computes all arguments."""

    def computed(row: Row) -> Any:
        values = [get(row) for get in getters]
        return None if None in values else evaluate(*values)

    return computed


def _bind_cast(node: Cast, types: Types) -> Bound:
    kind, get = bind(node.value, types)
    to = type_named(node.type)
    cast = caster(kind, to)

    def strict(row: Row) -> Any:
        value = get(row)
        return None if value is None else cast(value)

    def lenient(row: Row) -> Any:
        value = get(row)
        try:
            return None if value is None else cast(value)
        except Failed:
            return None

    return to, lenient if node.is_try else strict


def boolean(node: Scalar, types: Types) -> Get:
    """What computes a truth."""
    kind, get = bind(node, types)
    if kind not in ("boolean", "void"):
        raise TypeProblem(f"{kind}, where it takes a boolean")
    return get
