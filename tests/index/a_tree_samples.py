"""Expressions and worlds that the tests of the A-Tree share."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from encode.world import World
from index.a_tree_checks import check, elements, live_nodes
from inside import graph_of
from matchwood.index.a_tree.blocks import AND, DOWN, LEAF, ATreeLayout
from matchwood.index.a_tree.draw import children_of
from matchwood.index.a_tree.index import ATree
from matchwood.lang.nodes import And, Comparison, Expr, Not, Or, Xnor, Xor
from naive import matches
from strategies import Event


def expected(exprs: list[Expr], raw: list[Event]) -> list[list[int]]:
    return [[i for i, expr in enumerate(exprs) if matches(expr, each)] for each in raw]


def p(i: int) -> Expr:
    """The predicate Pi of the paper: attribute pi is 1."""
    return Comparison(f"p{i}", "=", 1)


def built(exprs: list[Expr], **config: Any) -> tuple[World, ATree]:
    world = World()
    index = ATree.build(world.table, world.speaking("any", world.store(exprs)), **config)
    check(index)
    return world, index


def shape(index: ATree) -> set[Any]:
    """Every inner node as text, its children sorted: the same for the same graph."""
    x = graph_of(index)

    def text(v: int) -> str:
        if x.op[v] == LEAF:
            return f"P{x.node[v, DOWN]}"
        word = "&" if x.op[v] == AND else "|"
        return "(" + word.join(sorted(text(c) for c in children_of(x, v))) + ")"

    return {text(v) for v in live_nodes(x) if x.op[v] != LEAF}


P123 = Or((p(1), p(2), p(3)))
P56 = Or((p(5), p(6)))
P78 = Or((p(8), p(7)))
FIGURE_4 = [And((P123, p(4), P56)), And((P56, P78))]
FIGURE_6 = [*FIGURE_4, Or((p(1), p(2), p(3), p(4))), And((P123, p(4))), P56, Not(P78)]
"""S1 to S6.  The figure is not in the text of the paper, but most of it follows from the text:

    S6, node 14   P9 AND P10, P9 = NOT P7 and P10 = NOT P8, on level 2; node 9 gives access to it
    S3, node 15   an OR on level 3 that holds node 11, an OR on level 2 that holds P1
    node 11       has another parent that it does not tell, so that is an AND with another access
    8 leaves in (b), 10 in (c), 4 levels

S1 and S2 are those of Figure 4, S3 and S4 the ones that sections 4.2.2 and 4.2.3 insert into it:
they are all this.  S5, of which nothing is said, is node 12 alone: free.  P8 is written before
P7: of two equally rare operands the later attribute gives access, and in the figure that is node 9.
"""


def node(x: ATreeLayout, op: int, *parts: int) -> int:
    """The node with an operator and elements."""
    (v,) = [v for v in live_nodes(x) if x.op[v] == op and elements(x, v) == frozenset(parts)]
    return v


def leaf(world: World, index: ATree, i: int, holds: bool = True) -> int:
    """The leaf of Pi, or of its negation."""
    (attribute,) = world.attributes.by_name[f"p{i}"].kinds.values()
    attr, p_ = attribute.id, world.table.predicates.layout
    n = 1 if holds else 2
    (pred,) = np.flatnonzero((p_.attr == attr) & (p_.n_intervals == n))
    return int(graph_of(index).leaf_of[pred])


def repeated(rng: Random, n: int) -> list[Expr]:
    """Trees over few predicates, so that equal and nested subexpressions abound."""

    def tree(depth: int) -> Expr:
        if depth == 0 or rng.random() < 0.2:
            return p(rng.randint(1, 5))
        kind = rng.choice((And, And, Or, Or, Not, Xor, Xnor))
        if kind is Not:
            return Not(tree(depth - 1))
        if kind in (Xor, Xnor):
            return kind(tree(depth - 1), tree(depth - 1))
        return kind(tuple(tree(depth - 1) for _ in range(rng.randint(2, 4))))

    return [tree(rng.randint(1, 3)) for _ in range(n)]


def n_links(index: ATree) -> int:
    x = graph_of(index)
    return sum(len(children_of(x, v)) for v in live_nodes(x))
