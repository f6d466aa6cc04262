"""Kernels that find equal events of a batch, and give each what one of them has found."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part


@part
def _hash(events, e, seed):
    found = np.uint64(seed) ^ np.uint64(events.start[e + 1] - events.start[e])
    for k in range(events.start[e], events.start[e + 1]):
        found ^= np.uint64(events.lo[k]) + (np.uint64(events.attr[k]) << np.uint64(40))
        found *= np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found ^ (found >> np.uint64(32))


@part
def _are_equal(events, e, other):
    first, second = events.start[e], events.start[other]
    n = events.start[e + 1] - first
    if events.start[other + 1] - second != n:
        return False
    for k in range(n):
        if events.attr[first + k] != events.attr[second + k]:
            return False
        if events.lo[first + k] != events.lo[second + k]:
            return False
    return True


@kernel
def find_equal_events(events, rows, seed, table, number, first):
    """Number distinct events of values in the order they appear; returns how many there are.

    rows    int32[n], the events to look at
    seed    what hashes begin with
    table   int32[2^k], -1 everywhere, more than twice as many as there are events
    number  int32[n], gets the number of each event
    first   int32[n], gets the first event of each number
    """
    mask, n = np.uint64(len(table) - 1), np.int64(0)
    for i in range(len(rows)):
        e = rows[i]
        at = _hash(events, e, seed) & mask
        while table[at] >= 0 and not _are_equal(events, e, first[table[at]]):
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            table[at] = n
            first[n] = e
            n += 1
        number[i] = table[at]
    return n


@kernel
def repeat_hits(offsets, slots, number, all_offsets, all_slots):
    """Write the slots of each event, `all_offsets` being known: those of its number."""
    for e in range(len(number)):
        at, first = all_offsets[e], offsets[number[e]]
        for k in range(all_offsets[e + 1] - at):
            all_slots[at + k] = slots[first + k]
