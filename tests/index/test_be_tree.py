"""What is special about `be_tree`: its structure, its rules, the paper's worked example."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood as mw
from encode.world import World, conjunction
from index.be_tree_checks import check
from matchwood.errors import IndexBuildError
from matchwood.index.be_tree.index import BETree
from matchwood.index.be_tree.nodes import ATTR, CAP, P_HIGH, ROOT, TOP_BUCKET
from matchwood.index.be_tree.shape import buckets, held, p_nodes
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan
from matchwood.lang.nodes import Between, Comparison, Expr, IsNull
from matchwood.lang.parser import parse
from searching import search, work_of
from strategies import seeds

FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))
NOTHING = np.empty(0, np.int32)
NAMES = ("a", "b", "c", "d", "e", "f")


def small_conjunction(rng: Random) -> Expr:
    text = []
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        low, high = sorted((rng.randint(0, 15), rng.randint(0, 15)))
        text.append(
            rng.choice(
                (
                    f"{name} = {low}",
                    f"{name} = {low}",
                    f"{name} BETWEEN {low} AND {high}",
                    f"{name} <= {low}",
                    f"{name} > {low}",
                    f"{name} <> {low}",
                    f"{name} IN ({low}, {high}, 3)",
                    f"{name} IS NOT NULL",
                )
            )
        )
    return parse(" AND ".join(text))


def small_event(rng: Random) -> dict[str, int]:
    return {name: rng.randint(-1, 16) for name in rng.sample(NAMES, rng.randint(1, 6))}


def same_answers(index: BETree, world: World, events: list[dict[str, int]]) -> None:
    slots = np.flatnonzero(index.tree.leaf_of >= 0).astype(np.int32)
    encoded = world.events(events)
    hits, right = search(index, encoded), search(Scan.build(world.table, slots), encoded)
    for e in range(len(events)):
        mine = sorted(hits.slots[hits.offsets[e] : hits.offsets[e + 1]].tolist())
        assert mine == sorted(right.slots[right.offsets[e] : right.offsets[e + 1]].tolist())


# ── the paper's example ─────────────────────────────────────────────────────────────────────────

S1_TO_S9 = (
    "a BETWEEN 1 AND 6 AND c = 1",
    "c = 2 AND e = 1",
    "d = 3 AND e = 2",
    "a = 2 AND b = 4",
    "d = 5 AND c = 4",
    "d = 1 AND b = 6",
    "a BETWEEN 2 AND 7 AND b = 1",
    "a BETWEEN 3 AND 6 AND b = 2",
    "a BETWEEN 1 AND 7 AND b = 3",
)
"""The text of the paper names who tests a and d, and who is moved when; its Figure 3, with the
predicates, is a picture.  These are expressions that go where the text says."""


def attributes_of(index: BETree, c: int) -> set[int]:
    return {int(index.tree.p[p, ATTR]) for p in p_nodes(index.tree, c)}


def test_the_insertion_example_of_figure_3():
    world = World(dict.fromkeys(("a", "b", "c", "d", "e"), "int"))
    world.store([parse(text) for text in S1_TO_S9])
    a, b, d = (world.attributes.by_name[name].id for name in "abd")
    index = BETree.build(world.table, NOTHING, max_cap=3, min_size=2, histogram=False)

    def insert(first: int, last: int) -> None:
        for number in range(first, last + 1):
            index.insert(np.array([number - 1], np.int32))
            check(index)

    insert(1, 3)
    assert attributes_of(index, ROOT) == set()
    insert(4, 4)  # the root overflows: a is chosen, S1 and S4 move
    assert attributes_of(index, ROOT) == {a}
    top = int(index.tree.p[p_nodes(index.tree, ROOT)[0], TOP_BUCKET])
    assert sorted(held(index.tree, top)) == [0, 3]
    insert(5, 6)  # again: d is chosen, S3, S5 and S6 move
    assert attributes_of(index, ROOT) == {a, d}
    assert sorted(held(index.tree, ROOT)) == [1]
    insert(7, 8)  # S1, S4, S7, S8 overflow the l-node under a: it is clustered
    assert buckets(index.tree, top) != []
    assert sorted(held(index.tree, top)) == [0, 6, 7]
    assert attributes_of(index, top) == set()
    insert(9, 9)  # the top bucket, not a leaf any more, overflows: b is chosen
    assert attributes_of(index, top) == {b}
    assert sorted(held(index.tree, top)) == [0]
    drawing = index.draw()
    assert "be_tree: 9 expressions" in drawing
    assert f"p-node {a}: 5 expressions" in drawing
    assert index.draw(format="dot").startswith("digraph be_tree {")
    with pytest.raises(IndexBuildError, match="'text' or 'dot'"):
        index.draw(format="svg")


def test_the_optimistic_variant_cuts_by_the_attribute_that_most_expressions_test():
    """Section 5: its loss is 0 until events have shown one, whatever the ranges are."""
    world = World(dict.fromkeys(("a", "b", "c"), "int"))
    wide = [f"a BETWEEN 0 AND 1000 AND {'bc'[i % 3 == 0]} = {i}" for i in range(24)]
    world.store([parse(text) for text in wide])
    a, b, c = (world.attributes.by_name[name].id for name in "abc")
    slots = np.arange(len(wide), dtype=np.int32)
    chosen = {}
    for histogram in (False, True):
        config = {"max_cap": 6, "min_size": 2, "histogram": histogram}
        bulk = BETree.build(world.table, slots, **config)
        grown = BETree.build(world.table, NOTHING, **config)
        for slot in slots:
            grown.insert(np.array([slot], np.int32))
        chosen[histogram] = attributes_of(bulk, ROOT), attributes_of(grown, ROOT)
    assert chosen[False] == ({a}, {a})
    assert chosen[True] == ({b, c}, {b, c})


# ── invariants ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@FEWER
@given(seed=seeds(), max_cap=st.integers(1, 5), min_size=st.integers(1, 4))
def test_the_structure_holds_after_every_change(seed, max_cap, min_size):
    rng = Random(seed)
    world = World(dict.fromkeys(NAMES, "int"))
    slots = world.store([small_conjunction(rng) for _ in range(60)]).tolist()
    index = BETree.build(
        world.table, np.array(slots[:10], np.int32), max_cap=max_cap, min_size=min_size
    )
    check(index)
    inside, outside = slots[:10], slots[10:]
    for _ in range(60):
        if outside and (not inside or rng.random() < 0.6):
            slot = outside.pop(rng.randrange(len(outside)))
            inside.append(slot)
            index.insert(np.array([slot], np.int32))
        else:
            slot = inside.pop(rng.randrange(len(inside)))
            outside.append(slot)
            index.delete(np.array([slot], np.int32))
        check(index)
    same_answers(index, world, [small_event(rng) for _ in range(10)])


@FEWER
@given(seed=seeds())
def test_the_structure_holds_for_keys_of_all_types(seed):
    rng = Random(seed)
    types = {"a": "float", "b": "string", "c": "timestamp", "d": "int"}
    world = World(types)
    slots = world.store([conjunction(rng, types) for _ in range(80)])
    slots = world.speaking("conjunctions", slots)
    index = BETree.build(world.table, NOTHING, max_cap=2, min_size=2)
    for portion in np.array_split(slots, 8):
        index.insert(portion)
        check(index)
    for portion in np.array_split(slots, 8)[:6]:
        index.delete(portion)
        check(index)


def test_a_bucket_that_equals_a_predicate_is_not_evaluated_again():
    world = World({"a": "int"})
    slots = world.store([Comparison("a", "=", i % 4) for i in range(40)])
    index = BETree.build(world.table, slots, max_cap=4)
    check(index)
    hits = search(index, world.events([{"a": 1}]))
    assert len(hits.slots) == work_of(hits)["candidates"] == 10
    assert work_of(hits)["predicates"] == 0


def test_presence_is_subsumed_by_the_whole_domain():
    world = World({"a": "int"})
    slots = world.store([IsNull("a", negated=True)] * 10)
    index = BETree.build(world.table, slots, max_cap=2)
    hits = search(index, world.events([{"a": 1}, {}]))
    assert hits.offsets.tolist() == [0, 10, 10]
    assert work_of(hits)["predicates"] == 0


def test_what_cannot_be_divided_extends_its_leaf():
    world = World({"a": "int"})
    slots = world.store([Comparison("a", "=", 1)] * 1_000)
    index = BETree.build(world.table, slots, max_cap=5)
    check(index)
    assert index.tree.c[:, CAP].max() >= 1_000
    index.delete(slots[:990])
    check(index)
    assert index.stats()["largest_leaf"] == 10


def test_candidates_follow_the_event_and_not_the_number_of_expressions():
    world = World({"a": "int", "b": "int"})
    slots = world.store([parse(f"a = {i} AND b < {i % 7}") for i in range(4_000)])
    index = BETree.build(world.table, slots, max_cap=10)
    hits = search(index, world.events([{"a": 1_234, "b": 0}]))
    assert hits.slots.tolist() == [1_234]
    assert work_of(hits)["candidates"] <= 20


def test_a_domain_that_grows_is_halved_anew():
    world = World({"a": "int"})
    index = BETree.build(world.table, NOTHING, max_cap=4)
    for power in range(10):
        slots = world.store([Comparison("a", "=", 4**power + i) for i in range(20)])
        index.insert(slots)
        check(index)
    hits = search(index, world.events([{"a": 4**9 + 3}]))
    assert len(hits.slots) == 1
    assert work_of(hits)["candidates"] <= 10


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_values_that_keep_rising_are_told_apart(order):
    world = World({"a": "int"})
    index = BETree.build(world.table, NOTHING, max_cap=10)
    values = [1_700_000_000 + order * 37 * i for i in range(2000)]
    for i, slot in enumerate(world.store([Comparison("a", "=", value) for value in values])):
        index.insert(np.array([slot], np.int32))
        if i % 100 == 99:
            hits = search(index, world.events([{"a": value} for value in values[: i + 1]]))
            assert work_of(hits)["candidates"] <= 10 * (i + 1)
    check(index)


def test_inserting_one_by_one_and_in_bulk_agree():
    rng = Random(5)
    world = World(dict.fromkeys(NAMES, "int"))
    slots = world.store([small_conjunction(rng) for _ in range(500)])
    single = BETree.build(world.table, NOTHING, max_cap=5)
    for slot in slots:
        single.insert(np.array([slot], np.int32))
    bulk = BETree.build(world.table, slots, max_cap=5)
    events = [small_event(rng) for _ in range(50)]
    for index in (single, bulk):
        check(index)
        same_answers(index, world, events)


def test_deleting_most_gives_memory_back_before_all_is_gone():
    rng = Random(6)
    world = World(dict.fromkeys(NAMES, "int"))
    slots = world.store([small_conjunction(rng) for _ in range(4_000)])
    index = BETree.build(world.table, slots, max_cap=5)
    full = index.stats()["bytes"]
    for portion in np.array_split(slots[:3_900], 20):
        index.delete(portion)
    check(index)
    assert index.stats()["bytes"] < full / 3
    same_answers(index, world, [small_event(rng) for _ in range(20)])


# ── adaptation ──────────────────────────────────────────────────────────────────────────────────


def test_partitions_that_only_cost_are_recycled():
    world = World(dict.fromkeys(NAMES, "int"))
    alike = "a >= 0 AND c >= 0 AND d >= 0 AND e >= 0 AND f <> 5"
    slots = world.store([*[parse(f"g{i} = 1") for i in range(10)], *[parse(alike)] * 30])
    index = BETree.build(world.table, NOTHING, max_cap=30)
    index.insert(slots)
    assert index.stats()["p_nodes"] == 1
    event = dict.fromkeys(NAMES, 1)
    assert len(search(index, world.events([event] * 100)).slots) == 100 * 30
    assert index.stats()["recycled"] == 0  # all candidates match
    hits = search(index, world.events([{**event, "f": 5}] * 100))
    assert len(hits.slots) == 0
    assert index.stats()["recycled"] == 1  # five predicates in vain, one covered
    check(index)
    assert len(search(index, world.events([event])).slots) == 30


@FEWER
@given(seed=seeds())
def test_recycling_changes_no_answer(seed):
    rng = Random(seed)
    world = World(dict.fromkeys(NAMES, "int"))
    slots = world.store([small_conjunction(rng) for _ in range(80)])
    index = BETree.build(world.table, slots, max_cap=4, theta=1e9, rank_window=0.1)
    for _ in range(3):
        same_answers(index, world, [small_event(rng) for _ in range(40)])
        check(index)
    assert len(index) == len(slots)
    assert index.stats()["recycled"] > 0


# ── settings ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_capacity": 5}, "expected settings among max_cap.*found max_capacity"),
        ({"max_cap": 0}, "1 or more for max_cap, found 0"),
        ({"max_cap": 2.5}, "an integer of 1 or more for max_cap, found 2.5"),
        ({"min_size": "3"}, "an integer of 1 or more for min_size"),
        ({"beta": 2}, "a number from 0 to 1 for beta"),
        ({"theta": float("nan")}, "a number for theta"),
        ({"rank_window": 0}, "a share above 0 for rank_window"),
        ({"histogram": 1}, "True or False for histogram"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(IndexBuildError, match=message):
        mw.Matcher(index="be_tree", **settings)


def test_settings_reach_the_tree_and_the_statistics():
    m = mw.Matcher(index="be_tree", max_cap=2)
    m.add_many([(i, f"a = {i} AND b = 1") for i in range(50)])
    assert m.match({"a": 7, "b": 1}) == [7]
    world = World({"a": "int"})
    slots = world.store([Between("a", i, i + 3) for i in range(50)])
    stats = BETree.build(world.table, slots, max_cap=2).stats()
    assert stats["max_cap"] == 2
    assert stats["p_nodes"] == 1
    assert stats["depth"] == 1
    assert 0 < stats["fill"] <= 1
    assert BETree.build(world.table, slots, max_cap=2).tree.count[P_HIGH] >= 1


def test_a_tree_that_is_sparse_as_built_is_not_built_again_at_every_deletion(monkeypatch):
    """Many attributes with few expressions each: most nodes of the first partitioning go again."""
    rng = Random(1)
    world = World({f"a{i}": "int" for i in range(400)})
    texts = [
        " AND ".join(f"a{k} = {rng.randint(0, 9)}" for k in rng.sample(range(400), 5))
        for _ in range(300)
    ]
    slots = world.store([parse(text) for text in texts])
    index = BETree.build(world.table, slots)
    assert index._memory.is_sparse
    built = []
    build = BETree.build

    def counted(*arguments: Any, **config: Any) -> BETree:
        built.append(1)
        return build(*arguments, **config)

    monkeypatch.setattr(BETree, "build", counted)
    for n, slot in enumerate(slots[:280].tolist()):
        index.delete(np.array([slot], np.int32))
        if n % 40 == 0:
            check(index)
    assert 1 <= len(built) <= 5  # at every half


def feedback_tree(share: float) -> BETree:
    """A tree of 200 expressions, of which events match a share."""
    world = World({"x": "int"})
    slots = world.store([Between("x", 0, 9 if k < 200 * share else 2) for k in range(200)])
    index = BETree.build(world.table, slots, capacity="feedback")
    scratch = Scratch()
    index.search(world.events([{"x": 5}] * 20), scratch)
    index.absorb(scratch)
    return index


@pytest.mark.parametrize(("share", "cap"), [(0.005, 5), (0.05, 20), (0.5, 160)])
def test_feedback_takes_the_capacity_of_table_4(share, cap):
    assert feedback_tree(share)._rules.max_cap == cap


def test_with_windows_of_nodes_a_bad_partition_is_taken_down_and_answers_stay():
    rng = Random(4)
    world = World(dict.fromkeys(NAMES, "int"))
    slots = world.store([small_conjunction(rng) for _ in range(400)])
    index = BETree.build(
        world.table, slots, max_cap=4, windows="node", rank_window=0.01, theta=5.0, histogram=False
    )
    for _ in range(12):
        same_answers(index, world, [small_event(rng) for _ in range(40)])
        check(index)
    assert index.stats()["recycled"] > 0
