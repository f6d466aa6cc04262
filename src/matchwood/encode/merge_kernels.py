"""Merge: inside one AND (or OR) the predicates on one attribute become one predicate.

    x > 3 AND x < 9            ->  x in {4..8}
    x = 1 OR x = 2 OR x > 7    ->  x in {1..2, 8..MAX}
    x > 9 AND x < 3            ->  FALSE                 (the empty set)
    x > 3 OR x <= 3            ->  x in {MIN..MAX}       present, not TRUE: absent stays unknown
    a AND (b AND c), a AND TRUE, ...                     flattened and folded on the way

An expression arrives as *prefix code*: a token >= 0 is a leaf row, `and_token(n)` and `or_token(n)`
are followed by the code of their n operands; `and_token(0)` is TRUE and `or_token(0)` is FALSE.

        AND(2)  OR(2)  0  1  2        (leaf 0 OR leaf 1) AND leaf 2

Reading it backwards, operands come before their operator, so one stack and no recursion suffice.

Workspace (reused for every expression; the owner doubles it when a kernel returns FULL)
    node_kind  int64[N]    LEAF, AND, OR, TRUE or FALSE
    node_attr  int64[N]    LEAF: the attribute
    node_start int64[N]    LEAF: first interval in pool;  AND, OR: first operand in child
    node_n     int64[N]    how many of them
    child      int64[C]    operands of AND / OR nodes, merged leaves first, by attribute
    pool_lo, pool_hi int64[K]   intervals of all leaves
    stack, picked    int64[N]   scratch
    used       int64[4]    how much of each is in use: NODE, CHILD, POOL, TOP (of the stack)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.interval_kernels import (
    MAX_KEY,
    MIN_KEY,
    complement,
    unite,
)
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import sort_by

EQ, LT, LE, GT, GE, BETWEEN, IN, HALF_OPEN, PRESENT = range(9)
NEGATED = 16
"""Leaf operators; add NEGATED for the complement.  HALF_OPEN is low <= x < high."""

EXACT, BELOW, ABOVE = 0, -1, 1
"""Where a literal lies: on or between keys; below or above all of them."""

LEAF, AND, OR, TRUE, FALSE = range(5)
FULL, NOTHING = -1, -2

NODE, CHILD, POOL, TOP = range(4)
"""Positions in `Workspace.used`."""


class Leaves(NamedTuple):
    """Predicates before merging: an attribute, an operator and its literals as keys.

    A literal c is a pair: `ge`, the smallest key whose value is >= c, and `le`, the largest <= c.
    They are equal when c is itself a key; 1.5 on ints has ge 2 and le 1.
    """

    attr: np.ndarray  # int32[R]
    op: np.ndarray  # uint8[R]
    start: np.ndarray  # int64[R + 1], slice of the literals
    ge: np.ndarray  # int64[L]
    le: np.ndarray  # int64[L]
    side: np.ndarray  # int8[L]


class Workspace(NamedTuple):
    node_kind: np.ndarray
    node_attr: np.ndarray
    node_start: np.ndarray
    node_n: np.ndarray
    child: np.ndarray
    pool_lo: np.ndarray
    pool_hi: np.ndarray
    stack: np.ndarray
    picked: np.ndarray
    used: np.ndarray


def new_workspace(size: int) -> Workspace:
    """All int64: one type per kernel keeps the number of compiled versions, and the wait, small."""
    return Workspace(
        *[np.empty(size, np.int64) for _ in range(4)],
        np.empty(4 * size, np.int64),
        np.empty(8 * size, np.int64),
        np.empty(8 * size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.zeros(4, np.int64),
    )


def and_token(n: int) -> int:
    return -2 * n - 1


def or_token(n: int) -> int:
    return -2 * n - 2


@part
def token_operands(token):
    return (-token - 1) // 2


@part
def token_is_and(token):
    return token % 2 != 0


@part
def at_least(ge, le, side, strict):
    """Lower end of x >= c (or x > c), and whether any key satisfies it."""
    if side == ABOVE:
        return MAX_KEY, False
    if side == BELOW:
        return MIN_KEY, True
    if strict and ge == le:
        return (ge, False) if ge == MAX_KEY else (ge + 1, True)
    return ge, True


@part
def at_most(ge, le, side, strict):
    """Upper end of x <= c (or x < c), and whether any key satisfies it."""
    if side == BELOW:
        return MIN_KEY, False
    if side == ABOVE:
        return MAX_KEY, True
    if strict and ge == le:
        return (le, False) if le == MIN_KEY else (le - 1, True)
    return le, True


@part
def leaf_set(leaves, row, lo, hi, at):
    """Write the set of a leaf to the pool at `at`; returns its start and number of intervals.

    Needs room for 2 * literals + 3 intervals.
    """
    op = leaves.op[row] & ~np.uint8(NEGATED)
    begin, end = leaves.start[row], leaves.start[row + 1]
    n = np.int64(0)
    if op == PRESENT:
        lo[at], hi[at] = MIN_KEY, MAX_KEY
        n = 1
    elif op == EQ or op == IN:
        for i in range(begin, end):
            if leaves.side[i] == EXACT and leaves.ge[i] <= leaves.le[i]:
                lo[at + n], hi[at + n] = leaves.ge[i], leaves.le[i]
                n += 1
        n = unite(lo, hi, at, n)
    else:
        first, second = begin, end - 1
        low, some = MIN_KEY, True
        high, any_high = MAX_KEY, True
        if op == GT or op == GE or op == BETWEEN or op == HALF_OPEN:
            low, some = at_least(leaves.ge[first], leaves.le[first], leaves.side[first], op == GT)
        if op == LT or op == LE or op == BETWEEN or op == HALF_OPEN:
            strict = op == LT or op == HALF_OPEN
            high, any_high = at_most(
                leaves.ge[second], leaves.le[second], leaves.side[second], strict
            )
        if some and any_high and low <= high:
            lo[at], hi[at] = low, high
            n = 1
    if leaves.op[row] & NEGATED:
        m = complement(lo, hi, at, n, at + n)
        return at + n, m
    return at, n


@part
def _new_node(ws, kind, attr, start, n):
    node = ws.used[NODE]
    ws.node_kind[node] = kind
    ws.node_attr[node] = attr
    ws.node_start[node] = start
    ws.node_n[node] = n
    ws.used[NODE] = node + 1
    return node


@part
def _read_leaf(leaves, row, ws):
    room = 2 * (leaves.start[row + 1] - leaves.start[row]) + 3
    if ws.used[POOL] + room > len(ws.pool_lo):
        return FULL
    start, n = leaf_set(leaves, row, ws.pool_lo, ws.pool_hi, ws.used[POOL])
    ws.used[POOL] = start + n
    kind = LEAF if n > 0 else FALSE
    return _new_node(ws, kind, np.int64(leaves.attr[row]), start, n)


@part
def _gather(ws, n_operands, same, stops):
    """Pop operands: leaves to `picked`, inner nodes to `child`, both flattened and folded.

    Returns the number of leaves, the number of inner nodes and whether a constant decides it all.
    """
    n_leaf, n_inner = 0, 0
    stopped = False
    base = ws.used[CHILD]
    for _ in range(n_operands):
        ws.used[TOP] -= 1
        node = ws.stack[ws.used[TOP]]
        kind = ws.node_kind[node]
        if kind == LEAF:
            ws.picked[n_leaf] = node
            n_leaf += 1
        elif kind == stops:
            stopped = True
        elif kind == same:
            for k in range(ws.node_start[node], ws.node_start[node] + ws.node_n[node]):
                if base + n_inner == len(ws.child):
                    return FULL, 0, False
                inner = ws.child[k]
                if ws.node_kind[inner] == LEAF:
                    ws.picked[n_leaf] = inner
                    n_leaf += 1
                else:
                    ws.child[base + n_inner] = inner
                    n_inner += 1
        elif kind == AND or kind == OR:
            if base + n_inner == len(ws.child):
                return FULL, 0, False
            ws.child[base + n_inner] = node
            n_inner += 1
    return n_leaf, n_inner, stopped


@part
def _merge_group(ws, first, last, is_and):
    """One leaf from picked[first:last], all on one attribute; FULL, or a node (perhaps empty)."""
    at, n = ws.used[POOL], np.int64(0)
    for i in range(first, last):
        node = ws.picked[i]
        start, size = ws.node_start[node], ws.node_n[node]
        if at + 2 * (n + size) + 4 > len(ws.pool_lo):
            return FULL
        if is_and:
            n += complement(ws.pool_lo, ws.pool_hi, start, size, at + n)
        else:
            for k in range(start, start + size):
                ws.pool_lo[at + n] = ws.pool_lo[k]
                ws.pool_hi[at + n] = ws.pool_hi[k]
                n += 1
    n = unite(ws.pool_lo, ws.pool_hi, at, n)
    if is_and:
        outside = n
        n = complement(ws.pool_lo, ws.pool_hi, at, outside, at + outside)
        at += outside
    ws.used[POOL] = at + n
    return _new_node(ws, np.int64(LEAF), ws.node_attr[ws.picked[first]], at, n)


@part
def _merge_leaves(ws, n_leaf, is_and):
    """Merge picked[:n_leaf] by attribute in place; returns how many remain (FULL: no room).

    An empty set decides an AND: NOTHING is returned.
    """
    sort_by(ws.picked, ws.node_attr, np.int64(0), n_leaf)
    n_merged, i = np.int64(0), np.int64(0)
    while i < n_leaf:
        node = ws.picked[i]
        j = i + 1
        while j < n_leaf and ws.node_attr[ws.picked[j]] == ws.node_attr[node]:
            j += 1
        if j - i > 1:
            if ws.used[NODE] + 2 > len(ws.node_kind):
                return FULL
            node = _merge_group(ws, i, j, is_and)
            if node == FULL:
                return FULL
            if ws.node_n[node] == 0:
                return NOTHING
        ws.picked[n_merged] = node
        n_merged += 1
        i = j
    return n_merged


@part
def _combine(ws, token):
    """Replace an operator's operands on the stack by one node; returns it, or FULL."""
    is_and = token_is_and(token)
    same, stops = (AND, FALSE) if is_and else (OR, TRUE)
    base = ws.used[CHILD]
    n_leaf, n_inner, stopped = _gather(ws, token_operands(token), same, stops)
    if n_leaf == FULL:
        return FULL
    n_merged = 0
    if not stopped:
        n_merged = _merge_leaves(ws, n_leaf, is_and)
    if n_merged == FULL or base + n_inner + max(n_merged, 0) > len(ws.child):
        return FULL
    if stopped or n_merged == NOTHING:
        return _new_node(ws, stops, np.int64(-1), base, np.int64(0))
    # Leaves stand before inner nodes: they are the cheaper ones to test.
    for k in range(n_inner - 1, -1, -1):
        ws.child[base + n_merged + k] = ws.child[base + k]
    for k in range(n_merged):
        ws.child[base + k] = ws.picked[k]
    n = n_merged + n_inner
    if n == 1:
        return ws.child[base]
    if n == 0:
        return _new_node(ws, TRUE if is_and else FALSE, np.int64(-1), base, np.int64(0))
    ws.used[CHILD] = base + n
    return _new_node(ws, same, np.int64(-1), base, n)


