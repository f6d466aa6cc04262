"""Taking parts of `be_tree` down: their expressions become pending, to be inserted again."""

from __future__ import annotations

import numpy as np

from matchwood.index.be_tree.nodes import (
    BELOW,
    HEAD,
    HOME,
    N_PENDING,
    OWNER,
    TOP_BUCKET,
    free_c_node,
    free_p_node,
    new_c_node,
    push_halves,
    set_grid,
)
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.posting_kernels import START, USED, entry_slot, entry_words


@part
def count_below(tree, c, change):
    """Tell every p-node above a c-node that so many expressions came or went."""
    p = tree.c[c, OWNER]
    while p >= 0:
        tree.p[p, BELOW] += change
        p = tree.c[tree.p[p, HOME], OWNER]


@part
def put_aside(tree, c):
    """Move all expressions of an l-node to pending; counts above are the caller's."""
    postings = tree.postings
    entry = np.int64(postings.lists[c, START])
    end = entry + postings.lists[c, USED]
    while entry < end:
        slot = entry_slot(postings.word[entry])
        tree.leaf_of[slot] = -1
        tree.pending[tree.count[N_PENDING]] = slot
        tree.count[N_PENDING] += 1
        entry += entry_words(postings.word[entry])


@part
def take_down(tree, c, stack):
    """Free a c-node and all that is below it; its expressions become pending."""
    stack[0] = c
    top = np.int64(1)
    while top > 0:
        top -= 1
        node = stack[top]
        top = push_halves(tree, node, stack, top)
        while tree.c[node, HEAD] >= 0:
            p = tree.c[node, HEAD]
            stack[top] = tree.p[p, TOP_BUCKET]
            top += 1
            free_p_node(tree, p)
        put_aside(tree, node)
        free_c_node(tree, node)


@part
def empty_p_node(tree, p, stack, max_cap):
    """Take down all buckets of a p-node, and start again over the domain as it is now."""
    count_below(tree, tree.p[p, HOME], -tree.p[p, BELOW])
    take_down(tree, tree.p[p, TOP_BUCKET], stack)
    tree.p[p, BELOW] = 0
    set_grid(tree, p)
    tree.p[p, TOP_BUCKET] = new_c_node(tree, p, -1, MIN_KEY, MAX_KEY, max_cap)
