"""Kernels of `propagation`: choose access predicates, fill clusters, test what hangs on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.stabbing.predicate_kernels import drop, hold, stab_event, use
from matchwood.index.stabbing.segment_kernels import has_segments, interval, segment_of
from matchwood.kernel.id_list_kernels import NO_BLOCK, capacity, give_block, room_for, take_block
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

NODES_FULL, CLUSTERS_FULL, ROWS_FULL = -1, -2, -3
"""Why an insertion stopped: what has to grow."""

HIGH, FREE = range(2)
"""Positions in `count`: cluster ids ever handed out, the first free one or NONE."""

NONE = -1
MOST_LOOKED_AT = 16
"""A set of more intervals counts as its hull when its odds are estimated."""


class Clusters(NamedTuple):
    """See `propagation.py` for the table of arrays; the rows are `IdLists` blocks beside it."""

    first: np.ndarray
    next: np.ndarray
    access: np.ndarray
    width: np.ndarray
    home: np.ndarray
    attr_uses: np.ndarray
    count: np.ndarray


@part
def _odds(clusters, segments, predicates, pred):
    """How likely an event satisfies a predicate, if events are like subscriptions.

    The attribute is there as often as subscriptions name it, and every segment is equally likely.
    """
    attr = predicates.attr[pred]
    odds = np.float64(clusters.attr_uses[attr])
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


@part
def _arrange(clusters, segments, expressions, predicates, slot, equality_first, order, odds):
    """An expression's predicates with the access predicate first, then the least likely ones."""
    begin, n = expressions.start[slot], np.int64(expressions.size[slot])
    for k in range(n):
        pred = expressions.code[begin + k]
        chance = _odds(clusters, segments, predicates, pred)
        j = k
        while j > 0 and odds[j - 1] > chance:
            order[j], odds[j] = order[j - 1], odds[j - 1]
            j -= 1
        order[j], odds[j] = pred, chance
    if equality_first:
        k = np.int64(0)
        while k < n and predicates.lo[order[k]] != predicates.hi[order[k]]:
            k += 1
        if k < n:
            access = order[k]
            for j in range(k, 0, -1):
                order[j] = order[j - 1]
            order[0] = access
    return n


@part
def _cluster_of(clusters, access, width):
    which = clusters.first[access]
    while which != NONE and clusters.width[which] != width:
        which = clusters.next[which]
    return np.int64(which)


@part
def _new_cluster(clusters, access, width):
    """An empty cluster; NONE when there is no id for it."""
    which = clusters.count[FREE]
    if which != NONE:
        clusters.count[FREE] = clusters.next[which]
    elif clusters.count[HIGH] < len(clusters.next):
        which = clusters.count[HIGH]
        clusters.count[HIGH] += 1
    else:
        return np.int64(NONE)
    clusters.access[which], clusters.width[which] = access, width
    clusters.next[which] = clusters.first[access]
    clusters.first[access] = which
    return which


@part
def _resize(rows, which, width, room):
    """Take a cluster's columns to a block of another class; False when there is none."""
    start = take_block(rows, room)
    if start < 0:
        return False
    stride = capacity(room) // width
    if rows.room[which] != NO_BLOCK:
        before, old = rows.start[which], capacity(rows.room[which]) // width
        for column in range(width):
            for r in range(rows.size[which]):
                rows.item[start + column * stride + r] = rows.item[before + column * old + r]
        give_block(rows, before, rows.room[which])
    rows.start[which], rows.room[which] = start, room
    return True


