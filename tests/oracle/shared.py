"""The part of the language on which an engine's answer is the exact one.

Both engines have several kinds of number and bring the two sides of a comparison to one kind first.
Decimals and integers meet exactly; but once either side is DOUBLE, the other is rounded to DOUBLE.
Matchwood never rounds.  So two shapes are left out, here and nowhere else, and
`test_differences.py` pins what happens to them:

    float column   an int constant that DOUBLE cannot hold (beyond 2^53)
    int column     a constant from 2^53 on that is written as a DOUBLE (1e16), or stands beside one:
                   one DOUBLE makes a whole IN list DOUBLE, and in DuckDB both bounds of BETWEEN
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from matchwood.lang.nodes import Between, Comparison, In, Predicate
from matchwood.lang.printer import Printer
from strategies import Schema

EXACT = 2**53
"""From here on, not every integer is a DOUBLE."""

_TEXT = Printer()


def constants(predicate: Predicate) -> tuple[Any, ...]:
    if isinstance(predicate, Comparison):
        return (predicate.value,)
    if isinstance(predicate, Between):
        return predicate.low, predicate.high
    return predicate.values if isinstance(predicate, In) else ()


def is_double(constant: Any) -> bool:
    """Is it written with an exponent or by name, rather than in decimal notation?"""
    return isinstance(constant, float) and not set(_TEXT.float(constant)) <= set("-.0123456789")


def is_shared(predicate: Predicate, columns: Schema) -> bool:
    """Would no engine round either side of this predicate?"""
    kind = columns[predicate.name]
    numbers = [c for c in constants(predicate) if isinstance(c, (int, float)) and isfinite(c)]
    if kind == "float":
        return all(float(c) == c for c in numbers)
    if kind == "int":
        return all(abs(c) < EXACT for c in numbers) or not any(map(is_double, constants(predicate)))
    return True
