"""Rules of JSONLogic, read as conditions: does the rule give something truthy?

JSONLogic is JavaScript underneath: `==` and `<` convert their sides, a missing variable is null,
and null is 0 beside a number.  What a missing variable gives is worked out here, once per
predicate, and written into the text.  What texts and booleans would be converted to cannot be
written, so such comparisons are refused, unless the caller says that values have the type of the
constant beside them (`typed`).  `===`, `in` and `==` with a text that is no number
need no such setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as Object
from typing import NamedTuple

from matchwood.rules.conditions import (
    FALSE,
    TRUE,
    All,
    Any,
    Condition,
    Not,
    OneOf,
    Order,
    Present,
    Truthy,
    Untranslatable,
    Within,
    always,
)
from matchwood.rules.javascript import compare, is_text_of_number, loosely_equal, strictly_equal
from matchwood.rules.texts import language

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
Path = tuple[str, ...]


class _Var(NamedTuple):
    """A variable, and what stands for it where it is missing."""

    name: str
    default: Object


def read(rule: Object, typed: bool = False) -> Condition:
    """The condition that a rule stands for; Untranslatable where there is no exact one."""
    return _Reader(typed).truthy(rule, ())


class _Reader:
    def __init__(self, typed: bool) -> None:
        self._typed = typed
        self._operators: dict[str, Callable[[str, list[Object], Path], Condition]] = {
            "and": lambda _, sides, path: All(self._all(sides, path)),
            "or": lambda _, sides, path: Any(self._all(sides, path)),
            "!": lambda op, sides, path: Not(self.truthy(_single(op, sides, path), path)),
            "!!": lambda op, sides, path: self.truthy(_single(op, sides, path), path),
            "if": self._if,
            "?:": self._if,
            "var": lambda _, sides, path: self._truthy_var(_variable(sides, path), path),
            "==": self._equal,
            "===": self._equal,
            "!=": lambda _, sides, path: Not(self._equal("==", sides, path)),
            "!==": lambda _, sides, path: Not(self._equal("===", sides, path)),
            "<": self._ordered,
            "<=": self._ordered,
            ">": self._ordered,
            ">=": self._ordered,
            "in": self._in,
            "missing": self._missing,
            "missing_some": self._missing_some,
        }

    def truthy(self, rule: Object, path: Path) -> Condition:
        """Whether a rule gives something other than false, null, 0, an empty text or list."""
        if not isinstance(rule, Mapping):
            return always(bool(rule))
        if len(rule) != 1:
            raise Untranslatable("{...}", path, f"expected one operator, found {len(rule)}")
        operator, values = next(iter(rule.items()))
        here = (*path, str(operator))
        if operator not in self._operators:
            raise Untranslatable(str(operator), here, "this operator has no exact text")
        sides = values if isinstance(values, list) else [values]
        return self._operators[operator](operator, sides, here)

    def _all(self, sides: list[Object], path: Path) -> tuple[Condition, ...]:
        if not sides:
            raise Untranslatable(path[-1], path, "expected at least one operand")
        return tuple([self.truthy(side, (*path, f"[{n}]")) for n, side in enumerate(sides)])

    def _if(self, operator: str, sides: list[Object], path: Path) -> Condition:
        """`if(c, a, b)` -> `(c AND a) OR (NOT c AND b)`; without an else it gives null."""
        found = self._all(sides, path)
        result: Condition = found[-1] if len(found) % 2 else FALSE
        for n in range(len(found) // 2 * 2 - 2, -1, -2):
            condition, then = found[n], found[n + 1]
            result = Any((All((condition, then)), All((Not(condition), result))))
        return result

    def _truthy_var(self, var: _Var, path: Path) -> Condition:
        if self._typed:
            held: Condition = OneOf(var.name, (True,))
        else:
            if not language().is_open:
                raise Untranslatable(
                    "var", path, "a value that is true without a comparison has any type: compare "
                    "it, or say that it is a boolean with typed=True",
                )  # fmt: skip
            held = Truthy(var.name)
        return self._or_missing(var, held, bool(var.default))

    def _or_missing(self, var: _Var, held: Condition, when_missing: bool) -> Condition:
        """A test of a value that is there, and what it gives where there is none."""
        return Any((held, Not(Present(var.name)))) if when_missing else held

    def _equal(self, operator: str, sides: list[Object], path: Path) -> Condition:
        left, right = self._two(operator, sides, path)
        equal = strictly_equal if operator == "===" else loosely_equal
        if isinstance(left, _Var) and isinstance(right, _Var):
            raise Untranslatable(operator, path, "expected a constant beside a variable, found two")
        if isinstance(right, _Var):
            left, right = right, left
        if not isinstance(left, _Var):
            return always(equal(left, right))
        if right is None:
            held: Condition = FALSE
        else:
            if operator == "==" and not (isinstance(right, str) and not is_text_of_number(right)):
                self._needs_types(operator, path)
            held = OneOf(left.name, (right,))
        return self._or_missing(left, held, equal(left.default, right))

    def _ordered(self, operator: str, sides: list[Object], path: Path) -> Condition:
        if len(sides) == 3 and operator in ("<", "<="):
            pairs = ([sides[0], sides[1]], [sides[1], sides[2]])
            return All(tuple([self._ordered(operator, pair, path) for pair in pairs]))
        left, right = self._two(operator, sides, path)
        if isinstance(left, _Var) and isinstance(right, _Var):
            raise Untranslatable(operator, path, "expected a constant beside a variable, found two")
        if isinstance(right, _Var):
            return self._compared(right, _FLIPPED[operator], left, path)
        if isinstance(left, _Var):
            return self._compared(left, operator, right, path)
        return always(compare(operator, left, right))

    def _compared(self, var: _Var, op: str, constant: Object, path: Path) -> Condition:
        if isinstance(constant, bool) or not isinstance(constant, (int, float, str)):
            raise Untranslatable(op, path, f"expected a number or a text, found {constant}")
        if isinstance(constant, str) and any(character > "\ud7ff" for character in constant):
            raise Untranslatable(op, path, "such characters have another order in JavaScript")
        self._needs_types(op, path)
        held = Order(var.name, ((op, constant),))
        return self._or_missing(var, held, compare(op, var.default, constant))

    def _in(self, operator: str, sides: list[Object], path: Path) -> Condition:
        if len(sides) == 2 and isinstance(sides[1], list):
            return self._in_list(sides[0], sides[1], path)
        left, right = self._two(operator, sides, path)
        if isinstance(left, str) and isinstance(right, _Var) and right.default is None:
            return Within(right.name, left)
        if not isinstance(left, _Var) and isinstance(right, str) and isinstance(left, str):
            return always(left in right)
        raise Untranslatable(
            "in", path, "expected a variable in a list of constants, or a text in a variable"
        )

    def _in_list(self, item: Object, values: list[Object], path: Path) -> Condition:
        if any(isinstance(each, (Mapping, list)) for each in values):
            raise Untranslatable("in", path, "expected a list of constants")
        found = self._operand(item, (*path, "[0]"))
        if not isinstance(found, _Var):
            return always(any(strictly_equal(found, each) for each in values))
        plain = tuple(each for each in values if each is not None)
        held: Condition = OneOf(found.name, plain) if plain else FALSE
        when_missing = any(strictly_equal(found.default, each) for each in values)
        return self._or_missing(found, held, when_missing)

    def _missing(self, operator: str, sides: list[Object], path: Path) -> Condition:
        """True when one of the variables is missing: null, or an empty text."""
        keys = sides[0] if sides and isinstance(sides[0], list) else sides
        return Any(tuple([_is_missing(_variable([key], path).name) for key in keys]))

    def _missing_some(self, operator: str, sides: list[Object], path: Path) -> Condition:
        """True when fewer than so many variables are there."""
        is_count = len(sides) == 2 and isinstance(sides[0], int) and isinstance(sides[1], list)
        if not is_count or isinstance(sides[0], bool) or len(sides[1]) > 8:
            raise Untranslatable(
                operator, path, "expected a number and an array of at most 8 variables"
            )
        names = tuple(_variable([key], path).name for key in sides[1])
        return Not(_at_least(sides[0], names))

    def _two(self, operator: str, sides: list[Object], path: Path) -> list[Object]:
        if len(sides) != 2:
            raise Untranslatable(operator, path, f"expected two sides, found {len(sides)}")
        return [self._operand(side, (*path, f"[{n}]")) for n, side in enumerate(sides)]

    def _operand(self, side: Object, path: Path) -> Object:
        """A variable, or a constant."""
        if isinstance(side, list):
            raise Untranslatable("[...]", path, "lists are not compared")
        if not isinstance(side, Mapping):
            return side
        operator = next(iter(side), "{}")
        if operator != "var":
            raise Untranslatable(str(operator), path, "expected a variable or a constant")
        values = side["var"]
        return _variable(values if isinstance(values, list) else [values], (*path, "var"))

    def _needs_types(self, operator: str, path: Path) -> None:
        if not self._typed:
            raise Untranslatable(
                operator,
                path,
                f"{operator} converts texts and booleans to numbers, which is not kept: "
                + ("write ===, or " if operator == "==" else "")
                + "say that values have the type of the constant with typed=True",
            )


def _single(operator: str, sides: list[Object], path: Path) -> Object:
    if not sides:
        raise Untranslatable(operator, path, "expected an operand")
    return sides[0]


def _variable(values: list[Object], path: Path) -> _Var:
    name = values[0] if values else ""
    if not isinstance(name, str) or not name or any(p.isdecimal() for p in name.split(".")):
        raise Untranslatable("var", path, f"expected the name of an attribute, found {name!r}")
    default = values[1] if len(values) > 1 else None
    if isinstance(default, (Mapping, list)):
        raise Untranslatable("var", path, f"expected a constant as default, found {default}")
    return _Var(name, default)


def _is_missing(name: str) -> Condition:
    return Any((Not(Present(name)), OneOf(name, ("",))))


def _at_least(count: int, names: tuple[str, ...]) -> Condition:
    """So many of the variables are there."""
    if count <= 0:
        return TRUE
    if count > len(names):
        return FALSE
    first, rest = names[0], names[1:]
    with_first = All((Not(_is_missing(first)), _at_least(count - 1, rest)))
    return Any((with_first, _at_least(count, rest)))
