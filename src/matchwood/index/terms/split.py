"""Kernels that split expressions into terms: a leaf that gives access, and the rest.

    AND   the operand that is true most seldom gives access; the others are the rest
    OR    every operand gives access

    (a OR b) AND c AND d     terms   a, rest c AND d     b, rest c AND d
    a OR (b AND (c OR d))            a                   b, rest c OR d

The rest of a term is every other operand of the ANDs on its way, written as steps (`words`).  Equal
rests are written once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.index.terms.words import JUMP, LEAF, jump_of
from matchwood.kernel.jit import kernel, part

NO_REST = -1
"""Of a term that is a leaf alone; in the table of rests: no rest is here."""

HOLDS, FAILS = -1, -2
"""Where a step leads that ends the rest."""

N_TERMS, N_RESTS, N_STEPS = range(3)
"""Positions in `Target.count`."""

GROWTH, SPARE = 4, 64
"""Steps that the rests of an expression may have: for each token GROWTH, and SPARE.  Where that is
not enough all further terms have the whole expression as their rest."""

MOST_TRIED = 32
"""Places of the table of rests that are looked at; a rest that is not found is written again."""

FEW = 48
"""Operands up to which a rest has the least likely ones first."""


class Source(NamedTuple):
    """What is split."""

    leaf_of: np.ndarray  # int32[P], by predicate
    odds: np.ndarray  # float64[L], by leaf


class Target(NamedTuple):
    """Terms as they are found."""

    leaf: np.ndarray  # int32[]
    slot: np.ndarray  # int32[]
    rest: np.ndarray  # int32[], number of a rest, or NO_REST
    rest_start: np.ndarray  # int64[], the first step of each, and the end of the last
    rest_hash: np.ndarray  # int64[]
    step: np.ndarray  # int32[, 2]
    table: np.ndarray  # int32[2^k], rests by hash
    count: np.ndarray  # int64[3]


class Scratch(NamedTuple):
    """For one expression, by token; longer by one than the longest code."""

    token: np.ndarray  # int32, an operator, or a leaf
    n_tokens: np.ndarray  # int32, of the operand that begins here
    n_leaves: np.ndarray  # int32
    reached: np.ndarray  # float64, how often terms of an operand are reached
    odds: np.ndarray  # float64, how likely it holds
    access: np.ndarray  # int32, of an AND: the operand that gives access
    above: np.ndarray  # int32, of an operand on the way: the AND that it gives access to, or -1
    rest: np.ndarray  # int32, of an AND on the way: the rest of its terms
    stack: np.ndarray  # int32
    operand: np.ndarray  # int32, operands of a rest
    on_true: np.ndarray  # int32, step that follows
    on_false: np.ndarray  # int32
    first: np.ndarray  # int32, first step of an operand


@part
def _read(expressions, slot, source, scratch):
    """Copy the code of an expression; a conjunction gets its AND.  Returns how many tokens."""
    begin, size = expressions.start[slot], np.int64(expressions.size[slot])
    n = np.int64(0)
    if expressions.kind[slot] == CONJUNCTION and size > 1:
        scratch.token[0] = -2 * size - 1
        n = np.int64(1)
    for k in range(begin, begin + size):
        token = expressions.code[k]
        scratch.token[n] = source.leaf_of[token] if token >= 0 else token
        n += 1
    return n


@part
def _weigh(n, source, scratch):
    """For every token: the size of its operand, its odds, and which operand gives access to it."""
    for k in range(n - 1, -1, -1):
        token = scratch.token[k]
        if token >= 0:
            scratch.n_tokens[k], scratch.n_leaves[k] = 1, 1
            scratch.reached[k] = scratch.odds[k] = source.odds[token]
            continue
        is_and = token_is_and(token)
        child, best, leaves = np.int64(k + 1), np.int64(k + 1), np.int64(0)
        reached, odds = 0.0, 1.0
        for _ in range(token_operands(token)):
            if scratch.reached[child] < scratch.reached[best]:
                best = child
            reached += scratch.reached[child]
            odds *= scratch.odds[child] if is_and else 1.0 - scratch.odds[child]
            leaves += scratch.n_leaves[child]
            child += scratch.n_tokens[child]
        scratch.n_tokens[k], scratch.n_leaves[k], scratch.access[k] = child - k, leaves, best
        scratch.reached[k] = scratch.reached[best] if is_and else reached
        scratch.odds[k] = odds if is_and else 1.0 - odds


@part
def _operands_of(v, scratch, most):
    """The other operands of an AND and of those above it; returns how many, and their steps.

    Ends early when there are more than `most` steps.
    """
    n, steps = np.int64(0), np.int64(0)
    while v >= 0 and steps <= most:
        child = v + 1
        for _ in range(token_operands(scratch.token[v])):
            if child != scratch.access[v]:
                scratch.operand[n] = child
                n += 1
                steps += scratch.n_leaves[child]
            child += scratch.n_tokens[child]
        v = np.int64(scratch.above[v])
    return n, steps


@part
def _sort_operands(n, scratch):
    """The least likely first, if there are few."""
    operand, odds = scratch.operand, scratch.odds
    for i in range(1, n if n <= FEW else 0):
        moved, j = operand[i], i - 1
        while j >= 0 and odds[operand[j]] > odds[moved]:
            operand[j + 1] = operand[j]
            j -= 1
        operand[j + 1] = moved


@part
def _write_operand(v, begin, target, scratch):
    """The steps of an operand whose first step, and what follows, are known."""
    on_true, on_false, first = scratch.on_true, scratch.on_false, scratch.first
    for k in range(v, v + scratch.n_tokens[v]):  # an operator comes before its operands
        token, at = scratch.token[k], np.int64(first[k])
        if token >= 0:
            ends = on_true[k] == HOLDS and on_false[k] == FAILS
            sense = np.int64(on_true[k] != at + 1 and not ends)
            follows = np.int64(on_true[k] if sense else on_false[k])
            offset = follows - at if follows >= 0 else np.int64(0)
            target.step[begin + at, LEAF] = token
            target.step[begin + at, JUMP] = jump_of(offset, ends, sense)
            continue
        child, n = np.int64(k + 1), token_operands(token)
        for i in range(n):
            on_true[child], on_false[child], first[child] = on_true[k], on_false[k], at
            at += scratch.n_leaves[child]
            if i + 1 < n:
                if token_is_and(token):
                    on_true[child] = at
                else:
                    on_false[child] = at
            child += scratch.n_tokens[child]


@part
def _hash(step, begin, end):
    found = np.uint64(end - begin)
    for i in range(begin, end):
        found ^= (np.uint64(step[i, LEAF]) << np.uint64(32)) | np.uint64(step[i, JUMP])
        found *= np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return np.int64(found >> np.uint64(1))


@part
def _is_equal(target, rest, begin, end):
    start = target.rest_start[rest]
    if target.rest_start[rest + 1] - start != end - begin:
        return False
    for i in range(end - begin):
        if target.step[start + i, LEAF] != target.step[begin + i, LEAF]:
            return False
        if target.step[start + i, JUMP] != target.step[begin + i, JUMP]:
            return False
    return True


@part
def _keep(target, begin, end):
    """The number of the rest in step[begin:end]: that of an equal one, or a new one."""
    hash_, table = _hash(target.step, begin, end), target.table
    mask = np.int64(len(table) - 1)
    at, tried = hash_ & mask, np.int64(0)
    while table[at] != NO_REST and tried < MOST_TRIED:
        rest = np.int64(table[at])
        if target.rest_hash[rest] == hash_ and _is_equal(target, rest, begin, end):
            return rest
        at = (at + 1) & mask
        tried += 1
    rest = target.count[N_RESTS]
    if table[at] == NO_REST:
        table[at] = rest
    target.rest_hash[rest] = hash_
    target.rest_start[rest + 1] = end
    target.count[N_RESTS] += 1
    target.count[N_STEPS] = end
    return rest


@part
def _write_rest(n, target, scratch):
    """The number of the rest that n operands make."""
    begin = target.count[N_STEPS]
    at = np.int64(0)
    for i in range(n):
        v = np.int64(scratch.operand[i])
        scratch.first[v], scratch.on_false[v] = at, FAILS
        at += scratch.n_leaves[v]
        scratch.on_true[v] = at if i + 1 < n else HOLDS
        _write_operand(v, begin, target, scratch)
    return _keep(target, begin, begin + at)


@part
def _rest_of(v, left, whole, target, scratch):
    """The rest of terms that reach an AND; returns its number, and that of the whole expression.

    left   steps that it may have
    whole  the number of the whole expression as a rest, or NO_REST
    """
    if whole == NO_REST:
        n, steps = _operands_of(v, scratch, left)
        if steps <= left:
            _sort_operands(n, scratch)
            return _write_rest(n, target, scratch), whole
        scratch.operand[0] = 0
        whole = _write_rest(np.int64(1), target, scratch)
    return whole, whole


@part
def _split(slot, n, target, scratch):
    """Write the terms of an expression of n tokens."""
    most = target.count[N_STEPS] + GROWTH * n + SPARE
    whole = np.int64(NO_REST)
    scratch.stack[0], scratch.above[0] = 0, -1
    top = np.int64(1)
    while top > 0:
        top -= 1
        v = np.int64(scratch.stack[top])
        token, above = scratch.token[v], np.int64(scratch.above[v])
        if token >= 0:
            at = target.count[N_TERMS]
            target.leaf[at], target.slot[at] = token, slot
            target.rest[at] = NO_REST if above < 0 else scratch.rest[above]
            target.count[N_TERMS] += 1
        elif token_is_and(token):
            left = most - target.count[N_STEPS]
            scratch.rest[v], whole = _rest_of(v, left, whole, target, scratch)
            access = np.int64(scratch.access[v])
            scratch.above[access] = v
            scratch.stack[top] = access
            top += 1
        else:
            child = v + 1
            for _ in range(token_operands(token)):
                scratch.above[child] = above
                scratch.stack[top] = child
                top += 1
                child += scratch.n_tokens[child]


@kernel
def split_expressions(expressions, slots, first, source, target, scratch):
    """Split expressions first..; returns how many are done (fewer: the target has no room)."""
    for i in range(first, len(slots)):
        size = np.int64(expressions.size[slots[i]]) + 1
        n_rests = target.count[N_RESTS] + size
        if (
            target.count[N_TERMS] + size > len(target.leaf)
            or target.count[N_STEPS] + (GROWTH + 2) * size + SPARE > len(target.step)
            or n_rests >= len(target.rest_hash)
            or 2 * n_rests > len(target.table)
        ):
            return np.int64(i)
        n = _read(expressions, slots[i], source, scratch)
        _weigh(n, source, scratch)
        _split(slots[i], n, target, scratch)
    return np.int64(len(slots))


@kernel
def enter_rests(target):
    """Enter all rests into an empty table."""
    mask = np.int64(len(target.table) - 1)
    for rest in range(target.count[N_RESTS]):
        at, tried = target.rest_hash[rest] & mask, np.int64(0)
        while target.table[at] != NO_REST and tried < MOST_TRIED:
            at = (at + 1) & mask
            tried += 1
        if target.table[at] == NO_REST:
            target.table[at] = rest
