"""Near misses: how many predicates an expression lacks, and which one if it lacks one.

Negations were pushed into predicates, so an expression becomes TRUE by making some of its
predicates true: of an AND all that do not hold, of an OR those of the cheapest operand.
"""

from __future__ import annotations

import numpy as np

from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import Posted, holds_in_table, post_event

MANY = 2
"""Two missing predicates and more count the same."""


@part
def _one_of_conjunction(code, begin, end, event):
    """The one predicate that does not hold, or -1 if there is none or more than one."""
    missing = np.int32(-1)
    for k in range(begin, end):
        if not holds_in_table(event, code[k]):
            if missing >= 0:
                return np.int32(-1)
            missing = code[k]
    return missing


@part
def _one_of_tree(code, begin, end, event, cost, lacks):
    """The same for prefix code, read backwards with a stack of costs."""
    top = np.int64(0)
    for k in range(end - 1, begin - 1, -1):
        token = code[k]
        if token >= 0:
            cost[top], lacks[top] = np.int32(0 if holds_in_table(event, token) else 1), token
            top += 1
            continue
        n = token_operands(token)
        is_and = token_is_and(token)
        total, which = np.int32(0 if is_and else MANY), np.int32(-1)
        for i in range(top - n, top):
            if is_and:
                if cost[i] > 0:
                    which = lacks[i]
                total = min(total + cost[i], MANY)
            elif cost[i] < total:
                total, which = cost[i], lacks[i]
        top -= n
        cost[top], lacks[top] = total, which
        top += 1
    return lacks[0] if cost[0] == 1 else np.int32(-1)


@kernel
def lacking_one(expressions, predicates, conjunctions, trees, events, board, scratch, out):
    """Write slots that lack exactly one predicate, and that predicate; returns how many.

    board    `event` is -1 for every attribute
    scratch  int32[2, longest code]
    out      int32[2, slots]: slots, predicates
    """
    event = Posted(events, np.int64(0), board, predicates)
    post_event(events, 0, event.stamp, board)
    n = np.int64(0)
    for slot in conjunctions:
        begin = expressions.start[slot]
        end = begin + expressions.size[slot]
        pred = _one_of_conjunction(expressions.code, begin, end, event)
        if pred >= 0:
            out[0, n], out[1, n] = slot, pred
            n += 1
    for slot in trees:
        begin = expressions.start[slot]
        end = begin + expressions.size[slot]
        pred = _one_of_tree(expressions.code, begin, end, event, scratch[0], scratch[1])
        if pred >= 0:
            out[0, n], out[1, n] = slot, pred
            n += 1
    return n
