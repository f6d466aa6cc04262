"""Conditions as our text, exact in two truth values.

SQL has three: a predicate on an absent attribute, or on a value of another kind, is unknown.  Where
a condition is asked to hold, unknown and false are the same.  Where it is asked not to hold, the
text must be true for absent attributes and for values of all other kinds:

    NOT (a AND b)   ->  NOT a OR NOT b
    NOT (x = 'a')   ->  x <> 'a' OR x IS NULL OR x >= double('-Infinity') OR x IN (TRUE, FALSE)

The last two are any number and any boolean; they are left out where values have the type of the
constant beside them (`typed`).  A list has elements of one kind, and is asked by `array_contains`,
`exists` and `forall`.

What the language takes is asked of the parser, once (`Language`).  Without open types an attribute
has values of one kind; without list functions lists cannot be asked, and an event that has one
where a value is compared is refused by the matcher.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any as Object

from matchwood.errors import ParseError
from matchwood.lang import Printer, as_value, is_context, parse
from matchwood.lang.names import problem, written
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
    Regex,
    Test,
    Truthy,
    Untranslatable,
    Within,
)

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_PRINTER = Printer()


@dataclass(frozen=True)
class Language:
    """Which constructs the parser takes."""

    is_open: bool
    arrays: bool
    any_case: bool
    regex: bool


@cache
def language() -> Language:
    return Language(
        is_open=_takes("(a = 1) IS NOT TRUE"),  # it came with open types
        arrays=_takes(
            "array_contains(a, 'x') OR exists(a, x -> x > 1) OR forall(a, x -> x > 1) OR "
            "array_size(a) > 0"
        ),
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


def to_text(condition: Condition, has_list: Callable[[str], bool], typed: bool) -> str:
    """The text of a condition; Untranslatable where the language has none.

    has_list  whether an attribute may hold a list
    typed     values have the type of the constants that they are compared with
    """
    text = _Writer(has_list, typed).asked(condition)
    try:
        return str(parse(text))
    except ParseError as error:
        raise Untranslatable("the rule", (), f"its text is refused: {error.message}") from None


MANY = 16
"""Values from which on a list is asked for all of them at once, not for each; a range of addresses
has 256.
"""


def _is_of_one_type(values: Sequence[object]) -> bool:
    return len({type(each) for each in values}) == 1


class _Writer:
    def __init__(self, has_list: Callable[[str], bool], typed: bool) -> None:
        self._language = language()
        self._has_list = has_list
        self._is_open = self._language.is_open and not typed

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
            case Truthy(name):
                values = [f"{_name(name)} <> ''", f"{_name(name)} <> 0", _name(name)]
                return _joined(" OR ", [*values, f"array_size({_name(name)}) > 0"])
            case Within(name, text):
                inside = _test(Pattern(name, f"%{like_text(text)}%"), _name(name))
                element = [f"array_contains({_name(name)}, {_value(text)})"]
                return _joined(" OR ", [inside, *(element if self._language.arrays else [])])
            case But(name, tests):
                failing = self._failing(tests, _name(name))
                if self._asks_lists(name):
                    each = self._failing(tests, "x")
                    failing += [f"exists({_name(name)}, x -> {one})" for one in each]
                return _joined(" OR ", failing)
            case _:
                return self._any_value(node)

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
            case Truthy(name):
                empty = f"{_name(name)} IS NULL OR {_name(name)} = '' OR {_name(name)} = 0"
                return f"({empty} OR {_name(name)} = FALSE OR array_size({_name(name)}) = 0)"
            case Within(name, text):
                tests = (Pattern(name, f"%{like_text(text)}%"),)
                return self._none(name, tests, (OneOf(name, (text,)),), self._language.arrays)
            case But():
                raise AssertionError("no system negates anything-but")
            case _:
                return self._none(node.name, (node,), (node,), self._asks_lists(node.name))

    def _any_value(self, test: Test) -> str:
        """Asked of the attribute's value, and of each element of its list."""
        name = _name(test.name)
        alone = _test(test, name)
        if not self._asks_lists(test.name):
            return alone
        if isinstance(test, OneOf) and len(test.values) > MANY and _is_of_one_type(test.values):
            inside = [f"arrays_overlap({name}, array({', '.join(map(_value, test.values))}))"]
        elif isinstance(test, OneOf):
            inside = [f"array_contains({name}, {_value(value)})" for value in test.values]
        else:
            inside = [f"exists({name}, x -> {_test(test, 'x')})"]
        return _joined(" OR ", [alone, *inside])

    def _none(
        self, name: str, tests: tuple[Test, ...], of_elements: tuple[Test, ...], lists: bool
    ) -> str:
        """The attribute is absent, or its value fails, or all elements of its list do."""
        subject = _name(name)
        parts = [*self._failing(tests, subject), f"{subject} IS NULL"]
        if lists:
            parts += [f"forall({subject}, x -> {e})" for e in self._failing(of_elements, "x")]
        return _joined(" OR ", parts)

    def _failing(self, tests: tuple[Test, ...], subject: str) -> list[str]:
        """For each kind: the value is of this kind, and fails all tests."""
        found = []
        for kind, any_value in _ANY.items():
            opposites = [text for test in tests if (text := _opposite(test, subject, kind))]
            if opposites:
                found.append(_joined(" AND ", opposites))
            elif self._is_open:
                found.append(any_value.format(subject))
        others = [test for test in tests if not any(_opposite(test, subject, k) for k in _ANY)]
        return found + [_joined(" AND ", [f"NOT {_test(e, subject)}"]) for e in others]

    def _asks_lists(self, name: str) -> bool:
        return self._language.arrays and self._has_list(name)


_ANY = {
    "text": "{0} LIKE '%'",
    "number": "{0} >= double('-Infinity')",
    "boolean": "{0} IN (TRUE, FALSE)",
}
"""Any value of each kind that JSON has."""


def _test(test: Test, subject: str) -> str:
    match test:
        case OneOf(_, values):
            return _one_of(subject, values)
        case Order(_, bounds):
            texts = [f"{subject} {op} {_value(value)}" for op, value in bounds]
            return _joined(" AND ", texts)
        case Pattern(_, like, any_case):
            return f"{subject} {'ILIKE' if any_case else 'LIKE'} {_PRINTER.string(like)}"
        case Regex(_, pattern):
            return f"{subject} RLIKE {_PRINTER.string(pattern)}"


def _opposite(test: Test, subject: str, kind: str) -> str | None:
    """True where the value is of a kind and fails the test; None if the test is of other kinds."""
    match test:
        case Order(_, bounds):
            if _kind(bounds[0][1]) != kind:
                return None
            texts = [f"{subject} {_NEGATED[op]} {_value(value)}" for op, value in bounds]
            return _joined(" OR ", texts)
        case OneOf(_, values):
            same = tuple(value for value in values if _kind(value) == kind)
            parts = _by_kind(same, f"{subject} <> ", f"{subject} NOT IN ")
            return parts[0] if parts else None
        case _:
            if kind != "text":
                return None
            return f"{subject} NOT{_test(test, subject).removeprefix(subject)}"


def _one_of(subject: str, values: tuple[Object, ...]) -> str:
    parts = _by_kind(values, f"{subject} = ", f"{subject} IN ")
    return _joined(" OR ", [subject if part == f"{subject} = TRUE" else part for part in parts])


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
    if isinstance(value, (int, float, Decimal)):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _name(name: str) -> str:
    message = problem(name)
    if is_context(name):
        message = "names that begin with ctx. are values of a context here"
    if message:
        raise Untranslatable(f"the name {name!r}", (), message)
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
