"""AGILE: the warehouse examples of Figures 5 to 7 and 10, and the invariant k(i) in K(i)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchwood.context.agile import STRUCTURES, AgileIndex
from matchwood.index.stabbing.interval_skip_list import IntervalSkipList

A, B, C = range(3)
MIN, MAX = -(2**63), 2**63 - 1


def warehouses() -> AgileIndex:
    """Figure 5, left: nodes 5 and 2, both warehouses have two items in stock."""
    tree = AgileIndex("search_tree")
    tree.insert(C, MIN, 5)  # makes node 5; the drawing has others below and above
    tree.insert(A, MIN, 2)
    tree.insert(B, MIN, 2)
    tree.delete(C)
    return tree


def test_figure_5_escalates_a_to_the_left_set_of_node_5():
    tree = warehouses()
    assert tree.keys_of(A) == tree.key_of(A) == (MIN, 2)
    assert tree.update(A, MIN, 3)
    assert tree.keys_of(A) == (MIN, 4)  # less than five items, as far as the index knows
    assert tree.probe(4) == [A]  # a false positive: it has three
    assert tree.probe(5) == tree.probe(6) == []
    assert tree.probe(2) == [A, B]
    assert tree.keys_of(B) == (MIN, 2)


def test_figure_6_an_update_inside_k_changes_nothing():
    tree = warehouses()
    tree.update(A, MIN, 3)
    assert not tree.update(A, MIN, 1)
    assert tree.keys_of(A) == (MIN, 4)


def test_figure_7_deescalates_a_to_the_left_set_of_node_2():
    tree = warehouses()
    tree.update(A, MIN, 3)
    tree.update(A, MIN, 1)
    tree.deescalate(A)
    assert tree.keys_of(A) == (MIN, 1)  # the left set of node 2
    assert tree.probe(2) == [B]
    assert tree.probe(1) == [A, B]
    tree.deescalate(A)  # from a leaf's set: a node of its own
    assert tree.keys_of(A) == (MIN, 1)


def figure_9() -> AgileIndex:
    index = AgileIndex("interval_skip_list")
    drawn = IntervalSkipList()
    for key, levels in {0: 3, 10: 1, 17: 3, 21: 1, 29: 2, 33: 1, 40: 3}.items():
        drawn.make_node(key, levels)
    index.structure = drawn.structure
    index.insert(A, 21, 33 - 1)
    index.insert(B, 10, 21 - 1)
    index.insert(C, 0, 40 - 1)
    return index


def ranges(index: AgileIndex, i: int) -> list[tuple[int, int]]:
    view = IntervalSkipList()
    view.structure = index.structure
    return [(lo, hi) for _, lo, hi in view.ranges(i)]


def test_figure_10_promotes_a_to_the_lowest_range_that_covers_it():
    index = figure_9()
    assert index.probe(39) == [C]
    assert index.update(A, 21, 36 - 1)
    assert ranges(index, A) == [(21, 29), (29, 40)]
    assert index.probe(39) == [A, C]  # a false positive
    assert not index.update(A, 21, 39 - 1)  # cheap: nothing changes
    assert ranges(index, A) == [(21, 29), (29, 40)]
    index.update(A, 21, 36 - 1)
    index.deescalate(A)  # the ranges are the smallest there are: split one
    assert index.keys_of(A) == (21, 35)
    assert index.probe(36) == [C]


def test_an_escalation_to_the_left_mirrors_one_to_the_right():
    index = figure_9()
    assert index.update(A, 18, 33 - 1)
    assert ranges(index, A) == [(17, 29), (29, 33)]
    assert index.update(A, 3, 33 - 1)  # beyond every range that ends at 29: one range covers all
    assert index.keys_of(A)[0] <= 3


def test_a_hash_table_knows_one_key_or_all():
    index = AgileIndex("hash_table")
    index.insert(A, 5, 5)
    index.insert(B, 7, 7)
    assert index.probe(5) == [A]
    assert index.update(A, 6, 6)
    assert index.keys_of(A) == (MIN, MAX)
    assert index.probe(1) == [A]
    assert not index.update(A, 9, 9)
    index.deescalate(A)
    assert index.probe(1) == []
    assert index.probe(9) == [A]
    assert index.probe(7) == [B]


def any_range(rng: Random, structure: str, mirrored: bool) -> tuple[int, int]:
    x = rng.randrange(-50, 50)
    if structure == "hash_table" and rng.random() < 0.9:
        return x, x
    if structure == "search_tree" and rng.random() < 0.9:
        return (x, MAX) if mirrored else (MIN, x)
    return rng.choice(
        [(MIN, x), (x, MAX), (MIN, MAX), (5, 3), (x, x)] + [(x, x + rng.randrange(20))] * 6
    )


@pytest.mark.slow
@pytest.mark.parametrize("growth", [-1.0, -0.5, 0.0, 1.5])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("seed", range(6))
def test_k_stays_inside_and_a_probe_finds_what_was_promised(
    structure: str, seed: int, growth: float
) -> None:
    rng, mirrored = Random(seed), bool(seed % 2)
    index = AgileIndex(structure, is_mirrored=mirrored)
    index.growth = growth
    held: dict[int, tuple[int, int]] = {}
    for _ in range(400):
        action = rng.random()
        i = rng.choice(list(held)) if held else -1
        if action < 0.3 or not held:
            i = rng.randrange(60)
            if i not in held:
                held[i] = any_range(rng, structure, mirrored)
                index.insert(i, *held[i])
        elif action < 0.4:
            index.delete(i)
            del held[i]
        elif action < 0.8:
            before = index.keys_of(i)
            held[i] = any_range(rng, structure, mirrored)
            lo, hi = held[i]
            is_inside = lo > hi or (before[0] <= lo and hi <= before[1])
            assert index.update(i, lo, hi) is not is_inside
            if is_inside:
                assert index.keys_of(i) == before  # an update inside K(i) is no work at all
        else:
            before = index.keys_of(i)
            index.deescalate(i)
            after = index.keys_of(i)
            assert after[0] > after[1] or (before[0] <= after[0] and after[1] <= before[1])
        for each, (lo, hi) in held.items():
            first, last = index.keys_of(each)
            assert lo > hi or (first <= lo and hi <= last)
        key = rng.randrange(-60, 60)
        found = [each for each in held if index.keys_of(each)[0] <= key <= index.keys_of(each)[1]]
        assert index.probe(key) == sorted(found)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_deescalating_often_enough_makes_an_index_exact(structure: str) -> None:
    rng = Random(5)
    index = AgileIndex(structure)
    shapes = {"hash_table": lambda x: (x, x), "search_tree": lambda x: (MIN, x)}
    shape = shapes.get(structure, lambda x: (x, x + 7))
    for i in range(50):
        index.insert(i, *shape(rng.randrange(100)))
    for i in range(50):
        index.update(i, *shape(rng.randrange(100)))
    for i in range(50):
        for _ in range(30):
            index.deescalate(i)
        assert index.keys_of(i) == index.key_of(i)


@pytest.mark.slow
def test_values_that_walk_about_leave_wider_ranges_less_often():
    """Counted, not timed: escalations of the same walks, and how wide they make the ranges."""
    moves, width = {}, {}
    for growth in (-1.0, 0.0, 0.5, 1.0):
        walk, index = Random(9), AgileIndex()
        at = [10 * i for i in range(1000)]
        for i, x in enumerate(at):
            index.insert(i, x, x + 20)
        index.growth, n = growth, 0
        for _ in range(20_000):
            i = walk.randrange(400, 600)
            at[i] += walk.randrange(-30, 31)
            n += index.update(i, at[i], at[i] + 20)
        moves[growth] = n
        ends = [index.keys_of(i) for i in range(400, 600)]
        width[growth] = sum(min(last, 12_000) - max(first, -2_000) for first, last in ends)
    assert moves[1.0] < moves[0.5] < moves[0.0]
    assert width[0.0] < width[0.5] < width[1.0]
    # As published, values leave at the ends of much wider ranges (by the levels of the skip list).
    assert moves[0.5] < 3 * moves[-1.0]
    assert width[0.5] < width[-1.0] / 2


@pytest.mark.parametrize("structure", STRUCTURES)
def test_an_identifier_with_a_range_of_its_own_escalates_without_moving_a_marker(
    structure: str,
) -> None:
    index = AgileIndex(structure)
    width = 0 if structure == "hash_table" else 7

    def shape(x: int) -> tuple[int, int]:
        return x, x + width

    for i in range(50):
        index.insert(i, *shape(10 * i))
    index.growth = 0.5
    for i in range(50):
        assert index.update(i, *shape(10 * i + 1000))  # leaves its place
    s = index.structure
    held = [each.copy() for each in (s.marker, s.chunk, s.ends, s.cell_size, s.node_key, s.count)]
    for i in range(50):
        assert index.update(i, *shape(10 * i + 5000))
    s = index.structure
    now = (s.marker, s.chunk, s.ends, s.cell_size, s.node_key, s.count)
    assert all(map(np.array_equal, held, now))
    for i in range(50):
        first, last = index.keys_of(i)
        assert first <= index.key_of(i)[0]
        assert index.key_of(i)[1] <= last
    assert index.probe(5000)
    assert not index.probe(-100_000)
