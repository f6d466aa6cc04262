"""Nodes of the A-Tree as sets of elements, and the hash table that finds them.

The *elements* of an AND are its operands as written: its children, and instead of a child that is
itself an AND that child's elements.  Likewise for OR.  A node is its operator and its elements;
which of the existing nodes stand for some of them is a matter of the children alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.a_tree.blocks import AND, DOWN, HIGH, ID, NOTHING, SEED
from matchwood.kernel.id_table_kernels import (
    EMPTY,
    cell_of_id,
    first_cell,
    moved_back,
    next_cell,
    put_id,
)
from matchwood.kernel.jit import kernel, part

MARKS, WALKS = range(2)
"""Positions in `Scratch.clock`: marks and walks so far."""


class Scratch(NamedTuple):
    """What changing the tree needs; all as long as `node`, but the last two."""

    mark: np.ndarray  # the elements at hand have the mark `clock[MARKS]`
    seen: np.ndarray  # nodes that a walk has met have its `clock[WALKS]`
    stack: np.ndarray
    walked: np.ndarray  # what a walk has found
    element: np.ndarray
    child: np.ndarray
    found: np.ndarray
    other: np.ndarray
    operand: np.ndarray
    waiting: np.ndarray  # nodes that are perhaps not used any more
    waits: np.ndarray  # int8: which nodes are among them
    clock: np.ndarray  # int32[2]
    used: np.ndarray  # int64[2]: WAITING, CHANGED


WAITING, CHANGED = range(2)
"""Positions in `Scratch.used`: nodes in `waiting`, predicates that came or went."""


class Settings(NamedTuple):
    """`ATree.Config` for kernels."""

    share: int
    reorganise: int
    self_adjust: int
    binary: int
    rehang: int
    random_access: int
    search_limit: int
    id_bits: int


# ── sets of elements ────────────────────────────────────────────────────────────────────────────


@part
def next_mark(scratch):
    scratch.clock[MARKS] += 1
    return scratch.clock[MARKS]


@part
def next_walk(scratch):
    scratch.clock[WALKS] += 1
    return scratch.clock[WALKS]


@part
def elements_of(x, v, scratch, wanted):
    """The elements of an inner node, each once, into `walked`; returns how many.

    With a mark as `wanted`, -1 as soon as one has another mark; 0 wants none.
    """
    op, walk = x.op[v], next_walk(scratch)
    top, n = np.int64(1), np.int64(0)
    scratch.stack[0] = v
    while top > 0:
        top -= 1
        down = x.node[scratch.stack[top], DOWN]
        for i in range(down + 1, down + 1 + x.word[down]):
            c = x.word[i]
            if scratch.seen[c] == walk:
                continue
            scratch.seen[c] = walk
            if x.op[c] == op:
                scratch.stack[top] = c
                top += 1
            elif wanted != 0 and scratch.mark[c] != wanted:
                return np.int64(-1)
            else:
                scratch.walked[n] = c
                n += 1
    return n


@part
def gather_elements(x, v, op, scratch, mark, n):
    """Append what a child adds to the elements of an operator, each once; returns how many."""
    size = np.int64(1)
    if x.op[v] == op:
        size = elements_of(x, v, scratch, 0)
    else:
        scratch.walked[0] = v
    for i in range(size):
        c = scratch.walked[i]
        if scratch.mark[c] != mark:
            scratch.mark[c] = mark
            scratch.element[n] = c
            n += 1
    return n


@part
def count_marked(x, v, scratch, mark):
    """How many elements of a node are marked."""
    n = np.int64(0)
    for i in range(elements_of(x, v, scratch, 0)):
        n += np.int64(scratch.mark[scratch.walked[i]] == mark)
    return n


# ── the table from ids to nodes ─────────────────────────────────────────────────────────────────


@part
def _mixed(v):
    h = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(32))


@part
def expression_id(x, op, element, n, id_bits):
    """A sum over the elements: their order does not matter.  32 bits at most are kept.

    Each tree has its own random seed, so that no input can be made of expressions with equal ids.
    """
    h, seed = np.uint64(op), x.count[SEED]
    for i in range(n):
        h += _mixed(np.int64(element[i]) ^ seed)
    h = _mixed(np.int64(h >> np.uint64(1)))
    return np.int32(np.int64(h >> np.uint64(33)) & ((np.int64(1) << id_bits) - 1))


@part
def _hash(id_):
    return (np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)


@part
def _hash_of(x, v):
    return _hash(x.node[v, ID])


@part
def find_node(x, op, id_, n, scratch, mark):
    """The node with an operator and the n marked elements, or NOTHING.

    Equal ids are only a hint: the elements are compared.
    """
    at = first_cell(x.table, _hash(id_))
    while x.table[at] != EMPTY:
        v = x.table[at]
        if x.node[v, ID] == id_ and x.op[v] == op:
            if elements_of(x, v, scratch, mark) == n:
                return np.int64(v)
        at = next_cell(x.table, at)
    return np.int64(NOTHING)


@part
def put_node(x, v):
    """Enter a node into the table."""
    put_id(x.table, _hash_of(x, v), v)


@part
def drop_node(x, v):
    """Remove a node from the table."""
    hole = cell_of_id(x.table, _hash_of(x, v), v)
    nearby = next_cell(x.table, hole)
    while x.table[nearby] != EMPTY:
        hole = moved_back(x.table, hole, nearby, _hash_of(x, x.table[nearby]))
        nearby = next_cell(x.table, nearby)
    x.table[hole] = EMPTY


@kernel
def fill_table(x):
    """Enter all inner nodes into an empty table."""
    for v in range(x.count[HIGH]):
        if x.op[v] >= AND:
            put_node(x, v)
