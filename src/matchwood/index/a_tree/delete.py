"""Kernels of `a_tree` that let expressions go: algorithm 5, parents taking over children."""

from __future__ import annotations

import numpy as np

from matchwood.index.a_tree.blocks import (
    DOWN,
    FREE,
    ID,
    LEAF,
    N_LEAVES,
    N_NODES,
    NEXT_FREE,
    NOTHING,
    PARENTS,
    UP,
    give_block,
    has_words,
    is_used,
    most_words,
    n_parents,
    remove_parent,
    remove_slot,
    words_for_parent,
)
from matchwood.index.a_tree.insert import DONE, WORDS_FULL
from matchwood.index.a_tree.links import change_children, most_for_parent
from matchwood.index.a_tree.nodes import CHANGED, WAITING, drop_node, next_mark
from matchwood.kernel.jit import kernel, part


@part
def _wait(x, v, scratch):
    """Queue a node that is not used any more, to be removed later."""
    if not scratch.waits[v] and not is_used(x, v):
        scratch.waits[v] = 1
        scratch.waiting[scratch.used[WAITING]] = v
        scratch.used[WAITING] += 1


@part
def _rehang(x, p, v, scratch, random_access):
    """Let a parent of the same operator hold a node's children instead; False: no words.

    For a node v that no expression needs any more while parents do: the parent p gets the children
    of v that it does not have yet, after those that it keeps.
    """
    mine, its = np.int64(x.node[v, DOWN]), np.int64(x.node[p, DOWN])
    words = most_words(1 + np.int64(x.word[mine]) + np.int64(x.word[its]))
    for i in range(mine + 1, mine + 1 + x.word[mine]):
        words += words_for_parent(x, x.word[i])
    words += 2 * most_for_parent(x, p) + 8
    if not has_words(x, words):
        return False
    mark, n = next_mark(scratch), np.int64(0)
    for i in range(its + 1, its + 1 + x.word[its]):
        if x.word[i] != v:
            scratch.mark[x.word[i]] = mark
            scratch.other[n] = x.word[i]
            n += 1
    kept = n
    for i in range(mine + 1, mine + 1 + x.word[mine]):
        if scratch.mark[x.word[i]] != mark:
            scratch.other[n] = x.word[i]
            n += 1
    remove_parent(x, v, p)
    change_children(x, p, scratch, n, (np.int64(0), kept), random_access)
    return True


@part
def _free(x, v):
    x.op[v] = FREE
    x.level[v] = 0
    x.node[v, ID] = x.count[NEXT_FREE]
    x.count[NEXT_FREE] = v
    x.count[N_NODES] -= 1


@part
def _remove(x, v, scratch, changed):
    """Take out a node without parents and expressions; its children may follow."""
    if x.op[v] == LEAF:
        pred = x.node[v, DOWN]
        x.leaf_of[pred] = NOTHING
        x.count[N_LEAVES] -= 1
        changed[scratch.used[CHANGED]] = pred
        scratch.used[CHANGED] += 1
    else:
        drop_node(x, v)
        down = np.int64(x.node[v, DOWN])
        n = np.int64(x.word[down])
        for i in range(down + 1, down + 1 + n):
            remove_parent(x, x.word[i], v)
            _wait(x, x.word[i], scratch)
        give_block(x, down, 1 + n)
    _free(x, v)


@part
def _release(x, scratch, changed, settings):
    """Remove queued nodes that are not used; False when the arena is full."""
    while scratch.used[WAITING] > 0:
        v = scratch.waiting[scratch.used[WAITING] - 1]
        if not is_used(x, v):
            if settings.rehang:
                while n_parents(x, v) > 0:
                    p = x.word[x.node[v, UP] + PARENTS]
                    if not _rehang(x, p, v, scratch, settings.random_access):
                        return False
            elif n_parents(x, v) > 0:
                scratch.used[WAITING] -= 1
                scratch.waits[v] = 0
                continue
        scratch.used[WAITING] -= 1
        scratch.waits[v] = 0
        if not is_used(x, v):
            _remove(x, v, scratch, changed)
    return True


@kernel
def delete_batch(slots, first, x, scratch, settings, changed):
    """Delete expressions first.., and what else waits; returns how many are done, and a status."""
    i = first
    while True:
        if not _release(x, scratch, changed, settings):
            return i, WORDS_FULL
        if i == len(slots):
            return i, DONE
        root = x.root_of[slots[i]]
        remove_slot(x, root, slots[i])
        x.root_of[slots[i]] = NOTHING
        _wait(x, root, scratch)
        i += 1
