"""What is special to terms: what gives access, rests, runs of leaves, forged arrays."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from encode.world import World, found
from inside import built_of
from matchwood.bench.searching import searched
from matchwood.errors import FormatError
from matchwood.index.blocks.index import BlockIndex
from matchwood.index.core.protocol import ANY
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan
from matchwood.index.terms import conjunctions
from matchwood.index.terms.draw import pieces_of
from matchwood.index.terms.index import TermIndex
from matchwood.index.terms.split import GROWTH, SPARE
from matchwood.lang import parse
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload
from searching import search, work_of


def stored(texts: list[str]) -> tuple[World, np.ndarray]:
    world = World()
    return world, world.speaking(ANY, world.store([parse(text) for text in texts]))


def agree(texts: list[str], raw: list[dict[str, Any]]) -> TermIndex:
    """Terms answer as scan does, together and one by one, before and after a snapshot."""
    world, slots = stored(texts)
    events = world.events(raw)
    expected = found(search(Scan.build(world.table, slots), events))
    index = TermIndex.build(world.table, slots)
    layout = index.layout()
    TermIndex.check(world.table, slots, layout)
    for each in (index, TermIndex.restore(world.table, layout)):
        assert found(search(each, events)) == expected
        scratch = Scratch()
        alone = [searched(each, world.events([one]), scratch) for one in raw]
        assert [found(one)[0] for one in alone] == expected
    return index


def random_text(rng: Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        name, low = rng.choice("abcdefgh"), rng.randrange(9)
        shapes = ("{0} = {1}", "{0} <> {1}", "{0} <= {1}", "{0} > {1}", "{0} BETWEEN {1} AND {2}",
                  "{0} IN ({1}, {2})", "{0} NOT IN ({1}, {2})", "{0} IS NULL")  # fmt: skip
        return rng.choice(shapes).format(name, low, low + 2)
    operator = rng.choice((" AND ", " OR "))
    parts = [random_text(rng, depth - 1) for _ in range(rng.randrange(2, 5))]
    return "(" + operator.join(parts) + ")"


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_random_trees_answer_as_scan_does(depth):
    rng = Random(depth)
    raw = [
        {name: rng.randrange(10) for name in "abcdefgh" if rng.random() < 0.7} for _ in range(40)
    ]
    agree([random_text(rng, depth) for _ in range(150)], [*raw, {}])


def test_an_or_is_sure_and_an_and_is_reached_by_the_operand_that_holds_most_seldom():
    index = agree(
        ["a = 1 OR b = 2", "c > 0 AND d = 3", "(a = 1 OR b = 9) AND c > 0 AND d < 90", "c <= 90"],
        [{"a": 1}, {"b": 2}, {"c": 5, "d": 3}, {"a": 1, "c": 1, "d": 1}, {"b": 9, "c": 1}],
    )
    stats = index.stats()
    assert (stats["terms"], stats["sure"], stats["groups"]) == (6, 3, 3)
    assert stats["steps"] == 3  # c > 0, and c > 0 AND d < 90, which two terms share


def test_equal_rests_of_a_leaf_are_tested_once():
    texts = [f"u = {i} OR (a = 1 AND (b < 5 OR c < 5) AND d > 2)" for i in range(100)]
    index = agree(texts, [{"a": 1, "d": 1}, {"a": 1, "b": 3, "d": 3}, {"u": 7}])
    assert index.stats()["groups"] == 1
    world, slots = stored(texts)
    index = TermIndex.build(world.table, slots)
    hits = search(index, world.events([{"a": 1, "d": 1}]))
    assert len(hits.slots) == 0
    assert work_of(hits)["candidates"] == 100
    assert work_of(hits)["predicates"] <= 4


def test_a_slot_that_several_terms_lead_to_is_given_once():
    agree(
        ["a = 1 OR b = 1 OR (a < 3 AND c = 1) OR (b < 3 AND c = 1)", "a < 2 OR b < 2"] * 40,
        [{"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 2, "c": 1}, {"c": 1}],
    )


def test_ranges_that_hold_together_are_one_run():
    texts = [f"x <= {i} OR y = {i}" for i in range(64)] + [f"x <> {i} OR y = 0" for i in range(64)]
    index = agree(texts, [{"x": i} for i in range(-1, 66, 8)])
    structure = built_of(index)
    nodes = range(len(structure.tree.start) - 1)
    sizes = [b - a for node in nodes for a, b in pieces_of(structure, node)[2]]
    assert max(sizes) >= 32
    assert len(sizes) < 128


def test_rests_do_not_grow_with_the_square_of_an_expression():
    n = 120
    many = " OR ".join(f"(a{i} = 1 AND b{i} = 1)" for i in range(n))
    long = " OR ".join(f"c{i} > 5" for i in range(n))
    index = agree(
        [f"({many}) AND ({long})"],
        [{"a7": 1, "b7": 1, "c9": 6}, {"a7": 1, "b7": 1, "c9": 5}, {"a7": 1, "b8": 1, "c9": 6},
         {"a119": 1, "b119": 1, "c0": 6}],
    )  # fmt: skip
    assert index.stats()["steps"] <= (GROWTH + 1) * 5 * n + SPARE


def test_an_event_of_sets_finds_more_runs_than_there_was_room_for():
    texts = [f"x = {3 * i} OR (x BETWEEN {i} AND {i + 3} AND y > {i % 7})" for i in range(900)]
    world, slots = stored(texts)
    events = world.events([parse("x BETWEEN 5 AND 2000 AND y = 3"), parse("x IN (5, 9) AND y = 3")])
    expected = found(search(Scan.build(world.table, slots), events))
    assert len(expected[0]) > 600
    assert found(search(TermIndex.build(world.table, slots), events)) == expected


@pytest.fixture
def _blocks(monkeypatch):
    """Conjunctions of several predicates are in blocks, from few on."""
    monkeypatch.setattr(conjunctions, "FEW_BESIDE", 5)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_conjunctions_in_blocks_and_other_expressions_answer_as_scan_does(share):
    rng = Random(int(10 * share))
    texts = [
        f"a = {rng.randrange(4)} AND b > {rng.randrange(9)} AND c <> {rng.randrange(9)}"
        if rng.random() < share
        else rng.choice((random_text(rng, 2), f"d < {rng.randrange(9)}", "TRUE AND e = 1"))
        for _ in range(200)
    ]
    raw = [
        {name: rng.randrange(10) for name in "abcdefgh" if rng.random() < 0.8} for _ in range(40)
    ]
    stats = agree(texts, [*raw, {}]).stats()
    assert (stats["in_blocks"] == stats["expressions"]) == (share == 1.0)
    assert (stats["in_blocks"] > 0) == (share > 0.0)


@pytest.mark.usefixtures("_blocks")
def test_conjunctions_move_between_blocks_and_terms_as_their_number_changes():
    texts = [f"a = {i % 3} AND b > {i}" for i in range(8)] + ["a = 1 OR b = 2", "b < 5"]
    world, slots = stored(texts)
    events = world.events([{"a": 1, "b": 3}, {"a": 2, "b": 20}, {"b": 2}])
    index, held = TermIndex.build(world.table, slots), slots
    for step in (slots[:5], slots[8:], slots[5:8]):
        index.settle()
        assert index.stats()["in_blocks"] == (8 if len(held) == 10 else 0)
        assert found(search(index, events)) == found(search(Scan.build(world.table, held), events))
        index.delete(step)
        held = np.setdiff1d(held, step)
    index.insert(slots[:8])
    index.settle()
    assert index.stats()["in_blocks"] == 8
    expected = found(search(Scan.build(world.table, slots[:8]), events))
    assert found(search(index, events)) == expected


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("name", ["blocks_held", "blocks_block_word", "missing", "term_sure"])
def test_a_forged_layout_with_blocks_is_refused(name):
    world, slots = stored([f"a = {i} AND b > {i % 3}" for i in range(30)] + ["a = 1 OR b = 2"])
    layout = TermIndex.build(world.table, slots).layout()
    TermIndex.check(world.table, slots, layout)
    forged = {key: array.copy() for key, array in layout.items()}
    if name == "missing":
        forged = {key: array for key, array in forged.items() if not key.startswith("blocks_")}
    else:
        forged[name][0] = 10**6 if name != "blocks_block_word" else -1
    with pytest.raises(FormatError):
        TermIndex.check(world.table, slots, forged)


@pytest.mark.usefixtures("_blocks")
def test_events_of_sets_find_conjunctions_in_blocks():
    world, slots = stored([f"x = {i} AND y > {i % 7}" for i in range(90)] + ["x = 5 OR y = 3"])
    events = world.events([parse("x BETWEEN 5 AND 20 AND y = 3"), parse("x IN (5, 9) AND y = 3")])
    expected = found(search(Scan.build(world.table, slots), events))
    assert len(expected[0]) > 5
    assert found(search(TermIndex.build(world.table, slots), events)) == expected


@pytest.mark.usefixtures("_blocks")
def test_conjunctions_alone_are_as_much_work_as_in_blocks():
    """By counters: the same members are candidates, the same rows are read."""
    generator = find_workload("begen", n_subscriptions=200, n_events=20)
    loaded = load_subscriptions(generator)
    events = load_events(generator, loaded.attributes)
    hits = [
        search(each.build(loaded.table, loaded.slots), events) for each in (TermIndex, BlockIndex)
    ]
    assert found(hits[0]) == found(hits[1])
    assert hits[0].counters.tolist() == hits[1].counters.tolist()


DAMAGES = {
    "term_sure": lambda a: a.__setitem__(0, 10**6),
    "term_slot": lambda a: a.__setitem__(0, -1),
    "term_group": lambda a: a.__setitem__((0, 0), 10**9),
    "tree_piece": lambda a: a.__setitem__(0, 10**9),
    "tree_base": lambda a: a.__setitem__(1, 10**6),
    "tree_start": lambda a: a.__setitem__(-1, 10**6),
    "term_step": lambda a: a.__setitem__((-1, 1), 0),
    "code_n": lambda a: a.__setitem__(0, 10**6),
}


@pytest.mark.parametrize("name", [*DAMAGES, "leaf of a step", "jump back"])
def test_a_forged_layout_is_refused(name):
    world, slots = stored([random_text(Random(i), 3) for i in range(60)])
    layout = TermIndex.build(world.table, slots).layout()
    forged = {key: array.copy() for key, array in layout.items()}
    if name in DAMAGES:
        DAMAGES[name](forged[name])
    else:
        column, value = (0, 10**8) if name == "leaf of a step" else (1, -4)
        forged["term_step"][0, column] = value
    TermIndex.check(world.table, slots, layout)
    with pytest.raises(FormatError):
        TermIndex.check(world.table, slots, forged)


def test_a_layout_without_a_subscription_is_refused():
    world, slots = stored(["a = 1 OR b = 2", "a = 3 OR b = 4"])
    layout = TermIndex.build(world.table, slots).layout()
    fewer = {key: array.copy() for key, array in layout.items()}
    fewer["term_sure"][:] = slots[0]
    with pytest.raises(FormatError):
        TermIndex.check(world.table, slots, fewer)


def test_a_drawing_names_leaves_slots_and_rests():
    world, slots = stored(["a = 1 OR b = 2", "a = 1 AND b > 3"])
    drawn = TermIndex.build(world.table, slots).draw()
    assert "terms: 2 expressions" in drawn
    assert "sure 0" in drawn
    assert "rest at" in drawn
