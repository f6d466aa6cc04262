"""The A-Tree of section 5.1: trees as they were written, with NOT, XOR and XNOR, in three values.

The index `a_tree` holds normalised trees, in which only TRUE matters.  This is the version before
that optimisation, for tests that compare the answers of both.  A leaf is made TRUE
by its predicate and FALSE by the predicate of its negation, so that both are found by
stabbing and an absent attribute leaves it undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.leaves import LeafBatch
from matchwood.encode.resolve import resolve
from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    HIGH,
    LEAF,
    MAX_LEVEL,
    NO_SLOT,
    NOTHING,
    OR,
    SLOT,
    UP,
    ATreeLayout,
)
from matchwood.index.a_tree.levels import NOT, XNOR, XOR, Levels, match_levels
from matchwood.index.a_tree.memory import ATreeMemory
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Part, Scratch
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.lang.nodes import And, Const, Expr, Not, Or, Predicate, Xnor, Xor

_OPERATORS = {And: AND, Or: OR, Not: NOT, Xor: XOR, Xnor: XNOR}


class ThreeValuedATree:
    """Holds expressions as given; expression i has slot i."""

    def __init__(self, attributes: Attributes, exprs: Sequence[Expr]) -> None:
        self._nodes: dict[tuple[object, ...], int] = {}
        self._children: list[tuple[int, ...]] = []
        self._op: list[int] = []
        self._leaves: list[tuple[int, Predicate]] = []
        self._constants: list[tuple[int, int]] = []
        roots = [self._node(expr) for expr in exprs]
        self.layout = self._graph(roots)
        self._table = ExpressionTable()
        leaf_values = self._encode(attributes)
        self._levels = self._levels_of(leaf_values)
        self._stabbing = StabbingTree()
        uses = np.zeros(len(self._table.predicates.layout.attr), np.int32)
        for pred, _, _ in leaf_values:
            uses[pred] = 1
        self._stabbing.build(self._table, uses)

    def new_part(self) -> Part:
        """What this tree keeps in a scratch: levels of its own."""
        part = Part()
        part.arrays = Levels(*[array.copy() for array in self._levels])
        return part

    def settle(self) -> None:
        """Nothing: it never changes."""

    def absorb(self, scratch: Scratch) -> None:
        """Nothing: it does not learn."""

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        """The expressions that are TRUE, see `protocol`."""
        scratch.begin()
        stabbing, table, part = self._stabbing, self._table, scratch.of(self)
        found, levels = stabbing.scratch_in(part, events), part.arrays
        finder = stabbing.finder(table.predicates.layout, found)
        step = scratch.step(match_levels, events, self.layout, levels, 0, finder)
        hits = scratch.run(events, table.n_attributes, step)
        scratch.end()
        return hits

    def _node(self, expr: Expr) -> int:
        """The node of a tree: equal trees, whatever the order of operands, have one."""
        if isinstance(expr, (Predicate, Const)):
            key: tuple[object, ...] = (type(expr), str(expr))
            children: tuple[int, ...] = ()
        else:
            operands = (
                expr.operands
                if isinstance(expr, (And, Or))
                else (expr.operand,)
                if isinstance(expr, Not)
                else (expr.left, expr.right)
                if isinstance(expr, (Xor, Xnor))
                else ()
            )
            children = tuple(sorted(self._node(each) for each in operands))
            key = (type(expr), children)
        if key in self._nodes:
            return self._nodes[key]
        v = self._nodes[key] = len(self._op)
        self._children.append(children)
        self._op.append(_OPERATORS.get(type(expr), LEAF))
        if isinstance(expr, Predicate):
            self._leaves.append((v, expr))
        elif isinstance(expr, Const) and expr.value is not None:
            self._constants.append((v, int(expr.value)))
        return v

    def _graph(self, roots: list[int]) -> ATreeLayout:
        """Nodes as the kernels read them: all parents, all children."""
        parents: list[list[int]] = [[] for _ in self._op]
        slots: list[list[int]] = [[] for _ in self._op]
        for v, children in enumerate(self._children):
            for child in children:
                parents[child].append(v)
        for slot, root in enumerate(roots):
            slots[root].append(slot)
        word: list[int] = []
        hot = np.full((len(self._op), 2), NOTHING, np.int32)
        node = np.full((len(self._op), 3), NOTHING, np.int32)
        level = np.ones(len(self._op), np.int16)
        for v, children in enumerate(self._children):  # a node comes after its children
            if children:
                level[v] = 1 + max(level[list(children)])
            node[v, DOWN] = len(word)
            word += (len(children), *children)
            if parents[v]:
                node[v, UP] = len(word)
                word += (0, 0, len(parents[v]), *parents[v])
            if slots[v]:
                hot[v, SLOT] = ~(len(word) + 1)
                word += (len(slots[v]), *slots[v])
            else:
                hot[v, SLOT] = NO_SLOT
        empty = ATreeMemory().layout
        empty.count[HIGH], empty.count[MAX_LEVEL] = len(node), level.max(initial=1)
        return empty._replace(
            hot=hot, node=node, level=level,
            op=np.array(self._op, np.int8), word=np.array(word, np.int32),
        )  # fmt: skip

    def _encode(self, attributes: Attributes) -> list[tuple[int, int, int]]:
        """Predicate, leaf, value: what a satisfied predicate says of a leaf."""
        batch = LeafBatch()
        for _, leaf in self._leaves:
            batch.add(leaf)
            batch.add(Not(leaf))
        leaves = resolve(batch, attributes, self._table)
        slots = np.arange(len(batch), dtype=np.int32)
        starts = np.array(batch.expr_start, np.int64)
        self._table.encode(leaves, starts, np.array(batch.code, np.int32), slots)
        x, leaf_values = self._table.layout, []
        for slot in slots.tolist():
            if x.kind[slot] == CONJUNCTION:  # else: never
                pred = int(x.code[x.start[slot]])
                leaf_values.append((pred, self._leaves[slot // 2][0], 1 - slot % 2))
        return leaf_values

    def _levels_of(self, leaf_values: list[tuple[int, int, int]]) -> Levels:
        n = len(self._op)
        leaf_values = sorted(leaf_values)
        preds = np.array([pred for pred, _, _ in leaf_values], np.int64)
        n_preds = len(self._table.predicates.layout.attr)
        return Levels(
            stamp=np.zeros(n, np.int64),
            operands=np.zeros((n, 2), np.int32),
            next=np.zeros(n, np.int32),
            first=np.full(int(self.layout.count[MAX_LEVEL]) + 1, NOTHING, np.int32),
            told_start=np.searchsorted(preds, np.arange(n_preds + 1)),
            told_leaf=np.array([leaf for _, leaf, _ in leaf_values], np.int32),
            told_value=np.array([value for _, _, value in leaf_values], np.int8),
            attr_start=np.zeros(1, np.int64),
            attr_leaf=np.empty(0, np.int32),
            constant=np.array(self._constants, np.int32).reshape(-1, 2),
            clock=np.zeros(1, np.int64),
        )
