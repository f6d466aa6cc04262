"""Conditions as our text, exact in two truth values.

SQL has three: a predicate on an absent attribute, or on a value of another kind, is unknown.  Where
a condition is asked to hold, unknown and false are the same.  Where it is asked not to hold, the
text must be true for unknown too:

    NOT (a AND b)  ->  NOT a OR NOT b
    NOT (x > 5)    ->  (x > 5) IS NOT TRUE, or without IS TRUE  x <= 5 OR x IS NULL

What the language takes is asked of the parser, once (`Language`).  Without `IS NOT TRUE` an
attribute has values of one kind, and the second form says the same.  Without `array_contains` and
`exists` lists cannot be asked, and an event that has one is refused by the matcher.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any as Object

from matchwood.errors import ParseError
from matchwood.lang import Printer, as_value, is_context, parse
from matchwood.lang.names import problem, written
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
    Regex,
    Test,
    Untranslatable,
)

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_PRINTER = Printer()
_ELEMENT = "x"


@dataclass(frozen=True)
class Language:
    """Which constructs the parser takes."""

    is_true: bool
    arrays: bool
    any_case: bool
    regex: bool


@cache
def language() -> Language:
    return Language(
        is_true=_takes("(a = 1) IS NOT TRUE"),
        arrays=_takes("array_contains(a, 'x') OR exists(a, x -> x > 1)"),
        any_case=_takes("a ILIKE 'x%'"),
        regex=_takes("a RLIKE '^x[0-9]+'"),
    )


def check_any_case(text: str, construct: str, path: tuple[str, ...]) -> None:
    """Untranslatable unless the language compares this text in any case as other systems do."""
    if not language().any_case:
        reason = "the language has no ILIKE to compare letters of any case"
        raise Untranslatable(construct, path, reason)
    if not text.isascii():
        reason = f"letters beyond ASCII change their case by other rules: {text!r}"
        raise Untranslatable(construct, path, reason)


def _takes(text: str) -> bool:
    try:
        parse(text)
    except ParseError:
        return False
    return True


def to_text(condition: Condition, has_list: Callable[[str], bool]) -> str:
    """The text of a condition; Untranslatable where the language has none.

    has_list  whether an attribute may hold a list
    """
    text = _Writer(has_list).asked(condition)
    try:
        return str(parse(text))
    except ParseError as error:
        raise Untranslatable("the rule", (), f"its text is refused: {error.message}") from None


class _Writer:
    def __init__(self, has_list: Callable[[str], bool]) -> None:
        self._has_list = has_list
        self._language = language()

    def asked(self, node: Condition) -> str:
        """True exactly where the condition holds."""
        match node:
            case All(parts):
                return _joined(" AND ", [self.asked(part) for part in parts], "TRUE")
            case Any(parts):
                return _joined(" OR ", [self.asked(part) for part in parts], "FALSE")
            case Not(part):
                return self.denied(part)
            case Present(name):
                return f"{_name(name)} IS NOT NULL"
            case But(name, tests):
                return self._any_value(name, partial(self._but, tests))
            case _:
                return self._any_value(node.name, partial(self._test, node))

    def denied(self, node: Condition) -> str:
        """True exactly where the condition does not hold."""
        match node:
            case All(parts):
                return _joined(" OR ", [self.denied(part) for part in parts], "FALSE")
            case Any(parts):
                return _joined(" AND ", [self.denied(part) for part in parts], "TRUE")
            case Not(part):
                return self.asked(part)
            case Present(name):
                return f"{_name(name)} IS NULL"
        if self._language.is_true:
            return f"({self.asked(node)}) IS NOT TRUE"
        if isinstance(node, But):
            tests = _joined(" OR ", [self._test(test, _name(node.name)) for test in node.tests])
            return f"({tests} OR {_name(node.name)} IS NULL)"
        subject = _name(node.name)
        return f"({self._opposite(node, subject)} OR {subject} IS NULL)"

    def _any_value(self, name: str, ask: Callable[[str], str]) -> str:
        """Asked of the attribute's value, and of each element of its list."""
        alone = ask(_name(name))
        if not (self._language.arrays and self._has_list(name)):
            return alone
        return f"({alone} OR {self._any_element(name, ask)})"

    def _any_element(self, name: str, ask: Callable[[str], str]) -> str:
        test = ask.args[0] if isinstance(ask, partial) else None
        if isinstance(test, OneOf):
            contains = [f"array_contains({_name(name)}, {_value(v)})" for v in test.values]
            return _joined(" OR ", contains)
        return f"exists({_name(name)}, {_ELEMENT} -> {ask(_ELEMENT)})"

    def _but(self, tests: tuple[Test, ...], subject: str) -> str:
        if self._language.is_true:
            held = _joined(" OR ", [self._test(test, subject) for test in tests])
            return f"({subject} IS NOT NULL AND ({held}) IS NOT TRUE)"
        return _joined(" AND ", [self._opposite(test, subject) for test in tests])

    def _test(self, test: Test, subject: str) -> str:
        match test:
            case OneOf(_, values):
                return _one_of(subject, values)
            case Order(_, bounds):
                texts = [f"{subject} {op} {_value(value)}" for op, value in bounds]
                return _joined(" AND ", texts)
            case Pattern(_, like, any_case):
                operator = "ILIKE" if any_case else "LIKE"
                return f"{subject} {operator} {_PRINTER.string(like)}"
            case Regex(_, pattern):
                return f"{subject} RLIKE {_PRINTER.string(pattern)}"

    def _opposite(self, test: Test, subject: str) -> str:
        """True where the value is there and fails the test; for values of one kind."""
        match test:
            case Order(_, bounds):
                texts = [f"{subject} {_NEGATED[op]} {_value(value)}" for op, value in bounds]
                return _joined(" OR ", texts)
            case OneOf(_, values):
                return _joined(" AND ", _by_kind(values, f"{subject} <> ", f"{subject} NOT IN "))
            case _:
                return f"{subject} NOT{self._test(test, subject).removeprefix(subject)}"


