"""Arrange: bring the hits of several indexes together, in the order subscriptions were added."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, lowest_bit, part
from matchwood.kernel.sort_kernels import sort_words

SMALL = 256
"""Segments up to this size are sorted; larger ones are marked in a bitmap and read off, which costs
a look at every 64 slots instead of many comparisons."""


@part
def _sort_by_order(slots, first, last, order):
    n = last - first
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            slot = slots[i]
            j = i - gap
            while j >= first and order[slots[j]] > order[slot]:
                slots[j + gap] = slots[j]
                j -= gap
            slots[j + gap] = slot
        gap //= 3


@part
def _read_off_bitmap(slots, first, last, bitmap):
    low, high = len(bitmap), -1
    for i in range(first, last):
        word = slots[i] >> 6
        bitmap[word] |= np.int64(1) << np.int64(slots[i] & 63)
        low, high = min(low, word), max(high, word)
    at = first
    for word in range(low, high + 1):
        bits = bitmap[word]
        if bits != 0:
            bitmap[word] = 0
            while bits != 0:
                slots[at] = (word << 6) + lowest_bit(bits)
                at += 1
                bits &= bits - np.int64(1)


@part
def _is_ascending(slots, first, last):
    for i in range(first + 1, last):
        if slots[i - 1] > slots[i]:
            return False
    return True


@part
def _is_sorted(slots, first, last, order):
    for i in range(first + 1, last):
        if order[slots[i - 1]] > order[slots[i]]:
            return False
    return True


@part
def arrange_event(slots, first, last, order, bitmap):
    """Put the slots of one event in order."""
    if len(bitmap) == 0:
        if not _is_sorted(slots, first, last, order):
            _sort_by_order(slots, first, last, order)
    elif not _is_ascending(slots, first, last):
        if last - first > SMALL:
            _read_off_bitmap(slots, first, last, bitmap)
        else:
            sort_words(slots, first, last)


@kernel
def arrange(offsets_a, slots_a, offsets_b, slots_b, always, skip, order, bitmap, offsets, slots):
    """Write `offsets` and `slots`: both sources and `always`, by order; nothing for skipped events.

    `bitmap` is int64, zero before and after, one bit per slot; empty when slots do not ascend as
    `order` does.
    """
    at = 0
    for e in range(len(skip)):
        first = at
        if not skip[e]:
            for i in range(offsets_a[e], offsets_a[e + 1]):
                slots[at] = slots_a[i]
                at += 1
            for i in range(offsets_b[e], offsets_b[e + 1]):
                slots[at] = slots_b[i]
                at += 1
            for i in range(len(always)):
                slots[at] = always[i]
                at += 1
            arrange_event(slots, first, at, order, bitmap)
        offsets[e + 1] = at
    return at


@kernel
def put_in_order(offsets, slots, order, bitmap):
    """Sort the slots of every event by order; `bitmap` as for `arrange`."""
    for e in range(len(offsets) - 1):
        arrange_event(slots, offsets[e], offsets[e + 1], order, bitmap)
