"""Event patterns of Amazon EventBridge and of the library event-ruler.

A field's array lists alternatives, fields are joined by AND, `$or` joins patterns.  A field that
holds a list matches when any element does.  Tests of text look at texts, `numeric` at numbers, and
`anything-but` needs a value that is not among those it names.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any as Object

from matchwood.lang.patterns import like_text
from matchwood.rules.conditions import (
    All,
    Any,
    But,
    Condition,
    Not,
    OneOf,
    Order,
    Pattern,
    Present,
    Test,
    Untranslatable,
    excerpt,
)
from matchwood.rules.texts import check_any_case

_RESERVED = {
    "exactly", "prefix", "suffix", "equals-ignore-case", "wildcard", "anything-but", "numeric",
    "exists", "cidr",
}  # fmt: skip
_MAX_ADDRESSES = 256
Path = tuple[str, ...]


def read(pattern: Object) -> Condition:
    """The condition that a pattern stands for; Untranslatable where there is no exact one."""
    if not isinstance(pattern, Mapping) or not pattern:
        raise Untranslatable("the pattern", (), f"expected an object with fields, found {pattern}")
    return _fields(pattern, (), ())


def _fields(pattern: Mapping[str, Object], names: Path, path: Path) -> Condition:
    parts = []
    for key, value in pattern.items():
        here = (*path, str(key))
        if key == "$or" and _is_or(value):
            parts.append(_alternatives(value, names, here))
        elif isinstance(value, Mapping):
            if not value:
                raise Untranslatable("{}", here, "expected fields or an array, found none")
            parts.append(_fields(value, (*names, str(key)), here))
        elif isinstance(value, list):
            parts.append(_values(".".join((*names, str(key))), value, here))
        else:
            raise Untranslatable(
                excerpt(value), here, "expected an array of values: put brackets around it"
            )
    return All(tuple(parts))


def _is_or(value: Object) -> bool:
    """Whether event-ruler reads `$or` as an alternative, and not as the name of a field."""
    is_list = isinstance(value, list) and len(value) > 1
    return is_list and all(isinstance(e, Mapping) and e and not _RESERVED & e.keys() for e in value)


def _alternatives(patterns: list[Mapping[str, Object]], names: Path, path: Path) -> Condition:
    each = [_fields(one, names, (*path, f"[{n}]")) for n, one in enumerate(patterns)]
    return Any(tuple(each))


def _values(name: str, values: list[Object], path: Path) -> Condition:
    if not values:
        raise Untranslatable("[]", path, "expected at least one value")
    parts: list[Condition] = []
    exact: list[Object] = []
    for n, value in enumerate(values):
        here = (*path, f"[{n}]")
        if isinstance(value, Mapping):
            parts.append(_operator(name, value, here))
        elif value is None:
            raise Untranslatable(
                "null", here, "null means an absent attribute here, the same as a missing field"
            )
        elif isinstance(value, (str, int, float)):
            exact.append(value)
        else:
            raise Untranslatable(excerpt(value), here, "expected a text, a number or a boolean")
    found = [OneOf(name, tuple(exact)), *parts] if exact else parts
    return found[0] if len(found) == 1 else Any(tuple(found))


def _operator(name: str, test: Mapping[str, Object], path: Path) -> Condition:
    operator, value = _only(test, path)
    here = (*path, operator)
    if operator == "exists":
        if not isinstance(value, bool):
            raise Untranslatable("exists", here, f"expected true or false, found {excerpt(value)}")
        return Present(name) if value else Not(Present(name))
    if operator == "anything-but":
        return But(name, _excluded(name, value, here))
    if operator == "numeric":
        return _numeric(name, value, here)
    return _text_test(name, operator, value, here)


def _only(test: Mapping[str, Object], path: Path) -> tuple[str, Object]:
    if len(test) != 1:
        raise Untranslatable(excerpt(test), path, "expected an object with one operator")
    operator, value = next(iter(test.items()))
    return str(operator), value


def _text_test(name: str, operator: str, value: Object, path: Path) -> Test:
    any_case = False
    if operator in ("prefix", "suffix") and isinstance(value, Mapping):
        inner, value = _only(value, path)
        if inner != "equals-ignore-case":
            raise Untranslatable(inner, path, f"expected equals-ignore-case inside {operator}")
        any_case = True
    if operator not in _RESERVED:
        raise Untranslatable(operator, path, f"expected one of {', '.join(sorted(_RESERVED))}")
    if not isinstance(value, str):
        raise Untranslatable(operator, path, f"expected a text, found {excerpt(value)}")
    if operator == "exactly":
        return OneOf(name, (value,))
    if operator == "cidr":
        return OneOf(name, _addresses(value, path))
    if operator == "wildcard":
        return Pattern(name, _wildcard(value, path))
    if operator == "equals-ignore-case" or any_case:
        check_any_case(value, "equals-ignore-case", path)
    like = like_text(value)
    if operator == "prefix":
        return Pattern(name, f"{like}%", any_case)
    if operator == "suffix":
        return Pattern(name, f"%{like}", any_case)
    return Pattern(name, like, any_case=True)


def _excluded(name: str, value: Object, path: Path) -> tuple[Test, ...]:
    """The tests that no value of `anything-but` may satisfy."""
    if isinstance(value, Mapping):
        operator, texts = _only(value, path)
        here = (*path, operator)
        if operator not in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
            raise Untranslatable(operator, here, "anything-but does not take it")
        if not isinstance(texts, list):
            return (_text_test(name, operator, texts, here),)
        if not texts:
            raise Untranslatable("[]", here, "expected at least one text")
        return tuple(_text_test(name, operator, text, here) for text in texts)
    values = value if isinstance(value, list) else [value]
    are_texts = all(isinstance(each, str) for each in values)
    are_numbers = all(_is_number(each) for each in values)
    if not values or not (are_texts or are_numbers):
        raise Untranslatable(
            "anything-but", path, f"expected texts alone or numbers alone, found {excerpt(value)}"
        )
    return (OneOf(name, tuple(values)),)


def _numeric(name: str, ranges: Object, path: Path) -> Test:
    """`["=", 5]`, `["<", 5]` or `[">", 0, "<=", 5]`: one number satisfies both bounds."""
    operators = ranges[::2] if isinstance(ranges, list) else []
    numbers = ranges[1::2] if isinstance(ranges, list) else []
    is_range = len(operators) == 2 and operators[0] in (">", ">=") and operators[1] in ("<", "<=")
    is_known = len(operators) == 1 and operators[0] in ("=", "<", "<=", ">", ">=")
    are_numbers = len(numbers) == len(operators) and all(map(_is_number, numbers))
    if not ((is_range or is_known) and are_numbers):
        raise Untranslatable(
            "numeric",
            path,
            'expected an operator and a number such as ["<", 5], or a range such as '
            f'[">", 0, "<=", 5], found {excerpt(ranges)}',
        )
    if operators == ["="]:
        return OneOf(name, tuple(numbers))
    return Order(name, tuple(zip(operators, numbers, strict=True)))


def _wildcard(text: str, path: Path) -> str:
    r"""`*` is any text; `\*` and `\\` are themselves."""
    like: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "*":
            if like and like[-1] == "%":
                raise Untranslatable("wildcard", path, "expected no two * side by side")
            like.append("%")
        elif character == "\\":
            following = next(characters, "")
            if following not in ("*", "\\") or not following:
                raise Untranslatable("wildcard", path, r"expected * or \ after a backslash")
            like.append(like_text(following))
        else:
            like.append(like_text(character))
    return "".join(like)


def _addresses(block: str, path: Path) -> tuple[str, ...]:
    """All addresses of a small block of IPv4, which are written in one way only."""
    try:
        network = ipaddress.ip_network(block, strict=False)
    except ValueError as error:
        raise Untranslatable("cidr", path, f"expected a block of addresses: {error}") from None
    if network.version != 4:
        reason = "an address of IPv6 can be written in several ways, which texts do not compare"
        raise Untranslatable("cidr", path, reason)
    if network.num_addresses > _MAX_ADDRESSES:
        raise Untranslatable(
            "cidr",
            path,
            f"expected at most {_MAX_ADDRESSES} addresses (/24), found {network.num_addresses:,}: "
            "they are compared as texts, one by one",
        )
    return tuple(map(str, network))


def _is_number(value: Object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
