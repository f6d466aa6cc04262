"""A hash table from N-dimensional spaces to expressions, on the table of `word_map_kernels`.

    key              space 1 << 32 | space 2                two parts
                     (NODE | node) << 32 | space 3          three: the node of two, and one
    held             node << 32 | ref + 1                   one expression under this key
                     node << 32 | ~group                    several: an id list of refs
                     node << 32 | 0                         only longer keys

Keys are exact, so an expression that is found satisfies all its access predicates.  A key that
others continue has a *node* (0: none); nodes count what continues them and go with the last.

Layout   (H cells, G groups, K nodes)
         cell   int64[H, 2]  KEY, HELD, see word_map_kernels
         chain  int32[G]     the next free group, by group
         node   int32[K]     keys that continue a node; ~next free one
         count  int64[5]     cells TAKEN; GROUPS, NODES: ids ever handed out (nodes from 1);
                             FREE_GROUP, FREE_NODE: the first free one, -1
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_list_kernels import insert_id, remove_id
from matchwood.kernel.jit import part
from matchwood.kernel.word_map_kernels import HELD, KEY, close_cell, find_cell, fits

TAKEN, GROUPS, NODES, FREE_GROUP, FREE_NODE = range(5)
NODE = np.int64(1) << np.int64(30)
PUT, PLACES_FULL, GROUPS_FULL, ITEMS_FULL, NODES_FULL = range(5)
_LOW = np.int64(0xFFFFFFFF)
_HALF = np.int64(32)


class SpaceHash(NamedTuple):
    """See the module's docstring for the arrays."""

    cell: np.ndarray
    chain: np.ndarray
    node: np.ndarray
    count: np.ndarray


@part
def key_of(prefix, space):
    """`prefix` is the first space, or NODE | node."""
    return np.int64(prefix) << _HALF | np.int64(space)


@part
def value_of(held):
    """ref + 1, ~group, or 0."""
    return np.int64(np.int32(held & _LOW))


@part
def node_of(held):
    return held >> _HALF


@part
def _held(node, value):
    return node << _HALF | (value & _LOW)


@part
def _open_place(table, at, key, parent):
    """Take a free cell; its parent node, unless 0, has one key more."""
    table.cell[at, KEY] = key
    table.count[TAKEN] += 1
    if parent > 0:
        table.node[parent] += 1


@part
def _has_places(table):
    return fits(table.cell, table.count[TAKEN] + 1)


@part
def put_node(table, key, parent):
    """The node of a key, made if need be; or what is full as a negative number."""
    at = find_cell(table.cell, key)
    held = table.cell[at, HELD]
    if node_of(held) > 0:
        return node_of(held)
    node = table.count[FREE_NODE]
    if node < 0 and table.count[NODES] + 1 >= len(table.node):
        return np.int64(-NODES_FULL)
    if held == 0:
        if not _has_places(table):
            return np.int64(-PLACES_FULL)
        _open_place(table, at, key, parent)
    if node >= 0:
        table.count[FREE_NODE] = ~np.int64(table.node[node])
    else:
        table.count[NODES] += 1
        node = table.count[NODES]
    table.node[node] = 0
    table.cell[at, HELD] = _held(node, value_of(held))
    return node


@part
def put_ref(table, groups, key, parent, ref):
    """Put an expression under a key, once; may be repeated when something was full."""
    at = find_cell(table.cell, key)
    held = table.cell[at, HELD]
    value, node = value_of(held), node_of(held)
    if value == ref + 1:
        return PUT
    if value < 0:
        return PUT if insert_id(groups, ~value, np.int32(ref)) else ITEMS_FULL
    if value == 0:
        if held == 0:
            if not _has_places(table):
                return PLACES_FULL
            _open_place(table, at, key, parent)
        table.cell[at, HELD] = _held(node, np.int64(ref) + 1)
        return PUT
    group = table.count[FREE_GROUP]
    if group < 0:
        if table.count[GROUPS] == len(groups.size):
            return GROUPS_FULL
        group = table.count[GROUPS]
    if not insert_id(groups, group, np.int32(value - 1)):
        return ITEMS_FULL
    if not insert_id(groups, group, np.int32(ref)):
        remove_id(groups, group, np.int32(value - 1))
        return ITEMS_FULL
    if table.count[FREE_GROUP] >= 0:
        table.count[FREE_GROUP] = table.chain[group]
    else:
        table.count[GROUPS] += 1
    table.cell[at, HELD] = _held(node, ~group)
    return PUT


@part
def drop_ref_of(table, groups, key, parent, ref):
    """Take an expression out from under a key, if it is there."""
    at = find_cell(table.cell, key)
    held = table.cell[at, HELD]
    value, node = value_of(held), node_of(held)
    if value == ref + 1:
        _empty(table, at, node, np.int64(0), parent)
    elif value < 0:
        group = ~value
        remove_id(groups, group, np.int32(ref))
        if groups.size[group] == 1:
            last = groups.item[groups.start[group]]
            remove_id(groups, group, last)
            table.chain[group] = table.count[FREE_GROUP]
            table.count[FREE_GROUP] = group
            table.cell[at, HELD] = _held(node, np.int64(last) + 1)


@part
def _empty(table, at, node, value, parent):
    """Leave a cell with less; with nothing it is free, and its parent has one less."""
    if node > 0 or value != 0:
        table.cell[at, HELD] = _held(node, value)
        return
    if parent > 0:
        table.node[parent] -= 1
    table.count[TAKEN] -= 1
    close_cell(table.cell, at)


@part
def prune(table, key, parent):
    """Free the node of a key that nothing continues any more."""
    at = find_cell(table.cell, key)
    held = table.cell[at, HELD]
    node = node_of(held)
    if node > 0 and table.node[node] == 0:
        table.node[node] = ~table.count[FREE_NODE]
        table.count[FREE_NODE] = node
        _empty(table, at, np.int64(0), value_of(held), parent)
