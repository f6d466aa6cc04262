"""Work that must stay in proportion, by counters: no machine is fast enough for a square."""

from __future__ import annotations

import numpy as np
import pytest

from encode.world import World, found
from matchwood.index.blocks.index import BlockIndex
from matchwood.index.pst.bloom import PSTBloom
from matchwood.index.pst.hash import PSTHash
from matchwood.lang.nodes import And, Comparison, Expr
from searching import search, work_of

pytestmark = pytest.mark.slow


def chain(n: int, size: int) -> list[Expr]:
    """Conjunctions of `size` predicates on n attributes, each with some of its neighbours."""
    return [
        And(tuple(Comparison(f"a{(i + 7 * k) % n}", "=", 1) for k in range(size))) for i in range(n)
    ]


def work(counters: np.ndarray) -> int:
    return int(counters[1:].sum())  # without the number of events


@pytest.mark.parametrize("size", [2, 3])
def test_the_work_for_an_event_of_many_attributes_is_linear_in_their_number(index_class, size):
    n = 3_000
    world = World()
    slots = world.store(chain(n, size))
    index = index_class.build(world.table, slots)
    wide = {f"a{i}": 1 for i in range(n)}
    hits = search(index, world.events([wide, {**wide, "a5": 2}]))
    without = [i for i in range(n) if 5 not in [(i + 7 * k) % n for k in range(size)]]
    assert found(hits) == [list(range(n)), without]
    assert work(hits.counters) <= 2 * 20 * n


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize("cls", [BlockIndex, PSTBloom])
def test_a_value_leads_to_the_equalities_with_it_and_to_no_others(cls, is_text):
    """However many values there are: each has a space of its own, and so has what lies between."""

    def constant(i: int) -> int | str:
        return f"value {i}" if is_text else 1_000_003 * i

    n = 3_000
    world = World()
    slots = world.store([Comparison("a", "=", constant(i % n)) for i in range(2 * n)])
    index = cls.build(world.table, slots)
    values = [constant(7), constant(n - 1), "value 7.5" if is_text else 5]
    hits = search(index, world.events([{"a": value} for value in values]))
    assert found(hits) == [[7, n + 7], [n - 1, 2 * n - 1], []]
    assert work_of(hits)["candidates"] <= 4
    thinned = search(cls.build(world.table, slots, max_points=0), world.events([{"a": values[2]}]))
    assert work_of(thinned)["candidates"] >= 2
    n_spaces = index.stats()["spaces"]
    more = [Comparison("a", "<", constant(i)) for i in range(0, n, 2)]
    mixed = cls.build(world.table, np.concatenate([slots, world.store(more)]))
    assert mixed.stats()["spaces"] < n_spaces  # ranges among them: spaces hold several values


@pytest.mark.parametrize("n_access", [2, 3, 4])
def test_pst_hash_looks_up_combinations_or_members_whichever_are_fewer(n_access):
    world = World()
    slots = world.store([*chain(40, 4)] * 50 + chain(2_000, 4))
    index = PSTHash.build(world.table, slots, n_access=n_access)
    narrow, wide = {f"a{i}": 1 for i in range(4, 8)}, {f"a{i}": 1 for i in range(2_000)}
    some = {f"a{i}": 1 for i in range(28)}
    hits = search(index, world.events([narrow, wide, some]))
    assert found(hits)[:2] == [[], list(range(len(slots)))]
    assert found(hits)[2] == [s for s in range(2_000) if s % 40 + 21 < 28] + list(
        range(2_000, 2_007)
    )
    few = search(index, world.events([narrow]))
    assert work_of(few)["nodes"] <= 6 + 4 + 1  # combinations of four spaces
