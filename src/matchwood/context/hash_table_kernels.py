"""Kernels of the hash table under AGILE: single keys, `x = ctx.city`.

A key is a node, found by open addressing in `edge[:, 0]`; its cell is the node's number.  An
escalated identifier is in the cell of every key: a hash table has no ranges in between (section
5.4).  Tables share one array of cells: a key is mixed with the number of its table.
"""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.marker_kernels import (
    NODES,
    SEED,
    append_marker,
    emit,
    emit_held,
    put_everywhere,
)
from matchwood.kernel.id_table_kernels import first_cell, next_cell
from matchwood.kernel.jit import part

TABLE = 0


@part
def _cell(s, k, key):
    """Where a key is or would be in `edge[:, 0]`."""
    h = (np.uint64(key) ^ np.uint64(s.count[SEED])) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    h ^= (h >> np.uint64(29)) + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15)
    at = first_cell(s.edge, h)
    while s.edge[at, 0] != 0:
        node = np.int64(s.edge[at, 0])
        if s.node_key[node] == key and s.node[node, TABLE] == k:
            break
        at = next_cell(s.edge, at)
    return at


@part
def hash_rebuild(s, first):
    """Enter every key again, after `edge` has grown; keys are the nodes from `first` on."""
    for at in range(len(s.edge)):
        s.edge[at, 0] = 0
    for node in range(first, s.count[NODES]):
        s.edge[_cell(s, s.node[node, TABLE], s.node_key[node]), 0] = node


@part
def hash_put(s, k, i, lo, hi):
    """Put identifier i under its key; False when there is no room."""
    if lo != hi:
        put_everywhere(s, i, 2 * k + 1, lo, hi)
        return True
    at = _cell(s, k, lo)
    node = np.int64(s.edge[at, 0])
    if node == 0:
        node = s.count[NODES]
        is_full = node == len(s.node_key) or node + 1 >= len(s.cell_head)
        if is_full or 2 * node > len(s.edge):
            return False
        s.count[NODES] += 1
        s.node_key[node] = lo
        s.node[node, TABLE] = k
        s.edge[at, 0] = node
        s.cell_head[node + 1] = -1
        s.cell_size[node + 1] = 0
    append_marker(s, i, node + 1)
    s.range[i, 0] = s.range[i, 1] = lo
    return True


@part
def hash_probe(s, k, key, out, n):
    """Append the identifiers under a key."""
    n = emit_held(s, 2 * k + 1, key, out, n)
    node = np.int64(s.edge[_cell(s, k, key), 0])
    return emit(s, node + 1, out, n) if node > 0 else n
