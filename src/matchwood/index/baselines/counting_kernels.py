"""Kernels of `counting`: post expressions under their predicates, and count."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.predicate_kernels import drop, hold, stab_event, use
from matchwood.kernel.id_list_kernels import insert_id, remove_id, reserve
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import finish_event

POSTS_FULL, NODES_FULL = -1, -2
"""Why an insertion stopped: which lists have to grow."""

LEFT, NEED = range(2)
"""Columns of a counter: base + predicates still to be seen, predicates of the expression."""


@kernel
def count_uses(expressions, slots, uses):
    """How many expressions use each predicate."""
    for slot in slots:
        start = expressions.start[slot]
        for k in range(start, start + expressions.size[slot]):
            uses[expressions.code[k]] += 1


@kernel
def post_all(expressions, slots, uses, posts):
    """Fill empty lists with expressions, ascending; the arena has room for them."""
    for pred in range(len(uses)):
        reserve(posts, pred, uses[pred])
    for slot in slots:
        start = expressions.start[slot]
        for k in range(start, start + expressions.size[slot]):
            insert_id(posts, expressions.code[k], slot)


@kernel
def post_more(expressions, predicates, slots, first, posts, stabbing, segments, on_node):
    """Insert expressions first..; returns how many are done, and what is full or 0.

    An expression that did not get in whole is inserted again: what is there already stays.
    """
    for i in range(first, len(slots)):
        slot = slots[i]
        begin, end = expressions.start[slot], expressions.start[slot] + expressions.size[slot]
        for k in range(begin, end):
            if not hold(stabbing, segments, on_node, predicates, expressions.code[k]):
                return i, NODES_FULL
            if not insert_id(posts, expressions.code[k], slot):
                return i, POSTS_FULL
        for k in range(begin, end):
            use(stabbing, expressions.code[k])
    return len(slots), 0


@kernel
def unpost(expressions, predicates, slots, posts, stabbing, segments, on_node):
    """Delete expressions."""
    for slot in slots:
        start = expressions.start[slot]
        for k in range(start, start + expressions.size[slot]):
            remove_id(posts, expressions.code[k], slot)
            drop(stabbing, segments, on_node, predicates, expressions.code[k])


@part
def _next_base(counter, clock, width, limit):
    """A base above all counters; they are set back only when they come to their limit."""
    if clock[0] + 2 * width > limit:
        for slot in range(len(counter)):
            counter[slot, LEFT] = 0
        clock[0] = 0
    clock[0] += width
    return np.int32(clock[0])


@part
def _open(posts, found, n_found, opened):
    """Where the posting lists of satisfied predicates begin and end.

    Apart from the counting, so that the memory of many lists is on its way at once.
    """
    for f in range(n_found):
        opened[f, 0] = posts.start[found[f]]
        opened[f, 1] = posts.size[found[f]]


@part
def _count(posts, opened, n_found, counter, base, out, n):
    """Count along opened posting lists; returns the end of `out` (-1: full) and candidates.

    The loop has no branch that waits for a counter: an expression is written to `out` each time it
    is counted, and stays there only if nothing is left to be seen.
    """
    n_candidates = np.int64(0)
    for f in range(n_found):
        start, size = opened[f, 0], opened[f, 1]
        if n + size > len(out):
            return np.int64(-1), n_candidates
        for i in range(start, start + size):
            slot = posts.item[i]
            left = np.int32(counter[slot, LEFT]) - np.int32(1)
            fresh = base + np.int32(counter[slot, NEED]) - np.int32(1)
            is_fresh = left < base  # this event has not touched it
            left = fresh if is_fresh else left
            n_candidates += np.int64(is_fresh)
            counter[slot, LEFT] = left
            out[n] = slot
            n += np.int64(left == base)
    return n, n_candidates


@kernel
def count_batch(
    posts, counter, clock, width, limit, opened, stabbing, segments, on_node, scratch,
    events, first, stamp, board_event, board_entry, predicates, offsets, out, counters,
):  # fmt: skip
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    for e in range(first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(
            stabbing, segments, on_node, predicates,
            events, e, stamp + e, board_event, board_entry, scratch,
        )  # fmt: skip
        base = _next_base(counter, clock, width, limit)
        _open(posts, scratch.found, n_found, opened)
        n, n_candidates = _count(posts, opened, n_found, counter, base, out, offsets[e])
        if n < 0:
            return e
        finish_event(e, n, n_nodes + n_found, n_candidates, n_found + n_tested, offsets, counters)
    return len(events.start) - 1
