"""Kernels that list the members of every space, and find equal subscriptions."""

from __future__ import annotations

import numpy as np

from matchwood.index.pst.ahead import look_ahead
from matchwood.index.pst.spaces import is_whole, next_places
from matchwood.kernel.jit import kernel, part


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


@kernel
def find_equal(expressions, slots, order, hashes, first_of):
    """first_of[i]: the position of the first slot that is equal to slots[i], i for itself.

    `order` sorts the hashes, keeping positions of equal ones ascending.
    """
    begin = np.int64(0)
    for i in range(len(order)):
        at = order[i]
        if hashes[at] != hashes[order[begin]]:
            begin = i
        first_of[at] = at
        for k in range(begin, i):  # all but always one: others have the same hash by accident
            if first_of[order[k]] != order[k]:
                continue
            if _are_equal(expressions, slots[order[k]], slots[at]):
                first_of[at] = order[k]
                break


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


@kernel
def count_members(spaces, dim_start, predicates, access, skipped, n_members):
    """Members of every space; `skipped` gets access predicates that reaching a space proves."""
    for m in range(len(access)):
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
    for m in order:
        dim, pred = _dimension(predicates, access[m])
        shift = dim_start[dim] - spaces.start[dim]
        last = np.int64(-1)
        for i in range(predicates.n_intervals[pred]):
            first, last = next_places(spaces, dim, predicates, pred, i, last)
            for position in range(first, last + 1):
                member[end[position + shift]] = m
                end[position + shift] += 1
