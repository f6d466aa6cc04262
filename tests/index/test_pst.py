"""What is special to PSTBloom and PSTHash: their spaces, signatures, keys and what they learn."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from encode.world import World, conjunction
from index.pst_checks import check, dimensions, listed
from matchwood.errors import IndexBuildError
from matchwood.index.pst.bloom import PSTBloom
from matchwood.index.pst.hash import PSTHash
from matchwood.lang.nodes import And, Between, Comparison, Expr, In
from naive import matches
from searching import search, work_of
from strategies import event, schema, seeds

FEWER = settings(max_examples=max(5, settings.default.max_examples // 8))

SETTINGS: list[Any] = [  # class and settings
    (PSTBloom, {"space_size": 0}),
    (PSTBloom, {"space_size": 2, "max_spaces": 5, "max_records": 2, "signature_bits": 128}),
    pytest.param(
        PSTBloom,
        {"space_size": 1, "signatures": "leaves", "leaf_bits": 64},
        marks=pytest.mark.slow,  # compiles the filters of leaves
    ),
    (PSTHash, {"space_size": 0, "n_access": 2}),
    (PSTHash, {"space_size": 1, "n_access": 3, "max_records": 6, "signature_bits": 0}),
    (PSTHash, {"space_size": 2, "max_spaces": 4, "n_access": 1}),
]


def slots_by_event(index: PSTBloom, world: World, raw: list[dict[str, Any]]) -> list[list[int]]:
    hits = search(index, world.events(raw))
    ends = zip(hits.offsets[:-1], hits.offsets[1:], strict=True)
    return [sorted(hits.slots[begin:end].tolist()) for begin, end in ends]


def small_conjunction(rng: Random, types: dict[str, str]) -> Expr:
    """Few constants, so that ends meet and spaces split and join often."""
    names = rng.sample(sorted(types), rng.randint(1, 3))
    leaves: list[Expr] = []
    for name in names:
        low, high = sorted((rng.randint(0, 9), rng.randint(0, 9)))
        leaves.append(
            rng.choice(
                (
                    Comparison(name, rng.choice(("=", "<>", "<", ">=")), low),
                    Between(name, low, high),
                    In(name, (low, high, rng.randint(0, 9)), rng.random() < 0.2),
                )
            )
        )
    return leaves[0] if len(leaves) == 1 else And(tuple(leaves))


@pytest.mark.parametrize(("cls", "config"), SETTINGS, ids=str)
@FEWER
@given(seed=seeds())
def test_spaces_hold_exactly_what_meets_them_whatever_comes_and_goes(cls, config, seed):
    rng = Random(seed)
    types = dict.fromkeys("abcd", "int")
    world = World(types)
    world.store([small_conjunction(rng, types) for _ in range(60)])
    everything = world.speaking("conjunctions")
    held: set[int] = set(rng.sample(everything.tolist(), 20))
    index = cls.build(world.table, np.array(sorted(held), np.int32), **config)
    for step in range(12):
        check(index, np.array(sorted(held), np.int32))
        raw = [{name: rng.randint(-1, 10) for name in types if rng.random() < 0.8}]
        assert slots_by_event(index, world, raw) == [
            [slot for slot in sorted(held) if matches(world.exprs[slot], raw[0])]
        ]
        free = sorted(set(everything.tolist()) - held)
        if rng.random() < 0.5 and free:
            coming = rng.sample(free, rng.randint(1, len(free)))
            index.insert(np.array(coming, np.int32))
            held |= set(coming)
        else:
            leaving = rng.sample(sorted(held), rng.randint(1, max(1, len(held) - 1)))
            index.delete(np.array(leaving, np.int32))
            held -= set(leaving)
            if not held:
                break
        if step % 4 == 3:
            index.rebalance(1.0)


@pytest.mark.parametrize("cls", [PSTBloom, PSTHash])
def test_with_every_end_a_cut_nothing_is_verified_that_is_known(cls):
    world = World(dict.fromkeys("ab", "int"))
    world.store([Comparison("a", "=", i % 10) for i in range(50)])
    index = cls.build(world.table, world.speaking("conjunctions"), space_size=0)
    work = work_of(search(index, world.events([{"a": 3}, {"a": 11}, {"b": 1}])))
    assert work["candidates"] == work["matches"] == 5
    assert work["predicates"] == 0


def figure_3() -> World:
    """PSTBloom's example: three subscriptions over bytes."""
    world = World({"attr1": "int", "attr2": "int"})
    world.store(
        [
            And((Comparison("attr1", "<", -5), Between("attr2", 1, 5))),
            And((Between("attr1", -5, -1), Comparison("attr2", "<", 1))),
            And((Between("attr1", -5, -1), Comparison("attr2", ">", 5))),
        ]
    )
    return world


