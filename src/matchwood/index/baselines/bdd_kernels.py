"""Kernels of `bdd`: make nodes, join diagrams, evaluate all of them, drop what is unused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.index.stabbing.predicate_kernels import stab_event
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell, put_id
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

FALSE, TRUE = 0, 1
"""The first two nodes."""

PREDICATE, LOW, HIGH = range(3)
N_NODES = 0
FULL, LIMIT = -1, -2
"""Instead of a node: there is no room, or too many steps were taken."""

FIRST, SECOND, RESULT, EXPRESSION = range(4)
"""Columns of `memo`."""

NOW, USED, STEPS = range(3)
"""Positions in `work`: number of the expression at hand, its steps so far, all steps ever."""

DONE, NODES_FULL, MEMO_FULL, TOO_MANY_STEPS = range(4)


class Diagrams(NamedTuple):
    """See `bdd.py` for the table of arrays."""

    node: np.ndarray
    table: np.ndarray
    root_of: np.ndarray
    count: np.ndarray


class Joining(NamedTuple):
    """Scratch for joining diagrams."""

    memo: np.ndarray  # int64[2^k, 4], the joins of the expression at hand, at most half full
    operand: np.ndarray  # int64[], diagrams of the operands so far
    stack: np.ndarray  # int64[, 4], see `join`
    work: np.ndarray  # int64[3], NOW, USED, STEPS


@part
def _hash(a, b, c):
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(c)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return h >> np.uint64(2)


@part
def _hash_of(d, v):
    return _hash(d.node[v, PREDICATE], d.node[v, LOW], d.node[v, HIGH])


@part
def comes_first(p, a, b):
    """Whether predicate a is tested before b: by attribute, then by their key sets.

    The order depends on nothing but the two, so an expression has one diagram whatever else is
    held and whatever has come and gone.
    """
    if p.attr[a] != p.attr[b]:
        return p.attr[a] < p.attr[b]
    if p.lo[a] != p.lo[b]:
        return p.lo[a] < p.lo[b]
    if p.hi[a] != p.hi[b]:
        return p.hi[a] < p.hi[b]
    if p.n_intervals[a] != p.n_intervals[b]:
        return p.n_intervals[a] < p.n_intervals[b]
    for i in range(p.n_intervals[a]):
        low, other = interval(p, a, i)[0], interval(p, b, i)[0]
        if low != other:
            return low < other
        high, other = interval(p, a, i)[1], interval(p, b, i)[1]
        if high != other:
            return high < other
    return False


@part
def make_node(d, pred, low, high):
    """The node that tests a predicate, found or made; FULL when there is no room."""
    if low == high:
        return np.int64(low)
    at = first_cell(d.table, _hash(pred, low, high))
    while d.table[at] != EMPTY:
        v = d.table[at]
        if d.node[v, LOW] == low and d.node[v, HIGH] == high and d.node[v, PREDICATE] == pred:
            return np.int64(v)
        at = next_cell(d.table, at)
    v = d.count[N_NODES]
    if v == len(d.node):
        return np.int64(FULL)
    d.node[v, PREDICATE], d.node[v, LOW], d.node[v, HIGH] = pred, low, high
    d.table[at] = v
    d.count[N_NODES] = v + 1
    return np.int64(v)


@part
def _cell(memo, now, first, second):
    """The row of the join of two nodes, or the row where it would be.

    The memo holds results with their keys, not ids: a new number of the expression empties it.
    """
    at = first_cell(memo, _hash(first, second, now))
    while memo[at, EXPRESSION] == now and (memo[at, FIRST] != first or memo[at, SECOND] != second):
        at = next_cell(memo, at)
    return at


@part
def join(d, joining, predicates, limit, is_and, first, second):
    """AND or OR of two diagrams, without recursion; FULL or LIMIT instead of a node.

    A step is a pair of nodes whose join was not known; a pair is joined once for an expression.
    stack rows: the two nodes, what was done with them, the result of their low side.
    """
    memo, stack, work = joining.memo, joining.stack, joining.work
    stop, neutral = (FALSE, TRUE) if is_and else (TRUE, FALSE)
    stack[0, 0], stack[0, 1], stack[0, 2] = first, second, 0
    top, result = np.int64(0), np.int64(0)
    while top >= 0:
        a, b, step = stack[top, 0], stack[top, 1], stack[top, 2]
        if step == 0:
            if a > b:
                a, b = b, a
                stack[top, 0], stack[top, 1] = a, b
            if a == stop or b == stop:
                result = np.int64(stop)
                top -= 1
                continue
            if a == neutral or a == b:
                result = b
                top -= 1
                continue
            if b == neutral:
                result = a
                top -= 1
                continue
            at = _cell(memo, work[NOW], 2 * a + np.int64(is_and), b)
            if memo[at, EXPRESSION] == work[NOW]:
                result = np.int64(memo[at, RESULT])
                top -= 1
                continue
            if work[USED] == limit:
                return np.int64(LIMIT)
            if 2 * work[USED] >= len(memo):
                return np.int64(FULL)
            work[USED] += 1
            work[STEPS] += 1
        in_a = in_b = d.node[a, PREDICATE] == d.node[b, PREDICATE]
        if not in_a:
            in_a = comes_first(predicates, d.node[a, PREDICATE], d.node[b, PREDICATE])
            in_b = not in_a
        if step < 2:
            if step == 1:
                stack[top, 3] = result
            side = LOW if step == 0 else HIGH
            stack[top, 2] = step + 1
            stack[top + 1, 0] = d.node[a, side] if in_a else a
            stack[top + 1, 1] = d.node[b, side] if in_b else b
            stack[top + 1, 2] = 0
            top += 1
            continue
        pred = d.node[a, PREDICATE] if in_a else d.node[b, PREDICATE]
        result = make_node(d, pred, stack[top, 3], result)
        if result == FULL:
            return result
        at = _cell(memo, work[NOW], 2 * a + np.int64(is_and), b)
        memo[at, FIRST], memo[at, SECOND] = 2 * a + np.int64(is_and), b
        memo[at, RESULT], memo[at, EXPRESSION] = result, work[NOW]
        top -= 1
    return result


@part
def _join_all(d, joining, predicates, limit, is_and, base, n):
    """Join n operands, neighbours first, so that long ones are seldom gone through; or FULL, LIMIT.

    The result replaces the first.
    """
    operand = joining.operand
    while n > 1:
        kept = np.int64(0)
        for j in range(0, n, 2):
            result = operand[base + j]
            if j + 1 < n:
                result = join(d, joining, predicates, limit, is_and, result, operand[base + j + 1])
                if result < 0:
                    return result
            operand[base + kept] = result
            kept += 1
        n = kept
    return operand[base]


@part
def _stopped(joining, result):
    """Why a join has no result."""
    if result == LIMIT:
        return TOO_MANY_STEPS
    return MEMO_FULL if 2 * joining.work[USED] >= len(joining.memo) else NODES_FULL


@kernel
def insert_diagrams(expressions, predicates, slots, first, d, joining, limit):
    """Build the diagrams of expressions first..; returns how many are done, and a status.

    One that did not get in is begun again: nodes that are there already are found.
    """
    operand = joining.operand
    for i in range(first, len(slots)):
        slot = slots[i]
        begin = expressions.start[slot]
        top = np.int64(0)
        joining.work[NOW] += 1
        joining.work[USED] = 0
        for k in range(begin + expressions.size[slot] - 1, begin - 1, -1):
            token = expressions.code[k]
            if token >= 0:
                result = make_node(d, token, FALSE, TRUE)
            else:
                n = np.int64(token_operands(token))
                top -= n
                result = _join_all(d, joining, predicates, limit, token_is_and(token), top, n)
            if result < 0:
                return i, _stopped(joining, result)
            operand[top] = result
            top += 1
        if expressions.kind[slot] == CONJUNCTION:
            result = _join_all(d, joining, predicates, limit, True, np.int64(0), top)
            if result < 0:
                return i, _stopped(joining, result)
        d.root_of[slot] = operand[0]
    return len(slots), DONE


@kernel
def fill_table(d):
    """Enter all nodes into an empty table."""
    for v in range(2, d.count[N_NODES]):
        put_id(d.table, _hash_of(d, v), v)


@kernel
def sweep(d, fresh):
    """New numbers for the nodes that some root needs, -1 for the others; returns how many."""
    fresh[: d.count[N_NODES]] = 0
    for slot in range(len(d.root_of)):
        if d.root_of[slot] >= 0:
            fresh[d.root_of[slot]] = 1
    fresh[FALSE], fresh[TRUE] = 1, 1
    for v in range(d.count[N_NODES] - 1, 1, -1):  # a node is younger than its children
        if fresh[v] == 1:
            fresh[d.node[v, LOW]], fresh[d.node[v, HIGH]] = 1, 1
    n = np.int64(0)
    for v in range(d.count[N_NODES]):
        if fresh[v] == 1:
            fresh[v] = n
            if v > 1:
                d.node[n, PREDICATE] = d.node[v, PREDICATE]
                d.node[n, LOW] = fresh[d.node[v, LOW]]
                d.node[n, HIGH] = fresh[d.node[v, HIGH]]
            n += 1
        else:
            fresh[v] = -1
    for slot in range(len(d.root_of)):
        if d.root_of[slot] >= 0:
            d.root_of[slot] = fresh[d.root_of[slot]]
    d.count[N_NODES] = n
    return n


@kernel
def match_diagrams(d, held, value, holds, clock, finder, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out = batch.events, output.offsets, output.out
    for e in range(batch.first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(finder, events, e, batch.stamp + e, batch.board)
        clock[0] += 1
        for f in range(n_found):
            holds[finder.scratch.found[f]] = clock[0]
        value[FALSE], value[TRUE] = 0, 1
        for v in range(2, d.count[N_NODES]):
            is_true = holds[d.node[v, PREDICATE]] == clock[0]
            value[v] = value[d.node[v, HIGH] if is_true else d.node[v, LOW]]
        n = offsets[e]
        for slot in held:
            if n == len(out):
                return e
            out[n] = slot
            n += np.int64(value[d.root_of[slot]])
        finish_event(e, n, n_nodes + d.count[N_NODES], len(held), n_found + n_tested, output)
    return len(events.start) - 1
