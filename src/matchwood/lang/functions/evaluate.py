"""Scalar expressions computed for one event.

What an expression means depends on the types of the values that it reads, as in Spark on those of
the columns.  So a `Formula` is bound once for every combination of types that events bring, and the
bound one, a nest of plain functions, is kept.

    formula.inputs    the names that it reads
    formula(values)   the value for one event, given the values of the inputs in that order

`TypeProblem` is raised for types that it does not take, `Failed` where Spark raises an error: both
leave the computed attribute unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from matchwood.lang.functions import collections, strings, times
from matchwood.lang.functions.casts import caster, midnight, type_named
from matchwood.lang.functions.collections import same
from matchwood.lang.functions.numbers import order_key, round_bind
from matchwood.lang.functions.regex import RegexProblem, regex
from matchwood.lang.functions.registry import FUNCTIONS, Binding, define
from matchwood.lang.functions.types import (
    Arr,
    Dec,
    Failed,
    Mp,
    TypeProblem,
    common,
    convert,
    decimal_type,
    is_number,
    literal_type,
    type_of,
)
from matchwood.lang.literals import decimal_of
from matchwood.lang.patterns import compile_pattern
from matchwood.lang.scalars import Attr, Call, Cast, Lambda, Lit, Scalar, Var, parts, text_of

__all__ = ["FUNCTIONS", "Failed", "Formula", "TypeProblem", "collections", "strings", "times"]

Row = dict[str, Any]
Bound = tuple[Any, Callable[[Row], Any]]
MAX_PLANS = 64
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


class Formula:
    """A scalar expression, ready to be computed."""

    def __init__(self, tree: Scalar) -> None:
        self.tree = _with_paths(tree)
        self.text = text_of(tree)
        self.inputs: list[str] = _inputs(self.tree)
        self._plans: dict[tuple[Any, ...], Callable[[Row], Any] | str] = {}

    def __call__(self, values: Sequence[Any]) -> Any:
        values = [_plain(value) for value in values]
        types = tuple([type_of(value) for value in values])
        plan = self._plans.get(types)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            try:
                plan = bind(self.tree, dict(zip(self.inputs, types, strict=True)))[1]
            except TypeProblem as problem:
                plan = str(problem)
            self._plans[types] = plan
        if isinstance(plan, str):
            raise TypeProblem(plan)
        try:
            return plan(dict(zip(self.inputs, values, strict=True)))
        except (ArithmeticError, ValueError) as error:  # what no function has foreseen
            raise Failed(f"{type(error).__name__}: {error}") from None


PATH = "\1"
"""Joins the name of an attribute and the keys of its map that an expression reads."""


def _with_paths(node: Scalar) -> Scalar:
    """`m['a']` as one input: only the event tells the type of a map's value."""
    if isinstance(node, Call):
        args = tuple([_with_paths(each) for each in node.args])
        if node.name in ("[]", "element_at") and isinstance(args[1], Lit):
            source, key = args[0], args[1].value
            if isinstance(source, Attr) and isinstance(key, str):
                return Attr(f"{source.name}{PATH}{key}")
        return Call(node.name, args)
    if isinstance(node, Cast):
        return Cast(_with_paths(node.value), node.type, node.is_try)
    return Lambda(node.names, _with_paths(node.body)) if isinstance(node, Lambda) else node


def _inputs(node: Scalar) -> list[str]:
    found: dict[str, None] = {}
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Attr):
            found[each.name] = None
        pending += parts(each)
    return sorted(found)


def _plain(value: Any) -> Any:
    """A value of an event as one of Python's own."""
    if value is None or type(value) in (int, float, str, bool, list):
        return value
    if isinstance(value, datetime):
        from matchwood.lang.python_values import as_value

        return as_value(value)
    if isinstance(value, tuple):
        return list(value)
    if type(value).__module__ == "numpy":
        from matchwood.lang.python_values import as_value

        try:
            return value.tolist() if getattr(value, "ndim", 0) else as_value(value)
        except TypeError:
            raise TypeProblem(f"a value of type {type(value).__name__}") from None
    return value


def bind(node: Scalar, types: Mapping[str, Any]) -> Bound:
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
    special = _SPECIAL.get(node.name)
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
    return kind, _null_out(evaluate, getters)


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


