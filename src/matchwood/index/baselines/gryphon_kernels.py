"""Kernels of `gryphon` that change it: follow and make edges, split leaves, take nodes away."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_list_kernels import NO_BLOCK, TOP, capacity, give_block, take_block
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import (
    ABSENT,
    find_pair,
    has_places,
    pair,
    put_pair,
    remove_pair,
)
from matchwood.kernel.posting_kernels import (
    START,
    USED,
    N,
    drop_entry,
    entry_slot,
    entry_words,
    fit,
    has_words,
    push,
    release_segment,
)

PARENT, PRED, GROUPS, N_GROUPS, IS_OPEN = range(5)
"""Columns of `node`: node above (the next free one), predicate of the edge from there, first group,
groups, whether expressions with predicates left are below and not here."""

OF_NODE, ATTR, NEXT = range(3)
"""Columns of `group`: its node (the next free group), attribute, the node's next group."""

EQUALITY, GENERIC = range(2)
"""Group g keeps its edges in lists 2g + EQUALITY and 2g + GENERIC."""

LO, HI, REF, CHILD = 0, 2, 4, 5
EDGE = 6
"""An edge is six words: first key, last key (two words each), ref (see verify_kernels), child."""

NODE_HIGH, NODE_FREE, GROUP_HIGH, GROUP_FREE, LONGEST, WIDEST, TO_SPLIT = range(7)
"""Positions in `count`: ids ever handed out and first free ones, most predicates of an expression,
most edges in a list, the leaf that waits for room to be split (between calls of a kernel)."""

ROOT = 0
NONE = -1
IS_GROUP = np.int64(1) << 31
"""Marks a group among the pairs: (node, IS_GROUP | attribute)."""


class Tree(NamedTuple):
    """See `gryphon.py` for the table of arrays; edges, pairs and postings stand beside it."""

    node: np.ndarray
    group: np.ndarray
    rank: np.ndarray
    rarity: np.ndarray
    count: np.ndarray


@part
def read_key(item, at):
    return np.int64(item[at + 1]) << 32 | (np.int64(item[at]) & np.int64(0xFFFFFFFF))


@part
def _write_key(item, at, key):
    item[at] = np.int32(key & np.int64(0x7FFFFFFF)) | (
        np.int32(-(2**31)) if (key >> 31) & 1 else np.int32(0)
    )
    item[at + 1] = np.int32(key >> 32)


@part
def has_room(tree, edges, pairs, postings, cap):
    """Whether one insertion and one split surely find what they need."""
    most = cap + 2
    n_nodes, n_groups = len(tree.node), len(tree.group)
    words = most * (16 + 4 * tree.count[LONGEST])
    return (
        tree.count[NODE_HIGH] + most <= n_nodes
        and tree.count[GROUP_HIGH] + most <= n_groups
        and edges.count[TOP] + 2 * EDGE * (tree.count[WIDEST] + 4 * most) <= len(edges.item)
        and has_places(pairs, 2 * most)
        and has_words(postings, words)
    )


@part
def arrange(tree, expressions, predicates, slot, order):
    """The predicates of an expression by the rank of their attributes; returns how many."""
    begin, n = expressions.start[slot], np.int64(expressions.size[slot])
    for k in range(n):
        pred = expressions.code[begin + k]
        rank = tree.rank[predicates.attr[pred]]
        j = k
        while j > 0 and tree.rank[predicates.attr[order[j - 1]]] > rank:
            order[j] = order[j - 1]
            j -= 1
        order[j] = pred
    return n


# ── edges ───────────────────────────────────────────────────────────────────────────────────────


@part
def _group_of(tree, pairs, node, attr):
    """The group of a node for an attribute, made if there is none."""
    key = pair(node, IS_GROUP | attr)
    group = find_pair(pairs, key)
    if group != ABSENT:
        return group
    group = tree.count[GROUP_FREE]
    if group != NONE:
        tree.count[GROUP_FREE] = tree.group[group, OF_NODE]
    else:
        group = tree.count[GROUP_HIGH]
        tree.count[GROUP_HIGH] += 1
    tree.group[group, OF_NODE], tree.group[group, ATTR] = node, attr
    tree.group[group, NEXT] = tree.node[node, GROUPS]
    tree.node[node, GROUPS] = group
    tree.node[node, N_GROUPS] += 1
    put_pair(pairs, key, group)
    return group


