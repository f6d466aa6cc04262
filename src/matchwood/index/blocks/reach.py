"""Kernels that reach blocks: codes of keys, spaces of an event, blocks whose gates are open."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.words import (
    ONE,
    ask_for_code,
    code_of,
    folded,
    guide_of,
    is_open,
    position_of,
)
from matchwood.kernel.jit import part, prefetch


@part
def clear_codes(events, e, scratch):
    """Forget the codes of an event."""
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.uint64(events.attr[entry])
        if attr < np.uint64(len(scratch.code)):
            scratch.code[attr] = 0
            scratch.fold_code[attr] = 0


@part
def find_spaces(codes, places, events, e, scratch):
    """Write the codes of an event's keys, and its spaces; returns how many these are."""
    n_attributes, n = len(codes.n), np.int64(0)
    first, end = events.start[e], events.start[e + 1]
    for entry in range(first, end):
        attr = np.int64(events.attr[entry])
        if attr < n_attributes:
            ask_for_code(codes, attr, events.lo[entry])
    for entry in range(first, end):
        attr = np.int64(events.attr[entry])
        if attr >= n_attributes or codes.n[np.uint64(attr)] == 0:
            continue
        code = code_of(codes, attr, events.lo[entry])
        scratch.code[np.uint64(attr)] = code
        scratch.fold_code[np.uint64(attr)] = folded(code, codes.fold[np.uint64(attr)])
        for dim in range(2 * attr, 2 * attr + 2):
            if places.dim_start[np.uint64(dim)] < places.dim_start[np.uint64(dim + 1)]:
                prefetch(places.guide, guide_of(places, dim, code))
                scratch.found[n] = dim
                n += 1
    for i in range(n):
        dim = scratch.found[i]
        position = position_of(places, dim, np.int64(scratch.code[dim >> 1]))
        prefetch(places.block, position)
        scratch.found[i] = position
    return n


@part
def find_blocks(places, blocks, n_spaces, scratch):
    """Where the blocks of the event's spaces begin whose gates are open; returns how many.

    No branch depends on a gate: a wrong guess would cost more than the test.
    """
    found, block, most = scratch.found, scratch.block, np.uint64(len(scratch.block))
    for i in range(np.uint64(n_spaces)):
        first = places.block[np.uint64(found[i])]
        prefetch(blocks.at, first)
        prefetch(blocks.gate, first)
    n = np.uint64(0)
    for i in range(np.uint64(n_spaces)):
        space = np.uint64(found[i])
        for b in range(np.uint64(places.block[space]), np.uint64(places.block[space + ONE])):
            if n < most:
                block[n] = blocks.at[b]
            n += np.uint64(is_open(blocks.gate[b], scratch.code))
    return np.int64(n)