@kernel
def merge_expression(leaves, code, begin, end, ws):
    """Merge and fold one expression; returns its root node, or FULL."""
    ws.used[:] = 0
    for position in range(end - 1, begin - 1, -1):
        token = code[position]
        if ws.used[NODE] + 2 > len(ws.node_kind):
            return FULL
        node = _read_leaf(leaves, token, ws) if token >= 0 else _combine(ws, token)
        if node == FULL:
            return FULL
        ws.stack[ws.used[TOP]] = node
        ws.used[TOP] += 1
    return ws.stack[0]


def merged(leaves: Leaves, code: np.ndarray) -> tuple[Workspace, int]:
    """Merge one expression in a workspace of its own; for looking at the result from Python."""
    size = 64
    while True:
        ws = new_workspace(size)
        root = merge_expression(leaves, code, 0, len(code), ws)
        if root != FULL:
            return ws, int(root)
        size *= 2


def leaf_intervals(leaves: Leaves, row: int) -> tuple[np.ndarray, np.ndarray]:
    """The key set of one leaf as arrays of lower and upper ends."""
    ws, root = merged(leaves, np.array([row], np.int32))
    start, n = ws.node_start[root], ws.node_n[root]
    return ws.pool_lo[start : start + n], ws.pool_hi[start : start + n]
