"""Trees of generated rows: how their code looks, and how negations leave it.

Code is prefix code as in `encode.merge_kernels`, with three operators more:

    NOT  a          XOR  a b          XNOR  a b
"""

from __future__ import annotations

import numpy as np

from matchwood.encode.merge_kernels import NEGATED, token_is_and, token_operands
from matchwood.kernel.jit import kernel, part

NOT, XOR, XNOR = -(2**30), -(2**30) - 1, -(2**30) - 2
"""Tokens beyond all AND(n) and OR(n)."""

_AND_2, _OR_2 = -5, -6
EMIT = 2
"""On the stack of `push_negations`: a token to write, instead of a position to read."""


@part
def n_operands(token):
    if token >= 0:
        return np.int64(0)
    if token == NOT:
        return np.int64(1)
    if token == XOR or token == XNOR:
        return np.int64(2)
    return np.int64(token_operands(token))


@part
def _subtree_sizes(code, begin, end, size):
    """Tokens of the subtree at every position, the last position first."""
    for k in range(end - 1, begin - 1, -1):
        at = k + 1
        for _ in range(n_operands(code[k])):
            at += size[at - begin]
        size[k - begin] = at - k


@part
def _push(stack, top, what, how):
    stack[top, 0], stack[top, 1] = what, how
    return top + 1


@kernel
def push_negations(rows, first, size, stack, leaf, code, code_start, count):
    """Rows first.. without NOT, XOR and XNOR; returns how many are done (fewer: no room).

    Leaf i of the result is leaf `leaf[i] >> 1` of the rows, negated when the last bit is set.

        a XOR b   ->  (a AND NOT b) OR (NOT a AND b)
        a XNOR b  ->  (a AND b) OR (NOT a AND NOT b)
    """
    for row in range(first, len(rows.code_start) - 1):
        begin, end = rows.code_start[row], rows.code_start[row + 1]
        if end - begin > len(size):
            return row
        _subtree_sizes(rows.code, begin, end, size)
        n_code, n_leaf = count[0], count[1]
        top = _push(stack, np.int64(0), begin, np.int64(0))
        while top > 0:
            top -= 1
            k, negated = stack[top, 0], stack[top, 1]
            if n_code == len(code) or n_leaf == len(leaf) or top + 8 > len(stack):
                return row
            if negated == EMIT:
                code[n_code] = k
                n_code += 1
                continue
            token = rows.code[k]
            if token >= 0:
                leaf[n_leaf] = 2 * token + negated
                code[n_code] = n_leaf
                n_leaf += 1
                n_code += 1
            elif token == NOT:
                top = _push(stack, top, k + 1, 1 - negated)
            elif token == XOR or token == XNOR:
                a, b = k + 1, k + 1 + size[k + 1 - begin]
                odd = np.int64(token == XOR) ^ negated
                code[n_code] = _OR_2
                n_code += 1
                top = _push(stack, top, b, 1 - odd)
                top = _push(stack, top, a, np.int64(1))
                top = _push(stack, top, np.int64(_AND_2), np.int64(EMIT))
                top = _push(stack, top, b, odd)
                top = _push(stack, top, a, np.int64(0))
                top = _push(stack, top, np.int64(_AND_2), np.int64(EMIT))
            else:
                n = token_operands(token)
                is_and = token_is_and(token) != (negated == 1)
                code[n_code] = -2 * n - 1 if is_and else -2 * n - 2
                n_code += 1
                if top + n > len(stack):
                    return row
                at = k + 1
                for i in range(n):  # the first operand is to come off first
                    _push(stack, top + n - 1 - i, at, negated)
                    at += size[at - begin]
                top += n
        count[0], count[1] = n_code, n_leaf
        code_start[row + 1] = n_code
    return len(rows.code_start) - 1


@kernel
def negate_leaves(leaf, op, fresh):
    """The operators of the leaves that `push_negations` chose."""
    for i in range(len(leaf)):
        fresh[i] = op[leaf[i] >> 1] ^ (NEGATED if leaf[i] & 1 else 0)
