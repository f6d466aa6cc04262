"""Kernels of `expression_postings`: post trees under their predicates, and take them out again."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.predicate_kernels import drop, hold, use
from matchwood.kernel.id_list_kernels import (
    NO_BLOCK,
    give_block,
    insert_id,
    remove_id,
    reserve,
)
from matchwood.kernel.jit import kernel, part

POSTS_FULL, NODES_FULL, BLOCKS_FULL = 1, 2, 3
"""Why an insertion stopped: which lists have to grow."""


@kernel
def count_leaves(expressions, slots, uses, n_leaves):
    """How often each predicate occurs, and the leaves of every expression."""
    for i in range(len(slots)):
        start, n = expressions.start[slots[i]], 0
        for k in range(start, start + expressions.size[slots[i]]):
            if expressions.code[k] >= 0:
                uses[expressions.code[k]] += 1
                n += 1
        n_leaves[i] = n


@part
def _item(block, is_leaf, leaf, slot):
    """What is posted: the place of the leaf's words, or the expression."""
    return block + 2 * leaf if is_leaf else np.int64(slot)


@kernel
def post_expressions(
    expressions, predicates, slots, first, words, word_start, is_leaf, is_held,
    posts, blocks, stabbing, segments, on_node,
):  # fmt: skip
    """Insert expressions first.. with their words; returns how many are done, and what is full.

    An expression that did not get in whole is inserted again: what is there already stays.
    """
    for i in range(first, len(slots)):
        slot = slots[i]
        n_words = word_start[i + 1] - word_start[i]
        if not reserve(blocks, slot, n_words):
            return i, BLOCKS_FULL
        block = blocks.start[slot]
        blocks.size[slot] = n_words
        for k in range(n_words):
            blocks.item[block + k] = words[word_start[i] + k]
        begin, end = expressions.start[slot], expressions.start[slot] + expressions.size[slot]
        leaf = np.int64(0)
        for k in range(begin, end):
            pred = expressions.code[k]
            if pred < 0:
                continue
            if not is_held and not hold(stabbing, segments, on_node, predicates, pred):
                return i, NODES_FULL
            if not insert_id(posts, pred, _item(block, is_leaf, leaf, slot)):
                return i, POSTS_FULL
            leaf += 1
        for k in range(begin, end if not is_held else begin):
            if expressions.code[k] >= 0:
                use(stabbing, expressions.code[k])
    return len(slots), 0


@kernel
def unpost_expressions(
    expressions, predicates, slots, is_leaf, posts, blocks, stabbing, segments, on_node
):
    """Delete expressions."""
    for slot in slots:
        block, leaf = blocks.start[slot], np.int64(0)
        start = expressions.start[slot]
        for k in range(start, start + expressions.size[slot]):
            pred = expressions.code[k]
            if pred >= 0:
                remove_id(posts, pred, _item(block, is_leaf, leaf, slot))
                drop(stabbing, segments, on_node, predicates, pred)
                leaf += 1
        give_block(blocks, block, blocks.room[slot])
        blocks.room[slot], blocks.size[slot] = NO_BLOCK, 0
