"""The stabbing tree as it changes, inside the one index that changes it: an A-Tree."""

from __future__ import annotations

from random import Random

import numpy as np

from encode.world import World, found
from matchwood.index.a_tree.index import ATree
from matchwood.lang.nodes import And, Between, Comparison, Expr
from searching import search


def ranges(rng: Random, n: int) -> list[Expr]:
    exprs: list[Expr] = []
    for _ in range(n):
        low, high = sorted((rng.randint(0, 60), rng.randint(0, 60)))
        exprs.append(And((Between("a", low, high), Comparison("b", "=", rng.randint(0, 9)))))
    return exprs


def test_a_predicate_with_a_known_end_enters_the_tree_and_a_new_end_waits():
    world = World({"a": "int"})
    index = ATree.build(world.table, world.store([Between("a", 2, 5), Between("a", 4, 9)]))
    assert index.stats()["segments"] == 5  # before 2, 2..3, 4..5, 6..9, behind 9
    index.insert(world.store([Between("a", 2, 9)]))
    assert index.stats()["pending_predicates"] == 0
    index.insert(world.store([Between("a", 3, 9)]))
    assert index.stats()["pending_predicates"] == 1
    hits = search(index, world.events([{"a": 2}, {"a": 3}, {"a": 9}]))
    assert found(hits) == [[0, 2], [0, 2, 3], [1, 2, 3]]


def test_few_predicates_wait_however_many_come_one_by_one():
    world = World({"a": "int", "b": "int"})
    slots = world.store(ranges(Random(1), 600))
    index = ATree.build(world.table, slots[:1])
    for slot in slots[1:]:
        index.insert(np.array([slot], np.int32))
        stats = index.stats()
        assert stats["pending_predicates"] <= max(64, stats["predicates"] // 8)
    events = world.events([{"a": a, "b": a % 10} for a in range(61)])
    built = ATree.build(world.table, slots)
    assert found(search(index, events)) == found(search(built, events))


def test_a_tree_that_lost_most_predicates_is_made_smaller():
    world = World({"a": "int", "b": "int"})
    slots = world.store(ranges(Random(3), 400))
    index = ATree.build(world.table, slots)
    before = index.stats()["segments"]
    index.delete(slots[3:])
    assert index.stats()["segments"] < before / 4
