"""Asking for the expressions and predicates of a long list before their turn comes.

Expressions in another order than that of the table, and their predicates in any case, lie all over
memory; with millions of them every look waits for memory.  What a slot needs is known long before:
first where its expression is, then its predicate ids, then these predicates.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import part, prefetch

STEP, AHEAD = 6, 16
"""Slots between one round and the next; between asking for one thing and reading it."""


@part
def ask_for(predicates, pred):
    """Ask for a predicate."""
    prefetch(predicates.attr, pred)
    prefetch(predicates.lo, pred)
    prefetch(predicates.hi, pred)
    prefetch(predicates.n_intervals, pred)


@part
def look_ahead(expressions, predicates, slots, i):
    """Ask for what slots[i + STEP] needs, and in part the two rounds of slots behind it."""
    last = len(slots) - 1
    slot = slots[min(i + 3 * STEP, last)]
    prefetch(expressions.start, slot)
    prefetch(expressions.size, slot)
    prefetch(expressions.code, expressions.start[slots[min(i + 2 * STEP, last)]])
    slot = slots[min(i + STEP, last)]
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        ask_for(predicates, np.int64(expressions.code[k]))
