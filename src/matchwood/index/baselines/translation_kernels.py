"""Kernels of `translation`: the conjunctions that a tree stands for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.kernel.jit import kernel, part

MOST_TERMS = 2**40


@part
def _count(code, begin, end, terms, size):
    """Conjunctions and tokens below every token, the last first."""
    for k in range(end - 1, begin - 1, -1):
        at, n = k + 1, np.int64(1)
        if code[k] < 0:
            is_and = token_is_and(code[k])
            n = np.int64(1 if is_and else 0)
            for _ in range(token_operands(code[k])):
                below = terms[at - begin]
                n = min(n * below if is_and else n + below, np.int64(MOST_TERMS))
                at += size[at - begin]
        terms[k - begin], size[k - begin] = n, at - k


@kernel
def count_terms(expressions, slots, terms, size, found):
    """How many conjunctions each expression expands to."""
    for i in range(len(slots)):
        begin, n = expressions.start[slots[i]], expressions.size[slots[i]]
        found[i] = 1
        if expressions.kind[slots[i]] != CONJUNCTION:
            _count(expressions.code, begin, begin + n, terms, size)
            found[i] = terms[0]


class Terms(NamedTuple):
    """Room for the longest expression, by its tokens."""

    terms: np.ndarray  # int64, conjunctions of what is below each
    size: np.ndarray  # tokens below each
    stack: np.ndarray  # int64[, 2]


@kernel
def expand(expressions, slot, predicates, row_of, scratch, code, code_start):
    """The conjunctions of an expression as prefix code over rows; returns how much was written.

    A row is an interval: a predicate with several is an OR of its rows.  Term t takes of an OR the
    operand that t falls into, and of an AND one term of each operand, t in mixed radix.
    """
    begin, n = expressions.start[slot], np.int64(expressions.size[slot])
    terms, size, stack = scratch.terms, scratch.size, scratch.stack
    source = expressions.code
    is_conjunction = expressions.kind[slot] == CONJUNCTION
    n_terms = np.int64(1)
    if not is_conjunction:
        _count(source, begin, begin + n, terms, size)
        n_terms = terms[0]
    at = np.int64(0)
    for t in range(n_terms):
        head, n_leaves = at, np.int64(0)
        at += 1
        top = np.int64(0)
        if is_conjunction:
            for k in range(n):
                stack[top, 0], stack[top, 1] = k, 0
                top += 1
        else:
            stack[0, 0], stack[0, 1] = 0, t
            top = np.int64(1)
        while top > 0:
            top -= 1
            k, which = stack[top, 0], stack[top, 1]
            token = source[begin + k]
            if token >= 0:
                m = np.int64(predicates.n_intervals[token])
                if at + m + 2 > len(code):
                    return np.int64(-1)
                if m > 1:
                    code[at] = -2 * m - 2
                    at += 1
                for i in range(m):
                    code[at] = row_of[token] + i
                    at += 1
                n_leaves += 1
                continue
            child = k + 1
            if token_is_and(token):
                for _ in range(token_operands(token)):
                    stack[top, 0], stack[top, 1] = child, which % terms[child]
                    which //= terms[child]
                    top += 1
                    child += size[child]
            else:
                while which >= terms[child]:
                    which -= terms[child]
                    child += size[child]
                stack[top, 0], stack[top, 1] = child, which
                top += 1
        code[head] = -2 * n_leaves - 1
        code_start[t + 1] = at
    return at
