"""Ranges K(i) of `agile` in an interval skip list: put, escalated, deescalated."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.interval_skip_list_kernels import (
    FIRST_EDGE,
    LEVELS,
    MOST_MARKERS,
    N_LEVELS,
    SOURCE,
    TARGET,
    add_node,
    along,
    back_of,
    edge_of,
    end_node,
    ends_after,
    floor_node,
    levels_of,
    mark_path,
    note_range,
    target_of,
)
from matchwood.index.stabbing.marker_kernels import (
    CELL,
    MAX_KEY,
    MIN_KEY,
    append_marker,
    drop_marker,
    has_room,
    prepend_marker,
    take_out,
)
from matchwood.kernel.jit import part


@part
def put_cover(s, k, i, lo, hi):
    """Put identifier i on the smallest ranges there are that cover [lo, hi]."""
    mark_path(s, k, i, floor_node(s, k, lo), end_node(s, k, hi))


@part
def _lowest_cover(s, k, i, lo, hi):
    """Put identifier i, which has no markers, on the lowest single range that covers [lo, hi]."""
    x, nil = np.int64(2 * k), 2 * k + 1
    found = edge_of(s, x, LEVELS)
    for level in range(LEVELS - 1, -1, -1):
        x = along(s, x, nil, level, lo)
        if not ends_after(s, k, target_of(s, x, level), hi):
            break
        found = edge_of(s, x, level)
    append_marker(s, i, found + 1)


@part
def _grow_right(s, k, i, hi):
    """Replace the last ranges by the lowest higher one that reaches beyond hi."""
    while s.ends[i, 1] >= 0:
        m = s.ends[i, 1]
        at = np.int64(s.marker[m, CELL]) - 1
        node = np.int64(s.edge[at, SOURCE])
        level = at - s.node[node, FIRST_EDGE]
        drop_marker(s, m)
        for higher in range(level + 1, s.node[node, N_LEVELS]):
            if ends_after(s, k, target_of(s, node, higher), hi):
                append_marker(s, i, edge_of(s, node, higher) + 1)
                return


@part
def _grow_left(s, k, i, lo):
    """Replace the first ranges by the lowest higher one that begins at lo or before it."""
    while s.ends[i, 0] >= 0:
        m = s.ends[i, 0]
        at = np.int64(s.marker[m, CELL]) - 1
        node = np.int64(s.edge[at, TARGET])
        level = at - s.node[s.edge[at, SOURCE], FIRST_EDGE]
        drop_marker(s, m)
        for higher in range(level + 1, s.node[node, N_LEVELS]):  # ranges that end at the node
            x = back_of(s, node, higher)
            if s.node_key[x] <= lo:
                prepend_marker(s, i, edge_of(s, x, higher) + 1)
                return


@part
def escalate_range(s, k, i, lo, hi):
    """Grow K(i) until it covers [lo, hi], by moving as few markers up as it takes.

    There must be room for MOST_MARKERS.
    """
    if s.ends[i, 0] < 0:
        put_cover(s, k, i, lo, hi)
        return
    was_lo, was_hi = s.range[i, 0], s.range[i, 1]
    if hi > was_hi:
        _grow_right(s, k, i, hi)
    if lo < was_lo and s.ends[i, 0] >= 0:
        _grow_left(s, k, i, lo)
    if s.ends[i, 0] < 0:
        _lowest_cover(s, k, i, min(lo, was_lo), max(hi, was_hi))
    note_range(s, k, i)


@part
def deescalate_range(s, k, i, lo, hi, before, is_whole):
    """Shrink K(i) to the smallest ranges there are around [lo, hi]; if these are no smaller, or
    `is_whole`, to [lo, hi] itself, for which ranges are split.  False when there is no room.
    """
    if not has_room(s, MOST_MARKERS):
        return False
    a, b = floor_node(s, k, lo), end_node(s, k, hi)
    first = s.node_key[a]
    last = MAX_KEY if b == 2 * k + 1 else s.node_key[b] - 1
    was_first, was_last = s.range[i, 0], s.range[i, 1]
    is_inside = was_first <= first and last <= was_last
    if is_inside and (was_first < first or last < was_last) and not is_whole:
        take_out(s, i)
        mark_path(s, k, i, a, b)
        return True
    if lo != MIN_KEY:
        a = add_node(s, k, lo, levels_of(s, lo), before)
    if a >= 0 and hi != MAX_KEY:
        b = add_node(s, k, hi + 1, levels_of(s, hi + 1), before)
    if a < 0 or b < 0 or not has_room(s, MOST_MARKERS):
        return False
    take_out(s, i)
    mark_path(s, k, i, a, b)
    return True
