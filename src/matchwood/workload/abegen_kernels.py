"""Kernels of ABE-Gen: a tree from its row, subexpressions from their rank."""

from __future__ import annotations

import numpy as np

from matchwood.encode.merge_kernels import BETWEEN, EQ, GE, GT, IN, LE, LT, NEGATED
from matchwood.kernel.jit import kernel, part
from matchwood.workload.begen_draw_kernels import below, draw, mix, unit
from matchwood.workload.tree_kernels import NOT, XNOR, XOR

OP, CHILD, ATTRIBUTE, SIGN, VALUE, WIDTH, LENGTH, MORE = range(8)
"""What a draw is used for."""

MAX_LIST = 5
ROOM = 32
"""Tokens, leaves and values a node may need at most, apart from its children."""

_SIGN_SHARES = (
    (EQ, 0.64),
    (EQ | NEGATED, 0.74),
    (LT, 0.79),
    (LE, 0.84),
    (GT, 0.89),
    (GE, 0.94),
    (BETWEEN, 0.97),
)
"""Operators with the running sum of their shares; IN takes the rest."""


@part
def zipf(u, n, exponent):
    """A rank 0 .. n - 1 for u in [0, 1): rank r with a chance like 1 / (r + 1)^exponent.

    The density x^-exponent over 1 .. n + 1, cut to whole numbers.
    """
    if exponent == 1.0:
        x = np.exp(u * np.log(n + 1.0))
    else:
        rest = 1.0 - exponent
        x = (1.0 + u * ((n + 1.0) ** rest - 1.0)) ** (1.0 / rest)
    return min(np.int64(x), np.int64(n)) - 1


@part
def subexpression(stream, i, key, depth, pool, exponent):
    """The stream of child i: of its own without sharing, else of a rank in the pool of its depth.

    One rank, one stream, one subexpression: that is how rows share.
    """
    if exponent == 0.0:
        return draw(stream, i, CHILD)
    rank = zipf(unit(stream, i, CHILD), pool, exponent)
    return mix(key + np.uint64(depth) * np.uint64(0xD1342543DE82EF95) + np.uint64(rank))


@part
def write_value(room, value):
    room.values[room.used[2]] = value
    room.used[2] += 1


@part
def end_leaf(room, attr, op):
    """A leaf whose values are written."""
    leaf = room.used[1]
    room.attr[leaf] = attr
    room.op[leaf] = op
    room.used[1] = leaf + 1
    room.start[leaf + 1] = room.used[2]
    room.code[room.used[0]] = leaf
    room.used[0] += 1


@part
def _write_predicate(stream, rules, room):
    c = rules.cardinality
    if rules.attribute_exponent == 0.0:
        attr = below(stream, 0, ATTRIBUTE, rules.n_attributes)
    else:
        attr = zipf(unit(stream, 0, ATTRIBUTE), rules.n_attributes, rules.attribute_exponent)
    u, op = unit(stream, 0, SIGN), IN
    for sign, share in _SIGN_SHARES:
        if op == IN and u < share:
            op = sign
    value = below(stream, 0, VALUE, c)
    if op == BETWEEN:
        width = 1 + below(stream, 0, WIDTH, max(1, np.int64(rules.range_size * 2 * c)))
        write_value(room, min(value, max(c - width, 0)))
        write_value(room, min(min(value, max(c - width, 0)) + width, c) - 1)
    elif op == IN:
        n = 2 + below(stream, 0, LENGTH, MAX_LIST - 1)
        for i in range(min(n, c)):
            write_value(room, below(stream, i, MORE, c))
    else:  # never a test that no value passes
        if op == LT:
            value = max(value, 1)
        elif op == GT:
            value = min(value, c - 2)
        write_value(room, value)
    end_leaf(room, attr, op)


@kernel
def write_trees(rules, first, last, done, stack_stream, stack_depth, room):
    """Rows first + done .. last - 1 to `room`; returns how many are done (fewer: no room)."""
    for row in range(first + done, last):
        n_code, n_leaf, n_value = room.used[0], room.used[1], room.used[2]
        stack_stream[0], stack_depth[0] = mix(rules.row_key + np.uint64(row)), 1
        top = 1
        is_full = False
        while top > 0 and not is_full:
            top -= 1
            stream, depth = stack_stream[top], stack_depth[top]
            if room.used[0] + ROOM > len(room.code) or room.used[2] + ROOM > len(room.values):
                is_full = True
            elif depth == rules.depth:
                _write_predicate(stream, rules, room)
            else:
                u, op = unit(stream, 0, OP), 0
                while op < 4 and u >= rules.operators[op]:
                    op += 1
                n, token = rules.children, -2 * rules.children - 1 - op
                if op == 2:
                    n, token = np.int64(1), np.int64(NOT)
                elif op > 2:
                    n, token = np.int64(2), np.int64(XOR if op == 3 else XNOR)
                room.code[room.used[0]] = token
                room.used[0] += 1
                if top + n > len(stack_depth):
                    is_full = True
                    break
                for i in range(n):  # the first child is to come off first
                    at = top + n - 1 - i
                    is_leaf = depth + 1 == rules.depth
                    exponent = 0.0 if is_leaf else rules.exponent
                    stack_stream[at] = subexpression(
                        stream, i, rules.pool_key, depth + 1, rules.pool, exponent
                    )
                    stack_depth[at] = depth + 1
                top += n
        if is_full:
            room.used[0], room.used[1], room.used[2] = n_code, n_leaf, n_value
            return row - first
        room.code_start[row - first + 1] = room.used[0]
    return last - first
