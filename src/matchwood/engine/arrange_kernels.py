"""Arrange: bring the hits of several indexes together, in the order subscriptions were added."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import bits_set, kernel, lowest_bit, part
from matchwood.kernel.sort_kernels import sort_by, sort_words

SMALL = 256
"""Segments up to this size are sorted; larger ones are marked in a bitmap and read off, which costs
a look at every 64 slots instead of many comparisons."""

_TOP = np.int64(-(2**63))
"""The highest bit of a word: a word that has it has a lowest one, too."""


class Slots(NamedTuple):
    """Slots by event: those of event e are slots[offsets[e]:offsets[e + 1]]."""

    offsets: np.ndarray
    slots: np.ndarray


@part
def _write_bits(slots, at, word, bits):
    """Write the slots of the bits of a word; returns the position behind them."""
    while bits != 0:
        slots[at] = (word << 6) + lowest_bit(bits)
        at += 1
        bits &= bits - np.int64(1)
    return at


@part
def _read_off_bitmap(slots, first, last, bitmap):
    """Mark the slots in the bitmap and read them off in order, while it becomes zero again.

    Two slots of a word are written whether it has them or not, and counted: few words have more,
    and a wrong guess about how many there are would cost more.  What is too much is written over.
    """
    low, high = np.int64(len(bitmap)), np.int64(-1)
    for i in range(first, last):
        word = np.int64(slots[i]) >> 6
        bitmap[word] |= np.int64(1) << np.int64(slots[i] & 63)
        low, high = min(low, word), max(high, word)
    at, word = np.int64(first), low
    while at + 2 <= last and word <= high:
        bits = bitmap[word]
        bitmap[word] = 0
        others = bits & (bits - np.int64(1))
        slots[at] = (word << 6) + lowest_bit(bits | _TOP)
        slots[at + 1] = (word << 6) + lowest_bit(others | _TOP)
        n = np.int64(bits_set(bits))
        if n > 2:
            _write_bits(slots, at + 2, word, others & (others - np.int64(1)))
        at += n
        word += 1
    while word <= high:
        at = _write_bits(slots, at, word, bitmap[word])
        bitmap[word] = 0
        word += 1


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
            sort_by(slots, order, first, last)
    elif not _is_ascending(slots, first, last):
        if last - first > SMALL:
            _read_off_bitmap(slots, first, last, bitmap)
        else:
            sort_words(slots, first, last)


@kernel
def arrange(first, second, always, skip, order, bitmap, merged):
    """Write to `merged` both sources and `always`, by order; nothing for skipped events.

    Returns how many slots were written.  `bitmap` is int64, zero before and after, one bit per
    slot; empty when slots do not ascend as `order` does.
    """
    slots, at = merged.slots, 0
    for e in range(len(skip)):
        begin = at
        if not skip[e]:
            for i in range(first.offsets[e], first.offsets[e + 1]):
                slots[at] = first.slots[i]
                at += 1
            for i in range(second.offsets[e], second.offsets[e + 1]):
                slots[at] = second.slots[i]
                at += 1
            for i in range(len(always)):
                slots[at] = always[i]
                at += 1
            arrange_event(slots, begin, at, order, bitmap)
        merged.offsets[e + 1] = at
    return at


@kernel
def put_in_order(offsets, slots, order, bitmap):
    """Sort the slots of every event by order; `bitmap` as for `arrange`."""
    for e in range(len(offsets) - 1):
        arrange_event(slots, offsets[e], offsets[e + 1], order, bitmap)