@part
def _append_edge(tree, edges, predicates, which, pred, child):
    """Write an edge at the end of a list, which moves to a larger block when it is full."""
    n, room = np.int64(edges.size[which]), edges.room[which]
    if room == NO_BLOCK or capacity(room) < EDGE * (n + 1):
        larger = np.int8(3) if room == NO_BLOCK else room  # class 3: one edge
        while capacity(larger) < EDGE * (n + 1):
            larger += np.int8(1)
        start = take_block(edges, larger)
        for i in range(EDGE * n):
            edges.item[start + i] = edges.item[edges.start[which] + i]
        if room != NO_BLOCK:
            give_block(edges, edges.start[which], room)
        edges.start[which], edges.room[which] = start, larger
    at = edges.start[which] + EDGE * n
    _write_key(edges.item, at + LO, predicates.lo[pred])
    _write_key(edges.item, at + HI, predicates.hi[pred])
    edges.item[at + REF] = pred if predicates.n_intervals[pred] == 1 else ~pred
    edges.item[at + CHILD] = child
    edges.size[which] = n + 1
    tree.count[WIDEST] = max(tree.count[WIDEST], n + 1)


@part
def _child(tree, edges, pairs, predicates, node, pred):
    """The node below an edge, made with it if there is none."""
    child = find_pair(pairs, pair(node, pred))
    if child != ABSENT:
        return child
    group = _group_of(tree, pairs, node, predicates.attr[pred])
    child = tree.count[NODE_FREE]
    if child != NONE:
        tree.count[NODE_FREE] = tree.node[child, PARENT]
    else:
        child = tree.count[NODE_HIGH]
        tree.count[NODE_HIGH] += 1
    tree.node[child, PARENT], tree.node[child, PRED] = node, pred
    tree.node[child, GROUPS], tree.node[child, N_GROUPS] = NONE, 0
    tree.node[child, IS_OPEN] = 0
    kind = EQUALITY if predicates.lo[pred] == predicates.hi[pred] else GENERIC
    _append_edge(tree, edges, predicates, 2 * group + kind, pred, child)
    put_pair(pairs, pair(node, pred), child)
    return child


@part
def _remove_group(tree, pairs, group):
    node = tree.group[group, OF_NODE]
    if tree.node[node, GROUPS] == group:
        tree.node[node, GROUPS] = tree.group[group, NEXT]
    else:
        before = tree.node[node, GROUPS]
        while tree.group[before, NEXT] != group:
            before = tree.group[before, NEXT]
        tree.group[before, NEXT] = tree.group[group, NEXT]
    tree.node[node, N_GROUPS] -= 1
    remove_pair(pairs, pair(node, IS_GROUP | np.int64(tree.group[group, ATTR])))
    tree.group[group, OF_NODE] = tree.count[GROUP_FREE]
    tree.count[GROUP_FREE] = group


@part
def _remove_node(tree, edges, pairs, predicates, child):
    """Take away an empty node and the edge to it; returns the node above."""
    node, pred = np.int64(tree.node[child, PARENT]), tree.node[child, PRED]
    group = find_pair(pairs, pair(node, IS_GROUP | np.int64(predicates.attr[pred])))
    kind = EQUALITY if predicates.lo[pred] == predicates.hi[pred] else GENERIC
    which = 2 * group + kind
    at, last = edges.start[which], edges.start[which] + EDGE * (np.int64(edges.size[which]) - 1)
    while edges.item[at + CHILD] != child:
        at += EDGE
    for i in range(EDGE):
        edges.item[at + i] = edges.item[last + i]
    edges.size[which] -= 1
    if edges.size[which] == 0:
        give_block(edges, edges.start[which], edges.room[which])
        edges.room[which] = NO_BLOCK
        if edges.size[2 * group + EQUALITY] + edges.size[2 * group + GENERIC] == 0:
            _remove_group(tree, pairs, group)
    remove_pair(pairs, pair(node, pred))
    tree.node[child, PARENT] = tree.count[NODE_FREE]
    tree.count[NODE_FREE] = child
    return node


# ── expressions ─────────────────────────────────────────────────────────────────────────────────


