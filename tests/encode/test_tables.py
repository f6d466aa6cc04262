"""Predicate and expression tables: interning, releasing, and nothing left behind."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given

import matchwood as mw
from encode.world import World, mixed_expressions
from engine.invariants import check_expressions, check_predicates
from matchwood.encode.decode import decode
from matchwood.encode.expression_kernels import N_CODE, UNUSED, WASTED
from matchwood.encode.predicate_kernels import FREE, HIGH
from matchwood.lang import parse
from matchwood.lang.nodes import Comparison, In
from naive import matches
from strategies import schema, seeds, workload


def sound(world: World) -> None:
    check_expressions(world.table)
    check_predicates(world.table.predicates)


def test_equal_predicates_have_one_id_however_they_are_written():
    world = World({"x": "int", "s": "string"})
    texts = ["x > 3", "x >= 4", "NOT x <= 3", "x > 3.5", "x NOT BETWEEN -9223372036854775808 AND 3"]
    world.store([parse(text) for text in texts])
    assert {int(world.table.code_of(slot)[0]) for slot in range(len(texts))} == {0}
    assert world.table.predicates.layout.refs[0] == len(texts)
    world.store([parse("s LIKE 'ab%'"), parse("s >= 'ab' AND s < 'ac'")])
    assert world.table.code_of(5).tolist() == world.table.code_of(6).tolist()


@given(seed=seeds())
def test_random_adding_and_releasing_leaves_nothing_behind(seed):
    rng = Random(seed)
    types = schema(rng)
    world = World(types)
    free: list[int] = []
    for _ in range(6):
        n = rng.randint(1, 15)
        slots = [free.pop() if free else len(world.exprs) + i for i in range(n)]
        world.store(mixed_expressions(rng, types, n), slots)
        sound(world)
        used = [slot for slot, expr in enumerate(world.exprs) if expr is not None]
        leaving = rng.sample(used, rng.randint(0, len(used)))
        world.release(np.array(leaving, np.int32))
        free = [slot for slot, expr in enumerate(world.exprs) if expr is None]
        sound(world)
    world.release(np.array([s for s, e in enumerate(world.exprs) if e is not None], np.int32))
    layout = world.table.layout
    assert len(world.table.predicates) == 0
    assert (world.table.predicates.layout.table == -1).all()
    assert (layout.kind == UNUSED).all()
    assert layout.count[N_CODE] == layout.count[WASTED]


@pytest.mark.slow
def test_ids_of_released_predicates_are_used_again():
    world = World({"x": "int"})
    for i in range(5_000):
        slots = world.store([Comparison("x", "=", i), In("x", (i, i + 2, i + 4))], [0, 1])
        world.release(slots)
    layout = world.table.predicates.layout
    assert layout.count[HIGH] <= 64
    assert layout.count[FREE] == layout.count[HIGH]
    assert len(layout.attr) <= 64
    assert len(layout.interval_lo) <= 256
    assert len(world.table.layout.code) <= 256


def test_a_table_grows_far_and_shrinks_back():
    m = mw.Matcher()
    empty = sum(m.stats()["bytes"].values())
    m.add_many((i, f"x IN ({i}, {i + 10}, {i + 20}) AND y > {i}") for i in range(5_000))
    full = sum(m.stats()["bytes"].values())
    m.remove_many(range(5_000))
    assert full > 10 * empty
    assert sum(m.stats()["bytes"].values()) < 2 * empty
    assert m.stats()["predicates"] == 0


@given(seed=seeds())
def test_decoding_gives_an_expression_that_means_the_same(seed):
    rng = Random(seed)
    types, _, raw = workload(rng, 0, 12)
    world = World(types)
    for attribute in world.attributes.all:
        if hasattr(attribute.keys, "dictionary"):
            attribute.keys.dictionary._step = rng.choice((2, 3, 2**32))
    world.store(mixed_expressions(rng, types, 12))
    for slot, source in enumerate(world.exprs):
        back = decode(world.table, world.attributes, slot)
        for event in raw:
            assert matches(back, event) is matches(source, event), f"{source}  ->  {back}"


@given(seed=seeds())
def test_what_was_decoded_can_be_added_again(seed):
    rng = Random(seed)
    types, _, raw = workload(rng, 0, 8)
    world = World(types)
    world.store(mixed_expressions(rng, types, 8))
    m = mw.Matcher(schema=types)
    for slot in range(8):
        m.add(slot, str(decode(world.table, world.attributes, slot)))
    for event in raw:
        assert m.match(event) == [s for s, e in enumerate(world.exprs) if matches(e, event)]
