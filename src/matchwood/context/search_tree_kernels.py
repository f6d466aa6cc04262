"""Kernels of the search tree under AGILE: the binary tree of the paper's Figures 5 to 7.

It holds half lines, `x <= ctx.stock`, by their finite end t.  A node has three sets:

    exact   identifiers whose end is the node's key
    left    ends below it, and above the last key on the way down that was below
    right   ends above it, likewise

A probe for q finds every identifier whose end may be q or more.  Half lines to the other side,
`x >= ctx.floor`, are kept mirrored: by ~t, and probed with ~q.  Everything else is in the cell of
every key, with its range.  Tree k hangs below node 2k, whose key counts for nothing.
"""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.marker_kernels import (
    CELL,
    MAX_KEY,
    MIN_KEY,
    NODES,
    append_marker,
    emit,
    emit_held,
    put_everywhere,
    take_out,
)
from matchwood.kernel.jit import part

LEFT, RIGHT, PARENT, MIRRORED = range(4)
IN_NODE, IN_LEFT, IN_RIGHT = range(3)


@part
def open_tree(s, k, is_mirrored):
    """The node that tree k hangs below, and its twin, so that nodes are numbered as in lists."""
    for node in (2 * k, 2 * k + 1):
        s.node_key[node] = MAX_KEY
        s.node[node, LEFT] = s.node[node, RIGHT] = s.node[node, PARENT] = -1
        s.node[node, MIRRORED] = is_mirrored
    s.count[NODES] += 2


@part
def end_of(s, k, lo, hi):
    """The finite end of a half line, mirrored as its tree is, and whether it is one."""
    if s.node[2 * k, MIRRORED]:
        return ~lo, hi == MAX_KEY and lo != MIN_KEY
    return hi, lo == MIN_KEY and hi != MAX_KEY


@part
def _cell(node, which):
    return 1 + 3 * node + which


@part
def _hold(s, k, i, node, which, most):
    """Put identifier i into a set whose ends go up to `most`."""
    append_marker(s, i, _cell(node, which))
    if s.node[2 * k, MIRRORED]:
        s.range[i, 0], s.range[i, 1] = ~most, MAX_KEY
    else:
        s.range[i, 0], s.range[i, 1] = MIN_KEY, most


@part
def tree_put(s, k, i, lo, hi, may_grow):
    """Put identifier i where its end belongs: into the node of that key, which is made if need be
    and `may_grow`, else into the left or right set that the end falls into.

    False when there is no room.
    """
    t, is_half_line = end_of(s, k, lo, hi)
    if not is_half_line:
        put_everywhere(s, i, _cell(2 * k, IN_NODE), lo, hi)
        return True
    above = np.int64(2 * k)
    node = np.int64(s.node[above, LEFT])
    most, is_left = np.int64(MAX_KEY), True
    while node >= 0:
        key = s.node_key[node]
        if key == t:
            _hold(s, k, i, node, IN_NODE, t)
            return True
        above, is_left = node, t < key
        if is_left:
            most = key - 1
        node = np.int64(s.node[node, LEFT if is_left else RIGHT])
    if not may_grow and above != 2 * k:
        _hold(s, k, i, above, IN_LEFT if is_left else IN_RIGHT, most)
        return True
    node = s.count[NODES]
    if node == len(s.node_key) or _cell(node, IN_RIGHT) >= len(s.cell_head):
        return False
    s.count[NODES] += 1
    s.node_key[node] = t
    s.node[node, LEFT] = s.node[node, RIGHT] = -1
    s.node[node, PARENT] = above
    s.node[above, LEFT if is_left else RIGHT] = node
    for which in range(3):
        s.cell_head[_cell(node, which)] = -1
        s.cell_size[_cell(node, which)] = 0
    _hold(s, k, i, node, IN_NODE, t)
    return True


@part
def tree_escalate(s, k, i, lo, hi):
    """Move identifier i up to the left set of the first node above that its end stays below."""
    t, is_half_line = end_of(s, k, lo, hi)
    node = np.int64(-1)
    if s.ends[i, 0] >= 0 and is_half_line:
        cell = np.int64(s.marker[s.ends[i, 0], CELL])
        node = np.int64(-1) if cell == _cell(2 * k, IN_NODE) else (cell - 1) // 3
    take_out(s, i)
    while node >= 0:
        above = np.int64(s.node[node, PARENT])
        if above == 2 * k:
            break
        if s.node[above, LEFT] == node and t < s.node_key[above]:
            _hold(s, k, i, above, IN_LEFT, s.node_key[above] - 1)
            return
        node = above
    put_everywhere(s, i, _cell(2 * k, IN_NODE), MIN_KEY, MAX_KEY)


