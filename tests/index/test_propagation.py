"""What is special to propagation: access predicates and clusters."""

from __future__ import annotations

import numpy as np

from encode.world import World
from inside import built_of
from matchwood.index.baselines.propagation import Propagation
from matchwood.lang.nodes import And, Between, Comparison
from searching import search, work_of


def access_attributes(index: Propagation, world: World) -> list[str]:
    """The attribute that each expression hangs on."""
    x = built_of(index).clusters
    access = np.full(len(world.exprs), -1)
    for which, begin in enumerate(x.start + (x.width - 1) * x.size):
        access[x.item[begin : begin + x.size[which]]] = x.access[which]
    names = {attribute.id: attribute.name for attribute in world.attributes.all}
    return [names[a] for a in world.table.predicates.layout.attr[access].tolist()]


def crowded_equality_and_rare_range() -> World:
    """`b = 1` in all expressions, and a narrow range on an attribute that is seldom named."""
    world = World({"a": "int", "b": "int"})
    world.store([Comparison("b", "=", 1)] * 20)
    world.store([And((Between("a", 5, 6), Comparison("b", "=", 1)))])
    return world


def test_an_equality_is_the_access_predicate_where_there_is_one():
    world = crowded_equality_and_rare_range()
    index = Propagation.build(world.table, world.speaking("conjunctions"))
    assert access_attributes(index, world)[-1] == "b"


def test_without_an_equality_another_predicate_gives_access():
    world = World({"a": "int", "b": "int"})
    world.store([And((Comparison("a", ">", i), Comparison("b", "<>", i))) for i in range(30)])
    index = Propagation.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 3, "b": 1}]))
    assert sorted(hits.slots.tolist()) == [0, 2]
    assert work_of(hits)["candidates"] < 30


def test_the_rarer_equality_is_chosen():
    world = World({"a": "int", "b": "int"})
    world.store([Comparison("a", "=", i % 3) for i in range(30)])
    world.store([And((Comparison("a", "=", 1), Comparison("b", "=", 1)))])
    index = Propagation.build(world.table, world.speaking("conjunctions"))
    assert access_attributes(index, world)[-1] == "b"


def test_clusters_hold_expressions_of_one_access_predicate_and_size():
    world = World({"a": "int", "b": "int", "c": "int"})
    one = Comparison("a", "=", 1)
    world.store([one, And((one, Comparison("b", ">", 1))), And((one, Comparison("c", ">", 2)))])
    index = Propagation.build(world.table, world.speaking("conjunctions"))
    assert (index.stats()["access_predicates"], index.stats()["clusters"]) == (1, 2)
    index.delete(np.array([0], np.int32))
    assert index.stats()["clusters"] == 1
    index.insert(np.array([0], np.int32))
    assert index.stats()["clusters"] == 2


def test_an_event_that_satisfies_no_access_predicate_has_no_candidates():
    world = World({"a": "int", "b": "int"})
    world.store([And((Comparison("a", "=", i), Comparison("b", ">", 0))) for i in range(100)])
    index = Propagation.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"b": 5}]))
    assert work_of(hits)["candidates"] == 0
