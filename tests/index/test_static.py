"""Laws of the static frame: when a structure is built, and where its errors are raised."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood as mw
from encode.world import World, found
from matchwood.index.baselines import predicate_frame
from matchwood.index.baselines.counting import Counting
from matchwood.index.baselines.k_index import KIndex
from matchwood.index.baselines.translation import Translation
from matchwood.index.core.registry import REGISTRY, find_index
from matchwood.index.core.static import StaticFrame
from matchwood.lang.nodes import And, Comparison, Or
from searching import search

STATIC = sorted(name for name in REGISTRY if issubclass(find_index(name), StaticFrame))


def small_world() -> tuple[World, np.ndarray]:
    world = World({"a": "int", "b": "int"})
    pairs = [And((Comparison("a", ">=", i), Comparison("b", "<=", i))) for i in range(20)]
    return world, world.store(pairs)


def counted(monkeypatch: pytest.MonkeyPatch, cls: type[StaticFrame]) -> list[int]:
    """The sizes of all sets that are built from now on."""
    sizes: list[int] = []
    build = cls._build

    def counting(self: StaticFrame, slots: np.ndarray) -> object:
        sizes.append(len(slots))
        return build(self, slots)

    monkeypatch.setattr(cls, "_build", counting)
    return sizes


def test_blocks_terms_and_the_baselines_are_static():
    folders = tuple(f"matchwood.index.{folder}." for folder in ("baselines", "blocks", "terms"))
    assert [name for name in sorted(REGISTRY) if REGISTRY[name].startswith(folders)] == STATIC


@pytest.mark.parametrize("name", STATIC)
def test_changes_one_by_one_cost_one_build(name, monkeypatch):
    world, slots = small_world()
    sizes = counted(monkeypatch, find_index(name))
    index = find_index(name).build(world.table, slots[:2])
    for slot in slots[2:]:
        index.insert(np.array([slot]))
    for slot in slots[:5]:
        index.delete(np.array([slot]))
    assert sizes == [2]
    assert len(index) == 15
    expected = [[], list(range(7, 11))]
    for _ in range(2):
        hits = search(index, world.events([{"a": 3, "b": 9}, {"a": 10, "b": 7}]))
        assert found(hits) == expected
    index.stats()
    index.draw()
    assert sizes == [2, 15]


def test_what_was_never_held_is_deleted_without_harm():
    world, slots = small_world()
    index = Counting.build(world.table, slots[:3])
    index.delete(slots)
    assert len(index) == 0
    index.insert(slots[3:4])
    assert found(search(index, world.events([{"a": 9, "b": 0}]))) == [[3]]


def test_where_a_build_could_fail_inserting_builds_and_a_failure_leaves_the_index_as_it_was(
    monkeypatch,
):
    world, slots = small_world()
    index = Counting.build(world.table, slots[:3])
    build = Counting._build

    def limited(self: Counting, slots: np.ndarray) -> object:
        if len(slots) > 4:
            raise mw.IndexBuildError("too many")
        return build(self, slots)

    monkeypatch.setattr(Counting, "_build", limited)
    monkeypatch.setattr(predicate_frame, "MAX_ITEMS", 10)
    index.insert(slots[3:4])
    with pytest.raises(mw.IndexBuildError, match="too many"):
        index.insert(slots[4:6])
    assert len(index) == 4
    assert found(search(index, world.events([{"a": 9, "b": 0}]))) == [[0, 1, 2, 3]]


def test_what_the_index_below_a_translation_refuses_is_refused_by_insert(monkeypatch):
    monkeypatch.setattr(KIndex, "_most_postings", 30)
    world = World({"a": "int"})
    slots = world.store([Or((Comparison("a", ">=", i), Comparison("b", "=", i))) for i in range(9)])
    index = Translation.build(world.table, slots[:2], base="k_index")
    with pytest.raises(mw.IndexBuildError, match="max_postings"):
        index.insert(slots[2:])
    assert found(search(index, world.events([{"a": 5}]))) == [[0, 1]]
