"""Kernels that list the members of every space, and find equal subscriptions."""

from __future__ import annotations

import numpy as np

from matchwood.index.pst.ahead import AHEAD, ask_for, look_ahead
from matchwood.index.pst.spaces import is_whole, next_places
from matchwood.kernel.jit import kernel, part, prefetch


@kernel
def hash_expressions(expressions, slots, hashes):
    """A number for each conjunction that equal ones share."""
    for i in range(len(slots)):
        begin = expressions.start[slots[i]]
        found = np.uint64(expressions.size[slots[i]])
        for k in range(begin, begin + expressions.size[slots[i]]):
            found ^= np.uint64(expressions.code[k]) + np.uint64(0x9E3779B9)
            found = (found << np.uint64(27)) | (found >> np.uint64(37))
            low, high = found & np.uint64(0xFFFFFFFF), found >> np.uint64(32)
            found = low * np.uint64(0xC2B2AE35) ^ high * np.uint64(0x85EBCA6B)
        hashes[i] = np.int64(found >> np.uint64(1))


@part
def _are_equal(expressions, one, other):
    n = expressions.size[one]
    if expressions.size[other] != n:
        return False
    first, second = expressions.start[one], expressions.start[other]
    for k in range(n):
        if expressions.code[first + k] != expressions.code[second + k]:
            return False
    return True


@part
def _cell_of(found, mask):
    """Where a hash is looked for first: by all of its bits."""
    low, high = np.uint64(found) & np.uint64(0xFFFFFFFF), np.uint64(found) >> np.uint64(32)
    mixed = low * np.uint64(0x9E3779B1) ^ high * np.uint64(0x85EBCA77)
    return (mixed >> np.uint64(24)) & mask


@kernel
def find_equal(expressions, slots, hashes, table, first_of):
    """first_of[i]: the position of the first slot that is equal to slots[i], i for itself.

    table  int32[2^k], -1 everywhere, at least twice as many as slots: gets these positions
    """
    mask, last = np.uint64(len(table) - 1), len(slots) - 1
    for i in range(len(slots)):
        prefetch(table, _cell_of(hashes[min(i + AHEAD, last)], mask))
        at = _cell_of(hashes[i], mask)
        first_of[i] = i
        while table[at] >= 0:
            other = np.int64(table[at])
            if hashes[other] == hashes[i] and _are_equal(expressions, slots[other], slots[i]):
                first_of[i] = other
                break
            at = (at + np.uint64(1)) & mask
        if first_of[i] == i:
            table[at] = i


@kernel
def find_shapes(expressions, predicates, slots, skipped, shape):
    """A number for the sets and the intervals of each slot.

    Members of one shape lie side by side, so that branches of tests are guessed right.
    """
    for i in range(len(slots)):
        look_ahead(expressions, predicates, slots, i)
        n_sets = n_intervals = np.int64(0)
        begin = expressions.start[slots[i]]
        for k in range(begin, begin + expressions.size[slots[i]]):
            pred = expressions.code[k]
            if pred != skipped[i]:
                is_set = np.int64(predicates.n_intervals[pred] > 1)
                n_sets += is_set
                n_intervals += 1 - is_set
        shape[i] = min(n_sets, 63) << 6 | min(n_intervals, 63)


@part
def _dimension(predicates, access):
    if access < 0:
        return 2 * np.int64(predicates.attr[~access]) + 1, np.int64(~access)
    return 2 * np.int64(predicates.attr[access]), np.int64(access)


@part
def _look_ahead(predicates, access, m):
    """Ask for what the access predicate of member m is."""
    pred = np.int64(access[m])
    ask_for(predicates, ~pred if pred < 0 else pred)


@kernel
def count_members(spaces, dim_start, predicates, access, skipped, n_members):
    """Members of every space; `skipped` gets access predicates that reaching a space proves."""
    for m in range(len(access)):
        _look_ahead(predicates, access, min(m + AHEAD, len(access) - 1))
        dim, pred = _dimension(predicates, access[m])
        skipped[m] = pred if is_whole(spaces, dim, predicates, pred) else -1
        shift = dim_start[dim] - spaces.start[dim]
        last = np.int64(-1)
        for i in range(predicates.n_intervals[pred]):
            first, last = next_places(spaces, dim, predicates, pred, i, last)
            for position in range(first, last + 1):
                n_members[position + shift] += 1


@kernel
def list_members(spaces, dim_start, predicates, access, order, end, member):
    """Write the members of every space in `order`; end[i] moves from its start to its end."""
    for i in range(len(order)):
        m = order[i]
        prefetch(access, order[min(i + 2 * AHEAD, len(order) - 1)])
        _look_ahead(predicates, access, order[min(i + AHEAD, len(order) - 1)])
        dim, pred = _dimension(predicates, access[m])
        shift = dim_start[dim] - spaces.start[dim]
        last = np.int64(-1)
        for k in range(predicates.n_intervals[pred]):
            first, last = next_places(spaces, dim, predicates, pred, k, last)
            for position in range(first, last + 1):
                member[end[position + shift]] = m
                end[position + shift] += 1
