"""Links of the A-Tree: give a node its children, choose which of them gives access, keep levels."""

from __future__ import annotations

import numpy as np

from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    MAX_LEVEL,
    N_ALL,
    NOTHING,
    PARENTS,
    UP,
    add_parent,
    give_block,
    n_parents,
    remove_parent,
    take_block,
    words_for_parent,
)
from matchwood.index.a_tree.nodes import next_walk
from matchwood.index.stabbing.odds_kernels import share_between
from matchwood.kernel.jit import part

STEPS = 12.0
MOST_RARE = 255
"""A node's rarity is -STEPS * log2 of the share of events it holds for, MOST_RARE at most."""


@part
def rarity_of(share):
    share = min(max(share, 1e-7), 1.0)
    return min(np.int64(-STEPS * np.log2(share) + 0.5), np.int64(MOST_RARE))


@part
def leaf_rarity(predicates, pred, hull):
    """From the share that a set covers of the keys between its attribute's outermost constants."""
    attr = predicates.attr[pred]
    if hull[attr, 0] > hull[attr, 1]:
        return np.int64(0)
    return rarity_of(share_between(predicates, pred, hull[attr, 0], hull[attr, 1]))


@part
def inner_rarity(x, op, child, n):
    """As if children were independent: shares are multiplied by AND, and added by OR."""
    total, share = np.int64(0), 0.0
    for i in range(n):
        total += x.rarity[child[i]]
        share += 2.0 ** (-np.float64(x.rarity[child[i]]) / STEPS)
    return min(total, np.int64(MOST_RARE)) if op == AND else rarity_of(share)


@part
def access_position(x, v, child, n, random_access):
    """Which child stands first.

    An AND's gives access to it: the rarest, among equals the one with the fewest parents.  An OR's
    is the one that most often makes it true: `renumber` puts them side by side.
    """
    if x.op[v] == AND and random_access:
        h = np.uint64(v + 1) * np.uint64(0x9E3779B97F4A7C15)
        return np.int64((h >> np.uint64(40)) % np.uint64(n))
    best = np.int64(0)
    for i in range(1, n):
        a, b = np.int64(x.rarity[child[i]]), np.int64(x.rarity[child[best]])
        if x.op[v] != AND:
            a, b = b, a
        if a > b or (a == b and n_parents(x, child[i]) < n_parents(x, child[best])):
            best = i
    return best


@part
def write_children(x, v, child, n, access):
    """A block for the children, the one that gives access first."""
    down = take_block(x, 1 + n)
    x.node[v, DOWN] = down
    x.word[down] = n
    for i in range(n):
        x.word[down + 1 + i] = child[i]
    x.word[down + 1], x.word[down + 1 + access] = child[access], child[0]


@part
def change_children(x, v, scratch, n, kept, random_access):
    """Give a node other children: `scratch.other`, of which the range `kept` are children already.

    The node is in the lists of parents of those, and not of the others any more, nor of those that
    the caller has removed it from.  An AND is in the active part of one child's parents alone, its
    first child's: where that is another one than before, whether new or kept, access moves.
    """
    down = x.node[v, DOWN]
    before = x.word[down + 1]
    give_block(x, np.int64(down), 1 + np.int64(x.word[down]))
    position = access_position(x, v, scratch.other, n, random_access)
    write_children(x, v, scratch.other, n, position)
    access = scratch.other[position]
    for i in range(n):
        c = scratch.other[i]
        if i < kept[0] or i >= kept[1]:
            add_parent(x, c, v, c == access)
        elif x.op[v] == AND and access != before and (c == before or c == access):
            make_access(x, v, c, c == access)
    settle_levels(x, v, scratch)


@part
def most_for_parent(x, v):
    """Words that entering a node once more at one of its children may take."""
    down, most = x.node[v, DOWN], np.int64(0)
    for i in range(down + 1, down + 1 + x.word[down]):
        most = max(most, words_for_parent(x, x.word[i]))
    return most


@part
def make_access(x, v, child, is_access):
    """Let a child that knows its AND parent give access to it, or no longer."""
    remove_parent(x, child, v)
    add_parent(x, child, v, is_access)


@part
def settle_levels(x, v, scratch):
    """Set the level of a node, and of all above it where that changes something."""
    walk = next_walk(scratch)
    scratch.stack[0] = v
    scratch.seen[v] = walk
    top = np.int64(1)
    while top > 0:
        top -= 1
        w = scratch.stack[top]
        scratch.seen[w] = 0
        down = x.node[w, DOWN]
        level = np.int64(0)
        for i in range(down + 1, down + 1 + x.word[down]):
            level = max(level, np.int64(x.level[x.word[i]]))
        level += 1
        if level == x.level[w]:
            continue
        x.level[w] = level
        x.count[MAX_LEVEL] = max(x.count[MAX_LEVEL], level)
        up = x.node[w, UP]
        if up != NOTHING:
            for i in range(up + PARENTS, up + PARENTS + x.word[up + N_ALL]):
                p = x.word[i]
                if scratch.seen[p] != walk:
                    scratch.seen[p] = walk
                    scratch.stack[top] = p
                    top += 1
