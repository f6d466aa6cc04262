"""Arrange: bring the hits of several indexes together, in the order subscriptions were added."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, lowest_bit, part
from matchwood.kernel.slot_sort_kernels import counters_of, digit_of, sort_slots
from matchwood.kernel.sort_kernels import sort_by, sort_words

SMALL = 32
"""Hits of an event up to which they are sorted by comparing.

Of more, those that are few or very many among all slots are marked in a bitmap and read off; else
counting is faster.
"""

_TOP = np.int64(-(2**63))
"""The highest bit of a word: a word that has it has a lowest one, too."""
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)
"""Positions are unsigned here: a signed one is compared with 0 at every access, and these loops do
little else."""


class Slots(NamedTuple):
    """Slots by event: those of event e are slots[offsets[e]:offsets[e + 1]]."""

    offsets: np.ndarray
    slots: np.ndarray


@part
def _mark(slots, first, last, bitmap, base):
    """Set the bits of slots, and those of the words that have some."""
    for i in range(np.uint64(first), np.uint64(last)):
        slot = np.uint64(slots[i])
        word = slot >> _SIX
        bitmap[base + word] |= np.int64(1) << np.int64(slot & _LOW)
        bitmap[word >> _SIX] |= np.int64(1) << np.int64(word & _LOW)


@part
def _write_word(slots, at, last, word, bits):
    """Write the slots of a word, which has one or more; returns the position behind them.

    The second is written whether there is one or not, and counted: a wrong guess would cost more.
    What is too much is written over.
    """
    begin = np.int64(word << _SIX)
    slots[at] = begin + lowest_bit(bits)
    at += _ONE
    bits &= bits - np.int64(1)
    if at < last:
        slots[at] = begin + lowest_bit(bits | _TOP)
        at += np.uint64(bits != 0)
        bits &= bits - np.int64(1)
        while bits != 0:
            slots[at] = begin + lowest_bit(bits)
            at += _ONE
            bits &= bits - np.int64(1)
    return at


@part
def _read_off_bitmap(slots, first, last, bitmap):
    """Mark the slots in the bitmap and read them off in order, while it becomes zero again.

    bitmap  [a bit for each word behind][a bit for each slot]: words without a slot are not read
    """
    base = np.uint64(len(bitmap) // 65 + 1)
    _mark(slots, first, last, bitmap, base)
    at, end, group = np.uint64(first), np.uint64(last), np.uint64(0)
    while at < end and group < base:
        some = bitmap[group]
        bitmap[group] = 0
        while some != 0:
            word = (group << _SIX) + np.uint64(lowest_bit(some))
            some &= some - np.int64(1)
            bits = bitmap[base + word]
            bitmap[base + word] = 0
            at = _write_word(slots, at, end, word, bits)
        group += _ONE


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
def arrange_event(slots, first, last, order, room):
    """Put the slots of one event in order."""
    n = last - first
    if len(room.word) == 0:
        if not _is_sorted(slots, first, last, order):
            sort_by(slots, order, first, last)
    elif not _is_ascending(slots, first, last):
        if n <= SMALL:
            sort_words(slots, first, last)
            return
        digit = digit_of(room)
        counters = counters_of(room, digit)
        if 4 * n > counters and n + counters <= len(room.half):
            sort_slots(slots, first, last, room, digit)
        else:
            _read_off_bitmap(slots, first, last, room.word)


@kernel
def arrange(first, second, always, skip, order, room, merged):
    """Write to `merged` both sources and `always`, by order; nothing for skipped events.

    Returns how many slots were written.  `room` is that of `Scratch.sort_room` for all slots; none
    when slots do not ascend as `order` does.
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
            arrange_event(slots, begin, at, order, room)
        merged.offsets[e + 1] = at
    return at


@kernel
def put_in_order(offsets, slots, order, room):
    """Sort the slots of every event by order; `room` as for `arrange`."""
    for e in range(len(offsets) - 1):
        arrange_event(slots, offsets[e], offsets[e + 1], order, room)
