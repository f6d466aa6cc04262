"""Kernels of a search for the best of what holds, by rank: blocks that have no better are not read.

A slot has a *rank*, the best is 0; a block the best rank of its members (`best_of_blocks`).  The
blocks of an event are tested in the order of their best ranks.  Once as many slots are found as are
wanted, the search ends at the first block whose best is behind all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.match import AHEAD, FAR_AHEAD, mine_of, view_of
from matchwood.index.blocks.reach import clear_codes, find_spaces
from matchwood.index.blocks.verify import NO_BLOCK, test_block, test_entries
from matchwood.index.blocks.words import is_open, item_of, members_of
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.jit import kernel, part, prefetch
from matchwood.kernel.sort_kernels import sort_words
from matchwood.kernel.verify_kernels import CANDIDATES, NODES, PREDICATES, finish_event

RANK_BITS, BLOCK = 32, 2**32 - 1
"""Where the rank is in a word that blocks are sorted by; below is the number of the block."""

NO_RANK = 2**31 - 1
"""Behind all ranks."""

TOGETHER = 64
"""Matches and members with entries that are compared with the best so far at a time."""


class Ranks(NamedTuple):
    """What is better, and what does not count."""

    rank: np.ndarray  # int32[slots]; empty: a slot is its own rank
    best: np.ndarray  # int32[B], of the members of each block
    gone: np.ndarray  # uint8[slots / 8 + 1], bits of slots that do not count; or empty


@part
def rank_of(rank, slot):
    return np.int64(rank[slot]) if len(rank) > 0 else np.int64(slot)


@kernel
def best_of_blocks(bound, rank, best):
    """The best rank of the members of each block."""
    blocks = view_of(bound).blocks
    for b in range(len(best)):
        at, found = blocks.at[b], np.int64(NO_RANK)
        for m in range(members_of(blocks.word[at])):
            item = item_of(blocks, at, m)
            if item >= 0:
                found = min(found, rank_of(rank, item))
                continue
            for k in range(blocks.twin_start[~item], blocks.twin_start[~item + 1]):
                found = min(found, rank_of(rank, blocks.twin[k]))
        best[b] = found


@part
def _find_ranked(places, blocks, best, n_spaces, scratch):
    """The blocks of the event's spaces whose gates are open, best first; returns how many.

    scratch.block has [best rank | number] of each.
    """
    found, block, n = scratch.found, scratch.block, np.int64(0)
    for i in range(n_spaces):
        for b in range(places.block[found[i]], places.block[found[i] + 1]):
            if n < len(block):
                block[n] = (np.int64(best[b]) << RANK_BITS) | b
            n += is_open(blocks.gate[b], scratch.code)
    if n <= len(block):
        sort_words(block, np.int64(0), n)
    return n


@part
def _keep_rank(heap, n, rank):
    """Keep a rank if it is among the best; heap[0] is the worst of them.  Returns how many."""
    if n < len(heap):
        at = n
        while at > 0 and heap[(at - 1) >> 1] < rank:
            heap[at] = heap[(at - 1) >> 1]
            at = (at - 1) >> 1
        heap[at] = rank
        return n + 1
    if rank >= heap[0]:
        return n
    at = np.int64(0)
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= rank:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = rank
    return n


@part
def _keep_best(ranks, out, first, end, heap, n):
    """Leave out of out[first:end] what is behind the best so far; returns its end, and how many.

    The n ranks in the heap are those of the best; what is gone stays and does not count.
    """
    at, worst = np.uint64(first), np.int64(heap[0]) if n == len(heap) else np.int64(NO_RANK)
    for i in range(np.uint64(first), np.uint64(end)):
        slot = np.int64(out[i])
        rank = rank_of(ranks.rank, slot)
        out[at] = slot
        if rank > worst:
            continue
        at += np.uint64(1)
        if len(ranks.gone) == 0 or ((ranks.gone[slot >> 3] >> (slot & 7)) & 1) == 0:
            n = _keep_rank(heap, n, rank)
            worst = np.int64(heap[0]) if n == len(heap) else worst
    return np.int64(at), n


@part
def _test_ranked(blocks, n_blocks, scratch, out, first, ranks, heap):
    """Append what holds in blocks that may have one of the best; returns the end, or FULL."""
    block, n, kept, done = scratch.block, first, np.int64(0), first
    n_pending = np.int64(0)
    for i in range(min(np.int64(FAR_AHEAD), n_blocks)):
        prefetch(blocks.word, blocks.at[block[i] & BLOCK])
    for i in range(n_blocks):
        if kept == len(heap) and (block[i] >> RANK_BITS) > heap[0]:
            break
        if i + FAR_AHEAD < n_blocks:
            prefetch(blocks.word, blocks.at[block[i + FAR_AHEAD] & BLOCK])
        ahead = np.int64(NO_BLOCK)
        if i + AHEAD < n_blocks:
            ahead = blocks.at[block[i + AHEAD] & BLOCK]
        at = blocks.at[block[i] & BLOCK]
        n, n_pending = test_block(blocks, at, ahead, scratch, out, n, n_pending)
        if n < 0:
            return n
        if n_pending + (n - done) >= TOGETHER:
            n = test_entries(blocks, scratch, n_pending, out, n)
            if n < 0:
                return n
            n_pending = np.int64(0)
            n, kept = _keep_best(ranks, out, done, n, heap, kept)
            done = n
    n = test_entries(blocks, scratch, n_pending, out, n)
    if n >= 0:
        n, kept = _keep_best(ranks, out, done, n, heap, kept)
    return n


@kernel
def match_best(bound, bound_mine, bound_query, ranks, heap, first):
    """As `match_blocks`, but of each event some matches that have the len(heap) best among them.

    heap  int32, written to
    """
    view, scratch, query = view_of(bound), mine_of(bound_mine).memory, query_of(bound_query)
    events, output, work = query.events, query.output, scratch.work
    n = output.offsets[first]
    for e in range(first, len(events.start) - 1):
        for i in range(len(work)):
            work[i] = 0
        n_spaces = find_spaces(view.codes, view.places, events, e, scratch)
        n_blocks = _find_ranked(view.places, view.blocks, ranks.best, n_spaces, scratch)
        if n_blocks > len(scratch.block):
            clear_codes(events, e, scratch)
            work[NODES] = n_blocks
            return ~np.int64(e)
        n = _test_ranked(view.blocks, n_blocks, scratch, output.out, n, ranks, heap)
        clear_codes(events, e, scratch)
        if n < 0:
            return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
