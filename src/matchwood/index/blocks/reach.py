"""Kernels that reach blocks: codes of keys, spaces of an event, blocks whose gates are open."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.words import (
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
        attr = np.int64(events.attr[entry])
        if attr < len(scratch.code):
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
        if attr >= n_attributes or codes.n[attr] == 0:
            continue
        code = code_of(codes, attr, events.lo[entry])
        scratch.code[attr] = code
        scratch.fold_code[attr] = folded(code, codes.fold[attr])
        for dim in range(2 * attr, 2 * attr + 2):
            if places.dim_start[dim] < places.dim_start[dim + 1]:
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
    found, block = scratch.found, scratch.block
    for i in range(n_spaces):
        prefetch(blocks.at, places.block[found[i]])
        prefetch(blocks.gate, places.block[found[i]])
    n = np.int64(0)
    for i in range(n_spaces):
        for b in range(places.block[found[i]], places.block[found[i] + 1]):
            if n < len(block):
                block[n] = blocks.at[b]
            n += is_open(blocks.gate[b], scratch.code)
    return n
