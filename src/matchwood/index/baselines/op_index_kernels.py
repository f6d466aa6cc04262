"""Kernels of `op_index`: predicates as entries of operator lists, and counting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.core.hit_kernels import all_hold
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import ABSENT, find_pair, pair
from matchwood.kernel.sort_kernels import first_not_below
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    NODES,
    PREDICATES,
    Posted,
    finish_event,
    meets,
    post_event,
)

EQ, GE, LE, OTHER = range(4)
N_OPS = 4


class OpLists(NamedTuple):
    """See `op_index.py` for the arrays."""

    start: np.ndarray
    key: np.ndarray
    slot: np.ndarray
    pivot: np.ndarray
    need: np.ndarray
    group_start: np.ndarray
    group_slot: np.ndarray


class Counts(NamedTuple):
    """Scratch: one per matcher."""

    count: np.ndarray  # int32[S], satisfied entries in the event of `seen`
    seen: np.ndarray  # int64[S]
    clock: np.ndarray  # int64[1]


@part
def _is_points(predicates, pred):
    if predicates.n_intervals[pred] == 1:
        return predicates.lo[pred] == predicates.hi[pred]
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        if lo != hi:
            return False
    return True


@part
def _put(group, attr, op, key, slot, entries, at):
    entries[at, 0] = pair(group, attr)
    entries[at, 1], entries[at, 2], entries[at, 3] = op, key, slot
    return at + 1


@kernel
def write_entries(expressions, predicates, slots, uses, pivot, need, entries):
    """The entries of all slots; with no room in `entries`, only their number."""
    n = np.int64(0)
    for slot in slots:
        begin, size = expressions.start[slot], np.int64(expressions.size[slot])
        best = np.int64(predicates.attr[expressions.code[begin]])
        for k in range(begin, begin + size):
            attr = np.int64(predicates.attr[expressions.code[k]])
            if uses[attr] < uses[best]:
                best = attr
        wanted = np.int64(0)
        for k in range(begin, begin + size):
            pred = expressions.code[k]
            attr, lo, hi = np.int64(predicates.attr[pred]), predicates.lo[pred], predicates.hi[pred]
            if _is_points(predicates, pred):
                wanted += 1
                for i in range(predicates.n_intervals[pred]):
                    point, _ = interval(predicates, pred, i)
                    if len(entries) > 0:
                        _put(best, attr, EQ, point, slot, entries, n)
                    n += 1
                continue
            if predicates.n_intervals[pred] > 1 or (lo == MIN_KEY and hi == MAX_KEY):
                wanted += 1
                if len(entries) > 0:
                    _put(best, attr, OTHER, np.int64(pred), slot, entries, n)
                n += 1
                continue
            if lo != MIN_KEY:
                wanted += 1
                if len(entries) > 0:
                    _put(best, attr, GE, lo, slot, entries, n)
                n += 1
            if hi != MAX_KEY:
                wanted += 1
                if len(entries) > 0:
                    _put(best, attr, LE, hi, slot, entries, n)
                n += 1
        pivot[slot], need[slot] = best, wanted
    return n


@part
def _count(lists, counts, first, last, n, output):
    """Count the entries first .. last - 1; returns the end of `out`, or -1 when it is full."""
    now, out, counters = counts.clock[0], output.out, output.counters
    for i in range(first, last):
        slot = lists.slot[i]
        if counts.seen[slot] != now:
            counts.seen[slot] = now
            counts.count[slot] = 0
            counters[CANDIDATES] += 1
        counts.count[slot] += 1
        if counts.count[slot] == lists.need[slot]:
            if n == len(out):
                return np.int64(-1)
            out[n] = slot
            n += 1
    counters[PREDICATES] += last - first
    return n


@part
def _count_block(lists, counts, predicates, block, x, n, output):
    """What a key satisfies in the four lists of a block."""
    b, counters = N_OPS * block, output.counters
    counters[NODES] += 1
    first = first_not_below(lists.key, lists.start[b + EQ], lists.start[b + EQ + 1], x)
    last = first
    while last < lists.start[b + EQ + 1] and lists.key[last] == x:
        last += 1
    n = _count(lists, counts, first, last, n, output)
    if n >= 0:
        begin, end = lists.start[b + GE], lists.start[b + GE + 1]
        last = end if x == MAX_KEY else first_not_below(lists.key, begin, end, x + 1)
        n = _count(lists, counts, begin, last, n, output)
    if n >= 0:
        begin, end = lists.start[b + LE], lists.start[b + LE + 1]
        first = first_not_below(lists.key, begin, end, x)
        n = _count(lists, counts, first, end, n, output)
    if n >= 0:
        for i in range(lists.start[b + OTHER], lists.start[b + OTHER + 1]):
            counters[PREDICATES] += 1
            if meets(predicates, lists.key[i], x, x):
                counters[PREDICATES] -= 1
                n = _count(lists, counts, i, i + 1, n, output)
                if n < 0:
                    break
    return n


@part
def _match_values(lists, pairs, counts, predicates, events, e, n, output):
    """An event of values: count in the blocks of every pair of its attributes."""
    first, last = events.start[e], events.start[e + 1]
    for g in range(first, last):
        group = np.int64(events.attr[g])
        if group + 1 >= len(lists.group_start):
            continue
        if lists.group_start[group] == lists.group_start[group + 1]:
            continue
        for i in range(first, last):
            block = find_pair(pairs, pair(group, events.attr[i]))
            if block != ABSENT:
                n = _count_block(lists, counts, predicates, block, events.lo[i], n, output)
                if n < 0:
                    return n
    return n


@part
def _match_sets(lists, expressions, event, e, n, output):
    """An event of sets: counting ends apart would not do, so every expression is verified."""
    events, out, counters = event.events, output.out, output.counters
    for g in range(events.start[e], events.start[e + 1]):
        group = np.int64(events.attr[g])
        if group + 1 >= len(lists.group_start):
            continue
        for i in range(lists.group_start[group], lists.group_start[group + 1]):
            slot = lists.group_slot[i]
            counters[CANDIDATES] += 1
            if all_hold(slot, expressions, event, counters):
                if n == len(out):
                    return np.int64(-1)
                out[n] = slot
                n += 1
    return n


@kernel
def match_lists(lists, pairs, counts, expressions, predicates, is_plain, batch, output):
    """Match events first..; returns how many are done."""
    events, stamp, counters = batch.events, batch.stamp, output.counters
    n = output.offsets[batch.first]
    for e in range(batch.first, len(events.start) - 1):
        nodes, tried, tested = counters[NODES], counters[CANDIDATES], counters[PREDICATES]
        counts.clock[0] += 1
        if is_plain:
            n = _match_values(lists, pairs, counts, predicates, events, e, n, output)
        else:
            post_event(events, e, stamp + e, batch.board)
            event = Posted(events, stamp + e, batch.board, predicates)
            n = _match_sets(lists, expressions, event, e, n, output)
        if n < 0:
            counters[NODES], counters[CANDIDATES], counters[PREDICATES] = nodes, tried, tested
            return e
        finish_event(e, n, 0, 0, 0, output)
    return len(events.start) - 1
