"""What is special about the A-Tree: its graph, the paper's examples, both ways to match."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from encode.world import World, mixed_expressions, small_world
from index.a_tree_checks import check, elements, live_nodes, parents_of
from matchwood.errors import IndexBuildError
from matchwood.index.a_tree import MATCHING, ATree
from matchwood.index.a_tree_block_kernels import AND, DOWN, ID, LEAF, OR, ATreeLayout
from matchwood.index.a_tree_draw import children_of
from matchwood.index.a_tree_level_kernels import FALSE, NOT, TRUE, UNDEFINED, XNOR, XOR, evaluate
from matchwood.index.a_tree_three_valued import ThreeValuedATree
from matchwood.index.protocol import Hits
from matchwood.lang import parse
from matchwood.lang.nodes import And, Comparison, Expr, Not, Or, Xnor, Xor
from matchwood.workload import ABEGen, load_events, load_subscriptions
from naive import matches
from strategies import Event, seeds, workload

FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))


def found(hits: Hits) -> list[list[int]]:
    ends = hits.offsets.tolist()
    return [sorted(hits.slots[ends[e] : ends[e + 1]].tolist()) for e in range(len(ends) - 1)]


def expected(exprs: list[Expr], raw: list[Event]) -> list[list[int]]:
    return [[i for i, expr in enumerate(exprs) if matches(expr, each)] for each in raw]


def p(i: int) -> Expr:
    """The predicate Pi of the paper: attribute pi is 1."""
    return Comparison(f"p{i}", "=", 1)


def built(exprs: list[Expr], **config: Any) -> tuple[World, ATree]:
    world = World()
    index = ATree.build(world.table, world.speaking("any", world.store(exprs)), **config)
    check(index)
    return world, index


def shape(index: ATree) -> set[Any]:
    """Every inner node as text, its children sorted: the same for the same graph."""
    x = index._memory.layout

    def text(v: int) -> str:
        if x.op[v] == LEAF:
            return f"P{x.node[v, DOWN]}"
        word = "&" if x.op[v] == AND else "|"
        return "(" + word.join(sorted(text(c) for c in children_of(x, v))) + ")"

    return {text(v) for v in live_nodes(x) if x.op[v] != LEAF}


# ── the paper's examples ────────────────────────────────────────────────────────────────────────

P123 = Or((p(1), p(2), p(3)))
P56 = Or((p(5), p(6)))
P78 = Or((p(7), p(8)))
FIGURE_4 = [And((P123, p(4), P56)), And((P56, P78))]
FIGURE_6 = [*FIGURE_4, Or((p(1), p(2), p(3), p(4))), And((P123, p(4))), P56, Not(P78)]
"""Read off section 5.3 and the running examples of section 4: S1 to S6."""


def node(x: ATreeLayout, op: int, *parts: int) -> int:
    """The node with an operator and elements."""
    (v,) = [v for v in live_nodes(x) if x.op[v] == op and elements(x, v) == frozenset(parts)]
    return v


def leaf(world: World, index: ATree, i: int, holds: bool = True) -> int:
    """The leaf of Pi, or of its negation."""
    attr, p_ = world.attributes.by_name[f"p{i}"].id, world.table.predicates.layout
    n = 1 if holds else 2
    (pred,) = np.flatnonzero((p_.attr == attr) & (p_.n_intervals == n))
    return int(index._memory.layout.leaf_of[pred])


def test_figure_4_two_expressions_share_a_node():
    world, index = built(FIGURE_4)
    x = index._memory.layout
    shared = node(x, OR, leaf(world, index, 5), leaf(world, index, 6))
    assert sorted(map(len, parents_of(x, shared)))[-1] >= 1
    assert sum(map(len, parents_of(x, shared))) == 2
    assert len(live_nodes(x)) == 8 + 3 + 2


def test_equal_expressions_in_another_order_are_one_node():
    again = And((Or((p(6), p(5))), p(4), Or((p(3), p(1), p(2)))))
    _, index = built([FIGURE_4[0], again])
    assert len(index._memory.layout.node[index._memory.layout.op >= AND]) == 3
    assert index._memory.layout.root_of[0] == index._memory.layout.root_of[1]


def test_reorganisation_reuses_an_existing_or():
    # section 4.2.2: P1 OR P2 OR P3 OR P4 becomes (P1 OR P2 OR P3) OR P4
    world, index = built(FIGURE_4)
    index.insert(world.store([Or((p(1), p(2), p(3), p(4)))]))
    check(index)
    x = index._memory.layout
    inner = node(x, OR, *(leaf(world, index, i) for i in (1, 2, 3)))
    assert set(children_of(x, int(x.root_of[2]))) == {inner, leaf(world, index, 4)}


def test_reorganisation_may_use_an_element_twice():
    # (P1 AND P2 AND P3) AND (P3 AND P4)
    world, index = built([And((p(1), p(2), p(3))), And((p(3), p(4)))])
    index.insert(world.store([And((p(1), p(2), p(3), p(4)))]))
    check(index)
    x = index._memory.layout
    children = set(children_of(x, int(x.root_of[2])))
    assert children in (
        {int(x.root_of[0]), int(x.root_of[1])},
        {int(x.root_of[0]), leaf(world, index, 4)},
    )


def test_self_adjustment_puts_a_new_node_under_one_around_it():
    # section 4.2.3: (P1 OR P2 OR P3) AND P4 becomes a child of S1
    world, index = built(FIGURE_4)
    index.insert(world.store([And((P123, p(4)))]))
    check(index)
    x = index._memory.layout
    assert int(x.root_of[2]) in children_of(x, int(x.root_of[0]))
    assert len(children_of(x, int(x.root_of[0]))) == 2


def test_deletion_hangs_children_on_the_parent_again():
    world, index = built(FIGURE_4)
    before = shape(index)
    new = world.store([And((P123, p(4)))])
    index.insert(new)
    index.delete(new)
    check(index)
    assert shape(index) == before


def figure_6_event(world: World) -> Any:
    """P1, P9 = NOT P7 and P10 = NOT P8 hold, nothing else."""
    return world.events([{"p1": 1, "p7": 0, "p8": 0}])


def test_figure_6_step_by_step():
    world, index = built(FIGURE_6)
    x = index._memory.layout
    leaves = {i: leaf(world, index, i) for i in range(1, 9)}
    leaves[9], leaves[10] = leaf(world, index, 7, False), leaf(world, index, 8, False)
    n11 = node(x, OR, *(leaves[i] for i in (1, 2, 3)))
    n12 = node(x, OR, leaves[5], leaves[6])
    n13 = node(x, OR, leaves[7], leaves[8])
    n14, n15, n16 = int(x.root_of[5]), int(x.root_of[2]), int(x.root_of[3])
    n17, n18 = int(x.root_of[1]), int(x.root_of[0])
    assert sorted(live_nodes(x)) == sorted(
        [*leaves.values(), n11, n12, n13, n14, n15, n16, n17, n18]
    )
    levels = {n11: 2, n12: 2, n13: 2, n14: 2, n15: 3, n16: 3, n17: 3, n18: 4}
    assert {v: int(x.level[v]) for v in levels} == levels
    # node 1 tells node 11 alone, node 11 tells node 15 alone: node 16 is reached from node 4
    assert parents_of(x, leaves[1]) == ([n11], [], [])
    assert parents_of(x, n11) == ([n15], [], [n16])
    assert parents_of(x, leaves[4])[1] == [n16]
    first, second = (parents_of(x, leaves[i])[1] for i in (9, 10))
    assert sorted([first, second]) == [[], [n14]]  # one of 9 and 10 gives access to 14
    hits = index.match_batch(figure_6_event(world))
    assert found(hits) == [[2, 5]]  # S3 and S6
    matching = index._matching
    assert matching is not None
    queue = matching.queue[:6].tolist()
    assert sorted(queue[:3]) == sorted([leaves[1], leaves[9], leaves[10]])  # level 1
    assert sorted(queue[3:]) == sorted([n11, n14, n15])
    assert queue.index(n11) < queue.index(n15)
    true = matching.truth[: len(x.node)] == matching.clock[0]
    assert sorted(np.flatnonzero(true).tolist()) == sorted(queue)
    # nothing but the six nodes that are true was looked at, and no candidate in vain
    assert hits.counters[2] == hits.counters[4] == 2


@pytest.mark.parametrize("matching", MATCHING)
def test_figure_6_has_one_answer(matching):
    world, index = built(FIGURE_6, matching=matching)
    assert found(index.match_batch(figure_6_event(world))) == [[2, 5]]


def test_figure_6_in_three_values():
    world = World(dict.fromkeys([f"p{i}" for i in range(1, 9)], "int"))
    tree = ThreeValuedATree(world.attributes, FIGURE_6)
    assert len(tree.layout.node) == 8 + 8  # as in (b): no leaves 9 and 10, but a NOT
    hits = tree.match_batch(figure_6_event(world))
    assert found(hits) == [[2, 5]]


def test_table_2():
    def result(op: int, *operands: int) -> int:
        known = [each for each in operands if each != UNDEFINED]
        return int(evaluate.py_func(op, len(operands), known.count(FALSE), known.count(TRUE)))

    assert result(AND, UNDEFINED, TRUE) == UNDEFINED
    assert result(AND, UNDEFINED, FALSE) == FALSE
    assert result(OR, UNDEFINED, TRUE) == TRUE
    assert result(OR, UNDEFINED, FALSE) == UNDEFINED
    for op in (XOR, XNOR):
        assert {result(op, UNDEFINED, each) for each in (FALSE, TRUE)} == {UNDEFINED}
        assert [result(op, a, b) for a in (0, 1) for b in (0, 1)] == (
            [0, 1, 1, 0] if op == XOR else [1, 0, 0, 1]
        )
    assert [result(NOT, each) for each in (FALSE, TRUE, UNDEFINED)] == [TRUE, FALSE, UNDEFINED]


# ── laws ────────────────────────────────────────────────────────────────────────────────────────


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
    assert found(tree.match_batch(encoded)) == expected(exprs, raw)
    always = [[i for i, kind in enumerate(world.table.layout.kind) if kind == 3]] * len(raw)
    both = [sorted(a + b) for a, b in zip(found(index.match_batch(encoded)), always, strict=True)]
    assert both == expected(exprs, raw)


def test_a_predicate_may_occur_twice():
    # section 3.1: (P1 AND P2) OR (NOT P2 AND P3)
    expr = parse("(p1 = 1 AND p2 = 1) OR (NOT p2 = 1 AND p3 = 1)")
    raw = [{"p1": 1, "p2": 1}, {"p2": 0, "p3": 1}, {"p3": 1}, {"p1": 1, "p2": 0, "p3": 0}]
    world, index = built([expr])
    assert found(index.match_batch(world.events(raw))) == [[0], [0], [], []]


def repeated(rng: Random, n: int) -> list[Expr]:
    """Trees over few predicates, so that equal and nested subexpressions abound."""

    def tree(depth: int) -> Expr:
        if depth == 0 or rng.random() < 0.2:
            return p(rng.randint(1, 5))
        kind = rng.choice((And, And, Or, Or, Not, Xor, Xnor))
        if kind is Not:
            return Not(tree(depth - 1))
        if kind in (Xor, Xnor):
            return kind(tree(depth - 1), tree(depth - 1))
        return kind(tuple(tree(depth - 1) for _ in range(rng.randint(2, 4))))

    return [tree(rng.randint(1, 3)) for _ in range(n)]


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
    assert found(index.match_batch(encoded)) == wanted
    leaving = np.array(rng.sample(held.tolist(), len(held) // 2), np.int32)
    for portion in np.array_split(leaving, 6):
        index.delete(portion)
        check(index)
    left = [[i for i in slots if i not in leaving] for slots in wanted]
    assert found(index.match_batch(encoded)) == left
    index.insert(leaving)
    check(index)
    assert found(index.match_batch(encoded)) == wanted


@FEWER
@given(seed=seeds())
def test_deleting_everything_but_one_leaves_its_graph_alone(seed):
    world, _, _ = small_world(seed)
    held = world.speaking("any")
    index = ATree.build(world.table, held)
    index.delete(held[1:])
    check(index)
    assert shape(index) == shape(ATree.build(world.table, held[:1]))


def test_ids_that_collide_are_told_apart():
    # with an id of no bits every inner node has the same one
    exprs = repeated(Random(3), 200)
    world, index = built(exprs, id_bits=0)
    _, other = built(exprs)
    x = index._memory.layout
    assert len(set(x.node[x.op >= AND, ID].tolist())) == 1
    assert len(live_nodes(x)) == len(live_nodes(other._memory.layout)) > 100
    raw = [{f"p{i}": (k >> i) & 1 for i in range(1, 6)} for k in range(0, 64, 3)]
    assert found(index.match_batch(world.events(raw))) == found(
        other.match_batch(world.events(raw))
    )


def n_links(index: ATree) -> int:
    x = index._memory.layout
    return sum(len(children_of(x, v)) for v in live_nodes(x))


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
        sizes.append((len(live_nodes(index._memory.layout)), n_links(index)))
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
        sizes.append((len(live_nodes(index._memory.layout)), n_links(index)))
    assert len({nodes for nodes, _ in sizes}) == 1
    links = [each for _, each in sizes]
    assert max(links) < 1.02 * min(links)


def test_optimisations_save_work():
    # Figure 10, in nodes evaluated
    workload = ABEGen(n_subscriptions=2_000, n_events=20, n_attributes=100)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    nodes = {
        matching: int(
            ATree.build(loaded.table, loaded.slots, matching=matching)
            .match_batch(events)
            .counters[1]
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


# ── looking at it ───────────────────────────────────────────────────────────────────────────────


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
    assert len(live_nodes(again._memory.layout)) == len(live_nodes(index._memory.layout))
