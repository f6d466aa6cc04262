"""What is special about the A-Tree: sizes, work, settings, drawings."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from encode.world import World, found
from index.a_tree_checks import check, live_nodes
from index.a_tree_samples import FIGURE_6, built, n_links, p, repeated
from inside import graph_of
from matchwood.errors import IndexBuildError
from matchwood.index.a_tree.blocks import AND, ID, SEED
from matchwood.index.a_tree.config import MATCHING
from matchwood.index.a_tree.draw import children_of
from matchwood.index.a_tree.index import ATree
from matchwood.lang.nodes import And, Or
from matchwood.workload import ABEGen, load_events, load_subscriptions
from searching import search, work_of


def test_ids_that_collide_are_told_apart():
    # with an id of no bits every inner node has the same one
    exprs = repeated(Random(3), 200)
    world, index = built(exprs, id_bits=0)
    _, other = built(exprs)
    x = graph_of(index)
    assert len(set(x.node[x.op >= AND, ID].tolist())) == 1
    assert len(live_nodes(x)) == len(live_nodes(graph_of(other))) > 100
    raw = [{f"p{i}": (k >> i) & 1 for i in range(1, 6)} for k in range(0, 64, 3)]
    assert found(search(index, world.events(raw))) == found(search(other, world.events(raw)))


@pytest.mark.slow
def test_each_construction_step_saves_nodes_or_links():
    # Figure 9: no sharing, unique nodes, reorganisation, self-adjustment
    steps = [
        {"share": False},
        {"reorganise": False, "self_adjust": False},
        {"self_adjust": False},
        {},
    ]
    loaded = load_subscriptions(ABEGen(n_subscriptions=800, pool=300, n_attributes=30))
    sizes = []
    for config in steps:
        index = ATree.build(loaded.table, np.empty(0, np.int32), **config)
        for slots in np.array_split(loaded.slots, 40):
            index.insert(slots)
        check(index)
        sizes.append((len(live_nodes(graph_of(index))), n_links(index)))
    assert sizes[0][0] > 1.4 * sizes[1][0]
    assert sizes[1][1] > sizes[2][1] > sizes[3][1]


def test_the_order_of_arrival_hardly_matters_for_the_size():
    loaded = load_subscriptions(ABEGen(n_subscriptions=600, pool=200, n_attributes=30))
    sizes = []
    for seed in range(4):
        slots = loaded.slots.copy()
        Random(seed).shuffle(slots)
        index = ATree.build(loaded.table, np.empty(0, np.int32))
        for portion in np.array_split(slots, 30):
            index.insert(portion)
        sizes.append((len(live_nodes(graph_of(index))), n_links(index)))
    assert len({nodes for nodes, _ in sizes}) == 1
    links = [each for _, each in sizes]
    assert max(links) < 1.02 * min(links)


def test_the_order_of_arrival_does_not_matter_for_the_answers():
    workload = ABEGen(n_subscriptions=600, pool=200, n_attributes=30, n_events=40)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    answers, nodes = [], []
    for seed in range(3):
        slots = loaded.slots.copy()
        Random(seed).shuffle(slots)
        index = ATree.build(loaded.table, slots[:50])
        for portion in np.array_split(slots[50:], 20):
            index.insert(portion)
        hits = search(index, events)
        answers.append(found(hits))
        nodes.append(work_of(hits)["nodes"])
    assert answers[0] == answers[1] == answers[2]
    assert sum(map(len, answers[0])) > 1_000
    assert max(nodes) < 1.05 * min(nodes)


@pytest.mark.slow
def test_memory_comes_back_with_deletions():
    loaded = load_subscriptions(ABEGen(n_subscriptions=4_000, pool=3_000))
    index = ATree.build(loaded.table, loaded.slots)
    nothing = ATree.build(loaded.table, loaded.slots[:0]).stats()["bytes"]
    full = index.stats()["bytes"]
    for portion in np.array_split(loaded.slots[100:], 30):
        index.delete(portion)
    check(index)
    fresh = ATree.build(loaded.table, loaded.slots[:100])
    # ids of predicates and slots are the table's, and keep their places
    ids = sum(each.nbytes for each in (graph_of(index).leaf_of, graph_of(index).root_of))
    assert index.stats()["bytes"] - ids < 2.5 * fresh.stats()["bytes"] < full
    index.delete(loaded.slots[:100])
    assert index.stats()["bytes"] == nothing


def test_optimisations_save_work():
    # Figure 10, in nodes evaluated
    workload = ABEGen(n_subscriptions=2_000, n_events=20, n_attributes=100)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    nodes = {
        matching: int(
            work_of(search(ATree.build(loaded.table, loaded.slots, matching=matching), events))[
                "nodes"
            ]
        )
        for matching in MATCHING
    }
    assert nodes["three_valued"] > 2 * nodes["zero_suppression"]
    assert nodes["zero_suppression"] > 1.1 * nodes["on_demand"]


def test_wrong_settings_are_refused():
    world = World()
    nothing = np.empty(0, np.int32)
    for config in ({"matching": "fast"}, {"access": 1}, {"id_bits": 40}, {"depth": 1}):
        with pytest.raises(IndexBuildError, match="a_tree: expected"):
            ATree.build(world.table, nothing, **config)


def test_drawings_show_nodes_and_expressions():
    _, index = built(FIGURE_6)
    text = index.draw()
    assert text.startswith("a_tree, 6 expressions that differ, 4 levels")
    assert all(f"S{slot}" in text for slot in range(6))
    assert "(see above)" in text
    dot = index.draw(style="dot")
    assert dot.startswith("digraph a_tree {")
    assert dot.count("->") == n_links(index)
    assert "style=dotted" in dot


def test_stats_say_how_much_is_shared_on_each_level():
    _, index = built([And((p(1), p(2))), And((p(1), p(2))), Or((And((p(1), p(2))), p(3)))])
    assert index.stats()["sharing"] == {1: 7 / 3 // 0.01 / 100, 2: 3.0, 3: 1.0}


def test_each_tree_has_ids_of_its_own():
    """So that nobody can choose expressions whose ids are equal."""
    exprs = repeated(Random(3), 5)
    seeds = {int(graph_of(built(exprs)[1]).count[SEED]) for _ in range(3)}
    assert len(seeds) == 3


def test_a_binary_tree_has_two_children_everywhere_and_shares_pairs():
    a, b, c, d = (p(i) for i in range(1, 5))
    _, index = built([And((a, b, c, d)), And((a, b, c)), Or((a, b, d))], binary=True)

    def children() -> list[int]:
        x = graph_of(index)
        return [len(children_of(x, v)) for v in live_nodes(x) if x.op[v] >= AND]

    assert children() == [2] * 5  # a AND b, and c, and d; a OR b, and d
    index.delete(np.array([0], np.int32))
    assert children() == [2] * 4
    check(index)


@pytest.mark.parametrize("n", [3, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_binary_tree_answers_like_another_one(n):
    exprs = [*repeated(Random(5), 100), And(tuple(p(i) for i in range(n)))]
    world, index = built(exprs, binary=True)
    _, other = built(exprs)
    check(index)
    raw = [{f"p{i}": (k >> (i % 6)) & 1 for i in range(n)} for k in range(0, 64, 3)]
    assert found(search(index, world.events(raw))) == found(search(other, world.events(raw)))
