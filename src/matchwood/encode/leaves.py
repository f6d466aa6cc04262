"""From trees to leaf rows: predicates as columns, before anything is known about their attributes.

A batch holds many expressions.  It names attributes by their text and keeps constants as values, so
it can be filled in another process, from text or from a table of predicates; `resolve` gives it
keys.

    names     ['price', 'genre']
    row       0: price GE 20        1: price LT 40        2: genre EQ 'classics'
    code      AND(3) 0 1 2                                      prefix code, see forms.merge_kernels
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from matchwood.encode.exact import has_decimal, spelled_out
from matchwood.encode.kinds import is_computed, of_kind
from matchwood.encode.like import LikeKind, classify, successor
from matchwood.encode.merge_kernels import (
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
    and_token,
    or_token,
)
from matchwood.forms.nnf import nnf
from matchwood.forms.simplify import undecided
from matchwood.kernel.arrays import offsets_of, slices
from matchwood.lang import nodes
from matchwood.lang.scalars import attributes_of, tree_of

ABSENT, PATTERN, REFERENCE = 9, 10, 11
"""Three more operators, which `resolve` turns into tests of derived attributes."""

OF_STRING = 32
"""Marks rows that only a string attribute can have."""

OPERATOR = 15
"""Mask for the operator alone, without its marks."""

OPERATORS = {"=": EQ, "<>": EQ | NEGATED, "<": LT, "<=": LE, ">": GT, ">=": GE}


class LeafBatch:
    """Expressions on their way into an expression table; picklable.

    spells_out  whether a constant with more digits than a double takes several leaves (`exact`)
    """

    def __init__(self, spells_out: bool = True) -> None:
        self._spells_out = spells_out
        self.names: dict[str, int] = {}
        # Growing columns here; a table of predicates puts NumPy arrays in their place.
        self.attr: Any = array("i")  # per row: position in names
        self.op: Any = bytearray()
        self.position: Any = array("i")
        self.start: Any = array("q", [0])  # per row: first of its values
        self.values: Any = []
        self.code: Any = array("i")
        self.expr_start: Any = array("q", [0])
        self.row_start: Any = array("q", [0])  # per expression: first of its rows

    def __len__(self) -> int:
        return len(self.expr_start) - 1

    @property
    def size(self) -> int:
        """Tokens and constants: what encoding takes grows with them."""
        return len(self.code) + len(self.values)

    def add(self, expr: nodes.Expr) -> None:
        """Take one expression; raises ExpansionError before anything is written."""
        self._write(undecided(nnf(expr), _uncomputed))
        self.expr_start.append(len(self.code))
        self.row_start.append(len(self.attr))

    def renamed(self, names: dict[str, int], attr: Any) -> LeafBatch:
        """The same rows on other attributes."""
        other = copy(self)
        other.names, other.attr = names, attr
        return other

    def extend(self, other: LeafBatch) -> None:
        """Take the expressions of another batch, which was filled by `add`."""
        names, row, value, token = self.names, len(self.attr), len(self.values), len(self.code)
        codes = [names.setdefault(name, len(names)) for name in other.names]
        self.attr.extend([codes[code] for code in other.attr])
        self.op += other.op
        self.position.extend(other.position)
        self.start.extend([at + value for at in other.start[1:]])
        self.values += other.values
        self.code.extend([each + row if each >= 0 else each for each in other.code])
        self.expr_start.extend([at + token for at in other.expr_start[1:]])
        self.row_start.extend([at + row for at in other.row_start[1:]])

    def part(self, first: int, last: int) -> LeafBatch:
        """A batch of the expressions first..last of this one."""
        if (first, last) == (0, len(self)):
            return self
        some = LeafBatch()
        some.names = self.names
        row, end = self.row_start[first], self.row_start[last]
        some.attr, some.op, some.position = (
            self.attr[row:end],
            self.op[row:end],
            self.position[row:end],
        )
        value = self.start[row]
        some.start = array("q", [at - value for at in self.start[row : end + 1]])
        some.values = self.values[value : self.start[end]]
        token = self.expr_start[first]
        tokens = self.code[token : self.expr_start[last]]
        some.code = array("i", [each - row if each >= 0 else each for each in tokens])
        some.expr_start = array("q", [at - token for at in self.expr_start[first : last + 1]])
        some.row_start = array("q", [at - row for at in self.row_start[first : last + 1]])
        return some

    def some(self, expressions: Sequence[int] | np.ndarray) -> LeafBatch:
        """A batch of some expressions of this one, in that order."""
        chosen = np.asarray(expressions, np.int64)
        row_start, expr_start, start = map(
            np.asarray, (self.row_start, self.expr_start, self.start)
        )
        n_rows, n_tokens = np.diff(row_start)[chosen], np.diff(expr_start)[chosen]
        rows = slices(row_start[chosen], n_rows)
        n_values = np.diff(start)[rows]
        values = slices(start[rows], n_values)
        some = LeafBatch()
        some.names = self.names
        some.attr = np.asarray(self.attr)[rows]
        some.position = array("i", np.asarray(self.position)[rows].tolist())  # of errors, as ints
        some.op = np.asarray(self.op, np.uint8)[rows]
        is_array = isinstance(self.values, np.ndarray)
        some.values = self.values[values] if is_array else [self.values[at] for at in values]
        some.start, some.expr_start, some.row_start = map(offsets_of, (n_values, n_tokens, n_rows))
        code = np.asarray(self.code)[slices(expr_start[chosen], n_tokens)]
        moved = np.repeat(some.row_start[:-1] - row_start[chosen], n_tokens)
        some.code = np.where(code >= 0, code + moved, code).astype(np.int32)
        return some

    def _write(self, node: nodes.Expr) -> None:
        if isinstance(node, (nodes.And, nodes.Or)):
            token = and_token if isinstance(node, nodes.And) else or_token
            self.code.append(token(len(node.operands)))
            for operand in node.operands:
                self._write(operand)
        elif isinstance(node, nodes.Predicate):
            self.write_predicate(node)
        else:
            assert isinstance(node, nodes.Const)
            self.code.append(and_token(0) if node.value else or_token(0))

    def write_predicate(self, node: nodes.Predicate) -> None:
        """One leaf, or the few that a constant with more digits than a double takes."""
        if self._spells_out and has_decimal(node):
            self._write_leaves(spelled_out(node))
        else:
            self.code.append(len(self.attr))
            _WRITERS[type(node)](self, node)

    def _write_leaves(self, node: nodes.Expr) -> None:
        if isinstance(node, (nodes.And, nodes.Or)):
            self.code.append(
                (and_token if isinstance(node, nodes.And) else or_token)(len(node.operands))
            )
            for operand in node.operands:
                self._write_leaves(operand)
        else:
            self.code.append(len(self.attr))
            _WRITERS[type(node)](self, node)

    def write_row(self, name: str, op: int, values: tuple[Any, ...], position: int = -1) -> None:
        """One leaf: an attribute's name, an operator, its constants."""
        self.attr.append(self.names.setdefault(name, len(self.names)))
        self.op.append(op)
        self.position.append(position)
        self.values += values
        self.start.append(len(self.values))

    def _comparison(self, node: nodes.Comparison) -> None:
        self.write_row(node.name, OPERATORS[node.op], (node.value,), node.position)

    def _between(self, node: nodes.Between) -> None:
        op = BETWEEN | (NEGATED if node.negated else 0)
        self.write_row(node.name, op, (node.low, node.high), node.position)

    def _in(self, node: nodes.In) -> None:
        op = IN | (NEGATED if node.negated else 0)
        self.write_row(node.name, op, node.values, node.position)

    def _is_null(self, node: nodes.IsNull) -> None:
        name = node.name if node.kind is None else of_kind(node.name, node.kind)
        self.write_row(name, PRESENT if node.negated else ABSENT, (), node.position)

    def _relation(self, node: nodes.Relation) -> None:
        """The value of such a row: operator, name of the context's value, offset."""
        value = (node.op, node.reference, node.offset)
        self.write_row(node.name, REFERENCE, (value,), node.position)

    def write_like(self, node: nodes.Like) -> None:
        """One leaf for LIKE, in the cheapest form its pattern allows."""
        kind, text = classify(node.pattern)
        end = successor(text) if kind is LikeKind.PREFIX else None
        op, values = {
            LikeKind.EQUAL: (EQ, (text,)),
            LikeKind.ANY: (PRESENT, ()),
            LikeKind.PATTERN: (PATTERN, (text,)),
            LikeKind.PREFIX: (GE, (text,)) if end is None else (HALF_OPEN, (text, end)),
        }[kind]
        op |= OF_STRING | (NEGATED if node.negated else 0)
        self.write_row(node.name, op, values, node.position)


_WRITERS: dict[type[nodes.Expr], Callable[..., None]] = {
    nodes.Comparison: LeafBatch._comparison,
    nodes.Between: LeafBatch._between,
    nodes.In: LeafBatch._in,
    nodes.Like: LeafBatch.write_like,
    nodes.IsNull: LeafBatch._is_null,
    nodes.Relation: LeafBatch._relation,
}


def _uncomputed(leaf: nodes.Predicate) -> tuple[nodes.Expr, ...]:
    """Instead of a predicate on a computed attribute, which costs and may fail: predicates with the
    names that it reads, which are checked.
    """
    if not is_computed(leaf.name):
        return (leaf,)
    names = attributes_of(tree_of(leaf.name))
    return tuple([nodes.IsNull(name, False, leaf.position) for name in names])
