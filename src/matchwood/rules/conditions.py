"""What a rule of another system asks, in two truth values: a condition holds, or it does not.

    All(parts)  Any(parts)  Not(part)
    Present(name)                    the attribute has a value
    OneOf(name, values)              a value equals one of these, of the same kind
    Order(name, bounds)              one value of the same kind is < <= > >= each of these
    Pattern(name, like, any_case)    a text is like this pattern
    Regex(name, pattern)             a part of a text matches this pattern
    But(name, tests)                 there is a value, and it satisfies none of the tests
    Within(name, text)               a part of the attribute's text, or an element of its list
    Truthy(name)                     neither absent nor false, 0, an empty text or an empty list

"A value" is the attribute's own, or any element of the list that it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any as Object
from typing import TypeAlias


class Untranslatable(Exception):
    """A rule that has no exact text: the construct, where it stands, and why."""

    def __init__(self, construct: str, path: tuple[str, ...], reason: str) -> None:
        super().__init__(construct, path, reason)
        self.construct = construct
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Any:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    part: Condition


@dataclass(frozen=True)
class Present:
    name: str


@dataclass(frozen=True)
class OneOf:
    name: str
    values: tuple[Object, ...]


@dataclass(frozen=True)
class Order:
    name: str
    bounds: tuple[tuple[str, Object], ...]


@dataclass(frozen=True)
class Pattern:
    name: str
    like: str
    any_case: bool = False


@dataclass(frozen=True)
class Regex:
    name: str
    pattern: str


@dataclass(frozen=True)
class But:
    name: str
    tests: tuple[Test, ...]


@dataclass(frozen=True)
class Within:
    name: str
    text: str


@dataclass(frozen=True)
class Truthy:
    name: str


Test: TypeAlias = "OneOf | Order | Pattern | Regex"
Condition: TypeAlias = "All | Any | Not | Present | But | Within | Truthy | Test"

TRUE, FALSE = All(()), Any(())


def always(holds: bool) -> Condition:
    """The condition that always holds, or never."""
    return TRUE if holds else FALSE


def excerpt(value: Object) -> str:
    """The beginning of a part of a rule, for an error."""
    return str(value)[:60]
