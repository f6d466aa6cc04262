"""The predicate table's kernels: find or make the one predicate of an (attribute, key set)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_table_kernels import (
    EMPTY,
    cell_of_id,
    first_cell,
    moved_back,
    next_cell,
    put_id,
)
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
    at = first_cell(p.table, hash_set(p, attr, lo, hi, start, n))
    while p.table[at] != EMPTY:
        if _equals(p, p.table[at], attr, lo, hi, start, n):
            p.refs[p.table[at]] += 1
            return p.table[at]
        at = next_cell(p.table, at)
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
    hole = cell_of_id(p.table, _hash_of(p, pred), pred)
    nearby = next_cell(p.table, hole)
    while p.table[nearby] != EMPTY:
        hole = moved_back(p.table, hole, nearby, _hash_of(p, p.table[nearby]))
        nearby = next_cell(p.table, nearby)
    p.table[hole] = EMPTY
    if p.n_intervals[pred] > 1:
        p.count[GARBAGE] += p.n_intervals[pred]
    p.attr[pred] = -1
    p.free[p.count[FREE]] = pred
    p.count[FREE] += 1


@kernel
def rehash(p):
    """Fill an emptied hash table again from the predicates in use."""
    for pred in range(p.count[HIGH]):
        if p.attr[pred] >= 0:
            put_id(p.table, _hash_of(p, pred), pred)
