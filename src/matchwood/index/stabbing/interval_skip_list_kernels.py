"""Kernels of the interval skip list; see `interval_skip_list.py`.

A list has two nodes of its own, HEAD (2k) and NIL (2k + 1) for list k, and they alone have the top
level: the range there, from HEAD to NIL, covers every key.  Levels are linked in both directions.
"""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.marker_kernels import (
    CELL,
    EDGES,
    MAX_KEY,
    MIN_KEY,
    NODES,
    SEED,
    append_after,
    append_marker,
    emit,
    emit_held,
    has_room,
)
from matchwood.kernel.jit import part

LEVELS = 20
"""Most levels of a node; one in two goes one level higher, so that an escalation need not cover
more than twice what it must.  2^20 nodes before the limit shows."""

MOST_MARKERS = 512
"""More markers than one identifier can need on a way up and down."""

FIRST_EDGE, N_LEVELS = 0, 1
TARGET, SOURCE, BACK = 0, 1, 2
"""Of an edge: the next node of its level, the node it leaves, and the one before that."""


@part
def levels_of(s, key):
    """Levels of a node with this key, by a hash with a random seed: no choice of keys is bad."""
    h = (np.uint64(key) ^ np.uint64(s.count[SEED])) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(29)
    levels = 1
    while levels < LEVELS and (h & np.uint64(1)) == np.uint64(0):
        levels += 1
        h >>= np.uint64(1)
    return levels


@part
def edge_of(s, node, level):
    """The edge that leaves a node at a level; its cell is the one after it."""
    return np.int64(s.node[node, FIRST_EDGE]) + level


@part
def open_list(s, k):
    """HEAD and NIL of list k, which are nodes 2k and 2k + 1; lists are opened in order."""
    head, nil = 2 * k, 2 * k + 1
    s.node_key[head] = MIN_KEY
    s.node_key[nil] = MAX_KEY
    for node in (head, nil):
        s.node[node, FIRST_EDGE] = s.count[EDGES]
        s.node[node, N_LEVELS] = LEVELS + 1
        for level in range(LEVELS + 1):
            at = s.count[EDGES] + level
            s.edge[at, TARGET] = nil
            s.edge[at, SOURCE] = node
            s.edge[at, BACK] = head
            s.cell_head[at + 1] = -1
            s.cell_size[at + 1] = 0
        s.count[EDGES] += LEVELS + 1
        s.count[NODES] += 1


@part
def target_of(s, x, level):
    """The next node at a level."""
    return np.int64(s.edge[edge_of(s, x, level), TARGET])


@part
def back_of(s, x, level):
    """The node before at a level."""
    return np.int64(s.edge[edge_of(s, x, level), BACK])


@part
def along(s, x, nil, level, key):
    """The last node from x on, along one level, that is not above a key."""
    while True:
        y = target_of(s, x, level)
        if y == nil or s.node_key[y] > key:
            return x
        x = y


@part
def floor_node(s, k, key):
    """The last node whose key is not above this one."""
    x, nil = 2 * k, 2 * k + 1
    for level in range(LEVELS - 1, -1, -1):
        x = along(s, x, nil, level, key)
    return x


@part
def ceil_node(s, k, key):
    """The first node whose key is not below this one."""
    x = floor_node(s, k, key)
    if s.node_key[x] == key:
        return x
    return target_of(s, x, 0)


@part
def end_node(s, k, hi):
    """The first node above every key up to hi."""
    return 2 * k + 1 if hi == MAX_KEY else ceil_node(s, k, hi + 1)


@part
def ends_after(s, k, node, hi):
    """Whether a range that ends at this node has hi in it or before it."""
    return node == 2 * k + 1 or s.node_key[node] > hi


@part
def mark_path(s, k, i, a, b):
    """Put identifier i, which has no markers, on the largest ranges between two nodes."""
    nil = 2 * k + 1
    x = np.int64(a)
    while x != b:
        level = np.int64(s.node[x, N_LEVELS]) - 1
        while True:
            y = target_of(s, x, level)
            if y == b or b == nil or (y != nil and s.node_key[y] < s.node_key[b]):
                break
            level -= 1
        append_marker(s, i, edge_of(s, x, level) + 1)
        x = y
    note_range(s, k, i)


