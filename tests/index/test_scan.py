"""What is special to scan: it stops at the first predicate that decides, and closes its gaps."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given

from encode.world import World, mixed_expressions
from matchwood.index.scan.index import GAPS, Scan
from matchwood.index.scan.match import FAIL, MATCH
from matchwood.lang import parse
from matchwood.lang.nodes import Comparison
from naive import matches
from searching import search, slots_of, work_of
from strategies import event, schema, seeds


def built(*texts: str) -> tuple[World, Scan]:
    world = World()
    world.store([parse(text) for text in texts])
    return world, Scan.build(world.table, world.speaking(Scan.language))


def work(world: World, index: Scan, found: dict) -> dict[str, int]:
    hits = search(index, world.events([found]))
    return work_of(hits)


# ── stopping early ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("found", "predicates"),
    [
        ({}, 1),
        ({"a": 0}, 1),
        ({"a": 1}, 2),
        ({"a": 1, "b": 1}, 3),
        ({"a": 1, "b": 1, "c": 0}, 3),
        ({"a": 1, "b": 1, "c": 1}, 3),
    ],
)
def test_a_conjunction_is_left_at_the_first_predicate_that_does_not_hold(found, predicates):
    world, index = built("a = 1 AND b = 1 AND c = 1")
    assert work(world, index, found)["predicates"] == predicates


@pytest.mark.parametrize(
    ("found", "predicates"),
    [
        ({}, 1),
        ({"a": 1, "b": 1}, 1),
        ({"c": 1}, 3),
        ({"c": 1, "b": 1}, 3),
        ({"c": 1, "a": 1}, 2),
        ({"c": 1, "a": 1, "b": 1}, 2),
    ],
)
def test_a_tree_tests_no_leaf_that_cannot_matter(found, predicates):
    """Leaves stand before inner nodes: c is tested first, then a, then b."""
    world, index = built("(a = 1 OR b = 1) AND c = 1")
    assert work(world, index, found)["predicates"] == predicates


def test_every_event_looks_at_every_expression():
    world, index = built("a = 1", "b = 1 OR c = 1", "a = 2")
    counted = work(world, index, {"a": 1})
    assert (counted["candidates"], counted["events"], counted["matches"]) == (3, 1, 1)


# ── trees as jumps ──────────────────────────────────────────────────────────────────────────────


@given(seed=seeds())
def test_jumps_lead_forward_or_out(seed):
    rng = Random(seed)
    types = schema(rng)
    world = World(types)
    world.store(mixed_expressions(rng, types, 20))
    layout = Scan.build(world.table, world.speaking(Scan.language)).layout()
    starts = layout["tree_start"]
    for begin, end in pairwise(starts.tolist()):
        for i in range(begin, end):
            for target in (layout["tree_on_true"][i], layout["tree_on_false"][i]):
                assert target in (MATCH, FAIL) or i - begin < target < end - begin
        last = (layout["tree_on_true"][end - 1], layout["tree_on_false"][end - 1])
        assert last == (MATCH, FAIL)


# ── gaps ────────────────────────────────────────────────────────────────────────────────────────


def test_deleted_records_are_closed_up_before_they_are_many():
    world = World({"a": "int"})
    slots = world.store([Comparison("a", "=", i) for i in range(1_000)])
    index = Scan.build(world.table, slots)
    rng = Random(1)
    left = slots.tolist()
    while len(left) > 1:
        slot = left.pop(rng.randrange(len(left)))
        index.delete(np.array([slot], np.int32))
        store = index._conjunctions
        assert (store.n_records - store.n_live) * GAPS <= store.n_live
        assert store.n_live == len(left)
    assert index.stats()["bytes"] < 10_000
    survivor = left[0]
    hits = search(index, world.events([{"a": survivor}, {"a": survivor + 1}]))
    assert hits.slots.tolist() == [survivor]


@given(seed=seeds())
def test_a_layout_has_no_gaps_and_every_record_once(seed):
    rng = Random(seed)
    types = schema(rng)
    world = World(types)
    world.store(mixed_expressions(rng, types, 30))
    held = world.speaking(Scan.language)
    index = Scan.build(world.table, held)
    leaving = np.array(rng.sample(held.tolist(), len(held) // 6), np.int32)
    index.delete(leaving)
    layout = index.layout()
    kept = sorted([*layout["conjunction_slot"].tolist(), *layout["tree_slot"].tolist()])
    assert kept == sorted(set(held.tolist()) - set(leaving.tolist()))
    for kind in ("conjunction", "tree"):
        assert layout[f"{kind}_start"][0] == 0
        assert layout[f"{kind}_start"][-1] == len(layout[f"{kind}_attr"])
        assert (np.diff(layout[f"{kind}_start"]) >= 1).all()
    raw = [event(rng, types) for _ in range(5)]
    for each in raw:
        slots = sorted(slots_of(index, world.events([each])).tolist())
        assert slots == [slot for slot in kept if matches(world.exprs[slot], each)]
