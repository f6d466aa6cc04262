"""Laws of the A-Tree: its answers under all settings, its graph whatever came and went."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from encode.world import World, found, mixed_expressions, small_world
from index.a_tree_checks import check, live_nodes
from index.a_tree_samples import expected, repeated, shape
from index.three_valued import ThreeValuedATree
from inside import graph_of
from matchwood.index.a_tree.index import ATree
from searching import search
from strategies import seeds, workload

FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))


@pytest.mark.slow
@given(seed=seeds())
def test_three_values_and_zero_suppression_give_the_same_answers(seed):
    rng = Random(seed)
    types, subscriptions, raw = workload(rng, 16, 10)
    exprs = [expr for _, expr in subscriptions]
    world = World(types)
    world.store(exprs)
    index = ATree.build(world.table, world.speaking("any"))
    tree = ThreeValuedATree(world.attributes, exprs)
    encoded = world.events(raw)
    assert found(search(tree, encoded)) == expected(exprs, raw)
    always = [[i for i, kind in enumerate(world.table.layout.kind) if kind == 3]] * len(raw)
    both = [sorted(a + b) for a, b in zip(found(search(index, encoded)), always, strict=True)]
    assert both == expected(exprs, raw)


CONFIGS: list[dict[str, Any]] = [
    {},
    {"share": False},
    {"reorganise": False, "self_adjust": False},
    {"self_adjust": False},
    {"reorganise": False},
    {"rehang": False},
    {"access": "random"},
    {"id_bits": 2},
    {"search_limit": 1},
    {"matching": "zero_suppression"},
    {"matching": "three_valued"},
]


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=str)
@FEWER
@given(seed=seeds())
def test_trees_with_repeated_predicates_under_all_settings(config, seed):
    rng = Random(seed)
    exprs = repeated(rng, 30)
    raw = [{f"p{i}": rng.randint(0, 1) for i in range(1, 6) if rng.random() < 0.8}
           for _ in range(12)]  # fmt: skip
    world = World(dict.fromkeys([f"p{i}" for i in range(1, 6)], "int"))
    world.store(exprs)
    held = world.speaking("any")
    encoded = world.events(raw)
    wanted = [[i for i in slots if i in held] for slots in expected(exprs, raw)]
    index = ATree.build(world.table, held[:10], **config)
    for portion in np.array_split(held[10:], 5):
        index.insert(portion)
        check(index)
    assert found(search(index, encoded)) == wanted
    leaving = np.array(rng.sample(held.tolist(), len(held) // 2), np.int32)
    for portion in np.array_split(leaving, 6):
        index.delete(portion)
        check(index)
    left = [[i for i in slots if i not in leaving] for slots in wanted]
    assert found(search(index, encoded)) == left
    index.insert(leaving)
    check(index)
    assert found(search(index, encoded)) == wanted


@FEWER
@given(seed=seeds())
def test_rebalancing_changes_numbers_and_nothing_else(seed):
    world, events, _ = small_world(seed)
    held = world.speaking("any")
    index = ATree.build(world.table, held[: len(held) // 2])
    for slot in held[len(held) // 2 :]:
        index.insert(np.array([slot], np.int32))
    before, graph = found(search(index, events)), shape(index)
    index.rebalance()
    check(index)
    assert shape(index) == graph
    assert found(search(index, events)) == before
    index.delete(held[::2])
    check(index)


@FEWER
@given(seed=seeds())
def test_deleting_everything_but_one_leaves_its_graph_alone(seed):
    world, _, _ = small_world(seed)
    held = world.speaking("any")
    index = ATree.build(world.table, held)
    index.delete(held[1:])
    check(index)
    assert shape(index) == shape(ATree.build(world.table, held[:1]))


def test_mixed_expressions_survive_a_thousand_changes():
    rng = Random(5)
    types = {"a": "int", "b": "string", "c": "bool"}
    world = World(types)
    world.store(mixed_expressions(rng, types, 150))
    every = world.speaking("any").tolist()
    index = ATree.build(world.table, np.array(every[:50], np.int32))
    held = set(every[:50])
    for _ in range(300):
        slot = rng.choice(every)
        change = index.delete if slot in held else index.insert
        if held != {slot}:
            change(np.array([slot], np.int32))
            held ^= {slot}
    check(index)
    again = ATree.build(world.table, np.array(sorted(held), np.int32))
    assert len(live_nodes(graph_of(again))) == len(live_nodes(graph_of(index)))
