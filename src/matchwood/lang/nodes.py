"""The expression tree: frozen nodes, shared by the parser, the builder and every later layer.

    Expr
    ├── And(operands)   Or(operands)     two or more, never nested in their own kind by the parser
    ├── Xor(left, right)  Xnor(left, right)  Not(operand)
    ├── Const(value)                     True, False, or None for SQL's unknown
    └── Predicate                        everything that names one attribute
        ├── Comparison(name, op, value)  op is one of = <> < <= > >=
        ├── Between(name, low, high, negated)
        ├── In(name, values, negated)
        ├── Like(name, pattern, negated)   % and _ are wild, backslash escapes
        ├── Relation(name, op, context, offset)  against a value of the context: x < ctx.y + 5
        └── IsNull(name, negated, kind)  absent; with a kind: absent or of another kind

A bare boolean attribute `active` is `Comparison("active", "=", True)`; it prints bare again.
Values are bool, int, float, Decimal (what neither an int of 64 bits nor a float holds), str,
datetime (UTC) or date; None stands for the literal NULL.
A name that starts with `ctx.` is a value of the subscription's context, not of the event.
`position` is where the node began in its text (-1: built in Python); equality ignores it.

Depth is bounded by `MAX_DEPTH`, also of trees built in Python, so every walk may recurse safely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from matchwood.errors import ParseError

Value: TypeAlias = "bool | int | float | Decimal | str | datetime | date"

MAX_DEPTH = 200
"""Deepest nesting of AND / OR / NOT / XOR / XNOR: far beyond hand-written rules, far below
Python's recursion limit."""
TOO_NESTED = (
    f"expected nesting of at most {MAX_DEPTH} levels, found more: "
    "split the expression into several subscriptions"
)

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
NEGATED_OP = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED_OP = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Boolean:
    """What `&`, `|`, `^` and `~` join: expressions, and the attributes of the builder."""

    __slots__ = ()

    def expression(self) -> Expr:
        """The expression this stands for."""
        raise NotImplementedError

    def __and__(self, other: Boolean) -> Expr:
        return _join(And, self.expression(), other)

    def __or__(self, other: Boolean) -> Expr:
        return _join(Or, self.expression(), other)

    def __xor__(self, other: Boolean) -> Expr:
        return Xor(self.expression(), as_expression(other))

    def xnor(self, other: Boolean) -> Expr:
        """True when both sides are known and equal."""
        return Xnor(self.expression(), as_expression(other))

    def __invert__(self) -> Expr:
        return Not(self.expression())

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression has no truth value of its own: combine expressions with & | ^ ~ "
            "(not with and / or / not), and chain comparisons as (a > 1) & (a < 3)"
        )


class Expr(Boolean):
    """Any expression.  `&`, `|`, `^` and `~` build AND, OR, XOR and NOT."""

    __slots__ = ()
    depth: int

    def expression(self) -> Expr:
        return self

    def __str__(self) -> str:
        from matchwood.lang.printer import to_text

        return to_text(self)


def as_expression(other: object) -> Expr:
    """An expression, or the boolean attribute that stands for one."""
    if isinstance(other, Boolean):
        return other.expression()
    raise TypeError(
        f"expected an expression, found {type(other).__name__} {other!r}: "
        "write attr('name') == value, and put parentheses around each comparison"
    )


def _join(kind: type[And] | type[Or], left: Expr, right: object) -> Expr:
    """Join two expressions, flattening so that a & b & c is one node of three."""
    tail = as_expression(right)
    heads = left.operands if isinstance(left, kind) else (left,)
    tails = tail.operands if isinstance(tail, kind) else (tail,)
    return kind(heads + tails)


def _deeper(node: Expr, operands: tuple[Expr, ...], position: int) -> None:
    depth = 1
    for operand in operands:
        if operand.depth >= depth:
            depth = operand.depth + 1
    if depth > MAX_DEPTH:
        raise ParseError(
            TOO_NESTED,
            position=position,
        )
    object.__setattr__(node, "depth", depth)


