"""Matching in `k_index`: the conjunction algorithm, and counting for events of intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.segment_kernels import has_segments, segment_of
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import first_not_below
from matchwood.kernel.verify_kernels import finish_event

LOOKED_AT, READ, OPENED = range(3)
"""Work on one event: expressions looked at, postings read or predicates tested, lists opened."""

SPENT = np.int64(2**63 - 1)
"""The cursor of a posting list that has been read to its end."""


class Cursors(NamedTuple):
    """What matching needs: one per matcher."""

    here: np.ndarray  # int64[entries], the next list of each segment of the event
    stop: np.ndarray  # int64[entries], the list behind its last
    at: np.ndarray  # int64[entries], position in each list of the size at hand
    end: np.ndarray  # int64[entries]
    cursor: np.ndarray  # int64[entries]
    seen: np.ndarray  # int64[S], for events of intervals: entry that last had an expression
    tally: np.ndarray  # int32[S], and how many entries had it
    clock: np.ndarray  # int64[1], counts entries
    work: np.ndarray  # int64[3]


@part
def _skip(item, at, end, id_):
    """Position of the first id at or behind `at` that is not smaller: by leaps, then halving."""
    leap = np.int64(1)
    while at + leap < end and item[at + leap] < id_:
        at += leap
        leap *= 2
    return first_not_below(item, at, min(at + leap, end), id_)


@part
def _settle(cursor, i, n):
    """Move cursor i to its position among the sorted ones behind it."""
    moved = cursor[i]
    while i + 1 < n and cursor[i + 1] < moved:
        cursor[i] = cursor[i + 1]
        i += 1
    cursor[i] = moved


@part
def _conjunction(item, scratch, n_lists, k, out, n):
    """Emit ids that are in k of the lists (Algorithm 1); the end of `out`, or -1 when it is full.

    A cursor is (current id << 32 | list), and cursors are kept sorted: an id before that of the
    k-th cursor cannot be in k lists, so all cursors before it skip there.
    """
    at, end, cursor, work = scratch.at, scratch.end, scratch.cursor, scratch.work
    last_pivot = np.int64(-1)
    for i in range(n_lists - 1, -1, -1):
        cursor[i] = np.int64(item[at[i]]) << 32 | i
        _settle(cursor, i, n_lists)
    while n_lists >= k:
        pivot = cursor[k - 1] >> 32
        work[LOOKED_AT] += np.int64(pivot != last_pivot)
        last_pivot = pivot
        target = pivot
        if cursor[0] >> 32 == pivot:
            if n == len(out):
                return np.int64(-1)
            out[n] = pivot
            n += 1
            target = pivot + 1
        for i in range(k - 1, -1, -1):
            if cursor[i] >> 32 < target:
                which = cursor[i] & 0xFFFFFFFF
                at[which] = _skip(item, at[which], end[which], target)
                work[READ] += 1
                cursor[i] = SPENT
                if at[which] < end[which]:
                    cursor[i] = np.int64(item[at[which]]) << 32 | which
            _settle(cursor, i, n_lists)
        while n_lists > 0 and cursor[n_lists - 1] == SPENT:
            n_lists -= 1
    return n


@part
def _match_values(index, segments, events, e, scratch, out, n):
    """An event of values: size by size, the lists of its segments through the algorithm."""
    here, stop = scratch.here, scratch.stop
    at, end = scratch.at, scratch.end
    n_here = np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        if has_segments(segments, events.attr[entry]):
            segment = segment_of(segments, events.attr[entry], events.lo[entry])
            here[n_here], stop[n_here] = index.first[segment], index.first[segment + 1]
            n_here += np.int64(here[n_here] < stop[n_here])
    while n_here > 0:
        k = index.arity[here[0]]
        for i in range(1, n_here):
            k = min(k, index.arity[here[i]])
        n_lists, kept = np.int64(0), np.int64(0)
        for i in range(n_here):
            which = here[i]
            if index.arity[which] == k:
                at[n_lists], end[n_lists] = index.start[which], index.start[which + 1]
                n_lists += 1
                which += 1
            here[kept], stop[kept] = which, stop[i]
            kept += np.int64(which < stop[i])
        n_here = kept
        scratch.work[OPENED] += n_lists
        if n_lists >= k:
            n = _conjunction(index.item, scratch, n_lists, np.int64(k), out, n)
            if n < 0:
                return n
    return n


@part
def _count_segments(index, first, last, began, scratch, out, n):
    """The segments of one interval of an entry: count each expression once for the entry."""
    seen, tally, work, now = scratch.seen, scratch.tally, scratch.work, scratch.clock[0]
    for segment in range(first, last + 1):
        for which in range(index.first[segment], index.first[segment + 1]):
            work[OPENED] += 1
            work[READ] += index.start[which + 1] - index.start[which]
            for i in range(index.start[which], index.start[which + 1]):
                slot = index.item[i]
                if seen[slot] == now:
                    continue
                if seen[slot] < began:
                    tally[slot] = 0
                    work[LOOKED_AT] += 1
                seen[slot] = now
                tally[slot] += 1
                if tally[slot] == index.arity[which]:
                    if n == len(out):
                        return np.int64(-1)
                    out[n] = slot
                    n += 1
    return n


@part
def _match_intervals(index, segments, events, e, scratch, out, n):
    """An event of intervals: an expression may be in several lists of an entry, so they count."""
    began = scratch.clock[0] + 1
    for entry in range(events.start[e], events.start[e + 1]):
        scratch.clock[0] += 1
        attr = events.attr[entry]
        if not has_segments(segments, attr):
            continue
        if len(events.more) == 0 or events.more[entry] < 0:
            first = segment_of(segments, attr, events.lo[entry])
            last = segment_of(segments, attr, events.hi[entry])
            n = _count_segments(index, first, last, began, scratch, out, n)
        else:
            which = events.more[entry]
            for i in range(events.more_start[which], events.more_start[which + 1]):
                if n >= 0:
                    first = segment_of(segments, attr, events.more_lo[i])
                    last = segment_of(segments, attr, events.more_hi[i])
                    n = _count_segments(index, first, last, began, scratch, out, n)
        if n < 0:
            break
    return n


@kernel
def match_by_size(index, segments, is_plain, scratch, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, offsets, out, work = batch.events, output.offsets, output.out, scratch.work
    for e in range(batch.first, len(events.start) - 1):
        work[:] = 0
        if is_plain:
            n = _match_values(index, segments, events, e, scratch, out, offsets[e])
        else:
            n = _match_intervals(index, segments, events, e, scratch, out, offsets[e])
        if n < 0:
            return e
        finish_event(e, n, work[OPENED], work[LOOKED_AT], work[READ], output)
    return len(events.start) - 1
