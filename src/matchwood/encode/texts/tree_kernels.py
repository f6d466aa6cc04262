"""Parts that put the operands of AND, OR, NOT and parentheses together, as `lang.parser` and
`forms.nnf` do.

    text    a AND NOT (b OR c)           levels   0: a AND ...      1: b OR c, negated
    code    AND(2) a AND(2) b' c'        a' is the negation of a, which its row says

A level is an open parenthesis: the operands of its last AND so far, and those of its OR.  Negation
is known when a predicate is read: rows are those of the negation, and AND and OR change places.
A chain of one connective is one node, also when its parts came in parentheses, but not when they
came under NOT.

Layout   (C nodes of a text)
    Tree     kind     int32[C]      a row; AND_NODE or OR_NODE
             n        int32[C]      operands
             head, tail, next  int32[C]   its first and last operand; the operand behind this one
             is_under_not bool[C]   whether it came under NOT
             level    int64[D, 8]   see LEVEL below
             count    int64[1]      used nodes
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import inlined, part

MOST_LEVELS = 16
MOST_NOTS = 4
"""NOTs before one operand.  Together with MOST_LEVELS: no text comes near the parser's limit."""

AND_NODE, OR_NODE, NONE = -1, -2, -1

IS_NEGATED, N_NOTS, AND_HEAD, AND_TAIL, N_ANDS, OR_HEAD, OR_TAIL, N_ORS = range(8)
"""Of a level: whether it is negated, NOTs that wait for an operand, and two lists."""


class Tree(NamedTuple):
    """See the module's docstring."""

    kind: np.ndarray
    n: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    next: np.ndarray
    is_under_not: np.ndarray
    level: np.ndarray
    count: np.ndarray


def new_tree(n_nodes: int) -> Tree:
    """Room for the nodes of one text."""
    return Tree(
        *[np.empty(n_nodes, np.int32) for _ in range(5)], np.empty(n_nodes, bool),
        np.empty((MOST_LEVELS, 8), np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


@inlined
def _new_level(tree, depth, negated):
    level = tree.level[depth]
    level[IS_NEGATED], level[N_NOTS] = negated, 0
    level[AND_HEAD], level[AND_TAIL], level[N_ANDS] = NONE, NONE, 0
    level[OR_HEAD], level[OR_TAIL], level[N_ORS] = NONE, NONE, 0


@inlined
def start_tree(tree):
    """Begin with a text; returns the depth, 0."""
    tree.count[0] = 0
    _new_level(tree, 0, 0)
    return np.int64(0)


@inlined
def is_negated(tree, depth):
    """Whether the operand that comes next is negated."""
    level = tree.level[depth]
    return (level[IS_NEGATED] ^ (level[N_NOTS] & 1)) != 0


@inlined
def open_level(tree, depth):
    """Open a parenthesis; returns the new depth, NONE if there is no room."""
    if depth + 1 == MOST_LEVELS:
        return np.int64(NONE)
    _new_level(tree, depth + 1, np.int64(is_negated(tree, depth)))
    return depth + 1


@inlined
def add_not(tree, depth):
    """NOT before the next operand; returns the depth, NONE if there are too many."""
    tree.level[depth, N_NOTS] += 1
    return depth if tree.level[depth, N_NOTS] <= MOST_NOTS else np.int64(NONE)


@inlined
def _new_node(tree, kind, n, head, tail):
    node = tree.count[0]
    tree.count[0] = node + 1
    tree.kind[node], tree.n[node], tree.head[node], tree.tail[node] = kind, n, head, tail
    tree.next[node], tree.is_under_not[node] = NONE, False
    return node


@inlined
def _append(tree, depth, first, head, tail, n):
    """Put n operands behind those of a list of a level, that of AND or of OR."""
    level = tree.level[depth]
    if level[first + 2] == 0:
        level[first] = head
    else:
        tree.next[level[first + 1]] = head
    level[first + 1] = tail
    level[first + 2] += n


@part
def _take(tree, depth, node, first):
    """Put an operand into a list of a level: those of a node of the same connective one by one."""
    same = AND_NODE if (first == AND_HEAD) != (tree.level[depth, IS_NEGATED] != 0) else OR_NODE
    if tree.kind[node] == same and not tree.is_under_not[node]:
        _append(tree, depth, first, tree.head[node], tree.tail[node], tree.n[node])
    else:
        _append(tree, depth, first, node, node, np.int64(1))


@inlined
def _operand(tree, depth, node):
    """Take a finished operand, under the NOTs that wait for it."""
    if tree.level[depth, N_NOTS]:
        tree.is_under_not[node] = True
        tree.level[depth, N_NOTS] = 0
    _take(tree, depth, node, AND_HEAD)


@part
def take_leaf(tree, depth, row):
    """Take a predicate, which has a row."""
    _operand(tree, depth, _new_node(tree, row, np.int64(0), np.int64(NONE), np.int64(NONE)))


@inlined
def _end(tree, depth, first):
    """The node of a list of a level, which is empty then; the operand itself if it is one."""
    level = tree.level[depth]
    node, n = level[first], level[first + 2]
    if n > 1:
        kind = AND_NODE if (first == AND_HEAD) != (level[IS_NEGATED] != 0) else OR_NODE
        node = _new_node(tree, np.int64(kind), n, node, level[first + 1])
    level[first], level[first + 1], level[first + 2] = NONE, NONE, 0
    return node


@part
def connect_or(tree, depth):
    """What was read since the last OR of a level is an operand of OR."""
    _take(tree, depth, _end(tree, depth, AND_HEAD), OR_HEAD)


@part
def _end_level(tree, depth):
    """The node of a level."""
    if tree.level[depth, N_ORS] == 0:
        return _end(tree, depth, AND_HEAD)
    connect_or(tree, depth)
    return _end(tree, depth, OR_HEAD)


@part
def close_level(tree, depth):
    """Close a parenthesis: it is an operand of the level around it, whose depth is returned."""
    _operand(tree, depth - 1, _end_level(tree, depth))
    return depth - 1


@inlined
def end_tree(tree):
    """The node of a text."""
    return _end_level(tree, np.int64(0))


@part
def write_code(tree, node, code, at):
    """Write the prefix code of a node; returns where it ends.

    Nodes that wait for the end of their operands are kept in `tail`, which is not read any more:
    `tail[k]` is the k-th of them.
    """
    tree.next[node] = NONE
    n_waiting = np.int64(0)
    while True:
        kind = tree.kind[node]
        if kind >= 0:
            code[at] = kind
            at += 1
            node = np.int64(tree.next[node])
        else:
            n = np.int64(tree.n[node])
            code[at] = -2 * n - 1 if kind == AND_NODE else -2 * n - 2
            at += 1
            tree.tail[n_waiting] = tree.next[node]
            n_waiting += 1
            node = np.int64(tree.head[node])
        while node == NONE:
            if n_waiting == 0:
                return at
            n_waiting -= 1
            node = np.int64(tree.tail[n_waiting])
