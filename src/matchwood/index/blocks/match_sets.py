"""Kernels that match events of sets: every member of a space that a hull meets is verified."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.match import mine_of, view_of
from matchwood.index.blocks.verify import FULL
from matchwood.index.blocks.words import code_of, item_of, members_of, position_of
from matchwood.index.core.hit_kernels import all_hold
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    NODES,
    PREDICATES,
    Posted,
    finish_event,
    post_event,
)


@part
def _try_slot(slot, view, scratch, event, out, n):
    """Append a slot that the event of sets has not met yet, if it holds; there is room."""
    if scratch.seen[slot] == scratch.clock[0]:
        return n
    scratch.seen[slot] = scratch.clock[0]
    scratch.work[CANDIDATES] += 1
    if all_hold(slot, view.expressions, event, scratch.work):
        out[n] = slot
        n += 1
    return n


@part
def _try_block(b, view, scratch, event, out, n):
    """Test every slot of a block; returns the end of `out`, or FULL."""
    blocks = view.blocks
    at = blocks.at[b]
    scratch.work[NODES] += 1
    for m in range(members_of(blocks.word[at])):
        item = item_of(blocks, at, m)
        begin, last = np.int64(0), np.int64(1)
        if item < 0:
            begin, last = blocks.twin_start[~item], blocks.twin_start[~item + 1]
        if n + last - begin > len(out):
            return np.int64(FULL)
        for k in range(begin, last):
            slot = item if item >= 0 else np.int64(blocks.twin[k])
            n = _try_slot(slot, view, scratch, event, out, n)
    return n


@kernel
def match_sets(bound, bound_mine, bound_query, first, stamp):
    """Match events of sets; returns how many are done (fewer: `out` is full).

    Gates are not asked: a set may be inside and outside.
    """
    view, mine, query = view_of(bound), mine_of(bound_mine), query_of(bound_query)
    events, output = query.events, query.output
    places, work = view.places, mine.memory.work
    n_attributes = len(places.dim_start) >> 1
    n = output.offsets[first]
    for e in range(first, len(events.start) - 1):
        post_event(events, e, stamp + e, mine.board)
        event = Posted(events, stamp + e, mine.board, view.predicates)
        for i in range(len(work)):
            work[i] = 0
        mine.memory.clock[0] += 1
        for entry in range(events.start[e], events.start[e + 1]):
            attr = np.int64(events.attr[entry])
            if attr >= n_attributes:
                continue
            for dim in range(2 * attr, 2 * attr + 2):
                if places.dim_start[dim] == places.dim_start[dim + 1]:
                    continue
                low = code_of(view.codes, attr, min(events.lo[entry], events.hi[entry]))
                high = code_of(view.codes, attr, max(events.lo[entry], events.hi[entry]))
                low, high = position_of(places, dim, low), position_of(places, dim, high)
                for b in range(places.block[low], places.block[high + 1]):
                    n = _try_block(b, view, mine.memory, event, output.out, n)
                    if n < 0:
                        return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