def _null_out(evaluate: Callable[..., Any], getters: list[Callable[[Row], Any]]) -> Any:
    if len(getters) == 1:
        only = getters[0]

        def one(row: Row) -> Any:
            value = only(row)
            return None if value is None else evaluate(value)

        return one

    def several(row: Row) -> Any:
        values = [get(row) for get in getters]
        return None if None in values else evaluate(*values)

    return several


def _bind_cast(node: Cast, types: Mapping[str, Any]) -> Bound:
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


# ── what is evaluated in an order of its own ────────────────────────────────────────────────────


def _boolean(node: Scalar, types: Mapping[str, Any]) -> Callable[[Row], Any]:
    kind, get = bind(node, types)
    if kind not in ("boolean", "void"):
        raise TypeProblem(f"{kind}, where it takes a boolean")
    return get


def _connected(node: Call, types: Mapping[str, Any], decisive: bool) -> Bound:
    """AND and OR: one value decides, else a NULL leaves it unknown."""
    gets = [_boolean(each, types) for each in node.args]

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


def _and(node: Call, types: Mapping[str, Any]) -> Bound:
    return _connected(node, types, decisive=False)


def _or(node: Call, types: Mapping[str, Any]) -> Bound:
    return _connected(node, types, decisive=True)


def _not(node: Call, types: Mapping[str, Any]) -> Bound:
    get = _boolean(node.args[0], types)

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
    if isinstance(left, (Mp,)) or isinstance(right, (Mp,)):
        raise TypeProblem("a comparison of maps")
    common(left, right)
    if {left, right} == {"date", "timestamp"}:
        return (midnight if left == "date" else None), (midnight if right == "date" else None)
    return None, None


def _exact(value: float) -> Any:
    """A double beside decimals; a list of doubles may have ints in it."""
    return decimal_of(float(value)) if value == value and abs(value) != float("inf") else value


def _rank(value: Any) -> Any:
    if isinstance(value, list):
        return [
            (each is not None, _rank(each)) if each is not None else (False, 0) for each in value
        ]
    return order_key(value)


def _compare(node: Call, types: Mapping[str, Any]) -> Bound:
    (left, get_left), (right, get_right) = (bind(each, types) for each in node.args)
    to_left, to_right = _comparable(left, right)
    is_safe = node.name == "<=>"
    compare = _COMPARISONS["=" if is_safe else node.name]
    is_text = left == right == "string"

    def compared(row: Row) -> bool | None:
        a, b = get_left(row), get_right(row)
        if a is None or b is None:
            return (a is b) if is_safe else None
        a = a if to_left is None else to_left(a)
        b = b if to_right is None else to_right(b)
        if is_text:
            return compare(a.encode(errors="surrogatepass"), b.encode(errors="surrogatepass"))
        return compare(_rank(a), _rank(b))

    return "boolean", compared


def _is_null(node: Call, types: Mapping[str, Any]) -> Bound:
    _, get = bind(node.args[0], types)
    return "boolean", lambda row: get(row) is None


def _in(node: Call, types: Mapping[str, Any]) -> Bound:
    kind, get = bind(node.args[0], types)
    items = [bind(each, types) for each in node.args[1:]]
    tests = [(_comparable(kind, other), get_item) for other, get_item in items]

    def member(row: Row) -> bool | None:
        value = get(row)
        if value is None:
            return None
        found: bool | None = False
        for (to_value, to_item), get_item in tests:
            item = get_item(row)
            if item is None:
                found = None
                continue
            a = value if to_value is None else to_value(value)
            if same(a, item if to_item is None else to_item(item)):
                return True
        return found

    return "boolean", member


def _like(node: Call, types: Mapping[str, Any]) -> Bound:
    kind, get = bind(node.args[0], types)
    pattern = node.args[1]
    if kind not in ("string", "void") or not isinstance(pattern, Lit):
        raise TypeProblem(f"{kind}, where LIKE takes a string")
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


