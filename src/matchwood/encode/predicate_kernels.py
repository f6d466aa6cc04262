"""The predicate table's kernels: find or make the one predicate of an (attribute, key set)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part

HIGH, FREE, N_INTERVALS, GARBAGE, SEED = range(5)
"""Positions in `count`: ids ever handed out, ids in the free list, arena used, arena wasted, and
what the hash begins with."""


class PredicateLayout(NamedTuple):
    """See `predicates.py` for the table of arrays."""

    attr: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    n_intervals: np.ndarray
    interval_start: np.ndarray
    refs: np.ndarray
    interval_lo: np.ndarray
    interval_hi: np.ndarray
    table: np.ndarray
    free: np.ndarray
    count: np.ndarray


@part
def _mix(h, value):
    """One round of splitmix64: cheap, and every bit of the input reaches every bit of the hash."""
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    return h ^ (h >> np.uint64(29))


@part
def hash_set(p, attr, lo, hi, start, n):
    """The hash of a key set: another one in each table, so that no list of predicates is bad."""
    h = _mix(np.uint64(p.count[SEED]) ^ np.uint64(n), attr)
    for i in range(start, start + n):
        h = _mix(_mix(h, lo[i]), hi[i])
    return h


@part
def _equals(p, pred, attr, lo, hi, start, n):
    if p.attr[pred] != attr or p.n_intervals[pred] != n:
        return False
    if n == 1:
        return p.lo[pred] == lo[start] and p.hi[pred] == hi[start]
    mine = p.interval_start[pred]
    for i in range(n):
        if p.interval_lo[mine + i] != lo[start + i] or p.interval_hi[mine + i] != hi[start + i]:
            return False
    return True


@part
def has_room(p, n_predicates, n_intervals):
    """Whether that many new predicates and intervals surely fit."""
    live = p.count[HIGH] - p.count[FREE] + n_predicates
    return (
        p.count[HIGH] + n_predicates <= len(p.attr)
        and 2 * live <= len(p.table)
        and p.count[N_INTERVALS] + n_intervals <= len(p.interval_lo)
    )


@part
def intern(p, attr, lo, hi, start, n):
    """The id of a predicate, one more reference on it; needs room for one predicate."""
    mask = np.uint64(len(p.table) - 1)
    at = hash_set(p, attr, lo, hi, start, n) & mask
    while p.table[at] >= 0:
        if _equals(p, p.table[at], attr, lo, hi, start, n):
            p.refs[p.table[at]] += 1
            return p.table[at]
        at = (at + np.uint64(1)) & mask
    if p.count[FREE] > 0:
        p.count[FREE] -= 1
        pred = p.free[p.count[FREE]]
    else:
        pred = np.int32(p.count[HIGH])
        p.count[HIGH] += 1
    p.table[at] = pred
    p.attr[pred] = attr
    p.lo[pred], p.hi[pred] = lo[start], hi[start + n - 1]
    p.n_intervals[pred] = n
    p.interval_start[pred] = p.count[N_INTERVALS]
    p.refs[pred] = 1
    if n > 1:
        for i in range(n):
            p.interval_lo[p.count[N_INTERVALS] + i] = lo[start + i]
            p.interval_hi[p.count[N_INTERVALS] + i] = hi[start + i]
        p.count[N_INTERVALS] += n
    return pred


@part
def _hash_of(p, pred):
    if p.n_intervals[pred] == 1:
        return hash_set(p, p.attr[pred], p.lo, p.hi, pred, 1)
    return hash_set(
        p, p.attr[pred], p.interval_lo, p.interval_hi, p.interval_start[pred], p.n_intervals[pred]
    )


@part
def release(p, pred):
    """Drop one reference; the last one frees the id and takes it out of the hash table."""
    p.refs[pred] -= 1
    if p.refs[pred] > 0:
        return
    mask = np.uint64(len(p.table) - 1)
    at = _hash_of(p, pred) & mask
    while p.table[at] != pred:
        at = (at + np.uint64(1)) & mask
    # Close the hole by moving later entries of the same run back: no tombstones to skip.
    hole, nearby = at, (at + np.uint64(1)) & mask
    while p.table[nearby] >= 0:
        home = _hash_of(p, p.table[nearby]) & mask
        if ((nearby - home) & mask) >= ((nearby - hole) & mask):
            p.table[hole] = p.table[nearby]
            hole = nearby
        nearby = (nearby + np.uint64(1)) & mask
    p.table[hole] = -1
    if p.n_intervals[pred] > 1:
        p.count[GARBAGE] += p.n_intervals[pred]
    p.attr[pred] = -1
    p.free[p.count[FREE]] = pred
    p.count[FREE] += 1


@kernel
def rehash(p):
    """Fill an emptied hash table again from the predicates in use."""
    mask = np.uint64(len(p.table) - 1)
    for pred in range(p.count[HIGH]):
        if p.attr[pred] >= 0:
            at = _hash_of(p, pred) & mask
            while p.table[at] >= 0:
                at = (at + np.uint64(1)) & mask
            p.table[at] = pred