@part
def tree_deescalate(s, k, i, lo, hi):
    """Move identifier i one step down; a leaf's sets are left for a new node.

    False when there is no room.
    """
    t, is_half_line = end_of(s, k, lo, hi)
    if not is_half_line:
        take_out(s, i)
        put_everywhere(s, i, _cell(2 * k, IN_NODE), lo, hi)
        return True
    every = np.int64(_cell(2 * k, IN_NODE))
    node = np.int64(s.node[2 * k, LEFT])
    cell = np.int64(s.marker[s.ends[i, 0], CELL]) if s.ends[i, 0] >= 0 else every
    if cell == every:
        if s.range[i, 0] != MIN_KEY or s.range[i, 1] != MAX_KEY:  # smaller than a node's sets
            node = np.int64(-1)
    else:
        held, which = (cell - 1) // 3, (cell - 1) % 3
        if which == IN_NODE and s.node_key[held] == t:
            return True
        node = np.int64(s.node[held, LEFT if which == IN_LEFT else RIGHT])
        # The end may have left the range of its set: an update inside K(i) moves nothing.
        if which == IN_NODE or (which == IN_LEFT) != (t < s.node_key[held]):
            node = np.int64(-1)
        low = _lowest_end(s, k, held)
        if t <= low:
            node = np.int64(-1)
    take_out(s, i)
    if node < 0:
        return tree_put(s, k, i, lo, hi, True)
    most = _most(s, k, node)
    key = s.node_key[node]
    if key == t:
        _hold(s, k, i, node, IN_NODE, t)
    elif t < key:
        _hold(s, k, i, node, IN_LEFT, key - 1)
    else:
        _hold(s, k, i, node, IN_RIGHT, most)
    return True


@part
def _lowest_end(s, k, node):
    """The last key on the way down to a node that is below it."""
    while s.node[node, PARENT] != 2 * k:
        above = np.int64(s.node[node, PARENT])
        if s.node[above, RIGHT] == node:
            return s.node_key[above]
        node = above
    return np.int64(MIN_KEY)


@part
def _most(s, k, node):
    """The highest end that a node's right set may hold."""
    while s.node[node, PARENT] != 2 * k:
        above = np.int64(s.node[node, PARENT])
        if s.node[above, LEFT] == node:
            return s.node_key[above] - 1
        node = above
    return np.int64(MAX_KEY)


@part
def _emit_node(s, node, out, n):
    for which in range(3):
        n = emit(s, _cell(node, which), out, n)
    return n


@part
def tree_probe(s, k, key, out, n):
    """Append the identifiers whose end may be at or above a key."""
    q = ~key if s.node[2 * k, MIRRORED] else key
    n = emit_held(s, _cell(2 * k, IN_NODE), key, out, n)
    node = np.int64(s.node[2 * k, LEFT])
    while node >= 0:
        if q > s.node_key[node]:
            n = emit(s, _cell(node, IN_RIGHT), out, n)
            node = np.int64(s.node[node, RIGHT])
            continue
        n = emit(s, _cell(node, IN_NODE), out, n)
        n = emit(s, _cell(node, IN_RIGHT), out, n)
        n = _emit_below(s, np.int64(s.node[node, RIGHT]), out, n)
        if q == s.node_key[node]:
            break
        n = emit(s, _cell(node, IN_LEFT), out, n)
        node = np.int64(s.node[node, LEFT])
    return n


@part
def _emit_below(s, top, out, n):
    """All sets of a subtree; by way of the parents, without a stack."""
    if top < 0:
        return n
    stop = np.int64(s.node[top, PARENT])
    node, came_from = top, stop
    while node != stop:
        left, right = np.int64(s.node[node, LEFT]), np.int64(s.node[node, RIGHT])
        if came_from == s.node[node, PARENT]:
            n = _emit_node(s, node, out, n)
            goes_to = left if left >= 0 else (right if right >= 0 else s.node[node, PARENT])
        elif came_from == left and right >= 0:
            goes_to = right
        else:
            goes_to = s.node[node, PARENT]
        came_from, node = node, np.int64(goes_to)
    return n
