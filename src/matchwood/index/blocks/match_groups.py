"""Kernels that match groups of events of values: first block by block, then event by event."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.groups import (
    NO_ROOM,
    gather_visits,
    list_by_block,
    list_by_event,
    test_by_block,
)
from matchwood.index.blocks.match import MOST_PENDING, mine_of, test_reached, view_of
from matchwood.index.blocks.reach import clear_codes
from matchwood.index.blocks.verify import test_entries
from matchwood.index.blocks.words import folded
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.jit import inlined, kernel, prefetch
from matchwood.kernel.verify_kernels import CANDIDATES, NODES, PREDICATES, finish_event


@kernel
def gather_group(bound, bound_mine, bound_query, group, first, least):
    """Find the open members of events from `first` on; returns the end of these events.

    `first` if a block has fewer than `least` visits on average, or memory ends.
    """
    view, scratch, query = view_of(bound), mine_of(bound_mine).memory, query_of(bound_query)
    n, last = gather_visits(view, query.events, first, scratch, group)
    if n < least * len(view.blocks.gate):
        return first
    list_by_block(group, n)
    n, n_visits, n_members = test_by_block(view.blocks, group)
    if n == NO_ROOM:
        return first
    list_by_event(group, n)
    query.output.counters[NODES] += n_visits
    query.output.counters[CANDIDATES] += n_members
    return last


@inlined
def _set_codes(codes, events, e, group, scratch):
    """Write the codes of an event that `gather_group` has found."""
    for i in range(events.start[e], events.start[e + 1]):
        attr = np.uint64(events.attr[i])
        if group.code[i] != 0:
            scratch.code[attr] = group.code[i]
            scratch.fold_code[attr] = folded(group.code[i], codes.fold[attr])


@inlined
def _take(blocks, group, at, end, scratch):
    """Take entries to be tested, and blocks; returns the next position, and how many of each."""
    n_pending, n_blocks, block = np.int64(0), np.int64(0), scratch.block
    while at < end and n_pending < MOST_PENDING:
        entry = group.by_event[at]
        if entry >= 0:
            scratch.pending[n_pending] = entry
            n_pending += 1
        else:
            if n_blocks < len(block):
                block[n_blocks] = ~entry
            n_blocks += 1
        at += 1
    return at, n_pending, n_blocks


@kernel
def match_group(bound, bound_mine, bound_query, group, group_first, first, last):
    """Match events first .. last - 1 of a gathered group; returns how many of all are done.

    Fewer if `out` is full; ~that, with the number in work[NODES], when scratch has no room for the
    blocks of an event.
    """
    view, scratch, query = view_of(bound), mine_of(bound_mine).memory, query_of(bound_query)
    events, output, blocks = query.events, query.output, view.blocks
    out, work = output.out, scratch.work
    n = output.offsets[first]
    for e in range(first, last):
        for i in range(len(work)):
            work[i] = 0
        g = e - group_first
        at, end = group.event_end[g], group.event_end[g + 1]
        for i in range(end, min(end + 32, len(group.by_event))):
            prefetch(blocks.word, max(group.by_event[i], ~group.by_event[i]))
        _set_codes(view.codes, events, e, group, scratch)
        n_blocks = np.int64(0)
        while at < end and n >= 0:
            at, n_pending, n_blocks = _take(blocks, group, at, end, scratch)
            if n_blocks > len(scratch.block):
                break
            n = test_entries(blocks, scratch, n_pending, out, n)
            if n >= 0 and n_blocks > 0:
                n = test_reached(blocks, n_blocks, query.most[0], scratch, out, n)
        clear_codes(events, e, scratch)
        if n < 0:
            return e
        if n_blocks > len(scratch.block):
            work[NODES] = n_blocks
            return ~np.int64(e)
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return last
