"""Renumbering an A-Tree: nodes that become true together get numbers side by side.

An AND stands near the others that the same child gives access to, an OR near the others that the
same child most often makes true.  Blocks lie in the order of nodes.  What matching reads for the
parents of a node is then mostly one piece of memory: at a million expressions of ABE-Gen matching
takes a third of the time (docs/decisions/0011-a-tree-what-the-paper-leaves-open.md).
"""

from __future__ import annotations

import numpy as np

from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    FREED,
    HIGH,
    ID,
    LEAF,
    N_ACTIVE,
    N_ALL,
    N_OR,
    NEXT_FREE,
    NO_SLOT,
    NOTHING,
    PARENTS,
    SLOT,
    TELL,
    TOP,
    UP,
    block_class,
    class_size,
    tell_of,
)
from matchwood.index.a_tree.nodes import (
    expression_id,
    gather_elements,
    next_mark,
    put_node,
)
from matchwood.kernel.jit import kernel
from matchwood.kernel.sort_kernels import sort_words


@kernel
def rank_nodes(x, leaves, order, rank):
    """New numbers: leaves as given, then breadth first, every node after its first child.

    order: old number by new one; rank: new number by old one.  Returns how many there are.
    """
    n = np.int64(0)
    for v in leaves:
        order[n], rank[v] = v, n
        n += 1
    head = np.int64(0)
    while head < n:
        v = order[head]
        head += 1
        up = x.node[v, UP]
        if up == NOTHING:
            continue
        for i in range(up + PARENTS, up + PARENTS + x.word[up + N_ALL]):
            p = x.word[i]
            if x.word[x.node[p, DOWN] + 1] == v:
                order[n], rank[p] = p, n
                n += 1
    return n


@kernel
def copy_nodes(x, order, rank, fresh):
    """Write all nodes and their blocks to a fresh layout under their new numbers."""
    top = np.int64(0)
    for new in range(len(order)):
        v = order[new]
        fresh.level[new], fresh.op[new], fresh.rarity[new] = x.level[v], x.op[v], x.rarity[v]
        fresh.node[new, UP], fresh.node[new, ID] = NOTHING, 0
        fresh.hot[new, SLOT], fresh.node[new, DOWN] = x.hot[v, SLOT], x.node[v, DOWN]
        at = np.int64(x.hot[v, SLOT])
        if at < NO_SLOT:
            at = ~at - 1
            n = 1 + np.int64(x.word[at])
            for i in range(n):
                fresh.word[top + i] = x.word[at + i]
            fresh.hot[new, SLOT] = ~(top + 1)
            top += class_size(block_class(n))
        at = np.int64(x.node[v, DOWN])
        if x.op[v] == LEAF:
            fresh.leaf_of[at] = new
        else:
            n = np.int64(x.word[at])
            fresh.word[top] = n
            for i in range(1, n + 1):
                fresh.word[top + i] = rank[x.word[at + i]]
            fresh.node[new, DOWN] = top
            top += class_size(block_class(1 + n))
        at = np.int64(x.node[v, UP])
        if at != NOTHING:
            n = np.int64(x.word[at + N_ALL])
            for i in range(PARENTS):
                fresh.word[top + i] = x.word[at + i]
            for i in range(PARENTS, PARENTS + n):
                fresh.word[top + i] = rank[x.word[at + i]]
            first = top + PARENTS
            ors, active = first + x.word[at + N_OR], first + x.word[at + N_ACTIVE]
            sort_words(fresh.word, first, ors)
            sort_words(fresh.word, ors, active)
            sort_words(fresh.word, active, first + n)
            fresh.node[new, UP] = top
            top += class_size(block_class(PARENTS + n))
        fresh.hot[new, TELL] = tell_of(fresh, fresh.node[new, UP])
    for slot in range(len(x.root_of)):
        if x.root_of[slot] != NOTHING:
            fresh.root_of[slot] = rank[x.root_of[slot]]
    fresh.free[:] = NOTHING
    fresh.count[TOP], fresh.count[FREED] = top, 0
    fresh.count[HIGH], fresh.count[NEXT_FREE] = len(order), NOTHING


@kernel
def enter_ids(x, scratch, share, id_bits):
    """Ids follow from the numbers of nodes: find them anew, and fill the empty table."""
    for v in range(x.count[HIGH]):
        if x.op[v] < AND:
            continue
        n = gather_elements(x, v, np.int64(x.op[v]), scratch, next_mark(scratch), np.int64(0))
        id_ = expression_id(x, np.int64(x.op[v]), scratch.element, n, id_bits)
        x.node[v, ID] = id_ if share else np.int32(v)
        put_node(x, v)
