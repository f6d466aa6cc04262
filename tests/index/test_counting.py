"""What is special to counting: the stabbing tree and the counters that are never set back."""

from __future__ import annotations

from random import Random

import numpy as np

from encode.world import World
from matchwood.index.baselines.counting import Counting
from matchwood.index.stabbing.predicates import StabbingTree
from matchwood.lang.nodes import And, Between, Comparison, Expr, In
from searching import search, slots_of, work_of


def ranges(rng: Random, n: int) -> list[Expr]:
    found: list[Expr] = []
    for _ in range(n):
        low, high = sorted((rng.randint(0, 60), rng.randint(0, 60)))
        found.append(And((Between("a", low, high), Comparison("b", "=", rng.randint(0, 9)))))
    return found


def test_only_satisfied_predicates_are_looked_at():
    world = World({"a": "int"})
    world.store([Comparison("a", "=", i) for i in range(1_000)])
    index = Counting.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 7}]))
    assert hits.slots.tolist() == [7]
    assert work_of(hits)["predicates"] == work_of(hits)["candidates"] == 1
    assert work_of(hits)["nodes"] < 20  # a path of the tree, and one posting list


def test_a_shared_predicate_is_kept_once():
    world = World({"a": "int", "b": "int"})
    world.store([And((Comparison("a", "<", 9), Comparison("b", "=", i))) for i in range(50)])
    stats = Counting.build(world.table, world.speaking("conjunctions")).stats()
    assert (stats["predicates"], stats["postings"]) == (51, 100)


def test_expressions_that_come_one_by_one_are_posted_as_in_bulk():
    world = World({"a": "int", "b": "int"})
    slots = world.store(ranges(Random(1), 600))
    index = Counting.build(world.table, slots[:1])
    for slot in slots[1:]:
        index.insert(np.array([slot]))
    built = Counting.build(world.table, slots)
    assert index.stats() == built.stats()
    events = world.events([{"a": a, "b": a % 10} for a in range(61)])
    assert split(index, events) == split(built, events)


def split(index: Counting, events) -> list[list[int]]:
    hits = search(index, events)
    return [sorted(each.tolist()) for each in np.split(hits.slots, hits.offsets[1:-1])]


def test_counters_that_come_to_their_limit_start_anew():
    world = World({"a": "int", "b": "int"})
    index = Counting.build(world.table, world.store(ranges(Random(2), 40)))
    events = world.events([{"a": 30, "b": 3}])
    first = sorted(slots_of(index, events).tolist())
    assert first
    for _ in range(300):  # a byte is used up after some 60 events
        assert sorted(slots_of(index, events).tolist()) == first


def test_an_interval_event_finds_a_set_of_several_intervals_once():
    world = World({"a": "int"})
    world.store([In("a", (1, 3, 5)), Comparison("a", "<>", 3), In("a", (40, 50))])
    index = Counting.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([Between("a", 0, 9), In("a", (1, 2, 45))]))
    assert sorted(hits.slots[: hits.offsets[1]].tolist()) == [0, 1]
    assert sorted(hits.slots[hits.offsets[1] :].tolist()) == [0, 1]


def test_a_tree_that_lost_most_predicates_is_smaller():
    world = World({"a": "int", "b": "int"})
    slots = world.store(ranges(Random(3), 400))
    index = Counting.build(world.table, slots)
    before = index.stats()["segments"]
    index.delete(slots[3:])
    assert index.stats()["segments"] < before / 4


def test_an_empty_stabbing_tree_has_no_segments():
    assert len(StabbingTree()) == 0
    assert StabbingTree().stats()["segments"] == 0
