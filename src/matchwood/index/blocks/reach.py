"""Kernels that reach blocks: codes of keys, spaces of an event, blocks whose gates are open."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.words import code_of, is_open, signature_bit
from matchwood.kernel.jit import part, prefetch
from matchwood.kernel.sort_kernels import last_not_above


@part
def place_of(places, dim, key):
    """The space of a dimension that a key falls into; there is one."""
    return last_not_above(places.first_key, places.dim_start[dim], places.dim_start[dim + 1], key)


@part
def post_codes(codes, events, e, code, absent):
    """Write the codes of an event's keys, and the bits of attributes that it has not."""
    n_attributes, present = len(codes.n), np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr < n_attributes and codes.n[attr] > 0:
            code[attr] = code_of(codes, attr, events.lo[entry])
            present |= signature_bit(attr)
    absent[0] = ~present


@part
def clear_codes(events, e, code):
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr < len(code):
            code[attr] = 0


@part
def find_spaces(places, events, e, found):
    """The spaces of an event's keys; returns how many."""
    n_attributes = len(places.dim_start) >> 1
    for entry in range(events.start[e], events.start[e + 1]):
        prefetch(places.dim_start, 2 * np.int64(events.attr[entry]))
    n = np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr >= n_attributes:
            continue
        for dim in range(2 * attr, 2 * attr + 2):
            if places.dim_start[dim] < places.dim_start[dim + 1]:
                place = place_of(places, dim, events.lo[entry])
                prefetch(places.block, place)
                found[n] = place
                n += 1
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
