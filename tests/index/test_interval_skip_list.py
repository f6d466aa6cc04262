"""The interval skip list: Figure 9 of the AGILE paper, and the laws of stabbing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.index.stabbing.interval_skip_list import IntervalSkipList

A, B, C = range(3)
MIN, MAX = -(2**63), 2**63 - 1
LEVELS = {0: 3, 10: 1, 17: 3, 21: 1, 29: 2, 33: 1, 40: 3}
"""Levels of the nodes in the paper's drawing; 0 is not shown there."""


def figure_9() -> IntervalSkipList:
    """The ranges of the drawing share their ends; ours end before the next begins."""
    drawn = IntervalSkipList()
    for key, levels in LEVELS.items():
        drawn.make_node(key, levels)
    drawn.insert(A, 21, 33 - 1)
    drawn.insert(B, 10, 21 - 1)
    drawn.insert(C, 0, 40 - 1)
    return drawn


def test_figure_9_marks_the_largest_ranges():
    drawn = figure_9()
    assert [(lo, hi) for _, lo, hi in drawn.ranges(A)] == [(21, 29), (29, 33)]
    assert [(lo, hi) for _, lo, hi in drawn.ranges(B)] == [(10, 17), (17, 21)]
    assert drawn.ranges(C) == [(2, 0, 17), (2, 17, 40)]


def test_figure_9_finds_c_and_a_for_a_quantity_of_25():
    drawn = figure_9()
    assert drawn.stab(25) == [A, C]
    assert drawn.stab(12) == [B, C]
    assert drawn.stab(39) == [C]
    assert drawn.stab(41) == []


def test_the_drawing_shows_ranges_by_level():
    assert figure_9().draw().splitlines()[-1].startswith("|--0--10-1-17-1-21-0-29-0-33")


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), min_size=1, max_size=40
    ),
    st.randoms(use_true_random=False),
)
def test_a_key_finds_exactly_the_intervals_that_hold_it(intervals, rng):
    held: dict[int, tuple[int, int]] = {}
    skip_list = IntervalSkipList()
    for i, (lo, hi) in enumerate(intervals):
        held[i] = lo, hi
        skip_list.insert(i, lo, hi)
        if rng.random() < 0.3:
            gone = rng.choice(list(held))
            skip_list.delete(gone)
            del held[gone]
    for key in range(-1, 32):
        assert skip_list.stab(key) == [i for i, (lo, hi) in held.items() if lo <= key <= hi]


def test_open_ends_and_the_ends_of_the_keys():
    ends = IntervalSkipList()
    ends.insert(0, MIN, MAX)
    ends.insert(1, MIN, 5)
    ends.insert(2, 5, MAX)
    ends.insert(3, MAX - 1, MAX - 1)
    assert ends.stab(MIN) == [0, 1]
    assert ends.stab(5) == [0, 1, 2]
    assert ends.stab(MAX - 1) == [0, 2, 3]
    assert ends.stab(MAX) == [0, 2]


def test_deleting_gives_nodes_and_memory_back():
    rng = Random(3)
    skip_list = IntervalSkipList()
    empty = skip_list.nbytes
    for i in range(2_000):
        lo = rng.randrange(10**9)
        skip_list.insert(i, lo, lo + rng.randrange(10**6))
    assert skip_list.n_nodes > 3_900
    for i in range(1_990):
        skip_list.delete(i)
    assert skip_list.n_nodes < 200
    for i in range(1_990, 2_000):
        skip_list.delete(i)
    assert skip_list.nbytes == empty


def test_a_taken_identifier_and_an_empty_interval_are_refused():
    skip_list = IntervalSkipList()
    skip_list.insert(7, 1, 2)
    with pytest.raises(ValueError, match="delete it first"):
        skip_list.insert(7, 3, 4)
    with pytest.raises(ValueError, match="expected an interval"):
        skip_list.insert(8, 4, 3)