@part
def _make_row(clusters, rows, access, width):
    """The cluster for one more row, with room for it; or what is full."""
    which = _cluster_of(clusters, access, width)
    if which == NONE:
        which = _new_cluster(clusters, access, width)
        if which == NONE:
            return np.int64(CLUSTERS_FULL)
    n, room = np.int64(rows.size[which]), rows.room[which]
    if room == NO_BLOCK or capacity(room) // width == n:
        enough = room_for((n + max(n // 2, np.int64(1))) * width)
        if not _resize(rows, which, width, enough):
            return np.int64(ROWS_FULL)
    return which


@kernel
def cluster_more(
    clusters, rows, expressions, predicates, slots, first, is_new, equality_first, order, odds,
    stabbing, segments, on_node,
):  # fmt: skip
    """Insert expressions first..; returns how many are done, and what is full or 0.

    An expression that did not get in whole is inserted again: what is there already stays.  When
    expressions are not new, their uses of predicates have been counted.
    """
    for i in range(first, len(slots)):
        slot = slots[i]
        begin, end = expressions.start[slot], expressions.start[slot] + expressions.size[slot]
        for k in range(begin, end):
            if not hold(stabbing, segments, on_node, predicates, expressions.code[k]):
                return i, NODES_FULL
        width = _arrange(
            clusters, segments, expressions, predicates, slot, equality_first, order, odds
        )
        which = _make_row(clusters, rows, order[0], width)
        if which < 0:
            return i, which
        stride = capacity(rows.room[which]) // width
        at = rows.start[which] + rows.size[which]
        for column in range(width - 1):
            rows.item[at + column * stride] = order[column + 1]
        rows.item[at + (width - 1) * stride] = slot
        rows.size[which] += 1
        clusters.home[slot] = which
        for k in range(begin, end if is_new else begin):
            use(stabbing, expressions.code[k])
            clusters.attr_uses[predicates.attr[expressions.code[k]]] += 1
    return len(slots), 0


@part
def _remove_cluster(clusters, rows, which):
    give_block(rows, rows.start[which], rows.room[which])
    rows.room[which] = NO_BLOCK
    access = clusters.access[which]
    if clusters.first[access] == which:
        clusters.first[access] = clusters.next[which]
    else:
        before = clusters.first[access]
        while clusters.next[before] != which:
            before = clusters.next[before]
        clusters.next[before] = clusters.next[which]
    clusters.next[which] = clusters.count[FREE]
    clusters.count[FREE] = which


@kernel
def uncluster(clusters, rows, expressions, predicates, slots, stabbing, segments, on_node):
    """Delete expressions: the last row of a cluster takes the place of the one that goes."""
    for slot in slots:
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            drop(stabbing, segments, on_node, predicates, expressions.code[k])
            clusters.attr_uses[predicates.attr[expressions.code[k]]] -= 1
        which = clusters.home[slot]
        width = np.int64(clusters.width[which])
        stride = capacity(rows.room[which]) // width
        start, last = rows.start[which], np.int64(rows.size[which]) - 1
        slot_column = start + (width - 1) * stride
        row = np.int64(0)
        while rows.item[slot_column + row] != slot:
            row += 1
        for column in range(width):
            at = start + column * stride
            rows.item[at + row] = rows.item[at + last]
        rows.size[which] = last
        if last == 0:
            _remove_cluster(clusters, rows, which)
        elif stride >= 8 and 4 * last <= stride:
            _resize(rows, which, width, room_for(2 * last * width))


@part
def _test_cluster(rows, which, width, truth, out, n):
    """Emit the rows whose predicates are all true; the end of `out` (-1: full), predicates read."""
    stride = capacity(rows.room[which]) // width
    start, n_rows = rows.start[which], np.int64(rows.size[which])
    n_read = np.int64(0)
    if n + n_rows > len(out):
        return np.int64(-1), n_read
    for row in range(start, start + n_rows):
        at, end = row, row + (width - 1) * stride
        while at < end and truth[rows.item[at]]:
            at += stride
        n_read += (min(at, end - stride) - row) // stride + 1
        if at == end:
            out[n] = rows.item[at]
            n += 1
    return n, n_read


@kernel
def propagate_batch(
    clusters, rows, truth, stabbing, segments, on_node, scratch,
    events, first, stamp, board_event, board_entry, predicates, offsets, out, counters,
):  # fmt: skip
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    for e in range(first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(
            stabbing, segments, on_node, predicates,
            events, e, stamp + e, board_event, board_entry, scratch,
        )  # fmt: skip
        for f in range(n_found):
            truth[scratch.found[f]] = True
        n, n_candidates = offsets[e], np.int64(0)
        for f in range(n_found):
            which = np.int64(clusters.first[scratch.found[f]])
            while which != NONE and n >= 0:
                n, n_read = _test_cluster(rows, which, clusters.width[which], truth, out, n)
                n_nodes += 1
                n_candidates += rows.size[which]
                n_tested += n_read
                which = np.int64(clusters.next[which])
            if n < 0:
                break
        for f in range(n_found):
            truth[scratch.found[f]] = False
        if n < 0:
            return e
        finish_event(e, n, n_nodes, n_candidates, n_found + n_tested, offsets, counters)
    return len(events.start) - 1
