"""Sets of keys as sorted, disjoint, closed intervals that never touch: the algebra behind merging.

    lo  [ -9   2   7 ]        the set {-9..-4, 2, 7..MAX}: hi[i] + 1 < lo[i + 1]
    hi  [ -4   2  MAX]

Because neighbours are joined, equal sets are equal arrays; that is what interning relies on.
Only two operations are written; the rest follows:

    a OR b   =  sort all intervals, join what overlaps or touches
    a AND b  =  NOT (NOT a OR NOT b)

so merging k predicates costs one sort, however many there are.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part

MIN_KEY = np.int64(-(2**63))
MAX_KEY = np.int64(2**63 - 1)


@part
def sort_intervals(lo, hi, start, n):
    """Shell sort by lower end: sets are small, and it needs no memory."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, start + n):
            key, value = lo[i], hi[i]
            j = i - gap
            while j >= start and lo[j] > key:
                lo[j + gap] = lo[j]
                hi[j + gap] = hi[j]
                j -= gap
            lo[j + gap] = key
            hi[j + gap] = value
        gap //= 3


@part
def unite(lo, hi, start, n):
    """Turn n intervals in any order into a set, in place; returns how many remain."""
    if n < 2:
        return n
    sort_intervals(lo, hi, start, n)
    last = start
    for i in range(start + 1, start + n):
        # hi + 1 would overflow at MAX_KEY, so compare the other way round.
        if lo[i] <= hi[last] or lo[i] - 1 == hi[last]:
            if hi[i] > hi[last]:
                hi[last] = hi[i]
        else:
            last += 1
            lo[last], hi[last] = lo[i], hi[i]
    return last - start + 1


@part
def complement(lo, hi, start, n, to):
    """Write every key outside a set to position `to`; returns how many intervals: n + 1 at most."""
    written = 0
    free_from = MIN_KEY
    for i in range(start, start + n):
        if lo[i] > free_from:
            lo[to + written], hi[to + written] = free_from, lo[i] - 1
            written += 1
        if hi[i] == MAX_KEY:
            return written
        free_from = hi[i] + 1
    lo[to + written], hi[to + written] = free_from, MAX_KEY
    return written + 1


@part
def first_reaching(hi, start, n, key):
    """Position of the first interval that ends at or after a key; start + n when there is none."""
    low, high = start, start + n
    while low < high:
        middle = (low + high) // 2
        if hi[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@part
def in_set(interval_lo, interval_hi, start, n, lo, hi):
    """Whether the set of n intervals at `start` shares a key with lo..hi."""
    i = first_reaching(interval_hi, start, n, lo)
    return i < start + n and interval_lo[i] <= hi
