"""Kernels of `counting`: count satisfied predicates by expression."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.predicate_kernels import stab_event
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

LEFT, NEED = range(2)
"""Columns of a counter: base + predicates still to be seen, predicates of the expression."""


@part
def _next_base(counter, clock, width, limit):
    """A base above all counters; they are set back only when they come to their limit."""
    if clock[0] + 2 * width > limit:
        for slot in range(len(counter)):
            counter[slot, LEFT] = 0
        clock[0] = 0
    clock[0] += width
    return np.int32(clock[0])


@part
def _open(posts, found, n_found, opened):
    """Where the posting lists of satisfied predicates begin and end.

    Apart from the counting, so that the memory of many lists is on its way at once.
    """
    for f in range(n_found):
        opened[f, 0] = posts.start[found[f]]
        opened[f, 1] = posts.start[found[f] + 1]


@part
def _count(posts, opened, n_found, counter, base, out, n):
    """Count along opened posting lists; returns the end of `out` (-1: full) and candidates.

    The loop has no branch that waits for a counter: an expression is written to `out` each time it
    is counted, and stays there only if nothing is left to be seen.
    """
    n_candidates = np.int64(0)
    for f in range(n_found):
        start, end = opened[f, 0], opened[f, 1]
        if n + end - start > len(out):
            return np.int64(-1), n_candidates
        for i in range(start, end):
            slot = posts.item[i]
            left = np.int32(counter[slot, LEFT]) - np.int32(1)
            fresh = base + np.int32(counter[slot, NEED]) - np.int32(1)
            is_fresh = left < base  # this event has not touched it
            left = fresh if is_fresh else left
            n_candidates += np.int64(is_fresh)
            counter[slot, LEFT] = left
            out[n] = slot
            n += np.int64(left == base)
    return n, n_candidates


@kernel
def count_batch(posts, counts, width, limit, finder, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out = batch.events, output.offsets, output.out
    for e in range(batch.first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(finder, events, e, batch.stamp + e, batch.board)
        base = _next_base(counts.counter, counts.clock, width, limit)
        _open(posts, finder.scratch.found, n_found, counts.opened)
        n, n_candidates = _count(
            posts, counts.opened, n_found, counts.counter, base, out, offsets[e]
        )
        if n < 0:
            return e
        finish_event(e, n, n_nodes + n_found, n_candidates, n_found + n_tested, output)
    return len(events.start) - 1
