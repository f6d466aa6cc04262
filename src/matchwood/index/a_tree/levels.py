"""Matching with the A-Tree level by level, without its optimisations: algorithm 6 and Table 2.

A node is TRUE, FALSE or undefined.  Leaves get their values first.  Every result but undefined
is passed to all parents; a node is evaluated when all lower levels are done.

    AND   FALSE if an operand is FALSE, TRUE if all are TRUE, else undefined
    OR    TRUE if an operand is TRUE, FALSE if all are FALSE, else undefined
    NOT, XOR, XNOR   undefined if an operand is

With zero suppression alone, FALSE is treated as undefined and goes nowhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    LEAF,
    MAX_LEVEL,
    N_ALL,
    NOTHING,
    OR,
    PARENTS,
    UP,
    parent_at,
)
from matchwood.index.a_tree.match import FULL, emit
from matchwood.index.stabbing.predicate_kernels import stab_event
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

NOT, XOR, XNOR = 4, 5, 6
"""Operators that only trees before normalisation have."""

FALSE, TRUE, UNDEFINED = 0, 1, 2


class Levels(NamedTuple):
    """Scratch of one matcher, and which predicates tell which leaves what."""

    stamp: np.ndarray  # int64[nodes]: the event for which the next three are
    operands: np.ndarray  # int32[nodes, 2]: how many are FALSE, how many TRUE
    next: np.ndarray  # int32[nodes]: nodes of one level, as a list
    first: np.ndarray  # int32[levels + 1]: where each list begins
    told_start: np.ndarray  # int64[predicates + 1]: slice of what a satisfied predicate tells
    told_leaf: np.ndarray  # int32: a leaf
    told_value: np.ndarray  # int8: its value
    attr_start: np.ndarray  # int64[attributes + 1]: slice of the leaves on an attribute
    attr_leaf: np.ndarray  # int32: FALSE when the attribute is there and they are not TRUE
    constant: np.ndarray  # int32[, 2]: leaves that have one value, and that value
    clock: np.ndarray  # int64[1]


@part
def _tell(x, levels, now, v, value):
    """Add an operand; the first one puts the node into the list of its level."""
    if levels.stamp[v] != now:
        levels.stamp[v] = now
        levels.operands[v, FALSE], levels.operands[v, TRUE] = 0, 0
        level = x.level[v]
        levels.next[v] = levels.first[level]
        levels.first[level] = v
    levels.operands[v, value] += 1


@part
def evaluate(op, n, n_false, n_true):
    """The value of a node with n operands, the others being undefined (Table 2)."""
    if op == LEAF:
        return TRUE if n_true > 0 else FALSE
    if op == AND:
        return FALSE if n_false > 0 else TRUE if n_true == n else UNDEFINED
    if op == OR:
        return TRUE if n_true > 0 else FALSE if n_false == n else UNDEFINED
    if n_false + n_true < n:
        return UNDEFINED
    if op == NOT:
        return n_false
    return (n_true & 1) if op == XOR else 1 - (n_true & 1)


@part
def _climb(x, levels, now, suppress, out, n):
    """Evaluate level after level; returns the end of `out` (FULL: no room) and nodes evaluated."""
    n_nodes = np.int64(0)
    for level in range(1, x.count[MAX_LEVEL] + 1):
        v = np.int64(levels.first[level])
        levels.first[level] = NOTHING
        while v != NOTHING:
            n_nodes += 1
            size = np.int64(1) if x.op[v] == LEAF else np.int64(x.word[x.node[v, DOWN]])
            value = evaluate(
                np.int64(x.op[v]), size,
                np.int64(levels.operands[v, FALSE]), np.int64(levels.operands[v, TRUE]),
            )  # fmt: skip
            if value == TRUE and n != FULL:
                n = emit(x, v, out, n)
            if value == TRUE or (value == FALSE and not suppress):
                up = x.node[v, UP]
                if up != NOTHING:
                    for i in range(up + PARENTS, up + PARENTS + x.word[up + N_ALL]):
                        _tell(x, levels, now, parent_at(x, i), value)
            v = np.int64(levels.next[v])
    return n, n_nodes


@kernel
def match_levels(x, levels, suppress, finder, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out = batch.events, output.offsets, output.out
    for e in range(batch.first, len(events.start) - 1):
        n_found, n_stabbed, n_tested = stab_event(finder, events, e, batch.stamp + e, batch.board)
        levels.clock[0] += 1
        now = levels.clock[0]
        for f in range(n_found):
            pred = finder.scratch.found[f]
            for i in range(levels.told_start[pred], levels.told_start[pred + 1]):
                _tell(x, levels, now, levels.told_leaf[i], levels.told_value[i])
        for i in range(len(levels.constant)):
            _tell(x, levels, now, levels.constant[i, 0], levels.constant[i, 1])
        n_false = np.int64(0)
        for entry in range(events.start[e], events.start[e + 1]):
            attr = events.attr[entry]
            if not suppress and attr + 1 < len(levels.attr_start):
                for i in range(levels.attr_start[attr], levels.attr_start[attr + 1]):
                    if levels.stamp[levels.attr_leaf[i]] != now:
                        _tell(x, levels, now, levels.attr_leaf[i], FALSE)
                        n_false += 1
        n, n_nodes = _climb(x, levels, now, suppress, out, offsets[e])
        if n == FULL:
            return e
        n_visited, n_tested = n_stabbed + n_nodes, n_found + n_tested + n_false
        finish_event(e, n, n_visited, n - offsets[e], n_tested, output)
    return len(events.start) - 1