@part
def note_range(s, k, i):
    """K(i) from the first and the last marker."""
    first, last = s.ends[i, 0], s.ends[i, 1]
    a = s.edge[s.marker[first, CELL] - 1, SOURCE]
    b = s.edge[s.marker[last, CELL] - 1, TARGET]
    s.range[i, 0] = s.node_key[a]
    s.range[i, 1] = MAX_KEY if b == 2 * k + 1 else s.node_key[b] - 1


@part
def add_node(s, k, key, levels, before):
    """The node with a key, made when there is none; -1 when there is no room for it.

    A range that it falls into is split, and what was on it is put on both halves.  `before` is
    scratch, int64[LEVELS].
    """
    x, nil = 2 * k, 2 * k + 1
    needed = np.int64(0)
    for level in range(LEVELS - 1, -1, -1):
        x = along(s, x, nil, level, key)
        before[level] = x
        if level < levels:
            needed += s.cell_size[edge_of(s, x, level) + 1]
    if s.node_key[x] == key:
        return x
    is_full = s.count[NODES] == len(s.node_key) or s.count[EDGES] + levels > len(s.edge)
    if is_full or not has_room(s, needed):
        return np.int64(-1)
    node = s.count[NODES]
    s.count[NODES] += 1
    s.node_key[node] = key
    s.node[node, FIRST_EDGE] = s.count[EDGES]
    s.node[node, N_LEVELS] = levels
    for level in range(levels):
        split = edge_of(s, before[level], level)
        at = s.count[EDGES] + level
        s.edge[at, TARGET] = s.edge[split, TARGET]
        s.edge[at, SOURCE] = node
        s.edge[at, BACK] = before[level]
        s.edge[edge_of(s, s.edge[split, TARGET], level), BACK] = node
        s.edge[split, TARGET] = node
        s.cell_head[at + 1] = -1
        s.cell_size[at + 1] = 0
        chunk = np.int64(s.cell_head[split + 1])
        while chunk >= 0:
            for position in range(s.chunk[chunk, 1]):
                append_after(s, s.chunk[chunk, 2 + 2 * position], at + 1)
            chunk = np.int64(s.chunk[chunk, 0])
    s.count[EDGES] += levels
    return node


@part
def put_exact(s, k, i, lo, hi, before):
    """Put identifier i on [lo, hi] exactly; False, with nothing put, when there is no room."""
    a = np.int64(2 * k)
    if lo != MIN_KEY:
        a = add_node(s, k, lo, levels_of(s, lo), before)
    b = np.int64(2 * k + 1)
    if a >= 0 and hi != MAX_KEY:
        b = add_node(s, k, hi + 1, levels_of(s, hi + 1), before)
    if a < 0 or b < 0 or not has_room(s, MOST_MARKERS):
        return False
    mark_path(s, k, i, a, b)
    return True


@part
def every_cell(s, k):
    """The cell of the range from HEAD to NIL."""
    return edge_of(s, 2 * k, LEVELS) + 1


@part
def stab(s, k, key, out, n):
    """Append the identifiers whose ranges hold a key: those on the ranges of the way to it."""
    x, nil = np.int64(2 * k), 2 * k + 1
    n = emit_held(s, edge_of(s, x, LEVELS) + 1, key, out, n)
    for level in range(LEVELS - 1, -1, -1):
        x = along(s, x, nil, level, key)
        n = emit(s, edge_of(s, x, level) + 1, out, n)
    return n


@part
def stab_size(s, k, key):
    """How many identifiers `stab` appends."""
    x, nil = np.int64(2 * k), 2 * k + 1
    n = np.int64(s.cell_size[edge_of(s, x, LEVELS) + 1])
    for level in range(LEVELS - 1, -1, -1):
        x = along(s, x, nil, level, key)
        n += s.cell_size[edge_of(s, x, level) + 1]
    return n