@part
def _mark_path(tree, predicates, node, skip, sign):
    """Count the attributes tested on the way to a node in (1) or out (-1); returns its depth."""
    depth = np.int64(0)
    while node != ROOT:
        skip[predicates.attr[tree.node[node, PRED]]] += sign
        node = tree.node[node, PARENT]
        depth += 1
    return depth


@part
def _split(tree, edges, pairs, postings, expressions, predicates, node, cap, skip, order):
    """Move what a full leaf holds one edge down; returns the child that is too full now, or NONE.

    What has no predicate left stays.
    """
    too_full = np.int64(NONE)
    depth = _mark_path(tree, predicates, node, skip, 1)
    entry = np.int64(postings.lists[node, START])
    end = entry + postings.lists[node, USED]
    n_left = np.int64(0)
    while entry < end:
        head = postings.word[entry]
        slot, words = entry_slot(head), entry_words(head)
        if arrange(tree, expressions, predicates, slot, order) > depth:
            child = _child(tree, edges, pairs, predicates, node, order[depth])
            attr = predicates.attr[order[depth]]
            skip[attr] += 1
            push(postings, child, expressions, predicates, slot, skip, tree.rarity)
            skip[attr] -= 1
            if postings.lists[child, N] > cap:
                too_full = child
        else:  # such an entry is its slot alone
            postings.word[postings.lists[node, START] + n_left] = head
            n_left += 1
        entry += words
    tree.node[node, IS_OPEN] = 1
    postings.lists[node, USED], postings.lists[node, N] = n_left, n_left
    if n_left == 0:
        release_segment(postings, node)
    _mark_path(tree, predicates, node, skip, -1)
    return too_full


@part
def _leaf_for(tree, edges, pairs, predicates, order, n, make):
    """The node that holds an expression, made with its edge if asked for."""
    node, depth = np.int64(ROOT), np.int64(0)
    while depth < n and tree.node[node, IS_OPEN]:
        if make:
            node = _child(tree, edges, pairs, predicates, node, order[depth])
        else:
            node = find_pair(pairs, pair(node, order[depth]))
        depth += 1
    return node


@part
def _split_down(tree, edges, pairs, postings, expressions, predicates, node, cap, skip, order):
    """Split a leaf that is too full, and its child if that is; False when there is no room."""
    while node != NONE and postings.lists[node, N] > cap and not tree.node[node, IS_OPEN]:
        if not has_room(tree, edges, pairs, postings, cap):
            tree.count[TO_SPLIT] = node
            return False
        node = _split(tree, edges, pairs, postings, expressions, predicates, node, cap, skip, order)
    tree.count[TO_SPLIT] = NONE
    return True


@kernel
def insert_slots(
    tree, edges, pairs, postings, expressions, predicates, slots, first, cap, skip, order
):
    """Insert expressions first..; returns how many are in, and whether nothing is left to do.

    If something is, nodes, edges or words are missing.
    """
    if not _split_down(
        tree,
        edges,
        pairs,
        postings,
        expressions,
        predicates,
        tree.count[TO_SPLIT],
        cap,
        skip,
        order,
    ):
        return first, False
    for i in range(first, len(slots)):
        if not has_room(tree, edges, pairs, postings, cap):
            return i, False
        slot = slots[i]
        n = arrange(tree, expressions, predicates, slot, order)
        node = _leaf_for(tree, edges, pairs, predicates, order, n, True)
        _mark_path(tree, predicates, node, skip, 1)
        fits = push(postings, node, expressions, predicates, slot, skip, tree.rarity)
        _mark_path(tree, predicates, node, skip, -1)
        if not fits:
            return i, False
        if not _split_down(
            tree, edges, pairs, postings, expressions, predicates, node, cap, skip, order
        ):
            return i + 1, False
    return len(slots), True


@kernel
def delete_slots(tree, edges, pairs, postings, expressions, predicates, slots, order):
    """Delete expressions; nodes that become empty go, upwards."""
    for slot in slots:
        n = arrange(tree, expressions, predicates, slot, order)
        node = _leaf_for(tree, edges, pairs, predicates, order, n, False)
        drop_entry(postings, node, slot)
        fit(postings, node)
        while postings.lists[node, N] == 0 and tree.node[node, N_GROUPS] == 0:
            tree.node[node, IS_OPEN] = 0
            if node == ROOT:
                break
            node = _remove_node(tree, edges, pairs, predicates, node)
