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
from matchwood.kernel.sort_kernels import first_not_below, sort_rows

MIN_KEY = np.int64(-(2**63))
MAX_KEY = np.int64(2**63 - 1)


@part
def unite(lo, hi, start, n):
    """Turn n intervals in any order into a set, in place; returns how many remain."""
    if n < 2:
        return n
    sort_rows(lo, hi, start, start + n)
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
def in_set(interval_lo, interval_hi, start, n, lo, hi):
    """Whether the set of n intervals at `start` shares a key with lo..hi."""
    i = first_not_below(interval_hi, start, start + n, lo)
    return i < start + n and interval_lo[i] <= hi
