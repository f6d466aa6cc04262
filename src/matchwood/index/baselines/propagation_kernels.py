"""Kernels of `propagation`: choose access predicates, fill clusters, test what hangs on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.predicate_kernels import stab_event
from matchwood.index.stabbing.segment_kernels import has_segments, interval, segment_of
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

MOST_LOOKED_AT = 16
"""A set of more intervals counts as its hull when its odds are estimated."""


class Clusters(NamedTuple):
    """See `propagation.py` for the table of arrays."""

    first: np.ndarray
    access: np.ndarray
    width: np.ndarray
    size: np.ndarray
    start: np.ndarray
    item: np.ndarray


@part
def _odds(attr_uses, segments, predicates, pred):
    """How likely an event satisfies a predicate, if events are like subscriptions.

    The attribute is there as often as subscriptions name it, and every segment is equally likely.
    """
    attr = predicates.attr[pred]
    odds = np.float64(attr_uses[attr])
    if not has_segments(segments, attr):
        return odds
    covered = np.int64(0)
    n = np.int64(predicates.n_intervals[pred])
    if n > MOST_LOOKED_AT:
        lo, hi = predicates.lo[pred], predicates.hi[pred]
        covered = segment_of(segments, attr, hi) - segment_of(segments, attr, lo) + 1
    else:
        for i in range(n):
            lo, hi = interval(predicates, pred, i)
            covered += segment_of(segments, attr, hi) - segment_of(segments, attr, lo) + 1
    return odds * covered / (segments.attr_start[attr + 1] - segments.attr_start[attr])


@kernel
def arrange(attr_uses, segments, expressions, predicates, slots, order, odds):
    """The predicates of each expression: the access predicate, then the others, least likely first.

    The access predicate is the least likely equality, or the least likely of all if there is none.
    Those of slots[i] are written to list i of `order`; `odds` has room for the longest.
    """
    for i in range(len(slots)):
        begin, n = expressions.start[slots[i]], np.int64(expressions.size[slots[i]])
        mine = order.item[order.start[i] : order.start[i] + n]
        for k in range(n):
            pred = expressions.code[begin + k]
            chance = _odds(attr_uses, segments, predicates, pred)
            j = k
            while j > 0 and odds[j - 1] > chance:
                mine[j], odds[j] = mine[j - 1], odds[j - 1]
                j -= 1
            mine[j], odds[j] = pred, chance
        k = np.int64(0)
        while k < n and predicates.lo[mine[k]] != predicates.hi[mine[k]]:
            k += 1
        if k < n:
            access = mine[k]
            for j in range(k, 0, -1):
                mine[j] = mine[j - 1]
            mine[0] = access


@kernel
def fill_rows(clusters, slots, rows, start, order):
    """Write the columns of all clusters; their rows are `rows`, positions in `slots`, in turn."""
    at = np.int64(0)
    for which in range(len(clusters.size)):
        n_rows, width = np.int64(clusters.size[which]), np.int64(clusters.width[which])
        for r in range(n_rows):
            i = rows[at + r]
            cell = clusters.start[which] + r
            for column in range(1, width):
                clusters.item[cell] = order[start[i] + column]
                cell += n_rows
            clusters.item[cell] = slots[i]
        at += n_rows


@part
def _test_cluster(clusters, which, truth, out, n):
    """Emit the rows whose predicates are all true; the end of `out` (-1: full), predicates read."""
    start, n_rows = clusters.start[which], np.int64(clusters.size[which])
    to_slot = (clusters.width[which] - 1) * n_rows
    n_read = np.int64(0)
    if n + n_rows > len(out):
        return np.int64(-1), n_read
    for row in range(start, start + n_rows):
        at, end = row, row + to_slot
        while at < end and truth[clusters.item[at]]:
            at += n_rows
        n_read += (min(at, end - n_rows) - row) // n_rows + 1
        if at == end:
            out[n] = clusters.item[at]
            n += 1
    return n, n_read


@kernel
def propagate_batch(clusters, truth, full_reset, finder, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out = batch.events, output.offsets, output.out
    found = finder.scratch.found
    for e in range(batch.first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(finder, events, e, batch.stamp + e, batch.board)
        for f in range(n_found):
            truth[found[f]] = True
        n, n_candidates = offsets[e], np.int64(0)
        for f in range(n_found):
            pred = found[f]
            for which in range(clusters.first[pred], clusters.first[pred + 1]):
                n, n_read = _test_cluster(clusters, which, truth, out, n)
                if n < 0:
                    break
                n_nodes += 1
                n_candidates += clusters.size[which]
                n_tested += n_read
            if n < 0:
                break
        if full_reset:
            truth[:] = False
        else:
            for f in range(n_found):
                truth[found[f]] = False
        if n < 0:
            return e
        finish_event(e, n, n_nodes, n_candidates, n_found + n_tested, output)
    return len(events.start) - 1