def test_the_access_predicates_of_figure_3():
    world = figure_3()
    index = PSTBloom.build(
        world.table, world.speaking("conjunctions"), space_size=0, ranking="operators"
    )
    spaces = {
        (dim // 2, first, last): listed(index, space)
        for dim, each in dimensions(index).items()
        for first, last, space in each
    }
    refs = index.layout()["home_ref"][:3].tolist()
    attr1, attr2 = (world.attributes.by_name[name].id for name in ("attr1", "attr2"))
    assert {key: found for key, found in spaces.items() if found} == {
        (attr1, -5, -1): refs[1:],
        (attr2, 1, 5): refs[:1],
    }
    events = [{"attr1": -6, "attr2": 3}, {"attr1": -2, "attr2": 0}, {"attr1": -2, "attr2": 3}]
    assert slots_by_event(index, world, events) == [[0], [1], []]


def figure_4() -> World:
    """PSTHash's example: four subscriptions of three predicates."""
    world = World(dict.fromkeys(("attr1", "attr2", "attr3"), "int"))
    rows = [("=", "=", "<"), ("=", "=", ">"), ("=", "<", "="), ("<", "=", "=")]
    values = {"attr1": 1, "attr2": -1, "attr3": 0}
    for row in rows:
        leaves = [
            Comparison(name, op, value)
            for (name, value), op in zip(values.items(), row, strict=True)
        ]
        world.store([And(tuple(leaves))])
    return world


def test_the_keys_of_figure_4():
    world = figure_4()
    index = PSTHash.build(
        world.table, world.speaking("conjunctions"), space_size=0, ranking="operators"
    )
    check(index, np.arange(4, dtype=np.int32))
    assert index.stats()["by_arity"] == {1: 0, 2: 4}
    assert index.stats()["places"] == 3  # [1-2][2-2] for two of them, [1-2][3-2], [2-2][3-2]
    hits = search(index, world.events([{"attr1": 1, "attr2": -1, "attr3": 2}]))
    work = work_of(hits)
    assert hits.slots.tolist() == [1]
    # of the three pairs only [1-2][2-2] is looked up: no key has a part in [3-3]
    assert (work["nodes"], work["candidates"], work["predicates"]) == (1, 2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("n_access", [1, 2, 3, 4, 7])
def test_any_number_of_access_predicates(n_access):
    rng = Random(n_access)
    types = dict.fromkeys("abcdefg", "int")
    world = World(types)
    exprs = [
        And(tuple(Comparison(name, "=", rng.randint(0, 2)) for name in sorted(types)))
        for _ in range(200)
    ]
    world.store([*exprs, Comparison("a", "=", 1), Comparison("b", ">", 0)])
    held = world.speaking("conjunctions")
    index = PSTHash.build(world.table, held, n_access=n_access)
    check(index, held)
    raw = [{name: rng.randint(0, 2) for name in types} for _ in range(50)]
    raw += [{"a": 1}, {}, {"a": 1, "b": 1}]
    assert slots_by_event(index, world, raw) == [
        [slot for slot in held.tolist() if matches(world.exprs[slot], each)] for each in raw
    ]
    assert index.stats()["by_arity"][n_access] >= 200
    index.delete(held[:-1])
    check(index, held[-1:])


@pytest.mark.slow
def test_two_wide_predicates_do_not_multiply():
    world = World(dict.fromkeys("ab", "int"))
    world.store(
        [And((Between("a", i, i + 50), Between("b", 2 * i, 2 * i + 40))) for i in range(100)]
    )
    held = world.speaking("conjunctions")
    index = PSTHash.build(world.table, held, space_size=0, max_records=64)
    stats = index.stats()
    assert stats["demoted"] > 50
    assert stats["places"] + stats["records"] <= 64 * len(held)
    raw = [{"a": a, "b": b} for a in range(0, 150, 7) for b in range(0, 250, 11)]
    assert slots_by_event(index, world, raw) == [
        [slot for slot in held.tolist() if matches(world.exprs[slot], each)] for each in raw
    ]


def test_a_wide_access_predicate_goes_to_the_coarse_division():
    world = World({"a": "int"})
    world.store([Between("a", i, i + 100) for i in range(200)])
    held = world.speaking("conjunctions")
    index = PSTBloom.build(world.table, held, space_size=0, max_records=20)
    assert index.stats()["wide"] == 200
    assert index.stats()["records"] <= 16 * 200
    check(index, held)


# ── signatures ──────────────────────────────────────────────────────────────────────────────────


def needy(n_attributes: int) -> World:
    """All need `a = 1` and two of many attributes."""
    rng = Random(1)
    world = World({"a": "int", **{f"n{i}": "int" for i in range(n_attributes)}})
    for _ in range(2_000):
        names = [f"n{i}" for i in rng.sample(range(n_attributes), 2)]
        rest = [Comparison(name, ">", -1) for name in names]
        world.store([And((Comparison("a", "=", 1), *rest))])
    return world


@pytest.mark.slow
def test_more_bits_let_fewer_pass_in_vain_and_none_is_lost():
    world = needy(200)
    held = world.speaking("conjunctions")
    raw = [{"a": 1, **{f"n{i}": 1 for i in range(k, k + 40)}} for k in range(0, 160, 20)]
    rates, answers = [], []
    for bits in (0, 64, 128, 256):
        index = PSTBloom.build(world.table, held, signature_bits=bits)
        answers.append(slots_by_event(index, world, raw))
        rates.append(index.stats()["signature_false_positives"])
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert any(answers[0])
    assert rates[0] == 1.0
    assert 1.0 > rates[1] > rates[2] > rates[3]
    assert rates[3] < 0.3  # 256 bits for 200 attributes, 40 of which an event has


# ── learning ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cls", [PSTBloom, PSTHash])
def test_expressions_move_to_what_events_seldom_satisfy(cls):
    """`a = 0` looks as good as `b = i`, until events come that always have a = 0."""
    world = World({"a": "int", "b": "int", "c": "int"})
    exprs: list[Expr] = []
    for i in range(400):
        exprs.append(And((Comparison("a", "=", 0), Comparison("b", "<", i % 40))))
    exprs += [Comparison("a", "=", i) for i in range(40)]
    exprs += [Comparison("b", "=", i) for i in range(40)]
    world.store(exprs)
    held = world.speaking("conjunctions")
    index = (
        cls.build(world.table, held, learn_every=1, n_access=1)
        if cls is PSTHash
        else (cls.build(world.table, held, learn_every=1))
    )
    raw = [{"a": 0, "b": 39 - i % 3} for i in range(200)]
    before = search(index, world.events(raw))
    assert index.rebalance() >= 300
    after = search(index, world.events(raw))
    check(index, held)
    assert sorted(before.slots.tolist()) == sorted(after.slots.tolist())
    assert work_of(after)["candidates"] < work_of(before)["candidates"] / 5
    assert index.rebalance() == 0


@pytest.mark.parametrize("cls", [PSTBloom, PSTHash])
def test_expressions_that_hang_well_stay_where_they_are(cls, monkeypatch):
    """Events always have a = 0 and b = 0: what hangs there moves to c, the others do not."""
    world = World(dict.fromkeys("abcde", "int"))
    poor = [
        And((Comparison("a", "=", 0), Comparison("b", "=", 0), Comparison("c", "=", i % 20)))
        for i in range(60)
    ]
    well = [And((Comparison("d", "=", i), Comparison("e", "=", i % 7))) for i in range(200)]
    rest = [Comparison(name, "=", i) for name in "ab" for i in range(40)]
    world.store([*poor, *well, *rest])
    held = world.speaking("conjunctions")
    index = cls.build(world.table, held, learn_every=1)
    raw = [{"a": 0, "b": 0, "c": i % 90, "d": i % 200, "e": i % 7} for i in range(400)]
    before = search(index, world.events(raw))
    refs = index.layout()["home_ref"].copy()
    monkeypatch.setattr(cls, "_build_again", lambda self: pytest.fail("built again"))
    assert index.rebalance() == 60
    assert (index.layout()["home_ref"][60:260] == refs[60:260]).all()
    check(index, held)
    after = search(index, world.events(raw))
    assert sorted(before.slots.tolist()) == sorted(after.slots.tolist())
    assert work_of(after)["candidates"] < work_of(before)["candidates"] / 2
    assert index.rebalance() == 0


def test_counts_fade():
    world = World({"a": "int"})
    world.store([Comparison("a", "=", i) for i in range(10)])
    index = PSTBloom.build(
        world.table, world.speaking("conjunctions"), learn_every=1, window=64, space_size=0
    )
    for _ in range(10):
        search(index, world.events([{"a": 1}] * 50))
    assert index.stats()["events_counted"] <= 64 + 50
    assert int(index.layout()["home_space_seen"].max()) <= 64 + 50


def test_what_was_learnt_survives_a_snapshot():
    world = World({"a": "int"})
    world.store([Comparison("a", "=", i) for i in range(10)])
    index = PSTBloom.build(world.table, world.speaking("conjunctions"), learn_every=1)
    search(index, world.events([{"a": 1}] * 70))
    again = PSTBloom.restore(world.table, index.layout(), learn_every=1)
    assert again.stats()["events_counted"] == 70


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"signature_bits": 63}, "expected one of 0, 64, 128, 256 for signature_bits, found 63"),
        ({"ranking": "best"}, "expected 'odds' or 'operators' for ranking"),
        ({"max_records": 0}, "expected an integer of 1 or more for max_records"),
    ],
)
def test_settings_are_checked(config, message):
    world = World({"a": "int"})
    with pytest.raises(IndexBuildError, match=message):
        PSTBloom.build(world.table, np.empty(0, np.int32), **config)


def test_many_types_and_shapes_keep_the_invariants():
    rng = Random(3)
    types = schema(rng)
    world = World(types)
    world.store([conjunction(rng, types) for _ in range(300)])
    held = world.speaking("conjunctions")
    raw = [event(rng, types) for _ in range(40)]
    wanted = [[s for s in held.tolist() if matches(world.exprs[s], each)] for each in raw]
    for cls in (PSTBloom, PSTHash):
        index = cls.build(world.table, held[::2], space_size=3)
        index.insert(held[1::2])
        check(index, held)
        assert slots_by_event(index, world, raw) == wanted
