"""Functions of strings; positions count characters from 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matchwood.lang.functions.casts import caster
from matchwood.lang.functions.registry import Binding, define
from matchwood.lang.functions.types import Arr, Failed, TypeProblem

MAX_LENGTH = 1_000_000
"""Longest string that repeat, lpad, rpad and replace make."""
_GROUP = "strings"


def _substr(text: str, start: int, length: int = 2**31 - 1) -> str:
    if start > 0 and length >= 0:  # the usual case
        return text[start - 1 : start - 1 + length]
    first = len(text) + start if start < 0 else max(start - 1, 0)
    last = first + length
    if last <= first:
        return ""
    return text[max(first, 0) : max(last, 0)]


def _right(text: str, length: int) -> str:
    return _substr(text, -length) if length > 0 else ""


def _pad(text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return ""
    if length > MAX_LENGTH:
        raise Failed(f"a string of {length} characters")
    return (pad * (missing // len(pad) + 1))[:missing]


def _lpad(text: str, length: int, pad: str = " ") -> str:
    return _pad(text, length, pad) + text[: max(length, 0)]


def _rpad(text: str, length: int, pad: str = " ") -> str:
    return text[: max(length, 0)] + _pad(text, length, pad)


def _replace(text: str, search: str, by: str = "") -> str:
    if not search:
        return text
    if len(text) * (len(by) + 1) > 10 * MAX_LENGTH:
        raise Failed("a string that may become too long")
    return text.replace(search, by)


def _repeat(text: str, times: int) -> str:
    if times > 0 and len(text) * times > MAX_LENGTH:
        raise Failed(f"a string of {len(text) * times} characters")
    return text * max(times, 0)


def _translate(text: str, these: str, by: str) -> str:
    table: dict[int, str | None] = {}
    for i, character in enumerate(these):
        table.setdefault(ord(character), by[i] if i < len(by) else None)
    return text.translate(table)


def _concat(types: Sequence[Any]) -> Binding:
    for each in types:
        if isinstance(each, Arr):
            raise TypeProblem("arrays")
    texts = [None if each in ("string", "void") else caster(each, "string") for each in types]

    def joined(*values: Any) -> str:
        return "".join(
            [value if to is None else to(value) for value, to in zip(values, texts, strict=True)]
        )

    return "string", joined


def _reverse(types: Sequence[Any]) -> Binding:
    (kind,) = types
    if kind in ("string", "void") or isinstance(kind, Arr):
        return kind, lambda value: value[::-1]
    raise TypeProblem(f"{kind}, where it takes a string or an array")


def _locate(search: str, text: str) -> int:
    return text.find(search) + 1


define("lower", "string", "string", str.lower, group=_GROUP, aliases="lcase", total="ascii")
define("upper", "string", "string", str.upper, group=_GROUP, aliases="ucase", total="ascii")
define("length", "string", "int", len, group=_GROUP,
       aliases="char_length character_length len", total="string")  # fmt: skip
define("trim", "string", "string", lambda text: text.strip(" "), group=_GROUP, total="string")
define("ltrim", "string", "string", lambda text: text.lstrip(" "), group=_GROUP, total="string")
define("rtrim", "string", "string", lambda text: text.rstrip(" "), group=_GROUP, total="string")
define(
    "substr",
    "string int int?",
    "string",
    _substr,
    group=_GROUP,
    aliases="substring",
    total="string int, string int int",
)
define(
    "left",
    "string int",
    "string",
    lambda text, n: _substr(text, 1, n),
    group=_GROUP,
    total="string int",
)
define("right", "string int", "string", _right, group=_GROUP, total="string int")
define("concat", "any any*", "string", group=_GROUP, bind=_concat, total="string string*")
define("||", "any any", "string", group="operators", bind=_concat, total="string string")
define("replace", "string string string?", "string", _replace, group=_GROUP)
define("translate", "string string string", "string", _translate, group=_GROUP)
define(
    "startswith", "string string", "boolean", str.startswith, group=_GROUP, total="string string"
)
define("endswith", "string string", "boolean", str.endswith, group=_GROUP, total="string string")
define(
    "contains", "string string", "boolean", str.__contains__, group=_GROUP, total="string string"
)
define(
    "instr",
    "string string",
    "int",
    lambda text, search: _locate(search, text),
    group=_GROUP,
    total="string string",
)
define(
    "locate",
    "string string",
    "int",
    _locate,
    group=_GROUP,
    aliases="position",
    total="string string",
)
define("lpad", "string int string?", "string", _lpad, group=_GROUP)
define("rpad", "string int string?", "string", _rpad, group=_GROUP)
define("repeat", "string int", "string", _repeat, group=_GROUP)
define("reverse", "any", None, group=_GROUP, bind=_reverse, total="string")
