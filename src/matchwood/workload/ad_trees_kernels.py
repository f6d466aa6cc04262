"""Kernels of the ad trees: chains of AND and OR from pools, one pool a level."""

from __future__ import annotations

import numpy as np

from matchwood.encode.merge_kernels import BETWEEN, EQ, IN, NEGATED
from matchwood.kernel.jit import kernel, part
from matchwood.workload.abegen_kernels import (
    ATTRIBUTE,
    CHILD,
    LENGTH,
    MORE,
    SIGN,
    VALUE,
    WIDTH,
    end_leaf,
    write_value,
    zipf,
)
from matchwood.workload.begen_draw_kernels import below, mix, unit

DEPTH, ROOT, KIND = 8, 9, 10
"""More uses of draws, see abegen_kernels."""

LOWEST_MOST, HIGHER_MOST = 14, 6
"""Most predicates of a node on level 2, and of one above beside the node that it holds."""

ROOM = 128
_TRIES = 16


@part
def node_stream(rules, level, rank):
    return mix(rules.pool_key + np.uint64(level) * np.uint64(0xD1342543DE82EF95) + np.uint64(rank))


@part
def n_predicates(stream, level):
    """Predicates of a node, few more often than many."""
    u = unit(stream, 0, LENGTH)
    if level == 2:
        return 2 + np.int64(u * u * (LOWEST_MOST - 1))
    return 1 + np.int64(u * u * HIGHER_MOST)


@part
def inner_child(rules, stream, level, rank):
    """The rank of the node one level down: of the other operator (the last bit of a rank)."""
    below_it = level - 1
    drawn = zipf(unit(stream, 0, CHILD), rules.pool[below_it], rules.exponent)
    return (drawn & ~np.int64(1)) | (1 - (rank & 1))


@part
def root_of(rules, row):
    """The level and the rank of a row's root."""
    stream = mix(rules.row_key + np.uint64(row))
    u, level = unit(stream, 0, DEPTH), np.int64(1)
    while level < 9 and u >= rules.depths[level - 1]:
        level += 1
    rank = zipf(unit(stream, 0, ROOT), rules.pool[level], rules.exponent)
    if level > 1:
        is_or = np.int64(unit(stream, 0, KIND) < rules.or_roots)
        rank = (rank & ~np.int64(1)) | is_or
    return level, rank


@part
def predicate_rank(rules, stream, i, attempt):
    u = unit(mix(stream + np.uint64(attempt)), i, CHILD + 1)
    return zipf(u, rules.pool[1], rules.exponent)


@part
def attribute_of(rules, rank):
    """The attribute of a predicate; one with few values has popular predicates only.

    Otherwise most of the pool would be the same few predicates over and over again.
    """
    if rank < rules.n_attributes:
        return rank  # the most popular ones: every attribute has a predicate
    stream = node_stream(rules, 1, rank)
    attr = np.int64(0)
    for attempt in range(_TRIES):
        u = unit(stream, attempt, ATTRIBUTE)
        attr = zipf(u, rules.n_attributes, rules.attribute_exponent)
        if rules.cardinality[attr] ** 2 > rank:
            break
    return attr


@part
def _write_predicate(rules, rank, room):
    stream = node_stream(rules, 1, rank)
    attr = attribute_of(rules, rank)
    c = rules.cardinality[attr]
    u, value = unit(stream, 0, SIGN), below(stream, 0, VALUE, c)
    op = EQ
    if c > 2 and u >= 0.4:
        op = IN if u < 0.75 else BETWEEN if u < 0.95 else IN | NEGATED
    if op == BETWEEN:
        high = min(c - 1, value + below(stream, 0, WIDTH, max(2, c // 8)))
        write_value(room, value)
        write_value(room, high)
    elif op == EQ:
        write_value(room, value)
    else:
        for i in range(2 + below(stream, 0, LENGTH, 5)):
            write_value(room, below(stream, i, MORE, c))
    end_leaf(room, attr, op)


@part
def choose(rules, stream, n, chosen):
    """Ranks of up to n predicates on different attributes; returns how many."""
    n_chosen = np.int64(0)
    for i in range(n):
        for attempt in range(_TRIES):
            rank = predicate_rank(rules, stream, i, attempt)
            attr, is_new = attribute_of(rules, rank), True
            for k in range(n_chosen):
                is_new = is_new and chosen[k, 1] != attr
            if is_new:
                chosen[n_chosen, 0], chosen[n_chosen, 1] = rank, attr
                n_chosen += 1
                break
    return n_chosen


@kernel
def write_ad_trees(rules, first, last, done, chosen, room):
    """Rows first + done .. last - 1 to `room`; returns how many are done (fewer: no room)."""
    for row in range(first + done, last):
        if room.used[0] + ROOM > len(room.code) or room.used[2] + 7 * ROOM > len(room.values):
            return row - first
        level, rank = root_of(rules, row)
        while level > 1:
            stream = node_stream(rules, level, rank)
            n = choose(rules, stream, n_predicates(stream, level), chosen)
            operands = n + (1 if level > 2 else 0)
            room.code[room.used[0]] = -2 * operands - 1 - (rank & 1)
            room.used[0] += 1
            for i in range(n):
                _write_predicate(rules, chosen[i, 0], room)
            if level == 2:
                break
            rank = inner_child(rules, stream, level, rank)
            level -= 1
        if level == 1:
            _write_predicate(rules, rank, room)
        room.code_start[row - first + 1] = room.used[0]
    return last - first


@kernel
def count_sharing(rules, n_rows, seen, chosen, total, distinct):
    """Subexpressions and different ones by level, for rows 0 .. n_rows - 1.

    A node that was seen already counts with all that is below it, without being new.
    """
    for row in range(n_rows):
        level, rank = root_of(rules, row)
        while level > 1:
            total[level] += 1
            is_new = not seen[level, rank]
            seen[level, rank] = True
            distinct[level] += is_new
            stream = node_stream(rules, level, rank)
            n = choose(rules, stream, n_predicates(stream, level), chosen)
            total[1] += n
            for i in range(n):
                distinct[1] += not seen[1, chosen[i, 0]]
                seen[1, chosen[i, 0]] = True
            rank = inner_child(rules, stream, level, rank)
            level -= 1
            if level == 1:
                break
        else:
            total[1] += 1
            distinct[1] += not seen[1, rank]
            seen[1, rank] = True
