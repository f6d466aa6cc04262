"""One of several values: CASE, coalesce, nullif, `a[i]`.  And round, whose digits are constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matchwood.lang.functions.binding import (
    SPECIAL,
    Bound,
    Get,
    Row,
    Types,
    bind,
    boolean,
    null_out,
)
from matchwood.lang.functions.conditions import compare
from matchwood.lang.functions.numbers import round_bind
from matchwood.lang.functions.registry import FUNCTIONS, Binding, define
from matchwood.lang.functions.types import Arr, Mixed, TypeProblem, common, convert
from matchwood.lang.scalars import Call, Lit, Scalar


def _case(node: Call, types: Types) -> Bound:
    conditions = [boolean(each, types) for each in node.args[:-1:2]]
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


def _converted(get: Get, to: Callable[[Any], Any] | None) -> Get:
    if to is None:
        return get

    def converted(row: Row) -> Any:
        value = get(row)
        return None if value is None else to(value)

    return converted


def _coalesce(node: Call, types: Types) -> Bound:
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


def _null_if(node: Call, types: Types) -> Bound:
    kind, get = bind(node.args[0], types)
    _, equal = compare(Call("=", node.args), types)

    def unless(row: Row) -> Any:
        return None if equal(row) is True else get(row)

    return kind, unless


def _round(node: Call, types: Types) -> Bound:
    kind, get = bind(node.args[0], types)
    digits = node.args[1] if len(node.args) > 1 else Lit(0)
    if not isinstance(digits, Lit) or type(digits.value) is not int or abs(digits.value) > 300:
        raise TypeProblem("digits of round that are no small constant")
    to, evaluate = round_bind(kind, digits.value)
    return to, null_out(evaluate, [get])


def _item(node: Call, types: Types) -> Bound:
    """`a[i]` and element_at; in a list of several kinds the position tells the type."""
    (kind, get), (key, get_key) = (bind(each, types) for each in node.args)
    if isinstance(kind, Arr) and isinstance(kind.element, Mixed):
        kind = Arr(_kind_at(kind.element, node))
    to, evaluate = FUNCTIONS[node.name].bind([kind, key])
    return to, null_out(evaluate, [get, get_key])


def _kind_at(mixed: Mixed, node: Call) -> Any:
    at = node.args[1]
    if not isinstance(at, Lit) or type(at.value) is not int:
        raise TypeProblem("an array of several kinds, whose position is no constant")
    position = at.value - 1 if node.name == "element_at" and at.value > 0 else at.value
    n = len(mixed.kinds)
    return mixed.kinds[position] if -n <= position < n else "void"


def _alias_of(build: Callable[[tuple[Scalar, ...]], Call]) -> Callable[..., Bound]:
    return lambda node, types: bind(build(node.args), types)


SPECIAL |= {
    "case": _case, "coalesce": _coalesce, "nullif": _null_if, "round": _round,
    "[]": _item, "element_at": _item,
    "if": _alias_of(lambda args: Call("case", args)),
    "nvl2": _alias_of(
        lambda args: Call("case", (Call("not", (Call("isnull", args[:1]),)), *args[1:]))
    ),
}  # fmt: skip


def _unbound(types: Sequence[Any]) -> Binding:
    raise TypeProblem("no such call")


for _name, _takes, _gives, _group, _other in (
    ("coalesce", "any any*", None, "conditions", "nvl ifnull"),
    ("nullif", "any any", None, "conditions", ""),
    ("if", "boolean any any", None, "conditions", ""),
    ("nvl2", "any any any", None, "conditions", ""),
    ("isnull", "any", "boolean", "conditions", ""),
    ("round", "number int?", "number", "numbers", ""),
    ("exists", "array lambda", "boolean", "arrays and maps", ""),
    ("forall", "array lambda", "boolean", "arrays and maps", ""),
    ("rlike", "string string", "boolean", "strings", "regexp regexp_like"),
    ("like", "string string", "boolean", "strings", ""),
):
    define(_name, _takes, _gives, group=_group, aliases=_other, sees_null=True, bind=_unbound)
