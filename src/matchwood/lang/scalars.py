r"""Computed attributes: scalar expressions over one event, as trees and as text.

    Attr(name)           a value of the event          Lit(value)    a constant
    Call(name, args)     a function or an operator     Cast(value, type, is_try)
    Lambda(names, body)  `t -> t > 3`                  Var(name)     its parameter

Where an attribute stands in a predicate, a computed one stands as a name that begins with NUL and
goes on with the canonical text of its tree: `lower(name) = 'x'` is
`Comparison("\0lower(name)", "=", "x")`.  Equal texts are one attribute; `named` and `tree_of` go
from one to the other.

A literal keeps what Spark takes it for: an int is INT or BIGINT by its size, a Decimal DECIMAL by
its digits, a float DOUBLE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from weakref import WeakValueDictionary

from matchwood.lang.intervals import Interval

COMPUTED = "\0"
"""What the name of a computed attribute begins with."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """Any scalar expression."""


@dataclass(frozen=True, slots=True)
class Attr(Scalar):
    name: str


@dataclass(frozen=True, slots=True)
class Lit(Scalar):
    value: Any


@dataclass(frozen=True, slots=True)
class Call(Scalar):
    name: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Cast(Scalar):
    value: Scalar
    type: str
    is_try: bool = False


@dataclass(frozen=True, slots=True)
class Lambda(Scalar):
    names: tuple[str, ...]
    body: Scalar


@dataclass(frozen=True, slots=True)
class Var(Scalar):
    name: str


INFIX = {
    "or": (1, "OR"), "and": (2, "AND"),
    **{op: (5, op) for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")},
    "+": (6, "+"), "-": (6, "-"), "||": (6, "||"),
    "*": (7, "*"), "/": (7, "/"), "%": (7, "%"), "div": (7, "DIV"),
}  # fmt: skip
"""How tightly infix operators bind, and how they are written; NOT binds as 3, predicates as 4."""
_NOT, _PREDICATE, COMPARED, _SUM, _UNARY, _ATOM = 3, 4, 6, 6, 8, 9
"""COMPARED is what an operand of a comparison needs."""


CONDITIONS = (
    "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "isnull", "isunknown", "in", "like",
    "ilike", "rlike", "between", "isnot", "xor", "xnor", "likeany", "likeall",
)  # fmt: skip
"""Operators whose value is a truth."""


def is_condition(node: Scalar) -> bool:
    """Whether a tree is TRUE, FALSE or unknown by its form."""
    return isinstance(node, Call) and node.name in CONDITIONS


def is_computed(name: str) -> bool:
    """Whether a name is that of a computed attribute."""
    return name.startswith(COMPUTED)


class ComputedName(str):
    """The name of a computed attribute that knows its tree, so that its text is not read again."""

    __slots__ = ("__weakref__", "tree")
    tree: Scalar

    def __reduce__(self) -> tuple[Any, ...]:
        return _computed_name, (str(self), self.tree)


_NAMES: WeakValueDictionary[str, ComputedName] = WeakValueDictionary()
"""Names in use, by themselves: a name that was taken apart and put together finds its tree."""


def _computed_name(name: str, tree: Scalar) -> ComputedName:
    found = ComputedName(name)
    found.tree = tree
    return _NAMES.setdefault(name, found)


def named(tree: Scalar) -> str:
    """The name that a predicate has for a tree: an attribute's own, or that of a computed one."""
    if isinstance(tree, Attr):
        return tree.name
    return _computed_name(COMPUTED + text_of(tree), tree)


def tree_of(name: str) -> Scalar:
    """The tree of a name; reads its text if no `ComputedName` of it is in use."""
    if not is_computed(name):
        return Attr(name)
    known = _NAMES.get(name)
    if known is not None:
        return known.tree
    from matchwood.lang.general import read_scalar

    return read_scalar(name.removeprefix(COMPUTED))


def text_of(tree: Scalar, needs: int = 0) -> str:
    """The canonical text, in parentheses if it binds less tightly than its position needs."""
    text, binds = _written(tree)
    return text if binds >= needs else f"({text})"


def attributes_of(tree: Scalar) -> list[str]:
    """The attributes of events that a tree reads, each once."""
    found: dict[str, None] = {}
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Attr):
            found[node.name] = None
        pending += parts(node)
    return sorted(found)


def parts(node: Scalar) -> tuple[Scalar, ...]:
    """What a node is made of."""
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Cast):
        return (node.value,)
    return (node.body,) if isinstance(node, Lambda) else ()


def with_parts(node: Scalar, change: Callable[[Scalar], Scalar]) -> Scalar:
    """The same node, made of what `change` returns for each of its parts."""
    if isinstance(node, Call):
        return Call(node.name, tuple([change(each) for each in node.args]))
    if isinstance(node, Cast):
        return Cast(change(node.value), node.type, node.is_try)
    return Lambda(node.names, change(node.body)) if isinstance(node, Lambda) else node


def _written(node: Scalar) -> tuple[str, int]:
    from matchwood.lang.names import written

    if isinstance(node, Attr):
        return written(node.name), _ATOM
    if isinstance(node, Var):
        return node.name, _ATOM
    if isinstance(node, Lit):
        return literal_text(node.value), _UNARY if _is_negative(node.value) else _ATOM
    if isinstance(node, Cast):
        word = "try_cast" if node.is_try else "cast"
        return f"{word}({text_of(node.value)} AS {node.type})", _ATOM
    if isinstance(node, Lambda):
        names = node.names[0] if len(node.names) == 1 else f"({', '.join(node.names)})"
        return f"{names} -> {text_of(node.body)}", 0
    assert isinstance(node, Call)
    return _written_call(node)


def _written_call(node: Call) -> tuple[str, int]:
    name, args = node.name, node.args
    if name in INFIX:
        binds, word = INFIX[name]
        is_chain = name in ("and", "or", "+", "*", "||")
        left = text_of(args[0], binds + 1 if binds == 5 else binds)
        rest = [text_of(each, binds if is_chain and name in ("and", "or") else binds + 1)
                for each in args[1:]]  # fmt: skip
        return f" {word} ".join([left, *rest]), binds
    if name == "not":
        return f"NOT {text_of(args[0], _NOT)}", _NOT
    if name == "negative":
        return f"- {text_of(args[0], _UNARY)}", _UNARY
    if name == "isnull":
        return f"{text_of(args[0], COMPARED)} IS NULL", _PREDICATE
    if name == "in":
        items = ", ".join(map(text_of, args[1:]))
        return f"{text_of(args[0], COMPARED)} IN ({items})", _PREDICATE
    if name in ("like", "rlike"):
        return f"{text_of(args[0], _SUM)} {name.upper()} {text_of(args[1], _SUM)}", _PREDICATE
    if name == "[]":
        return f"{text_of(args[0], _ATOM)}[{text_of(args[1])}]", _ATOM
    if name == "case":
        pairs = [f"WHEN {text_of(args[i])} THEN {text_of(args[i + 1])}"
                 for i in range(0, len(args) - 1, 2)]  # fmt: skip
        return f"CASE {' '.join(pairs)} ELSE {text_of(args[-1])} END", _ATOM
    return f"{name}({', '.join(map(text_of, args))})", _ATOM


def _is_negative(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and literal_text(value).startswith("-")


def literal_text(value: Any) -> str:
    """A constant as text that reads back as the same constant of the same type."""
    from matchwood.lang.printer import Printer

    if isinstance(value, Interval):
        return str(value)
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}BD"
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return f"{value!r}D"
    return Printer().value(value)
