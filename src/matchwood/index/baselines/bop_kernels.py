"""Kernels of `bop`: how many predicates an expression needs, count them, evaluate the code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.index.stabbing.predicate_kernels import stab_event
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

MOST = 255
"""Needs are bytes; what needs more is a candidate from here on."""


class Counting(NamedTuple):
    """Scratch of one matcher."""

    stamp: np.ndarray  # int64[slots]: the event that last touched an expression
    count: np.ndarray  # int32[slots]: its satisfied predicates, for that event
    candidate: np.ndarray  # int32[slots]
    truth: np.ndarray  # int64[predicates]: the event that last satisfied one
    stack: np.ndarray  # int64[longest code, 2]: operands left, value so far
    clock: np.ndarray  # int64[1]


@kernel
def encode_bop(expressions, slots, words, word_start, last_seen, clock, stack):
    """The words of expressions: predicates needed, then the prefix code.

    A leaf needs 1, AND the sum of its operands, OR the least of them.  A predicate that occurs
    twice is counted once, so then 1 is all that is sure to be needed.
    """
    for i in range(len(slots)):
        slot = slots[i]
        clock += 1
        begin, n = expressions.start[slot], expressions.size[slot]
        at = word_start[i]
        is_repeated = False
        top = np.int64(0)
        if expressions.kind[slot] == CONJUNCTION and n > 1:
            words[at + 1] = -2 * n - 1
            at += 1
        for k in range(n):
            token = expressions.code[begin + k]
            words[at + 1 + k] = token
            if token >= 0:
                is_repeated = is_repeated or last_seen[token] == clock
                last_seen[token] = clock
        for k in range(n - 1, -1, -1):
            token = expressions.code[begin + k]
            need = np.int64(1)
            if token < 0:
                need = np.int64(0 if token_is_and(token) else 2**31)
                for _ in range(token_operands(token)):
                    top -= 1
                    need = need + stack[top, 0] if token_is_and(token) else min(need, stack[top, 0])
            stack[top, 0] = need
            top += 1
        need = np.int64(0)
        for k in range(top):
            need += stack[k, 0]
        words[word_start[i]] = np.int64(1) if is_repeated else min(need, np.int64(MOST))
    return clock


@part
def _evaluate(code, at, truth, now, stack):
    """Evaluate a prefix code: operators are left as soon as they are decided, tokens are not."""
    top, skipped = np.int64(0), np.int64(0)
    while True:
        token = code[at]
        at += 1
        if token < 0:
            n = np.int64(token_operands(token))
            if skipped > 0:
                skipped += n - 1
                if skipped > 0:
                    continue
            else:
                stack[top, 0] = 2 * n + np.int64(token_is_and(token))
                top += 1
                continue
        elif skipped > 0:
            skipped -= 1
            if skipped > 0:
                continue
        else:
            stack[top, 1] = np.int64(truth[token] == now)
            if top == 0:
                return stack[top, 1] == 1
            stack[top - 1, 1] = stack[top, 1]
            stack[top - 1, 0] -= 2
        # an operand of the operator on top has its value, or the rest of it was skipped
        while top > 0:
            left, is_and = stack[top - 1, 0] >> 1, stack[top - 1, 0] & 1
            value = stack[top - 1, 1]
            if left > 0 and value == is_and:
                break  # not decided: the next operand
            if left > 0:
                skipped = left
                stack[top - 1, 0] = is_and
                break
            top -= 1
            if top == 0:
                return value == 1
            stack[top - 1, 1] = value
            stack[top - 1, 0] -= 2


@part
def _count(posts, words, found, n_found, counting, now):
    """Count satisfied predicates by expression; returns the candidates and the postings read."""
    n, n_read = np.int64(0), np.int64(0)
    for f in range(n_found):
        pred = found[f]
        counting.truth[pred] = now
        start, end = posts.start[pred], posts.start[pred + 1]
        n_read += end - start
        for i in range(start, end):
            slot = posts.item[i]
            if counting.stamp[slot] != now:
                counting.stamp[slot] = now
                counting.count[slot] = words.item[words.start[slot]]
            counting.count[slot] -= 1
            counting.candidate[n] = slot
            n += np.int64(counting.count[slot] == 0)
    return n, n_read


@kernel
def match_bop(posts, words, counting, finder, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out = batch.events, output.offsets, output.out
    for e in range(batch.first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(finder, events, e, batch.stamp + e, batch.board)
        counting.clock[0] += 1
        now = counting.clock[0]
        n_candidates, n_read = _count(posts, words, finder.scratch.found, n_found, counting, now)
        n = offsets[e]
        if n + n_candidates > len(out):
            return e
        for i in range(n_candidates):
            slot = counting.candidate[i]
            out[n] = slot
            n += np.int64(
                _evaluate(words.item, words.start[slot] + 1, counting.truth, now, counting.stack)
            )
        finish_event(e, n, n_nodes + n_read, n_candidates, n_found + n_tested, output)
    return len(events.start) - 1
