"""Query documents as MongoDB's `find` takes them.

A field equals a value, or satisfies all operators of an object.  Everything is two-valued: `$ne`,
`$nin`, `$not` and `$nor` hold for documents without the field.  Comparisons look at values of the
constant's own type.  A field that holds a list satisfies what any element satisfies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any as Object

from matchwood.lang.patterns import like_text
from matchwood.rules.conditions import (
    FALSE,
    All,
    Any,
    Condition,
    Not,
    OneOf,
    Order,
    Pattern,
    Present,
    Regex,
    Untranslatable,
    excerpt,
)
from matchwood.rules.texts import check_any_case, language

_ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_SPECIAL = set(".^$*+?{}[]|()\\")
Path = tuple[str, ...]


def read(query: Object) -> Condition:
    """The condition that a query stands for; Untranslatable where there is no exact one."""
    if not isinstance(query, Mapping):
        raise Untranslatable("the query", (), f"expected an object, found {excerpt(query)}")
    return _query(query, ())


def _query(query: Mapping[str, Object], path: Path) -> Condition:
    parts: list[Condition] = []
    for key, value in query.items():
        here = (*path, str(key))
        if key in ("$and", "$or", "$nor"):
            joined = _queries(key, value, here)
            is_and = key == "$and"
            both = All(joined) if is_and else Any(joined)
            parts.append(Not(both) if key == "$nor" else both)
        elif key == "$comment":
            continue
        elif str(key).startswith("$"):
            raise Untranslatable(str(key), here, "expected a field, $and, $or or $nor")
        else:
            parts.append(_field(_name(str(key), here), value, here))
    return All(tuple(parts))


def _queries(key: str, value: Object, path: Path) -> tuple[Condition, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(e, Mapping) for e in value):
        raise Untranslatable(key, path, "expected an array of queries, at least one")
    return tuple([_query(each, (*path, f"[{n}]")) for n, each in enumerate(value)])


def _name(name: str, path: Path) -> str:
    if any(part.isdecimal() for part in name.split(".")):
        raise Untranslatable(name, path, "a number in a path may be a position in a list")
    return name


def _field(name: str, value: Object, path: Path) -> Condition:
    if isinstance(value, Mapping) and any(str(key).startswith("$") for key in value):
        return _operators(name, value, path)
    return _equal(name, value, path)


def _operators(name: str, operators: Mapping[str, Object], path: Path) -> Condition:
    parts: list[Condition] = []
    for operator, value in operators.items():
        here = (*path, str(operator))
        if operator == "$regex":
            parts.append(_regex(name, value, operators.get("$options", ""), here))
        elif operator == "$options":
            if "$regex" not in operators:
                raise Untranslatable("$options", here, "expected $regex in the same object")
        else:
            parts.append(_operator(name, str(operator), value, here))
    return All(tuple(parts))


def _operator(name: str, operator: str, value: Object, path: Path) -> Condition:
    if operator in ("$eq", "$ne"):
        equal = _equal(name, value, path)
        return equal if operator == "$eq" else Not(equal)
    if operator in _ORDERS:
        if value is None or not _is_plain(value):
            raise Untranslatable(operator, path, f"expected a plain value, found {excerpt(value)}")
        return Order(name, ((_ORDERS[operator], value),))
    if operator in ("$in", "$nin", "$all"):
        if not isinstance(value, list):
            raise Untranslatable(operator, path, f"expected an array, found {excerpt(value)}")
        each = tuple([_equal(name, one, (*path, f"[{n}]")) for n, one in enumerate(value)])
        if operator == "$all":
            return All(each) if each else FALSE
        return Not(_merged(name, each)) if operator == "$nin" else _merged(name, each)
    if operator == "$exists":
        return Present(name) if value else Not(Present(name))
    if operator == "$not":
        return Not(_negated(name, value, path))
    raise Untranslatable(operator, path, _reason(operator))


def _reason(operator: str) -> str:
    if operator == "$elemMatch":
        return "several conditions on one element have no text here: match the elements as events"
    return "this operator has no exact text"


def _negated(name: str, value: Object, path: Path) -> Condition:
    if isinstance(value, re.Pattern):
        return _equal(name, value, path)
    if not isinstance(value, Mapping) or not all(str(key).startswith("$") for key in value):
        raise Untranslatable("$not", path, f"expected operators, found {excerpt(value)}")
    return _operators(name, value, path)


def _merged(name: str, tests: tuple[Condition, ...]) -> Condition:
    """Tests joined by OR; equal values of one field are one test."""
    values = tuple(v for test in tests if isinstance(test, OneOf) for v in test.values)
    others = [test for test in tests if not isinstance(test, OneOf)]
    parts = ([OneOf(name, values)] if values else []) + others
    return Any(tuple(parts))


def _equal(name: str, value: Object, path: Path) -> Condition:
    if value is None:
        return Not(Present(name))
    if isinstance(value, re.Pattern):
        flags = value.flags & ~re.UNICODE
        return _regex(
            name, value.pattern, "i" if flags == re.IGNORECASE else str(flags or ""), path
        )
    if not _is_plain(value):
        is_list = isinstance(value, (list, tuple))
        what = "an array as a value" if is_list else "an object as a value"
        hint = "write $all" if is_list else "name its fields by dotted paths"
        raise Untranslatable(what, path, f"whole {'lists' if is_list else 'objects'} are not "
                             f"compared: {hint}")  # fmt: skip
    if value != value:  # NaN
        raise Untranslatable("NaN", path, "it has another order here")
    return OneOf(name, (value,))


def _is_plain(value: Object) -> bool:
    return isinstance(value, (str, bool, int, float, Decimal, datetime, date))


def _regex(name: str, pattern: Object, options: Object, path: Path) -> Condition:
    """A literal with or without anchors, as LIKE; else RLIKE, if the language has it."""
    if isinstance(pattern, re.Pattern):
        pattern, options = pattern.pattern, "i" if pattern.flags & re.IGNORECASE else options
    if not isinstance(pattern, str) or options not in ("", "i"):
        raise Untranslatable("$regex", path, f"expected a text, and no options but i: {options}")
    any_case = options == "i"
    literal = _literal(pattern)
    if literal is None:
        return _other_regex(name, pattern, any_case, path)
    text, at_start, at_end = literal
    if any_case:
        check_any_case(text, "$regex", path)
    head = "" if at_start else "%"
    like = head + like_text(text)
    if not at_end:
        return Pattern(name, like + "%", any_case)
    # `$` also matches before a newline that ends the text.
    if at_start and not any_case:
        return OneOf(name, (text, f"{text}\n"))
    return Any((Pattern(name, like, any_case), Pattern(name, like + "\n", any_case)))


def _other_regex(name: str, pattern: str, any_case: bool, path: Path) -> Condition:
    if not language().regex:
        raise Untranslatable(
            "$regex", path, f"expected a plain text, with ^ or $ around it, found {pattern!r}"
        )
    if not pattern.isascii():
        raise Untranslatable("$regex", path, "patterns beyond ASCII may differ")
    return Regex(name, f"(?i){pattern}" if any_case else pattern)


def _literal(pattern: str) -> tuple[str, bool, bool] | None:
    """The text that a pattern looks for, and whether it is anchored; None if it is no text."""
    at_start, at_end = pattern.startswith("^"), False
    rest = pattern[1:] if at_start else pattern.removeprefix(".*")
    text: list[str] = []
    at = 0
    while at < len(rest):
        character = rest[at]
        if character == "\\" and at + 1 < len(rest) and not rest[at + 1].isalnum():
            text.append(rest[at + 1])
            at += 2
        elif character == "$" and at == len(rest) - 1:
            at_end, at = True, at + 1
        elif rest[at:] == ".*":
            at += 2
        elif character in _SPECIAL:
            return None
        else:
            text.append(character)
            at += 1
    return "".join(text), at_start, at_end
