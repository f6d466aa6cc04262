"""Kernels of `bdd`: make nodes, join diagrams, evaluate all of them, drop what is unused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.forms.merge_kernels import token_is_and, token_operands
from matchwood.index.stabbing_kernels import stab_event
from matchwood.index.verify_kernels import finish_event
from matchwood.jit import kernel, part

FALSE, TRUE = 0, 1
"""The first two nodes."""

VARIABLE, LOW, HIGH = range(3)
N_NODES, N_VARIABLES = range(2)
FULL = -1
LAST_VARIABLE = 2**31 - 1

DONE, NODES_FULL = range(2)


class Diagrams(NamedTuple):
    """See `bdd.py` for the table of arrays."""

    node: np.ndarray
    table: np.ndarray
    variable_of: np.ndarray
    root_of: np.ndarray
    cache: np.ndarray
    count: np.ndarray


@part
def _hash(a, b, c):
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(c)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.int64(h >> np.uint64(2))


@part
def make_node(d, variable, low, high):
    """The node that tests a variable, found or made; FULL when there is no room."""
    if low == high:
        return np.int64(low)
    mask = len(d.table) - 1
    at = _hash(variable, low, high) & mask
    while d.table[at] >= 0:
        v = d.table[at]
        if d.node[v, LOW] == low and d.node[v, HIGH] == high and d.node[v, VARIABLE] == variable:
            return np.int64(v)
        at = (at + 1) & mask
    v = d.count[N_NODES]
    if v == len(d.node):
        return np.int64(FULL)
    d.node[v, VARIABLE], d.node[v, LOW], d.node[v, HIGH] = variable, low, high
    d.table[at] = v
    d.count[N_NODES] = v + 1
    return np.int64(v)


@part
def join(d, is_and, first, second, stack):
    """AND or OR of two diagrams, without recursion; FULL when there is no room.

    stack rows: the two nodes, the step of the work on them, the result of their low side.
    """
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
            at = _hash(a, b, np.int64(is_and)) & (len(d.cache) - 1)
            if d.cache[at, 0] == 2 * a + np.int64(is_and) and d.cache[at, 1] == b:
                result = np.int64(d.cache[at, 2])
                top -= 1
                continue
        variable = min(d.node[a, VARIABLE], d.node[b, VARIABLE])
        in_a, in_b = d.node[a, VARIABLE] == variable, d.node[b, VARIABLE] == variable
        if step < 2:
            if step == 1:
                stack[top, 3] = result
            side = LOW if step == 0 else HIGH
            stack[top, 2] = step + 1
            if top + 1 == len(stack):
                return np.int64(FULL)
            stack[top + 1, 0] = d.node[a, side] if in_a else a
            stack[top + 1, 1] = d.node[b, side] if in_b else b
            stack[top + 1, 2] = 0
            top += 1
            continue
        result = make_node(d, variable, stack[top, 3], result)
        if result == FULL:
            return result
        at = _hash(a, b, np.int64(is_and)) & (len(d.cache) - 1)
        d.cache[at, 0], d.cache[at, 1], d.cache[at, 2] = 2 * a + np.int64(is_and), b, result
        top -= 1
    return result


@part
def _leaf(d, pred):
    if d.variable_of[pred] < 0:
        d.variable_of[pred] = d.count[N_VARIABLES]
        d.count[N_VARIABLES] += 1
    return make_node(d, np.int64(d.variable_of[pred]), FALSE, TRUE)


@kernel
def insert_diagrams(expressions, slots, first, d, operand, stack):
    """Build the diagrams of expressions first..; returns how many are done, and a status."""
    for i in range(first, len(slots)):
        slot = slots[i]
        begin = expressions.start[slot]
        top = np.int64(0)
        for k in range(begin + expressions.size[slot] - 1, begin - 1, -1):
            token = expressions.code[k]
            if token >= 0:
                result = _leaf(d, token)
            else:
                top -= 1
                result = operand[top]
                for _ in range(token_operands(token) - 1):
                    top -= 1
                    if result != FULL:
                        result = join(d, token_is_and(token), result, operand[top], stack)
            if result == FULL:
                return i, NODES_FULL
            operand[top] = result
            top += 1
        result = operand[top - 1]
        if expressions.kind[slot] == CONJUNCTION:
            for k in range(top - 1):
                if result != FULL:
                    result = join(d, True, result, operand[k], stack)
        if result == FULL:
            return i, NODES_FULL
        d.root_of[slot] = result
    return len(slots), DONE


@kernel
def fill_table(d):
    for v in range(2, d.count[N_NODES]):
        at = _hash(d.node[v, VARIABLE], d.node[v, LOW], d.node[v, HIGH]) & (len(d.table) - 1)
        while d.table[at] >= 0:
            at = (at + 1) & (len(d.table) - 1)
        d.table[at] = v


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
                d.node[n, VARIABLE] = d.node[v, VARIABLE]
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
def match_diagrams(
    d, held, value, holds, clock, stabbing, segments, on_node, scratch,
    events, first, stamp, board_event, board_entry, predicates, offsets, out, counters,
):  # fmt: skip
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    for e in range(first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(
            stabbing, segments, on_node, predicates,
            events, e, stamp + e, board_event, board_entry, scratch,
        )  # fmt: skip
        clock[0] += 1
        for f in range(n_found):
            holds[d.variable_of[scratch.found[f]]] = clock[0]
        value[FALSE], value[TRUE] = 0, 1
        for v in range(2, d.count[N_NODES]):
            is_true = holds[d.node[v, VARIABLE]] == clock[0]
            value[v] = value[d.node[v, HIGH] if is_true else d.node[v, LOW]]
        n = offsets[e]
        for slot in held:
            if n == len(out):
                return e
            out[n] = slot
            n += np.int64(value[d.root_of[slot]])
        finish_event(
            e, n, n_nodes + d.count[N_NODES], len(held), n_found + n_tested, offsets, counters
        )
    return len(events.start) - 1
