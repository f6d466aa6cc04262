"""R-tree: both libraries give the same answers as a plain comparison, whatever was done to them."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest

import matchwood as mw
from encode.world import World
from matchwood.index.baselines.r_tree import RTree
from matchwood.lang.nodes import And, Between, Comparison, Expr
from matchwood.workload import Skew2D, load_events, load_subscriptions
from naive import matches
from searching import search, work_of

LIBRARIES = ("rtree", "shapely")
BIG = 2**53


def rectangle(x0: float, x1: float, y0: float, y1: float) -> Expr:
    return And((Between("x", x0, x1), Between("y", y0, y1)))


def answers(index: RTree, world: World, raw: list[dict[str, object]]) -> list[list[int]]:
    hits = search(index, world.events(raw))
    return [sorted(slots.tolist()) for slots in np.split(hits.slots, hits.offsets[1:-1])]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["int", "float", "number"])
def test_inserted_and_deleted_rectangles_are_found_as_a_plain_comparison_finds_them(
    library: str, kind: str
) -> None:
    rng = Random(kind)

    def value() -> float:
        return rng.randint(0, 30) if kind == "int" else rng.choice((7.5, rng.uniform(0, 30)))

    def pair() -> tuple[float, float]:
        first, second = sorted((value(), value()))
        return first, second

    world = World({"x": kind, "y": kind})
    exprs: list[Expr] = [rectangle(*pair(), *pair()) for _ in range(200)]
    exprs += [Comparison("x", ">", value()), Comparison("y", "<=", value())]
    slots = world.speaking("conjunctions", world.store(exprs))
    raw: list[dict[str, object]] = [{"x": value(), "y": value()} for _ in range(60)]
    raw += [{"x": value()}, {"y": value()}, {}]
    held = set(slots[:90].tolist())
    index = RTree.build(world.table, np.array(sorted(held), np.int32), library=library)
    for _ in range(6):
        coming = rng.sample(sorted(set(slots.tolist()) - held), 15)
        index.insert(np.array(coming, np.int32))
        held |= set(coming)
        going = rng.sample(sorted(held), 20)
        index.delete(np.array(going, np.int32))
        held -= set(going)
        expected = [[s for s in sorted(held) if matches(world.exprs[s], e)] for e in raw]
        assert answers(index, world, raw) == expected
        assert len(index) == len(held)


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys_that_doubles_round_are_tested_exactly(library: str) -> None:
    ends = [BIG - 2, BIG - 1, BIG, BIG + 1, BIG + 2, 2 * BIG + 1, -BIG - 1]
    world = World({"x": "int", "y": "int"})
    held = world.store([rectangle(min(a, b), max(a, b), 0, 1) for a in ends for b in ends])
    raw: list[dict[str, object]] = [{"x": end, "y": y} for end in ends for y in (0, 1, 2)]
    index = RTree.build(world.table, held, library=library)
    expected = [[s for s in held.tolist() if matches(world.exprs[s], each)] for each in raw]
    assert answers(index, world, raw) == expected


@pytest.mark.parametrize("library", LIBRARIES)
def test_it_gives_the_answers_of_skew2d_without_testing(library: str) -> None:
    workload = Skew2D(n_subscriptions=2_000, n_events=100)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    hits = search(RTree.build(loaded.table, loaded.slots, library=library), events)
    work = work_of(hits)
    assert work["candidates"] == work["matches"] > 0
    assert work["predicates"] == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_set_with_gaps_is_not_its_box(library: str) -> None:
    world = World({"x": "int", "y": "int"})
    held = world.store([rectangle(4, 6, 0, 9), rectangle(1, 2, 0, 9), rectangle(3, 8, 0, 9)])
    index = RTree.build(world.table, held, library=library)
    assert answers(index, world, [mw.parse("x IN (1, 8) AND y BETWEEN 0 AND 5")]) == [[1, 2]]  # type: ignore[list-item]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (library, f"{library}.index"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(mw.IndexBuildError, match=f"expected the package '{library}'.*pip install"):
        mw.Matcher(index="r_tree", library=library)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"library": "quadtree"}, "expected rtree or shapely for library"),
        ({"attributes": (1, 1)}, "expected two attributes"),
    ],
)
def test_a_wrong_setting_is_explained(settings: dict[str, object], message: str) -> None:
    with pytest.raises(mw.IndexBuildError, match=message):
        mw.Matcher(index="r_tree", **settings)


def test_a_tree_of_inserted_rectangles_answers_as_a_packed_one() -> None:
    workload = Skew2D(n_subscriptions=400, n_events=40)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    packed, grown = (
        RTree.build(loaded.table, loaded.slots, loading=each) for each in ("bulk", "insert")
    )
    assert answers_of(search(packed, events)) == answers_of(search(grown, events))
    with pytest.raises(mw.MatchwoodError, match="loading"):
        RTree.build(loaded.table, loaded.slots, library="shapely", loading="insert")


def answers_of(hits) -> list[list[int]]:
    return [sorted(slots.tolist()) for slots in np.split(hits.slots, hits.offsets[1:-1])]
