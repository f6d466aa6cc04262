"""How JavaScript compares null, booleans, numbers and texts; JSONLogic's constants need it."""

from __future__ import annotations

import math
import operator
import re
from typing import Any

_DECIMAL = re.compile(
    r"[+-]?(?:Infinity|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
)
_PREFIXED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_SPACE = " \t\n\v\f\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def to_number(value: Any) -> float:
    """The number that a value is converted to; NaN for a text that is none."""
    if value is None:
        return 0.0
    if not isinstance(value, str):
        return float(value)
    text = value.strip(_SPACE)
    if not text:
        return 0.0
    if _PREFIXED.fullmatch(text):
        return float(int(text, 0))
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def is_text_of_number(text: str) -> bool:
    """Whether a text is converted to a number other than NaN."""
    return not math.isnan(to_number(text))


def strictly_equal(a: Any, b: Any) -> bool:
    """`===`: of one type, and equal."""
    return _type(a) == _type(b) and bool(a == b)


def loosely_equal(a: Any, b: Any) -> bool:
    """`==`: equal after conversion; null equals null alone."""
    if _type(a) == _type(b):
        return bool(a == b)
    if a is None or b is None:
        return False
    return to_number(a) == to_number(b)


def compare(op: str, a: Any, b: Any) -> bool:
    """`<` and its kin: two texts by their characters, everything else as numbers."""
    if isinstance(a, str) and isinstance(b, str):
        return bool(_ORDERS[op](a.encode("utf-16-be"), b.encode("utf-16-be")))
    return bool(_ORDERS[op](to_number(a), to_number(b)))


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__
