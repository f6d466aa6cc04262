"""Kernels that sort many slots by counting: without guesses, whatever their order was."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import part

_ONE = np.uint64(1)
"""Positions are unsigned here: a signed one is compared with 0 at every access."""


class SortRoom(NamedTuple):
    """Memory for bringing slots in order: 0 everywhere before and after."""

    word: np.ndarray  # int64, at least a bit for each slot
    half: np.ndarray  # int32, the same memory


@part
def digit_of(room):
    """Bits of the lower of two digits that slots have, so that both have about as many values."""
    digit, most = np.int64(4), np.int64(len(room.word)) << 6
    while most >> (2 * digit) > 1:
        digit += 1
    return digit


@part
def counters_of(room, digit):
    """Values of both digits together."""
    return (np.int64(1) << digit) + ((np.int64(len(room.word)) << 6) >> digit) + 1


@part
def sort_slots(slots, first, last, room, digit):
    """Sort slots[first:last] by their lower digit, then by the higher one.

    Each slot is moved to where the slots with smaller digits end, so nothing is guessed.
    room.half  [counters of the lower digit][of the higher one][the slots by their lower digit]
    """
    half, lower = room.half, np.uint64(digit)
    low, begin, n = (_ONE << lower) - _ONE, np.uint64(first), np.uint64(last - first)
    higher, moved = _ONE << lower, np.uint64(counters_of(room, digit))
    for i in range(begin, begin + n):
        slot = np.uint64(slots[i])
        half[slot & low] += np.int32(1)
        half[higher + (slot >> lower)] += np.int32(1)
    at = np.int32(moved)
    for i in range(higher):
        count = half[i]
        half[i] = at
        at += count
    at = np.int32(0)
    for i in range(higher, moved):
        count = half[i]
        half[i] = at
        at += count
    for i in range(begin, begin + n):
        slot = slots[i]
        digit_at = np.uint64(slot) & low
        at = half[digit_at]
        half[np.uint64(at)] = slot
        half[digit_at] = at + np.int32(1)
    for i in range(moved, moved + n):
        slot = half[i]
        digit_at = higher + (np.uint64(slot) >> lower)
        at = half[digit_at]
        slots[begin + np.uint64(at)] = slot
        half[digit_at] = at + np.int32(1)
    for i in range(moved + n):
        half[i] = 0
