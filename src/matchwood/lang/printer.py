"""Tree to text: the fewest parentheses, one spelling for everything.

Law: `parse(to_text(tree)) == tree`, value types included.  A tree built by hand with an AND right
inside an AND (or OR in OR) prints as the flat chain that it means, and comes back flat.

`Printer` has one small method per decision, so that another dialect is a subclass of a few lines:

    class DuckDB(Printer):
        def name(self, name): return '"' + name.replace('"', '""') + '"'
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import isinf, isnan

from matchwood.lang import nodes
from matchwood.lang.literals import MAX_NUMBER
from matchwood.lang.names import written
from matchwood.lang.scalars import COMPARED, is_computed, is_condition, text_of, tree_of
from matchwood.lang.truth import SAMPLES

_OR, _XOR, _AND, _NOT, _LEAF = range(1, 6)
_BINDS: dict[type[nodes.Expr], int] = {
    nodes.Or: _OR,
    nodes.Xor: _XOR,
    nodes.Xnor: _XOR,
    nodes.And: _AND,
    nodes.Not: _NOT,
}
_ESCAPES = str.maketrans(
    {chr(code): f"\\u{code:04x}" for code in (*range(32), 127)}
    | {"\n": r"\n", "\t": r"\t", "\r": r"\r", "'": "''", "\\": r"\\"}
)


def to_text(expr: nodes.Expr) -> str:
    """The text of an expression.

    >>> from matchwood.lang.builder import attr
    >>> to_text((attr("price") < 20) & ~(attr("sold") | attr("format").isin("paperback", "audio")))
    "price < 20 AND NOT (sold OR format IN ('paperback', 'audio'))"
    """
    return _STANDARD.text(expr)


class Printer:
    """The standard spelling; override a method to change one decision."""

    def text(self, node: nodes.Expr) -> str:
        """Any expression: operands first, on a stack of its own, so that depth costs no frames."""
        todo: list[tuple[nodes.Expr, bool]] = [(node, False)]
        done: list[tuple[str, int]] = []
        while todo:
            node, is_ready = todo.pop()
            if is_ready:
                cut = len(done) - len(nodes.children(node))
                done[cut:] = [_chain(node, done[cut:])]
            elif isinstance(node, (nodes.Xor, nodes.Xnor)):
                join = self.xor if isinstance(node, nodes.Xor) else self.xnor
                done.append((join(node.left, node.right), _XOR))
            elif operands := nodes.children(node):
                todo.append((node, True))
                todo.extend((operand, False) for operand in reversed(operands))
            else:
                done.append((self.leaf(node), _LEAF))
        return done[0][0]

    def xor(self, left: nodes.Expr, right: nodes.Expr) -> str:
        before, after = (self.text(left), _binds(left)), (self.text(right), _binds(right))
        return f"{_grouped(before, _XOR)} XOR {_grouped(after, _AND)}"

    def xnor(self, left: nodes.Expr, right: nodes.Expr) -> str:
        before, after = (self.text(left), _binds(left)), (self.text(right), _binds(right))
        return f"{_grouped(before, _XOR)} XNOR {_grouped(after, _AND)}"

    def leaf(self, node: nodes.Expr) -> str:
        """A constant or a predicate; a hand-built chain of nothing is the constant it means."""
        if isinstance(node, nodes.Const):
            return self.value(node.value)
        if isinstance(node, (nodes.And, nodes.Or)):
            return self.value(isinstance(node, nodes.And))
        return self.predicate(node)

    def predicate(self, node: nodes.Expr) -> str:
        if isinstance(node, nodes.Comparison):
            if node.op == "=" and node.value is True:
                return self.bare(node.name)
            return f"{self.name(node.name)} {node.op} {self.value(node.value)}"
        if isinstance(node, nodes.Between):
            low, high = self.value(node.low), self.value(node.high)
            return f"{self.name(node.name)}{_not(node.negated)} BETWEEN {low} AND {high}"
        if isinstance(node, nodes.In):
            values = ", ".join(map(self.value, node.values))
            return f"{self.name(node.name)}{_not(node.negated)} IN ({values})"
        if isinstance(node, nodes.Like):
            return f"{self.name(node.name)}{_not(node.negated)} LIKE {self.pattern(node.pattern)}"
        if isinstance(node, nodes.Relation):
            return f"{self.name(node.name)} {node.op} {self.reference(node)}"
        if isinstance(node, nodes.IsNull):
            return f"{self.tested(node)} IS{_not(node.negated)} NULL"
        raise TypeError(f"expected an expression, found {type(node).__name__}: use parse or attr")

    def tested(self, node: nodes.IsNull) -> str:
        """What is NULL: the attribute, or any comparison of it with a constant of a kind."""
        if node.kind is None:
            return self.name(node.name)
        if node.kind == "bool" and is_computed(node.name) and is_condition(tree_of(node.name)):
            return f"({self.bare(node.name)})"
        return f"({self.name(node.name)} = {self.value(SAMPLES[node.kind])})"

    def name(self, name: str) -> str:
        """The name where it is compared; a computed one in parentheses if it needs them."""
        if is_computed(name):
            return text_of(tree_of(name), COMPARED)
        return written(name)

    def bare(self, name: str) -> str:
        """The name where it is a condition itself."""
        return written(name) if is_computed(name) else self.name(name)

    def reference(self, node: nodes.Relation) -> str:
        """A value of the context, with its offset."""
        name = self.name(node.reference)
        if type(node.offset) is int and node.offset == 0:
            return name
        text = self.value(node.offset)
        return f"{name} - {text[1:]}" if text.startswith("-") else f"{name} + {text}"

    def pattern(self, pattern: str) -> str:
        return self.string(pattern)

    def value(self, value: nodes.Value | None) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return self.float(value)
        if isinstance(value, Decimal):
            text = format(value, "f")
            return text if len(text) <= MAX_NUMBER else f"{value}BD"
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, datetime):
            return self.timestamp(value)
        if isinstance(value, date):
            return f"DATE '{value.isoformat()}'"
        raise TypeError(f"expected a value, found {type(value).__name__}: build it with attr")

    def float(self, value: float) -> str:
        """A float keeps its type: 20.0 alone would read back as the int 20, 20e0 does not."""
        if isnan(value):
            return "double('NaN')"
        if isinf(value):
            return "double('Infinity')" if value > 0 else "double('-Infinity')"
        text = repr(value)
        return text[:-2] + "e0" if text.endswith(".0") else text

    def string(self, value: str) -> str:
        return "'" + value.translate(_ESCAPES) + "'"

    def timestamp(self, value: datetime) -> str:
        """A TIMESTAMP literal in UTC: without a zone it would depend on the session's."""
        instant = value.astimezone(UTC) if value.tzinfo else value
        return f"TIMESTAMP '{instant.replace(tzinfo=None).isoformat(sep=' ')}Z'"


def _not(negated: bool) -> str:
    return " NOT" if negated else ""


def _binds(node: nodes.Expr) -> int:
    """How tightly the text of a node binds; a hand-built chain of one is its operand."""
    while isinstance(node, (nodes.And, nodes.Or)) and len(node.operands) == 1:
        node = node.operands[0]
    return _BINDS.get(type(node), _LEAF) if nodes.children(node) else _LEAF


def _chain(node: nodes.Expr, parts: list[tuple[str, int]]) -> tuple[str, int]:
    """AND, OR or NOT over its printed operands, each with how tightly it binds."""
    if isinstance(node, nodes.Not):
        return "NOT " + _grouped(parts[0], _NOT), _NOT
    if len(parts) == 1:
        return parts[0]
    binds, joint = (_AND, " AND ") if isinstance(node, nodes.And) else (_OR, " OR ")
    return joint.join([_grouped(part, binds) for part in parts]), binds


def _grouped(part: tuple[str, int], binds: int) -> str:
    """An operand, in parentheses if it binds less tightly than its position needs."""
    text, precedence = part
    return text if precedence >= binds else f"({text})"


_STANDARD = Printer()
