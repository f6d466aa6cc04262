"""Near misses: how many predicates an expression lacks, and which one if it lacks one.

Negations were pushed into predicates, so an expression becomes TRUE by making some of its
predicates true: of an AND all that do not hold, of an OR those of the cheapest operand.
"""

from __future__ import annotations

import numpy as np

from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import Board, Posted, holds_in_table, post_event

MANY = 2
"""Two or more missing predicates are not told apart."""


@part
def _is_missing(events, board_event, board_entry, predicates, pred):
    event = Posted(events, np.int64(0), Board(board_event, board_entry), predicates)
    return not holds_in_table(event, pred)


@part
def _one_of_conjunction(code, begin, end, events, board_event, board_entry, predicates):
    """The one predicate that does not hold, or -1 if there is none or more than one."""
    missing = np.int32(-1)
    for k in range(begin, end):
        if _is_missing(events, board_event, board_entry, predicates, code[k]):
            if missing >= 0:
                return np.int32(-1)
            missing = code[k]
    return missing


@part
def _one_of_tree(code, begin, end, events, board_event, board_entry, predicates, cost, lacks):
    """The same for prefix code, read backwards with a stack of costs."""
    top = np.int64(0)
    for k in range(end - 1, begin - 1, -1):
        token = code[k]
        if token >= 0:
            is_missing = _is_missing(events, board_event, board_entry, predicates, token)
            cost[top], lacks[top] = np.int32(1 if is_missing else 0), token
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
def lacking_one(
    expressions, predicates, conjunctions, trees, events, board, scratch, out_slot, out_pred
):
    """Write slots that lack exactly one predicate, and that predicate; returns how many.

    board    int64[2, attributes], the first row -1
    scratch  int32[2, longest code]
    """
    board_event, board_entry = board[0], board[1]
    post_event(events, 0, np.int64(0), Board(board_event, board_entry))
    n = np.int64(0)
    for slot in conjunctions:
        begin = expressions.start[slot]
        pred = _one_of_conjunction(
            expressions.code, begin, begin + expressions.size[slot],
            events, board_event, board_entry, predicates,
        )  # fmt: skip
        if pred >= 0:
            out_slot[n], out_pred[n] = slot, pred
            n += 1
    for slot in trees:
        begin = expressions.start[slot]
        pred = _one_of_tree(
            expressions.code, begin, begin + expressions.size[slot],
            events, board_event, board_entry, predicates, scratch[0], scratch[1],
        )  # fmt: skip
        if pred >= 0:
            out_slot[n], out_pred[n] = slot, pred
            n += 1
    return n
