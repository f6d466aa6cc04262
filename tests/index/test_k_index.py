"""What is special to the k-index: sizes, skipping, and what it refuses."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import matchwood as mw
from encode.world import World, found
from matchwood.index.baselines.k_index import KIndex
from matchwood.index.scan.index import Scan
from matchwood.lang.nodes import And, Between, Comparison, In
from matchwood.workload import BEGen, load_events, load_subscriptions
from searching import search, slots_of, work_of


def test_the_conjunctions_of_the_paper():
    """Whang et al., Figure 1: c1 to c6, and the event (age = 3, state = NY, gender = F)."""
    world = World({"age": "int", "state": "string", "gender": "string"})
    age, state = Comparison("age", "=", 3), Comparison("state", "=", "NY")
    woman = Comparison("gender", "=", "F")
    world.store(
        [
            And((age, state)),
            And((age, woman)),
            And((age, Comparison("gender", "=", "M"), Comparison("state", "<>", "CA"))),
            And((Comparison("state", "=", "CA"), Comparison("gender", "=", "M"))),
            In("age", (3, 4)),
            Comparison("state", "<>", "CA"),
        ]
    )
    index = KIndex.build(world.table, world.speaking("conjunctions"))
    event = world.events([{"age": 3, "state": "NY", "gender": "F"}])
    assert sorted(slots_of(index, event).tolist()) == [0, 1, 4, 5]


def test_sizes_that_an_event_cannot_reach_are_passed_over():
    world = World({"a": "int", "b": "int"})
    world.store([And((Comparison("a", "=", 1), Comparison("b", "=", i))) for i in range(100)])
    index = KIndex.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 1}]))
    assert (work_of(hits)["nodes"], work_of(hits)["candidates"]) == (1, 0)


def test_long_lists_are_skipped_through():
    world = World({"a": "int", "b": "int"})
    both = And((Comparison("a", "=", 1), Comparison("b", "=", 1)))
    other = And((Comparison("a", "=", 1), Comparison("b", "=", 2)))
    world.store([both, *[other] * 5_000, both])
    index = KIndex.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 1, "b": 1}]))
    assert sorted(hits.slots.tolist()) == [0, 5_001]
    assert work_of(hits)["predicates"] < 10


def test_a_predicate_is_listed_once_for_every_segment_it_covers():
    world = World({"a": "int"})
    world.store([Between("a", 0, 99), Comparison("a", "=", 10), Comparison("a", "<>", 20)])
    stats = KIndex.build(world.table, world.speaking("conjunctions")).stats()
    assert stats["segments"] == 7  # cut at 0, 10, 11, 20, 21, 100
    assert stats["postings"] == 5 + 1 + 6


def test_what_would_be_listed_too_often_is_refused():
    rng = Random(1)
    world = World({"a": "int"})
    exprs = [Between("a", i, i + rng.randint(1, 10_000)) for i in range(300)]
    slots = world.store(exprs)
    with pytest.raises(mw.IndexBuildError, match="max_postings"):
        KIndex.build(world.table, slots, max_postings=3_000)
    index = KIndex.build(world.table, slots[:10], max_postings=3_000)
    with pytest.raises(mw.IndexBuildError, match="max_postings"):
        index.insert(slots[10:])
    assert len(index) == 10
    hits = slots_of(index, world.events([{"a": 5}])).tolist()
    assert sorted(hits) == [0, 1, 2, 3, 4, 5]
    index.delete(slots[8:])  # some of them were never taken
    assert len(index) == 8


def test_of_a_batch_only_what_is_too_much_is_refused():
    world = World({"a": "int", "b": "int"})
    lines = [Comparison("a", ">=", i) for i in range(40)]
    points = [Comparison("b", "=", i) for i in range(100)]
    many = In("a", tuple(range(100, 1_000, 2)))  # cuts every line 900 times
    slots = world.store([*lines, *points[:50], many, *points[50:]])
    index = KIndex.build(world.table, slots[:40], max_postings=2_000)
    refused = index.refusals(slots[40:])
    assert list(refused) == [90]
    index.insert(np.setdiff1d(slots[40:], [90]))
    assert index.stats()["postings"] == sum(range(1, 41)) + 100


def test_a_limit_is_reached_exactly_and_what_is_refused_is_not_enumerated():
    world = World({"a": "int"})
    slots = world.store([Comparison("a", ">=", i) for i in range(130)])
    most = 100 * 101 // 2
    index = KIndex.build(world.table, slots[:1], max_postings=most)
    for slot in slots[1:100]:
        index.insert(np.array([slot]))
    before = index.stats()
    assert before["postings"] == most
    for slot in slots[100:]:
        with pytest.raises(mw.IndexBuildError, match=f"at most {most:,} postings"):
            index.insert(np.array([slot]))
    assert index.stats() == before
    assert sorted(slots_of(index, world.events([{"a": 50}])).tolist()) == list(range(51))


build = KIndex._build


def test_thousands_of_half_lines_that_come_one_by_one_are_enumerated_once(monkeypatch):
    matcher = mw.Matcher("k_index")
    built = []
    monkeypatch.setattr(
        KIndex, "_build", lambda self, slots: built.append(len(slots)) or build(self, slots)
    )
    for i in range(2_000):
        matcher.add(i, f"a > {i}")
    assert matcher.match({"a": 1_234}) == list(range(1_234))
    assert built == [1, 2_000]


def test_over_values_it_finds_the_same_and_takes_more():
    world = World({"x": "int", "y": "int"})
    rng = Random(5)

    def expr():
        low = rng.randint(0, 80)
        return And((Between("x", low, low + rng.randint(0, 15)), Comparison("y", "=", low % 7)))

    world.store([expr() for _ in range(60)])
    slots = world.speaking("conjunctions")
    plain, valued = (KIndex.build(world.table, slots, over=each) for each in ("segments", "values"))
    events = world.events([{"x": rng.randint(-5, 105), "y": rng.randint(-1, 8)} for _ in range(99)])
    found, expected = search(valued, events), search(plain, events)
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.slots.tolist() == expected.slots.tolist()
    assert valued.stats()["segments"] > plain.stats()["segments"]
    valued.delete(slots[:30])
    valued.insert(slots[:30])
    assert search(valued, events).slots.tolist() == expected.slots.tolist()


def test_over_values_a_wide_range_is_refused_at_once():
    world = World({"x": "int"})
    world.store([Between("x", 0, 10**12), Between("x", 5, 7)])
    with pytest.raises(mw.IndexBuildError, match="postings"):
        KIndex.build(world.table, world.speaking("conjunctions"), over="values")


@pytest.mark.parametrize("algorithm", ["conjunction", "counting"])
def test_over_values_both_algorithms_agree_with_scan(algorithm):
    workload = BEGen(n_subscriptions=300, n_events=20)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    index = KIndex.build(loaded.table, loaded.slots, over="values", algorithm=algorithm)
    expected = found(search(Scan.build(loaded.table, loaded.slots), events))
    assert found(search(index, events)) == expected


def test_counting_reads_every_posting_of_the_event():
    world = World({"x": "int", "y": "int"})
    slots = world.store([And((Between("x", 0, 9), Between("y", 0, k))) for k in range(50)])
    events = world.events([{"x": 5, "y": 60}])
    read = {}
    for algorithm in ("conjunction", "counting"):
        index = KIndex.build(world.table, slots, algorithm=algorithm)
        read[algorithm] = work_of(search(index, events))["predicates"]
    assert read["counting"] == 50
    assert read["conjunction"] < 50
