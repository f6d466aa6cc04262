"""The laws that every index of the registry keeps, whatever its structure."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import matchwood as mw
from encode.world import (
    World,
    conjunction,
    found,
    mixed_expressions,
    open_world,
    shared_world,
    small_world,
)
from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import CONJUNCTIONS
from matchwood.lang.nodes import And, Between, Comparison, Expr, In, IsNull
from searching import search, slots_of, work_of
from strategies import events, expressions, schema, schemas, seeds

FEWER = settings(max_examples=max(10, settings.default.max_examples // 3))
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def one_event(events: EventBatch, e: int) -> EventBatch:
    entries = slice(events.start[e], events.start[e + 1])
    return EventBatch(
        np.array([0, entries.stop - entries.start]),
        events.attr[entries],
        events.lo[entries],
        events.hi[entries],
    )


# ── the answer ──────────────────────────────────────────────────────────────────────────────────


@given(seed=seeds())
def test_agrees_with_the_naive_evaluator(index_class, seed):
    world, encoded, raw = shared_world(seed)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    assert len(index) == len(held)
    assert found(search(index, encoded)) == world.expected(held, raw)


@FEWER
@given(seed=st.integers(0, 12))
def test_values_of_mixed_kinds_agree_with_the_naive_evaluator(index_class, seed):
    world, encoded, raw = open_world(seed)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    assert found(search(index, encoded)) == world.expected(held, raw)


@FEWER
@given(data=st.data())
def test_one_expression_agrees_with_the_naive_evaluator(index_class, data):
    types = data.draw(schemas(max_attributes=3))
    expr = data.draw(expressions(types))
    event = data.draw(events(types))
    world = World(types)
    try:
        held = world.speaking(index_class.language, world.store([expr]))
    except mw.SchemaError:
        reject()  # draws that shrink may leave the types behind
    index = index_class.build(world.table, held)
    assert found(search(index, world.events([event]))) == world.expected(held, [event])


@FEWER
@given(seed=seeds())
def test_a_batch_equals_one_event_at_a_time(index_class, seed):
    world, encoded, _ = shared_world(seed)
    index = index_class.build(world.table, world.speaking(index_class.language))
    batch = found(search(index, encoded))
    for e in range(encoded.n_events):
        slots = slots_of(index, one_event(encoded, e)).tolist()
        assert sorted(slots) == batch[e]


def test_events_without_attributes_satisfy_absences_alone(index_class):
    world = World({"a": "int", "b": "int"})
    world.store([IsNull("a"), IsNull("a", negated=True), Comparison("b", "<>", 1)])
    index = index_class.build(world.table, world.speaking(index_class.language))
    assert found(search(index, world.events([{}, {"a": None, "b": None}]))) == [[0], [0]]


def test_attributes_that_no_expression_names_change_nothing(index_class):
    world, _, raw = shared_world(seed=5)
    index = index_class.build(world.table, world.speaking(index_class.language))
    plain = found(search(index, world.events(raw)))
    strange = [{**event, "never seen": object(), "nor.this": {"x": 1}} for event in raw]
    assert found(search(index, world.events(strange))) == plain
    assert any(plain)


def test_an_index_that_holds_nothing_matches_nothing(index_class):
    world, encoded, _ = shared_world(seed=6)
    index = index_class.build(world.table, np.empty(0, np.int32))
    assert len(index) == 0
    assert found(search(index, encoded)) == [[]] * encoded.n_events


# ── changing ────────────────────────────────────────────────────────────────────────────────────


@FEWER
@given(seed=seeds())
def test_building_equals_inserting_in_any_order_and_in_any_portions(index_class, seed):
    world, encoded, _ = shared_world(seed)
    held = world.speaking(index_class.language)
    built = found(search(index_class.build(world.table, held), encoded))
    shuffled = held.copy()
    Random(seed).shuffle(shuffled)
    nothing = np.empty(0, np.int32)
    one_by_one = index_class.build(world.table, nothing)
    for slot in shuffled:
        one_by_one.insert(np.array([slot], np.int32))
    in_portions = index_class.build(world.table, shuffled[:5])
    for portion in np.array_split(shuffled[5:], 3):
        in_portions.insert(portion)
    assert found(search(index_class.build(world.table, shuffled), encoded)) == built
    assert found(search(one_by_one, encoded)) == built
    assert found(search(in_portions, encoded)) == built
    assert len(one_by_one) == len(in_portions) == len(held)


@FEWER
@given(seed=seeds())
def test_deleting_what_was_inserted_restores_the_result(index_class, seed):
    world, encoded, raw = shared_world(seed)
    held = world.speaking(index_class.language)
    kept, passing = held[::2], held[1::2]
    index = index_class.build(world.table, kept)
    before = found(search(index, encoded))
    index.insert(passing)
    assert found(search(index, encoded)) == world.expected(held, raw)
    index.delete(passing)
    assert found(search(index, encoded)) == before
    assert len(index) == len(kept)


@pytest.mark.slow
@FEWER
@given(seed=seeds())
def test_a_slot_that_was_freed_can_hold_another_expression(index_class, seed):
    world, encoded, raw = small_world(seed)
    rng = Random(seed)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    for _ in range(4):
        leaving = np.array(rng.sample(held.tolist(), len(held) // 2), np.int32)
        index.delete(leaving)
        world.release(leaving)
        epoch = world.table.epoch
        types = dict(world.attributes.schema())
        world.store(mixed_expressions(rng, types, len(leaving)), leaving.tolist())
        assert world.table.epoch == epoch
        index.insert(world.speaking(index_class.language, leaving))
        held = world.speaking(index_class.language)
        encoded = world.events(raw)  # new constants have keys of their own
        assert found(search(index, encoded)) == world.expected(held, raw)


@pytest.mark.slow
def test_deleting_everything_gives_the_memory_back(index_class):
    world = World(types := schema(Random(7)))
    world.store([conjunction(Random(i), types) for i in range(6_000)])
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, np.empty(0, np.int32))
    empty = index.stats()["bytes"]
    index.insert(held)
    full = index.stats()["bytes"]
    shuffled = held.copy()
    Random(8).shuffle(shuffled)
    for portion in np.array_split(shuffled, 50):
        index.delete(portion)
    assert len(index) == 0
    assert full > 20 * empty
    assert index.stats()["bytes"] <= 2 * empty


# ── work ────────────────────────────────────────────────────────────────────────────────────────


def test_counters_are_the_same_every_time(index_class):
    def work() -> list[int]:
        world, encoded, _ = small_world(seed=9, n_expressions=200)
        index = index_class.build(world.table, world.speaking(index_class.language))
        return search(index, encoded).counters.tolist()

    assert work() == work()


@FEWER
@given(seed=seeds())
def test_counters_say_what_was_done(index_class, seed):
    world, encoded, _ = shared_world(seed)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    hits = search(index, encoded)
    work = work_of(hits)
    assert work["events"] == encoded.n_events
    assert work["matches"] == len(hits.slots)
    assert work["matches"] <= work["candidates"] <= len(held) * encoded.n_events
    assert min(work.values()) >= 0


@FEWER
@given(seed=seeds())
def test_counters_add_up_over_batches(index_class, seed):
    world, encoded, _ = shared_world(seed)
    index = index_class.build(world.table, world.speaking(index_class.language))
    parts = [search(index, one_event(encoded, e)) for e in range(encoded.n_events)]
    total = sum(part.counters for part in parts)
    assert total.tolist() == search(index, encoded).counters.tolist()


# ── keeping ─────────────────────────────────────────────────────────────────────────────────────


@FEWER
@given(seed=seeds())
def test_layout_and_restore_change_nothing(index_class, seed):
    world, encoded, raw = shared_world(seed)
    held = world.speaking(index_class.language)
    index = index_class.build(world.table, held)
    index.delete(held[::3])  # a layout has no memory of what was deleted
    before = found(search(index, encoded))
    layout = {name: array.copy() for name, array in index.layout().items()}
    assert found(search(index, encoded)) == before
    restored = index_class.restore(world.table, layout)
    assert len(restored) == len(index)
    assert found(search(restored, encoded)) == before
    restored.insert(held[::3])
    assert found(search(restored, encoded)) == world.expected(held, raw)
    restored.delete(held[1::3])
    left = np.setdiff1d(held, held[1::3])
    assert found(search(restored, encoded)) == world.expected(left, raw)


def test_an_empty_index_is_restored_and_takes_expressions(index_class):
    world, encoded, raw = shared_world(seed=10)
    held = world.speaking(index_class.language)
    empty = index_class.build(world.table, np.empty(0, np.int32))
    restored = index_class.restore(world.table, empty.layout())
    restored.insert(held)
    assert found(search(restored, encoded)) == world.expected(held, raw)


def test_a_restored_index_reads_arrays_that_cannot_be_written(index_class):
    world, encoded, raw = shared_world(seed=11)
    held = world.speaking(index_class.language)
    layout = {
        name: array.copy() for name, array in index_class.build(world.table, held).layout().items()
    }
    for array in layout.values():
        array.flags.writeable = False
    restored = index_class.restore(world.table, layout)
    assert found(search(restored, encoded)) == world.expected(held, raw)


def test_stats_and_drawing_are_for_people(index_class):
    world, _, _ = shared_world(seed=12)
    index = index_class.build(world.table, world.speaking(index_class.language))
    assert index.stats()["index"] == index_class.name
    assert index.stats()["bytes"] > 0
    assert index_class.name in index.draw()


def test_an_index_of_conjunctions_is_given_conjunctions_alone(index_class):
    if index_class.language != CONJUNCTIONS:
        pytest.skip("takes any expression")
    m = mw.Matcher(index=index_class.name)
    m.add_many([(1, "a = 1 AND b = 2"), (2, "a = 1 OR b = 2"), (3, "TRUE"), (4, "FALSE")])
    chosen, general = m.stats()["indexes"]
    assert (chosen["index"], general["trees"]) == (index_class.name, 1)
    assert chosen.get("conjunctions", 1) == 1
    assert m.match({"a": 1, "b": 2}) == [1, 2, 3]


# ── sizes ───────────────────────────────────────────────────────────────────────────────────────


def test_more_matches_than_any_buffer_holds(index_class):
    world = World({"a": "int"})
    world.store([Comparison("a", ">=", i % 7) for i in range(5_000)])
    index = index_class.build(world.table, world.speaking(index_class.language))
    hits = search(index, world.events([{"a": 6}, {"a": -1}, {"a": 3}, {"a": 7}]))
    everything = list(range(5_000))
    some = [i for i in everything if i % 7 <= 3]
    assert found(hits) == [everything, [], some, everything]
    assert work_of(hits)["matches"] == 2 * len(everything) + len(some)


def test_many_attributes_and_an_event_that_has_few(index_class):
    world = World()
    world.store([IsNull(f"a{i}", negated=True) for i in range(2_000)])
    index = index_class.build(world.table, world.speaking(index_class.language))
    sparse = [{}, {"a0": 1}, {"a1999": "x"}, {"a3": 1, "a1000": 2}]
    assert found(search(index, world.events(sparse))) == [[], [0], [1999], [3, 1000]]
    wide = {f"a{i}": i for i in range(2_000)}
    assert found(search(index, world.events([wide]))) == [list(range(2_000))]


def test_attributes_that_come_later_than_the_index(index_class):
    world = World()
    index = index_class.build(world.table, world.store([IsNull("a", negated=True)]))
    assert found(search(index, world.events([{"a": 1}]))) == [[0]]
    index.insert(world.store([IsNull(f"b{i}", negated=True) for i in range(500)]))
    assert found(search(index, world.events([{"a": 1}]))) == [[0]]
    assert found(search(index, world.events([{"b499": 1}]))) == [[500]]


@pytest.mark.slow
def test_in_lists_of_thousands(index_class):
    world = World({"a": "int", "b": "string"})
    numbers = tuple(range(0, 20_000, 2))
    words = tuple(f"w{i:05}" for i in range(0, 20_000, 2))
    world.store([In("a", numbers), In("a", numbers, True), In("b", words), In("b", words, True)])
    index = index_class.build(world.table, world.speaking(index_class.language))
    raw = [{"a": i} for i in (-2, 0, 1, 9_998, 19_998, 19_999)]
    raw += [{"b": f"w{i:05}"} for i in (0, 1, 9_998, 19_999)]
    held = world.speaking(index_class.language)
    assert found(search(index, world.events(raw))) == world.expected(held, raw)


@pytest.mark.slow
def test_conjunctions_of_a_thousand_predicates(index_class):
    n = 1_000
    world = World()
    wide = [Comparison(f"a{i}", "<=", i) for i in range(n)]
    world.store([And(tuple(wide)), And(tuple(wide[: n // 2])), wide[0]])
    index = index_class.build(world.table, world.speaking(index_class.language))
    full = {f"a{i}": i for i in range(n)}
    raw = [full, {**full, "a999": 1_000}, {**full, "a499": None}, {"a0": 0}]
    assert found(search(index, world.events(raw))) == [[0, 1, 2], [1, 2], [2], [2]]


def test_the_ends_of_64_bits(index_class):
    ends = (INT_MIN, INT_MIN + 1, -1, 0, 1, INT_MAX - 1, INT_MAX)
    exprs: list[Expr] = [
        Comparison("a", op, end) for op in ("=", "<>", "<", "<=", ">", ">=") for end in ends
    ]
    exprs += [Between("a", low, high, negated) for low in ends for high in ends
              for negated in (False, True)]  # fmt: skip
    exprs += [In("a", (INT_MIN, INT_MAX)), In("a", (INT_MIN, INT_MAX), True)]
    exprs += [Comparison("a", ">", 1e19), Comparison("a", "<", 1e19), Comparison("a", "<=", -1e19)]
    raw = [{"a": end} for end in ends]
    for kind in ("int", "number"):
        world = World({"a": kind})
        world.store(exprs)
        held = world.speaking(index_class.language)
        index = index_class.build(world.table, held)
        assert found(search(index, world.events(raw))) == world.expected(held, raw)
