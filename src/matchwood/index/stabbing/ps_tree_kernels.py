"""Kernels of `ps_tree`: leaves, their order and their lists, and the sorted cuts that find them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_list_kernels import insert_id, remove_id, reserve
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.sort_kernels import last_not_above

NONE = -1
FIRST, N_LEAVES, FREE, HIGH = range(4)
"""Positions in `count`: the first leaf, leaves, the first free one or NONE, ids handed out."""


class Leaves(NamedTuple):
    """See `ps_tree.py` for the arrays."""

    next: np.ndarray
    n_predicates: np.ndarray
    n_events: np.ndarray
    count: np.ndarray


@part
def leaf_after(leaves, lists, left, n):
    """Split a leaf: a new one behind it with a copy of its content; NONE when lists are full.

    n is the number of ids that the copy has to hold.
    """
    right = leaves.count[FREE] if leaves.count[FREE] != NONE else leaves.count[HIGH]
    if not reserve(lists, right, n):
        return np.int64(NONE)
    if leaves.count[FREE] != NONE:
        leaves.count[FREE] = leaves.next[right]
    else:
        leaves.count[HIGH] += 1
    leaves.count[N_LEAVES] += 1
    leaves.next[right] = leaves.next[left]
    leaves.next[left] = right
    leaves.n_predicates[right] = leaves.n_predicates[left]
    leaves.n_events[right] = leaves.n_events[left]
    for i in range(n):
        insert_id(lists, right, lists.item[lists.start[left] + i])
    return right


@part
def drop_leaf(leaves, lists, left):
    """Join the leaf behind one to it; both have the same predicates."""
    right = leaves.next[left]
    leaves.n_events[left] += leaves.n_events[right]
    leaves.next[left] = leaves.next[right]
    while lists.size[right] > 0:
        remove_id(lists, right, lists.item[lists.start[right] + lists.size[right] - 1])
    leaves.next[right] = leaves.count[FREE]
    leaves.count[FREE] = right
    leaves.count[N_LEAVES] -= 1


@kernel
def split_leaf(leaves, lists, left):
    """As `leaf_after`, for owners."""
    return leaf_after(leaves, lists, left, np.int64(lists.size[left]))


@kernel
def join_leaf(leaves, lists, left):
    drop_leaf(leaves, lists, left)


@kernel
def cover(leaves, lists, first, last, id_, step):
    """Add a predicate to (or take it from) the leaves first .. last; NONE when all are done.

    Otherwise the leaf at which lists were full: to go on from there.
    """
    leaf = np.int64(first)
    while True:
        if step > 0:
            if not insert_id(lists, leaf, id_):
                return leaf
        else:
            remove_id(lists, leaf, id_)
        leaves.n_predicates[leaf] += step
        if leaf == last:
            return np.int64(NONE)
        leaf = np.int64(leaves.next[leaf])


@kernel
def find_leaves(cuts, leaf_of, n, keys, found):
    """The leaf of every key."""
    for i in range(len(keys)):
        found[i] = leaf_of[last_not_above(cuts, np.int64(0), n, keys[i])]


@kernel
def count_events(leaves, found):
    for leaf in found:
        leaves.n_events[leaf] += 1


@kernel
def emit_leaves(lists, found, offsets, out):
    """The ids of every leaf found, one after the other, from offsets[i]."""
    for i in range(len(found)):
        at, start = offsets[i], lists.start[found[i]]
        for k in range(lists.size[found[i]]):
            out[at + k] = lists.item[start + k]


@kernel
def fill_leaves(lists, cuts, n, lo, hi, ids, counts, is_counting):
    """Put closed intervals, whose ends are cuts, into leaf i = the space at cuts[i], ids ascending.

    Run twice: to count, and to write.
    """
    for k in range(len(ids)):
        first = last_not_above(cuts, np.int64(0), n, lo[k])
        last = last_not_above(cuts, np.int64(0), n, hi[k])
        for leaf in range(first, last + 1):
            if is_counting:
                counts[leaf] += 1
            else:
                lists.item[lists.start[leaf] + lists.size[leaf]] = ids[k]
                lists.size[leaf] += 1