def _case(node: Call, types: Mapping[str, Any]) -> Bound:
    conditions = [_boolean(each, types) for each in node.args[:-1:2]]
    values = [bind(each, types) for each in (*node.args[1:-1:2], node.args[-1])]
    kind: Any = "void"
    for each, _ in values:
        kind = common(kind, each)
    getters = [_converted(get, convert(each, kind)) for each, get in values]

    def chosen(row: Row) -> Any:
        for condition, get in zip(conditions, getters, strict=False):
            if condition(row) is True:
                return get(row)
        return getters[-1](row)

    return kind, chosen


def _converted(get: Callable[[Row], Any], to: Callable[[Any], Any] | None) -> Callable[[Row], Any]:
    if to is None:
        return get

    def converted(row: Row) -> Any:
        value = get(row)
        return None if value is None else to(value)

    return converted


def _coalesce(node: Call, types: Mapping[str, Any]) -> Bound:
    values = [bind(each, types) for each in node.args]
    kind: Any = "void"
    for each, _ in values:
        kind = common(kind, each)
    getters = [_converted(get, convert(each, kind)) for each, get in values]

    def first(row: Row) -> Any:
        for get in getters:
            value = get(row)
            if value is not None:
                return value
        return None

    return kind, first


def _null_if(node: Call, types: Mapping[str, Any]) -> Bound:
    kind, get = bind(node.args[0], types)
    _, equal = _compare(Call("=", node.args), types)

    def unless(row: Row) -> Any:
        return None if equal(row) is True else get(row)

    return kind, unless


def _round(node: Call, types: Mapping[str, Any]) -> Bound:
    kind, get = bind(node.args[0], types)
    digits = node.args[1] if len(node.args) > 1 else Lit(0)
    if not isinstance(digits, Lit) or type(digits.value) is not int or abs(digits.value) > 300:
        raise TypeProblem("digits of round that are no small constant")
    to, evaluate = round_bind(kind, digits.value)
    return to, _null_out(evaluate, [get])


def _quantified(node: Call, types: Mapping[str, Any]) -> Bound:
    """exists and forall, in three-valued logic."""
    kind, get = bind(node.args[0], types)
    test = node.args[1]
    if not isinstance(kind, Arr) and kind != "void":
        raise TypeProblem(f"{kind}, where it takes an array")
    if not isinstance(test, Lambda) or len(test.names) != 1:
        raise TypeProblem("no lambda of one parameter")
    name = test.names[0]
    element = kind.element if isinstance(kind, Arr) else "void"
    holds = _boolean(test.body, {**types, name: element})
    stops = node.name == "exists"

    def quantified(row: Row) -> bool | None:
        values = get(row)
        if values is None:
            return None
        found: bool | None = not stops
        for value in values:
            this = holds({**row, name: value})
            if this is stops:
                return stops
            if this is None:
                found = None
        return found

    return "boolean", quantified


def _alias_of(build: Callable[[tuple[Scalar, ...]], Call]) -> Callable[..., Bound]:
    return lambda node, types: bind(build(node.args), types)


_SPECIAL: dict[str, Callable[[Call, Mapping[str, Any]], Bound]] = {
    "and": _and, "or": _or, "not": _not, "isnull": _is_null, "in": _in,
    "like": _like, "rlike": _like, "case": _case, "coalesce": _coalesce, "nullif": _null_if,
    "round": _round, "exists": _quantified, "forall": _quantified,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), _compare),
    "if": _alias_of(lambda args: Call("case", args)),
    "nvl2": _alias_of(
        lambda args: Call("case", (Call("not", (Call("isnull", args[:1]),)), *args[1:]))
    ),
}  # fmt: skip


def _unbound(types: Sequence[Any]) -> Binding:
    raise TypeProblem("no such call")


for _name, _takes, _group, _other in (
    ("coalesce", "any any*", "conditions", "nvl ifnull"),
    ("nullif", "any any", "conditions", ""),
    ("if", "boolean any any", "conditions", ""),
    ("nvl2", "any any any", "conditions", ""),
    ("isnull", "any", "conditions", ""),
    ("round", "number int?", "numbers", ""),
    ("exists", "array lambda", "arrays and maps", ""),
    ("forall", "array lambda", "arrays and maps", ""),
    ("rlike", "string string", "strings", "regexp regexp_like"),
    ("like", "string string", "strings", ""),
):
    define(_name, _takes, None, group=_group, aliases=_other, sees_null=True, bind=_unbound)
