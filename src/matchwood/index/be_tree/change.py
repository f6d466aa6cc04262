"""Changing `be_tree`: the entry points that insert and delete."""

from __future__ import annotations

from matchwood.index.be_tree.cut import relieve
from matchwood.index.be_tree.delete import delete_expression, settle
from matchwood.index.be_tree.insert import insert_expression, note_attributes
from matchwood.index.be_tree.nodes import (
    BELOW,
    HEAD,
    N_PENDING,
    N_TODO,
    NEXT,
    ROOT,
    TOP_BUCKET,
    enter_all,
    new_p_node,
)
from matchwood.kernel.jit import kernel

DELETE, INSERT, NOTE_AND_INSERT = range(3)
"""What `change` does with slots; those to insert have been noted, or are noted one by one."""


@kernel
def note_batch(tree, expressions, predicates, slots):
    """Attributes of expressions to come: their counts, and the domains that grids will halve."""
    for slot in slots:
        note_attributes(tree, expressions, predicates, slot)


@kernel
def change(tree, expressions, predicates, slots, first, verb, scratch, rules):
    """Delete, insert, or note and insert slots first..; returns how many are done, and whether
    nothing is left to do.  If something is, nodes or words are missing.
    """
    i = first
    while True:
        if tree.count[N_TODO] > 0:
            if not relieve(tree, scratch, rules):
                return i, False
            continue
        if tree.count[N_PENDING] == 0:
            if i == len(slots):
                return i, True
            slot = slots[i]
            i += 1
            if verb == NOTE_AND_INSERT:
                note_attributes(tree, expressions, predicates, slot)
            elif verb == DELETE:
                delete_expression(
                    tree, expressions, predicates, slot, rules.max_cap, rules.min_size
                )
                continue
        else:
            tree.count[N_PENDING] -= 1
            slot = tree.pending[tree.count[N_PENDING]]
        if not insert_expression(tree, expressions, predicates, slot, scratch, rules):
            tree.pending[tree.count[N_PENDING]] = slot
            tree.count[N_PENDING] += 1
            return i, False


@kernel
def fill_directory(tree):
    """Enter all p-nodes in an emptied p-directory."""
    enter_all(tree)


@kernel
def partition_root(tree, attributes, scratch, max_cap):
    """p-nodes below an empty root for attributes that are known to matter."""
    for attr in attributes:
        p = new_p_node(tree, attr, ROOT, max_cap)
        scratch.score[p] = 0.0


@kernel
def settle_root(tree, rules):
    """Dissolve the p-nodes below the root that hold too little."""
    p = tree.c[ROOT, HEAD]
    while p >= 0:
        following = tree.p[p, NEXT]
        if tree.p[p, BELOW] < rules.min_size:
            settle(tree, tree.p[p, TOP_BUCKET], rules.max_cap, rules.min_size)
        p = following