@dataclass(frozen=True, slots=True)
class _Operands(Expr):
    operands: tuple[Expr, ...]
    position: int = field(default=-1, compare=False, repr=False)
    depth: int = field(default=0, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _deeper(self, self.operands, self.position)


@dataclass(frozen=True, slots=True)
class And(_Operands):
    pass


@dataclass(frozen=True, slots=True)
class Or(_Operands):
    pass


@dataclass(frozen=True, slots=True)
class _Sides(Expr):
    left: Expr
    right: Expr
    position: int = field(default=-1, compare=False, repr=False)
    depth: int = field(default=0, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _deeper(self, (self.left, self.right), self.position)


@dataclass(frozen=True, slots=True)
class Xor(_Sides):
    pass


@dataclass(frozen=True, slots=True)
class Xnor(_Sides):
    pass


@dataclass(frozen=True, slots=True)
class Not(Expr):
    operand: Expr
    position: int = field(default=-1, compare=False, repr=False)
    depth: int = field(default=0, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _deeper(self, (self.operand,), self.position)


class Leaf(Expr):
    """A node without operands."""

    __slots__ = ()
    depth = 0


@dataclass(frozen=True, slots=True)
class Const(Leaf):
    value: bool | None
    position: int = field(default=-1, compare=False, repr=False)


class Predicate(Leaf):
    """A test of one attribute."""

    __slots__ = ()
    name: str
    position: int


def _setters(node: type[Predicate]) -> tuple[Callable[[Predicate, object], None], ...]:
    """What fills the slots of a frozen node, in order of its fields.

    The three predicates that texts are made of are built by these: half the time of the generated
    `__init__`, which looks up `object.__setattr__` for every field.
    """
    return tuple(node.__dict__[slot.name].__set__ for slot in fields(node))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, init=False)
class Comparison(Predicate):
    name: str
    op: str
    value: Value
    position: int = field(default=-1, compare=False, repr=False)

    def __init__(self, name: str, op: str, value: Value, position: int = -1) -> None:
        _comparison_name(self, name)
        _comparison_op(self, op)
        _comparison_value(self, value)
        _comparison_position(self, position)


(_comparison_name, _comparison_op, _comparison_value, _comparison_position) = _setters(Comparison)


@dataclass(frozen=True, slots=True, init=False)
class Between(Predicate):
    name: str
    low: Value
    high: Value
    negated: bool = False
    position: int = field(default=-1, compare=False, repr=False)

    def __init__(
        self, name: str, low: Value, high: Value, negated: bool = False, position: int = -1
    ) -> None:
        _between_name(self, name)
        _between_low(self, low)
        _between_high(self, high)
        _between_negated(self, negated)
        _between_position(self, position)


(_between_name, _between_low, _between_high, _between_negated, _between_position) = _setters(
    Between
)


@dataclass(frozen=True, slots=True, init=False)
class In(Predicate):
    name: str
    values: tuple[Value | None, ...]
    negated: bool = False
    position: int = field(default=-1, compare=False, repr=False)

    def __init__(
        self, name: str, values: tuple[Value | None, ...], negated: bool = False, position: int = -1
    ) -> None:
        _in_name(self, name)
        _in_values(self, values)
        _in_negated(self, negated)
        _in_position(self, position)


(_in_name, _in_values, _in_negated, _in_position) = _setters(In)


@dataclass(frozen=True, slots=True)
class Like(Predicate):
    name: str
    pattern: str
    negated: bool = False
    position: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """`name IS NULL`.

    kind  None, or number, string, bool, date or timestamp: then it is TRUE where a comparison with
          a constant of this kind is unknown.  An attribute with a declared type is then absent, an
          open one may have a value of another kind as well.
    """

    name: str
    negated: bool = False
    position: int = field(default=-1, compare=False, repr=False)
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Relation(Predicate):
    """`name op ctx.context + offset`; `context` is the name without `ctx.`, and name may be a
    value of the context itself.
    """

    name: str
    op: str
    context: str
    offset: int | float = 0
    position: int = field(default=-1, compare=False, repr=False)

    @property
    def reference(self) -> str:
        """The name of the context's value, as predicates name it."""
        return f"ctx.{self.context}"


TRUE = Const(True)
FALSE = Const(False)
UNKNOWN = Const(None)


def children(node: Expr) -> tuple[Expr, ...]:
    """The operands of a connective; nothing for constants and predicates."""
    if isinstance(node, (And, Or)):
        return node.operands
    if isinstance(node, (Xor, Xnor)):
        return (node.left, node.right)
    if isinstance(node, Not):
        return (node.operand,)
    return ()


def predicates(node: Expr) -> Iterator[Predicate]:
    """Every predicate of the tree, from left to right."""
    if isinstance(node, Predicate):
        yield node
    for child in children(node):
        yield from predicates(child)
