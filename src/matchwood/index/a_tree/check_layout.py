"""Kernels that check an A-Tree of a snapshot: nodes, links from both ends, blocks."""

from __future__ import annotations

import numpy as np

from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    FREE,
    HIGH,
    ID,
    LEAF,
    MAX_LEVEL,
    N_ACTIVE,
    N_ALL,
    N_LEAVES,
    N_NODES,
    N_OR,
    NEXT_FREE,
    NO_SLOT,
    NOTHING,
    OR,
    PARENTS,
    SLOT,
    TELL,
    UP,
    _is_top,
    block_class,
    class_size,
    tell_of,
)
from matchwood.kernel.jit import kernel, part


@part
def _mixed(seed, v, p):
    """A number that stands for a link; seeded, so that no input makes sums of links equal."""
    h = (np.uint64(v) << np.uint64(32) | np.uint64(p)) ^ np.uint64(seed)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@part
def _note_block(x, at, n, blocks, n_blocks):
    """Write down a block of n words; False if it does not lie in the arena."""
    size = class_size(block_class(n))
    if at < 0 or at + size > len(x.word):
        return False
    blocks[n_blocks, 0], blocks[n_blocks, 1] = at, size
    return True


@part
def _is_node(x, v):
    return 0 <= v < x.count[HIGH] and x.op[v] != FREE


@kernel
def check_children(x, seed, seen, links, blocks):
    """Blocks of children, or -1: each child once, and of a lower level; `links` sums them up."""
    n_blocks, n_nodes, n_leaves = np.int64(0), np.int64(0), np.int64(0)
    for v in range(x.count[HIGH]):
        op = x.op[v]
        if op == FREE:
            continue
        n_nodes += 1
        if op == LEAF:
            n_leaves += 1
            pred = x.node[v, DOWN]
            if pred < 0 or pred >= len(x.leaf_of) or x.leaf_of[pred] != v or x.level[v] != 1:
                return np.int64(-1)
            continue
        down, level = np.int64(x.node[v, DOWN]), np.int64(0)
        if (op != AND and op != OR) or down < 0 or down >= len(x.word):
            return np.int64(-1)
        n = np.int64(x.word[down])
        if n < 2 or n > len(x.word) or not _note_block(x, down, 1 + n, blocks, n_blocks):
            return np.int64(-1)
        n_blocks += 1
        for i in range(down + 1, down + 1 + n):
            c = np.int64(x.word[i])
            if not _is_node(x, c) or seen[c] == v:
                return np.int64(-1)
            seen[c] = v
            links[c] += _mixed(seed, c, v)
            level = max(level, np.int64(x.level[c]))
        if x.level[v] != level + 1 or level + 1 > x.count[MAX_LEVEL]:
            return np.int64(-1)
    if n_nodes != x.count[N_NODES] or n_leaves != x.count[N_LEAVES]:
        return np.int64(-1)
    return n_blocks


@part
def _parent(x, i, is_or, has_tops):
    """The parent that a word of a block stands for; NOTHING if that is none."""
    link = np.int64(x.word[i])
    if link < 0:
        slot = ~link
        if not (is_or and has_tops) or slot >= len(x.root_of):
            return np.int64(NOTHING)
        link = np.int64(x.root_of[slot])
        if not _is_node(x, link) or not _is_top(x, link) or x.hot[link, SLOT] != slot:
            return np.int64(NOTHING)
        return link
    if not _is_node(x, link) or (is_or and has_tops and _is_top(x, link)):
        return np.int64(NOTHING)
    return link


@kernel
def check_parents(x, seed, has_tops, links, blocks, n_blocks):
    """Blocks so far and those of parents, or -1: parents know their children, in their classes."""
    for v in range(x.count[HIGH]):
        if x.op[v] == FREE:
            continue
        up, found = np.int64(x.node[v, UP]), np.uint64(0)
        if up != NOTHING:
            if up < 0 or up + PARENTS > len(x.word):
                return np.int64(-1)
            n_or, n_active, n = x.word[up + N_OR], x.word[up + N_ACTIVE], x.word[up + N_ALL]
            if not 0 <= n_or <= n_active <= n or n < 1 or n > len(x.word):
                return np.int64(-1)
            if not _note_block(x, up, PARENTS + np.int64(n), blocks, n_blocks):
                return np.int64(-1)
            n_blocks += 1
            for k in range(n):
                p = _parent(x, up + PARENTS + k, k < n_or, has_tops)
                if p < 0 or x.op[p] != (OR if k < n_or else AND):
                    return np.int64(-1)
                is_access = x.word[x.node[p, DOWN] + 1] == v
                if k >= n_or and is_access != (k < n_active):
                    return np.int64(-1)
                found += _mixed(seed, v, p)
        elif x.hot[v, SLOT] == NO_SLOT:
            return np.int64(-1)
        if found != links[v] or x.hot[v, TELL] != tell_of(x, up):
            return np.int64(-1)
    return n_blocks


@kernel
def check_slots(x, listed, blocks, n_blocks):
    """Blocks so far and those of slots, or -1: every expression is at its root, once."""
    for v in range(x.count[HIGH]):
        if x.op[v] == FREE or x.hot[v, SLOT] == NO_SLOT:
            continue
        slot = np.int64(x.hot[v, SLOT])
        first, n = slot, np.int64(1)
        if slot < 0:
            at = ~slot - 1
            if at < 0 or at >= len(x.word):
                return np.int64(-1)
            n = np.int64(x.word[at])
            if n < 2 or n > len(x.word) or not _note_block(x, at, n + 1, blocks, n_blocks):
                return np.int64(-1)
            n_blocks += 1
            first = at + 1
        for k in range(n):
            mine = slot if slot >= 0 else np.int64(x.word[first + k])
            if mine < 0 or mine >= len(x.root_of) or x.root_of[mine] != v or listed[mine]:
                return np.int64(-1)
            listed[mine] = True
    return n_blocks


@kernel
def check_free(x, seen):
    """Whether free nodes are in the list of free ones, each once."""
    n = x.count[N_NODES]
    v = x.count[NEXT_FREE]
    while v != NOTHING:
        if v < 0 or v >= x.count[HIGH] or x.op[v] != FREE or seen[v] == v:
            return False
        seen[v] = v
        n += 1
        v = np.int64(x.node[v, ID])
    return n == x.count[HIGH]


@kernel
def check_predicates(x, expressions, slots, marked, seen, stack):
    """Whether every expression's leaves are its predicates, each of them."""
    for k in range(len(slots)):
        slot = slots[k]
        begin, wanted = expressions.start[slot], np.int64(0)
        for i in range(begin, begin + expressions.size[slot]):
            pred = expressions.code[i]
            if pred >= 0 and marked[pred] != k:
                marked[pred] = k
                wanted += 1
        root = x.root_of[slot]
        stack[0], top, seen[root] = root, np.int64(1), k
        while top > 0:
            top -= 1
            v = stack[top]
            if x.op[v] == LEAF:
                if marked[x.node[v, DOWN]] != k:
                    return False
                wanted -= 1
                continue
            down = x.node[v, DOWN]
            for i in range(down + 1, down + 1 + x.word[down]):
                c = x.word[i]
                if seen[c] != k:
                    seen[c] = k
                    stack[top] = c
                    top += 1
        if wanted != 0:
            return False
    return True
