"""What is special to OpIndex: pivots, operator lists, and when they are sorted."""

from __future__ import annotations

import numpy as np
import pytest

from encode.world import World
from inside import built_of, is_built
from matchwood.errors import IndexBuildError
from matchwood.index.baselines.op_index import OpIndex
from matchwood.lang.nodes import And, Between, Comparison, In
from searching import search, work_of


def two_pivots() -> World:
    """`a` is in all expressions, `b` in three, `c` in one."""
    world = World(dict.fromkeys("abc", "int"))
    world.store([Comparison("a", ">", i) for i in range(5)])
    world.store([And((Comparison("a", "=", i), Between("b", 1, 4))) for i in range(2)])
    world.store([And((In("a", (1, 7)), Comparison("b", "<>", 3), Comparison("c", "<=", 2)))])
    return world


def test_the_rarest_attribute_is_the_pivot():
    world = two_pivots()
    index = OpIndex.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 7, "b": 1, "c": 2}, {"a": 1}]))
    assert sorted(hits.slots[: hits.offsets[1]].tolist()) == [0, 1, 2, 3, 4, 7]
    names = {each.id: each.name for each in world.attributes.all}
    pivots = [names[pivot] for pivot in built_of(index).lists.pivot[:8].tolist()]
    assert pivots == ["a"] * 5 + ["b"] * 2 + ["c"]


def test_expressions_whose_pivot_is_absent_are_not_touched():
    world = two_pivots()
    index = OpIndex.build(world.table, world.speaking("conjunctions"))
    hits = search(index, world.events([{"a": 0, "x": 1}]))
    work = work_of(hits)
    assert (work["candidates"], work["matches"]) == (0, 0)


@pytest.mark.parametrize("sorting", ["batch", "always"])
def test_sorting_late_or_at_once_gives_the_same_lists(sorting):
    world = two_pivots()
    held = world.speaking("conjunctions")
    index = OpIndex.build(world.table, held[:3], sorting=sorting)
    for slot in held[3:]:
        index.insert(np.array([slot], np.int32))
        assert is_built(index) == (sorting == "always")
    index.delete(held[:1])
    index.settle()
    whole = OpIndex.build(world.table, held[1:])
    for mine, other in zip(built_of(index).lists, built_of(whole).lists, strict=True):
        assert mine.tolist() == other.tolist()


def test_settings_are_checked():
    world = two_pivots()
    with pytest.raises(IndexBuildError, match="expected 'batch' or 'always' for sorting"):
        OpIndex.build(world.table, np.empty(0, np.int32), sorting="never")
