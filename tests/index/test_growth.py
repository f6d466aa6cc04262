"""Arrays stay in proportion to what an index holds, however it came to hold it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import matchwood as mw
from encode.world import World, mixed_expressions
from matchwood.index.core.protocol import Index
from strategies import schema

pytestmark = pytest.mark.slow

FACTOR, CONSTANT = 4, 2**16
"""How much larger than a bulk build an index may be that grew by single changes."""


@pytest.fixture(scope="module")
def world() -> World:
    rng = Random(3)
    world = World(types := schema(rng))
    world.store(mixed_expressions(rng, types, 3_000))
    return world


def one_by_one(index: Index, slots: np.ndarray) -> None:
    for slot in slots:
        index.insert(np.array([slot], np.int32))


def test_single_additions_take_as_much_memory_as_a_bulk_build(index_class, world):
    held = world.speaking(index_class.language)
    bulk = index_class.build(world.table, held)
    single = index_class.build(world.table, np.empty(0, np.int32))
    one_by_one(single, held)
    assert len(single) == len(bulk) > 1_000
    assert single.stats()["bytes"] <= FACTOR * bulk.stats()["bytes"] + CONSTANT


def test_steady_coming_and_going_takes_as_much_memory_as_a_bulk_build(index_class, world):
    held = world.speaking(index_class.language)[:200]
    bulk = index_class.build(world.table, held)
    index = index_class.build(world.table, held)
    order = Random(4).choices(held.tolist(), k=1_500)
    for slot in order:
        at = np.array([slot], np.int32)
        index.delete(at)
        index.insert(at)
    assert len(index) == len(held)
    assert index.stats()["bytes"] <= FACTOR * bulk.stats()["bytes"] + CONSTANT


def test_a_matcher_takes_thousands_of_single_additions(index_class):
    matcher = mw.Matcher(index_class.name)
    for i in range(2_000):
        matcher.add(i, f"a{i % 5} = {i} AND (b < {i} OR c = {i % 3})")
    assert matcher.match({f"a{1_234 % 5}": 1_234, "c": 1_234 % 3}) == [1_234]
