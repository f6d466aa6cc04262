"""From trees to leaf rows: what the merging kernels read.

A batch collects the predicates of many expressions first and asks for keys last, once per attribute:
a dictionary then spreads all new constants evenly instead of squeezing them in one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.encode.attributes import Attribute, Attributes, TypeCheck
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.like import LikeKind, classify, successor
from matchwood.forms.merge_kernels import (
    BETWEEN,
    EQ,
    GE,
    GT,
    HALF_OPEN,
    IN,
    LE,
    LT,
    NEGATED,
    PRESENT,
    Leaves,
    and_token,
    or_token,
)
from matchwood.forms.nnf import nnf
from matchwood.lang.nodes import (
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Or,
    Predicate,
    predicates,
)

OPERATORS = {"=": EQ, "<>": EQ | NEGATED, "<": LT, "<=": LE, ">": GT, ">=": GE}


class LeafBatch:
    """Expressions on their way into an expression table."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._attr: list[int] = []
        self._op: list[int] = []
        self._start: list[int] = [0]
        self._code: list[int] = []
        self._expr_start: list[int] = [0]
        self._literals: dict[int, tuple[list[int], list[Any]]] = {}
        self._n_literals = 0

    def __len__(self) -> int:
        return len(self._expr_start) - 1

    def add(self, expr: Expr) -> None:
        """Take one expression; one that is refused leaves no trace."""
        normal = nnf(expr)
        learned = check_types(normal, self._attributes)
        for name, kind in learned.items():
            self._attributes.get(name, kind)
        self._write(normal)
        self._expr_start.append(len(self._code))

    def finish(self, table: ExpressionTable) -> tuple[Leaves, np.ndarray, np.ndarray]:
        """The batch as arrays; dictionaries have learned its constants and `table` follows them."""
        ge = np.zeros(self._n_literals, np.int64)
        le = np.zeros(self._n_literals, np.int64)
        side = np.zeros(self._n_literals, np.int8)
        for attr, (positions, values) in self._literals.items():
            triples = literal_keys(self._attributes.all[attr], values, table)
            ge[positions], le[positions], side[positions] = triples
        leaves = Leaves(
            np.array(self._attr, np.int32),
            np.array(self._op, np.uint8),
            np.array(self._start, np.int64),
            ge,
            le,
            side,
        )
        return leaves, np.array(self._expr_start, np.int64), np.array(self._code, np.int32)

    def _write(self, node: Expr) -> None:
        if isinstance(node, (And, Or)):
            token = and_token if isinstance(node, And) else or_token
            self._code.append(token(len(node.operands)))
            for operand in node.operands:
                self._write(operand)
        elif isinstance(node, Predicate):
            self._code.append(len(self._attr))
            _WRITERS[type(node)](self, node, self._attributes.get(node.name, None))
        else:
            assert isinstance(node, Const)
            self._code.append(and_token(0) if node.value else or_token(0))

    def row(self, attr: int, op: int, *values: Any) -> None:
        """One leaf: an attribute, an operator, its constants."""
        self._attr.append(attr)
        self._op.append(op)
        if values:
            entry = self._literals.get(attr)
            if entry is None:
                entry = self._literals[attr] = ([], [])
            for value in values:
                entry[0].append(self._n_literals)
                entry[1].append(value)
                self._n_literals += 1
        self._start.append(self._n_literals)

    def _comparison(self, node: Comparison, attribute: Attribute) -> None:
        self.row(attribute.id, OPERATORS[node.op], node.value)

    def _between(self, node: Between, attribute: Attribute) -> None:
        self.row(attribute.id, BETWEEN | (NEGATED if node.negated else 0), node.low, node.high)

    def _in(self, node: In, attribute: Attribute) -> None:
        self.row(attribute.id, IN | (NEGATED if node.negated else 0), *node.values)

    def _is_null(self, node: IsNull, attribute: Attribute) -> None:
        self.row(attribute.id if node.negated else self._attributes.absence(attribute), PRESENT)

    def _like(self, node: Like, attribute: Attribute) -> None:
        negated = NEGATED if node.negated else 0
        form = classify(node.pattern)
        if form.kind is LikeKind.EQUAL:
            self.row(attribute.id, EQ | negated, form.text)
        elif form.kind is LikeKind.ANY:
            self.row(attribute.id, PRESENT | negated)
        elif form.kind is LikeKind.PREFIX:
            end = successor(form.text)
            if end is None:
                self.row(attribute.id, GE | negated, form.text)
            else:
                self.row(attribute.id, HALF_OPEN | negated, form.text, end)
        else:
            derived = self._attributes.pattern(attribute, node.pattern)
            self.row(derived, EQ, not node.negated)


def check_types(normal: Expr, attributes: Attributes) -> dict[str, str]:
    """Check an NNF tree against the attributes; returns the types that it would teach them."""
    check = TypeCheck(attributes)
    for leaf in predicates(normal):
        if isinstance(leaf, Comparison):
            check.check(leaf.name, leaf.value, leaf.position)
        elif isinstance(leaf, Between):
            check.check(leaf.name, leaf.low, leaf.position)
            check.check(leaf.name, leaf.high, leaf.position)
        elif isinstance(leaf, In):
            for value in leaf.values:
                if value is not None:
                    check.check(leaf.name, value, leaf.position)
        elif isinstance(leaf, Like):
            check.check_like(leaf.name, leaf.pattern, leaf.position)
    return check.learned


def literal_keys(
    attribute: Attribute, values: list[Any], table: ExpressionTable
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ge, le, side) of constants; `table` follows if the attribute's dictionary was relabelled."""
    assert attribute.keys is not None
    triples = np.array(attribute.keys.literals(values), np.int64).reshape(-1, 3)
    moved = attribute.keys.take_relabelling()
    if moved is not None:
        table.rekey(attribute.id, moved)
    return triples[:, 0], triples[:, 1], triples[:, 2].astype(np.int8)


_WRITERS: dict[type[Expr], Callable[..., None]] = {
    Comparison: LeafBatch._comparison,
    Between: LeafBatch._between,
    In: LeafBatch._in,
    Like: LeafBatch._like,
    IsNull: LeafBatch._is_null,
}
