"""What is special to Gryphon: shared paths, leaves that split, nodes that go."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

import matchwood as mw
from encode.world import World, conjunction
from inside import built_of
from matchwood.index.baselines.gryphon import Gryphon
from matchwood.index.baselines.gryphon_kernels import ROOT
from matchwood.lang.nodes import And, Between, Comparison
from searching import search, slots_of, work_of
from strategies import schema


def paths(index: Gryphon) -> list[list[int]]:
    """The attributes on the way to every node but the root, from the root down."""
    index.settle()
    tree, found = built_of(index).tree, []
    waiting: list[tuple[int, list[int]]] = [(ROOT, [])]
    while waiting:
        node, path = waiting.pop()
        for group in range(tree.first[node], tree.first[node + 1]):
            longer = [*path, int(tree.attr[group])]
            for child in tree.child[tree.start[2 * group] : tree.start[2 * group + 2]].tolist():
                found.append(longer)
                waiting.append((child, longer))
    return found


def test_expressions_that_begin_alike_share_a_path():
    world = World({"a": "int", "b": "int", "c": "int"})
    begin = (Comparison("a", "=", 1), Between("b", 2, 9))
    world.store([And((*begin, Comparison("c", "=", i))) for i in range(10)])
    index = Gryphon.build(world.table, world.speaking("conjunctions"), leaf_capacity=0)
    assert index.stats()["nodes"] == 1 + 1 + 1 + 10
    hits = search(index, world.events([{"a": 1, "b": 5, "c": 3}, {"a": 2, "b": 5, "c": 3}]))
    assert hits.slots.tolist() == [3]
    assert work_of(hits)["nodes"] == 4 + 1


def test_every_path_keeps_the_order_of_attributes():
    world = World(types := schema(Random(5)))
    slots = world.store([conjunction(Random(i), types) for i in range(300)])
    held = world.speaking("conjunctions", slots)
    index = Gryphon.build(world.table, held[:200], leaf_capacity=0)
    index.insert(held[200:])
    index.delete(held[::3])
    all_paths = paths(index)
    assert len(all_paths) == index.stats()["nodes"] - 1 > 100
    before = {pair for path in all_paths for pair in combinations(path, 2)}
    assert not any((b, a) in before for a, b in before)


def test_an_attribute_that_more_expressions_test_comes_first():
    world = World()
    index = Gryphon.build(world.table, world.store([Comparison("y", "=", 1)]), leaf_capacity=0)
    index.insert(world.store([And((Comparison("y", "=", 1), Comparison("z", "=", 1)))] * 3))
    assert index.stats()["nodes"] == 3  # the root, y = 1, and z = 1 below it
    index.insert(world.store([Comparison("z", "=", 1)] * 2))
    assert index.stats()["nodes"] == 4  # the root, z = 1, y = 1 below it, and y = 1 alone
    assert sorted(slots_of(index, world.events([{"y": 1, "z": 1}])).tolist()) == list(range(6))


def test_a_leaf_splits_when_it_holds_more_than_it_may():
    world = World({"a": "int"})
    slots = world.store([Comparison("a", "=", i) for i in range(5)])
    index = Gryphon.build(world.table, slots[:4], leaf_capacity=4)
    assert index.stats()["nodes"] == 1
    index.insert(slots[4:])
    assert index.stats()["nodes"] == 6


def test_equal_expressions_end_at_one_node():
    world = World({"a": "int"})
    slots = world.store([Comparison("a", ">", 7)] * 500)
    index = Gryphon.build(world.table, slots, leaf_capacity=4)
    assert index.stats()["nodes"] == 2
    assert len(slots_of(index, world.events([{"a": 8}]))) == 500


def test_value_edges_are_found_by_hashing():
    world = World({"a": "int"})
    world.store([Comparison("a", "=", i) for i in range(1_000)])
    index = Gryphon.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 500}]))
    assert work_of(hits)["predicates"] == 1


def test_nodes_go_with_the_last_expression_below_them():
    world = World({"a": "int", "b": "int", "c": "int"})
    slots = world.store([And(tuple(Comparison(name, "=", i) for name in "abc")) for i in range(20)])
    index = Gryphon.build(world.table, slots, leaf_capacity=0)
    full, size = index.stats()["nodes"], index.stats()["bytes"]
    for _ in range(5):
        index.delete(slots[:15])
        assert index.stats()["nodes"] == 1 + 3 * 5
        index.insert(slots[:15])
    assert index.stats()["nodes"] == full
    assert index.stats()["bytes"] <= size
    assert len(paths(index)) == full - 1


def test_a_negative_capacity_is_refused():
    with pytest.raises(mw.IndexBuildError, match="leaf_capacity"):
        Gryphon.build(World().table, np.empty(0, np.int32), leaf_capacity=-1)


def factored_world() -> World:
    """Forty expressions: all but four test `a`, those and every second one test a value of `b`."""
    world = World({"a": "int", "b": "int"})
    a, b = (
        [Comparison("a", "=", i % 6) for i in range(40)],
        [Comparison("b", "=", i) for i in range(40)],
    )
    world.store([b[i] if i % 10 == 0 else And((a[i], b[i])) if i % 2 else a[i] for i in range(40)])
    return world


def test_a_factored_attribute_is_looked_up_and_not_tested():
    world = factored_world()
    held = world.speaking("conjunctions")
    plain = Gryphon.build(world.table, held, leaf_capacity=0)
    index = Gryphon.build(world.table, held, leaf_capacity=0, factor=1)
    assert (plain.stats()["factored"], index.stats()["factored"]) == (0, 1)
    rows = [{"a": 7 % 6, "b": 7}, {"b": 10}, {"a": 99, "b": 10}, {"a": 3, "b": 7}, {"a": 99}]
    for row in rows:
        hits, expected = (search(each, world.events([row])) for each in (index, plain))
        assert sorted(hits.slots.tolist()) == sorted(expected.slots.tolist())
        assert work_of(hits)["nodes"] <= work_of(expected)["nodes"]
    assert slots_of(index, world.events(rows[:1])).tolist() == [7]
    assert slots_of(index, world.events(rows[1:2])).tolist() == [10]


def test_an_attribute_that_would_copy_too_many_is_not_factored_out():
    world = factored_world()
    held = world.speaking("conjunctions")
    stats = Gryphon.build(world.table, held, factor=2, copies=2).stats()
    assert stats["factored"] == 1  # `b` has many values, and half of the expressions do not test it
    none = Gryphon.build(world.table, held, factor=2, copies=1).stats()
    assert (none["factored"], none["roots"]) == (0, 1)


def test_an_event_with_a_range_of_a_factored_attribute_is_looked_up_in_the_whole_tree():
    world = factored_world()
    held = world.speaking("conjunctions")
    events = world.events([{"a": 1, "b": 7}])
    wide = events._replace(lo=events.lo - 3, hi=events.hi + 3)
    found = [
        sorted(slots_of(Gryphon.build(world.table, held, leaf_capacity=0, factor=n), wide).tolist())
        for n in (0, 1)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == len(set(found[0])) > 10
