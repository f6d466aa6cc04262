"""Kernels of `expression_postings`: post trees, or their leaves, under their predicates."""

from __future__ import annotations

from matchwood.kernel.jit import kernel


@kernel
def count_leaves(expressions, slots, is_once, last, uses, n_leaves):
    """How often each predicate occurs, and the leaves of every expression.

    is_once   count a predicate once for an expression; `last` is as in `post_slots`
    """
    for i in range(len(slots)):
        start, n = expressions.start[slots[i]], 0
        for k in range(start, start + expressions.size[slots[i]]):
            pred = expressions.code[k]
            if pred >= 0:
                n += 1
                if not is_once or last[pred] != slots[i]:
                    last[pred] = slots[i]
                    uses[pred] += 1
        n_leaves[i] = n


@kernel
def post_leaves(expressions, slots, word_start, start, item):
    """Write where the two words of each leaf are to the list of its predicate; uses `start` up."""
    for i in range(len(slots)):
        begin, word = expressions.start[slots[i]], word_start[i]
        for k in range(begin, begin + expressions.size[slots[i]]):
            pred = expressions.code[k]
            if pred >= 0:
                item[start[pred]] = word
                start[pred] += 1
                word += 2