def _one_of(subject: str, values: tuple[Object, ...]) -> str:
    return _joined(" OR ", _by_kind(values, f"{subject} = ", f"{subject} IN "))


def _by_kind(values: tuple[Object, ...], one: str, many: str) -> list[str]:
    """A predicate for the values of each kind."""
    kinds: dict[str, list[Object]] = {}
    for value in values:
        kinds.setdefault(_kind(value), []).append(value)
    parts = []
    for same in kinds.values():
        texts = list(dict.fromkeys(map(_value, same)))
        parts.append(one + texts[0] if len(texts) == 1 else f"{many}({', '.join(texts)})")
    return parts


def _kind(value: Object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return type(value).__name__


def _name(name: str) -> str:
    trouble = problem(name)
    if is_context(name):
        trouble = "names that begin with ctx. are values of a context here"
    if trouble:
        raise Untranslatable(f"the name {name!r}", (), trouble)
    return written(name)


def _value(value: Object) -> str:
    """A constant as text; a whole float as an int, which is the same number."""
    try:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Untranslatable(str(value), (), "it is no number of JSON")
            value = int(value) if value.is_integer() and abs(value) < 2**53 else value
        return _PRINTER.value(as_value(value))
    except (ParseError, TypeError) as error:
        raise Untranslatable(f"the value {str(value)[:40]!r}", (), str(error)) from None


def _joined(joint: str, parts: list[str], empty: str = "FALSE") -> str:
    """Parts joined, without repetitions and constants; `empty` where there is none."""
    absorbing, neutral = ("FALSE", "TRUE") if joint == " AND " else ("TRUE", "FALSE")
    if absorbing in parts:
        return absorbing
    kept = [part for part in dict.fromkeys(parts) if part != neutral]
    if len(kept) < 2:
        return kept[0] if kept else (neutral if parts else empty)
    return "(" + joint.join(kept) + ")"
