"""Hits of several indexes become one list an event, in the order subscriptions were added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.engine.stores.arrange_kernels import SMALL, Slots, arrange, put_in_order
from matchwood.index.core.scratch import Scratch


def arranged(first, second, always, skip, order, is_in_order):
    """Run the kernel on lists of slots by event."""
    scratch = Scratch()
    room = scratch.sort_room(len(order) // 64 + 1 if is_in_order else 0)
    sides = [
        Slots(
            np.cumsum([0, *map(len, lists)]),
            np.array([slot for each in lists for slot in each], np.int32),
        )
        for lists in (first, second)
    ]
    offsets = np.zeros(len(skip) + 1, np.int64)
    most = sum(len(side.slots) for side in sides) + len(skip) * len(always)
    slots = np.empty(most, np.int32)
    always_array = np.array(always, np.int32)
    used = arrange(*sides, always_array, np.array(skip), order, room, Slots(offsets, slots))
    assert not room.word.any()
    assert offsets[-1] == used
    return [part.tolist() for part in np.split(slots[:used], offsets[1:-1])]


def draw(seed: int, n_events: int, most: int, n_slots: int):
    """Disjoint slots of two indexes and of what is always true, by event."""
    rng = np.random.default_rng(seed)
    events = []
    always = rng.choice(n_slots, 3, replace=False).tolist()
    for _ in range(n_events):
        left = np.setdiff1d(np.arange(n_slots), always)
        held = rng.permutation(left)[: rng.integers(0, most + 1)].tolist()
        cut = int(rng.integers(0, len(held) + 1))
        events.append((held[:cut], held[cut:]))
    skip = (rng.random(n_events) < 0.2).tolist()
    return rng, [a for a, _ in events], [b for _, b in events], sorted(always), skip


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([3, SMALL, 2 * SMALL]))
def test_slots_come_in_the_order_of_addition(seed: int, is_in_order: bool, most: int) -> None:
    n_slots = 700
    rng, first, second, always, skip = draw(seed, 4, most, n_slots)
    order = np.sort(rng.choice(10**6, n_slots, replace=False))
    if not is_in_order:
        rng.shuffle(order)
    expected = [
        [] if skipped else sorted([*a, *b, *always], key=lambda slot: order[slot])
        for a, b, skipped in zip(first, second, skip, strict=True)
    ]
    assert arranged(first, second, always, skip, order, is_in_order) == expected
    offsets = np.cumsum([0, *map(len, first)])
    slots = np.array([slot for each in first for slot in each], np.int32)
    put_in_order(
        offsets, slots, order, Scratch().sort_room(n_slots // 64 + 1 if is_in_order else 0)
    )
    assert [part.tolist() for part in np.split(slots, offsets[1:-1])] == [
        sorted(each, key=lambda slot: order[slot]) for each in first
    ]


@pytest.mark.parametrize("n", [SMALL, SMALL + 1, 64 * 20])
def test_every_bit_of_a_word_is_read_off(n: int) -> None:
    slots = list(range(n))[::-1]
    assert arranged([slots], [[]], [], [False], np.arange(n), True) == [slots[::-1]]


@pytest.mark.parametrize("n_words", [2, 63, 64, 65, 4095, 4096, 4097, 9000])
def test_the_highest_slot_of_a_bitmap_is_read_off(n_words: int) -> None:
    highest = 64 * n_words - 1
    slots = np.array([highest, *range(SMALL, 0, -1), 0], np.int32)
    room = Scratch().sort_room(n_words)
    put_in_order(np.array([0, len(slots)]), slots, np.empty(0, np.int64), room)
    assert slots.tolist() == [*range(SMALL + 1), highest]
    assert not room.word.any()


@pytest.mark.parametrize("n_words", [1, 3, 64, 1_000, 16_000])
@pytest.mark.parametrize("share", [0.002, 0.01, 0.03, 0.2, 1.0])
def test_any_number_of_slots_is_put_in_order(n_words: int, share: float) -> None:
    rng = np.random.default_rng(n_words)
    room, n_slots = Scratch().sort_room(n_words), 64 * n_words
    each = [
        rng.choice(n_slots, size, replace=False).astype(np.int32)
        for size in (int(share * n_slots), 0, n_slots // 50, 1)
    ]
    slots, offsets = np.concatenate(each), np.cumsum([0, *map(len, each)])
    put_in_order(offsets, slots, np.empty(0, np.int64), room)
    assert slots.tolist() == [slot for some in each for slot in sorted(some.tolist())]
    assert not room.word.any()


def test_room_to_sort_grows_and_stays_empty() -> None:
    scratch = Scratch()
    assert len(scratch.sort_room(0).word) == 0
    assert len(scratch.sort_room(10).word) >= 10
    assert len(scratch.sort_room(1_000).word) >= 1_000
    assert not scratch.sort_room(5).word.any()
    assert len(scratch.sort_room(0).half) == 0
