"""Arrays and maps: lists, and nested objects whose keys are strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matchwood.lang.functions.numbers import order_key
from matchwood.lang.functions.registry import Binding, define
from matchwood.lang.functions.types import (
    Arr,
    Failed,
    Mixed,
    Mp,
    TypeProblem,
    check_ordered,
    common,
    convert,
    type_of,
)

_GROUP = "arrays and maps"


def _element(kind: Any) -> Any:
    if kind == "void":
        return kind
    if not isinstance(kind, Arr):
        raise TypeProblem(f"{kind}, where it takes an array")
    if isinstance(kind.element, Mixed):
        raise TypeProblem("an array of several kinds")
    return kind.element


def _element_at_position(kind: Any, at: Any) -> Any:
    """The type of an array's element, given the type of its position."""
    element = _element(kind)
    if at not in ("int", "bigint", "void"):
        raise TypeProblem(f"{at}, where an array has whole numbers as positions")
    return element


def same(left: Any, right: Any) -> bool:
    """Whether two values of comparable types are equal; NULLs inside arrays are equal."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if left is None or right is None:
        return left is right
    return bool(order_key(left) == order_key(right))


def _kinds(kind: Any) -> tuple[Any, ...]:
    """The types of an array's elements."""
    if isinstance(kind, Arr) and isinstance(kind.element, Mixed):
        return kind.element.kinds
    return (_element(kind),)


def _of_one_kind(left: Any, right: Any) -> bool:
    try:
        common(left, right)
    except TypeProblem:
        return False
    return True


def _comparable_elements(lefts: tuple[Any, ...], rights: tuple[Any, ...]) -> bool:
    """Whether all elements compare with each other; TypeProblem when none do."""
    found = {_of_one_kind(a, b) for a in lefts for b in rights}
    if found == {False}:
        raise TypeProblem(f"{lefts[0]} beside {rights[0]}")
    return False not in found


def _equal(left: Any, right: Any) -> bool | None:
    """Whether two elements are equal; None for NULL and for elements of two kinds."""
    if left is None or right is None or not _of_one_kind(type_of(left), type_of(right)):
        return None
    return same(left, right)


def _array_contains(types: Sequence[Any]) -> Binding:
    are_comparable = types[0] == "void" or _comparable_elements(_kinds(types[0]), (types[1],))
    equal = _equal if not are_comparable else None

    def contains(values: list[Any], wanted: Any) -> bool | None:
        if equal is not None:
            return _any([equal(each, wanted) for each in values])
        if any(each is not None and same(each, wanted) for each in values):
            return True
        return None if None in values else False

    return "boolean", contains


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _arrays_overlap(types: Sequence[Any]) -> Binding:
    are_comparable = "void" in types or _comparable_elements(*map(_kinds, types))

    def overlap(left: list[Any], right: list[Any]) -> bool | None:
        if not are_comparable:
            return _any([_equal(a, b) for a in left for b in right])
        for each in left:
            if each is not None and any(b is not None and same(each, b) for b in right):
                return True
        return None if left and right and (None in left or None in right) else False

    return "boolean", overlap


def _size(types: Sequence[Any]) -> Binding:
    if not isinstance(types[0], (Arr, Mp)) and types[0] != "void":
        raise TypeProblem(f"{types[0]}, where it takes an array or a map")
    return "int", len


def _array(types: Sequence[Any]) -> Binding:
    kind: Any = "void"
    for each in types:
        kind = common(kind, each)
    converters = [convert(each, kind) for each in types]

    def made(*values: Any) -> list[Any]:
        return [
            value if to is None or value is None else to(value)
            for value, to in zip(values, converters, strict=True)
        ]

    return Arr(kind), made


def item_bind(types: Sequence[Any]) -> Binding:
    """`a[i]` from 0, and `m['key']`."""
    kind, key = types
    if isinstance(kind, Mp):
        if key not in ("string", "void"):
            raise TypeProblem(f"{key}, where a map has strings as keys")
        return None, lambda value, name: value.get(name)
    element = _element_at_position(kind, key)

    def item(values: list[Any], at: int) -> Any:
        if not 0 <= at < len(values):
            raise Failed(f"position {at} in an array of {len(values)}")
        return values[at]

    return element, item


def _element_at(types: Sequence[Any]) -> Binding:
    kind, at_or_key = types
    if isinstance(kind, Mp):
        return item_bind(types)
    element = _element_at_position(kind, at_or_key)

    def item(values: list[Any], at: int) -> Any:
        if at == 0 or abs(at) > len(values):
            raise Failed(f"position {at} in an array of {len(values)}")
        return values[at - 1 if at > 0 else at]

    return element, item


def _extreme(pick: Callable[..., Any]) -> Callable[[Sequence[Any]], Binding]:
    def bind(types: Sequence[Any]) -> Binding:
        element = _element(types[0])
        check_ordered(element)

        def found(values: list[Any]) -> Any:
            known = [each for each in values if each is not None]
            return pick(known, key=order_key) if known else None

        return element, found

    return bind


define("array_contains", "array any", "boolean", group=_GROUP, bind=_array_contains)
define("arrays_overlap", "array array", "boolean", group=_GROUP, bind=_arrays_overlap)
define("size", "any", "int", group=_GROUP, aliases="cardinality", bind=_size)
define("array_size", "array", "int", len, group=_GROUP)
define("array", "any*", None, group=_GROUP, sees_null=True, bind=_array)
define("element_at", "any any", None, group=_GROUP, bind=_element_at)
define("[]", "any any", None, group="operators", bind=item_bind)
define("array_min", "array", None, group=_GROUP, bind=_extreme(min))
define("array_max", "array", None, group=_GROUP, bind=_extreme(max))
define("map_contains_key", "map string", "boolean", lambda m, k: k in m, group=_GROUP)
