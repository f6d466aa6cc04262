"""VCR: the paper's examples and theorems, the plane's borders, real coordinates, the settings."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

import matchwood as mw
from encode.world import World, found
from index.vcr_checks import check_vcr
from matchwood.index.vcr.index import VCR
from matchwood.lang.nodes import And, Between, Comparison, Expr, In
from matchwood.workload import Skew2D, find_workload, load_events, load_subscriptions
from naive import matches
from searching import search, work_of

INF, NAN = float("inf"), float("nan")
VARIANTS = [
    (how, lists) for how in ("simple", "overlapped") for lists in ("table", "hash", "chains")
]


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


def rectangle(x0: object, x1: object, y0: object, y1: object) -> Expr:
    return And((Between("x", x0, x1), Between("y", y0, y1)))  # type: ignore[arg-type]


def answers(index: VCR, world: World, events: list[dict[str, object]]) -> list[list[int]]:
    hits = search(index, world.events(events))
    found = np.split(hits.slots, hits.offsets[1:-1])
    assert all(len(set(slots.tolist())) == len(slots) for slots in found)
    return [sorted(slots.tolist()) for slots in found]


@pytest.mark.parametrize(("decomposition", "lists"), VARIANTS)
def test_every_point_of_a_small_plane(decomposition: str, lists: str) -> None:
    """Borders, corners, and points outside of all rectangles, for every longest side."""
    rng = Random(1)
    world = World({"x": "int", "y": "int"})
    boxes = [(*sorted(rng.choices(range(9), k=2)), *sorted(rng.choices(range(7), k=2)))
             for _ in range(60)]  # fmt: skip
    held = world.store([rectangle(*box) for box in boxes])
    raw = [{"x": x, "y": y} for x in range(-2, 12) for y in range(-2, 10)]
    expected = [
        [s for s, (x0, x1, y0, y1) in enumerate(boxes) if x0 <= e["x"] <= x1 and y0 <= e["y"] <= y1]
        for e in raw
    ]
    for sides in product((1, 2, 4, 16), (1, 4, 8)):
        index = VCR.build(world.table, held, decomposition=decomposition, lists=lists, sides=sides)
        check_vcr(index, world.table, held)
        assert index.stats()["rest"] == 0
        assert answers(index, world, raw) == expected


SPECIAL = (-INF, INF, NAN, -0.0, 0.0, 1.5, 100.0, 5e-324, -1e308)


def many_rectangles(rng: Random, kind: str, n: int) -> list[tuple[float, ...]]:
    def end(most: int) -> float:
        if kind == "int":
            return rng.randint(0, most)
        if rng.random() < 0.03:
            return rng.choice(SPECIAL)
        if kind == "number" and rng.random() < 0.3:
            return rng.randint(0, most)
        return rng.choice((float(rng.randint(0, most)), rng.uniform(0, most)))

    def pair(most: int) -> tuple[float, float]:
        first, second = end(most), end(most)
        return (second, first) if first > second or first != first else (first, second)

    return [(*pair(100), *pair(60)) for _ in range(n)]


@pytest.mark.parametrize("kind", ["int", "float", "number"])
def test_a_thousand_rectangles_against_ten_thousand_points(kind: str) -> None:
    rng = Random(kind)
    boxes = many_rectangles(rng, kind, 1_000)
    ends = [end for box in boxes[:300] for end in box]
    points = [
        (rng.choice(ends), rng.choice(ends)) if rng.random() < 0.3
        else tuple(many_rectangles(rng, kind, 1)[0][::2])
        for _ in range(10_000)
    ]  # fmt: skip
    world = World({"x": kind, "y": kind})
    slots = world.store([rectangle(*box) for box in boxes])
    held = world.speaking("conjunctions", slots)
    assert len(held) > 900
    encoded = world.events([{"x": x, "y": y} for x, y in points])
    x, y = (np.array([_order(p[axis]) for p in points]) for axis in (0, 1))
    box = np.array([[_order(end) for end in each] for each in boxes])
    expected = [
        np.flatnonzero((box[:, 0] <= a) & (a <= box[:, 1]) & (box[:, 2] <= b) & (b <= box[:, 3]))
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    for decomposition, lists in VARIANTS:
        settings = {"decomposition": decomposition, "lists": lists, "sides": (8, 8)}
        whole = VCR.build(world.table, held, cells=(200, 200), **settings)
        grown = VCR.build(world.table, held[:600], cells=(64, 50), **settings)
        grown.insert(held[600:])  # on a grid that was made for others
        for index in (whole, grown):
            assert index.stats()["rest"] < 100
            hits = search(index, encoded)
            found = np.split(hits.slots, hits.offsets[1:-1])
            for e, slots_of_event in enumerate(found):
                assert np.sort(slots_of_event).tolist() == expected[e].tolist()


def _order(value: float) -> float:
    """Values so that NumPy compares them as we do: NaN after infinity."""
    return 4e307 if value != value else 3e307 if value == INF else min(value, 2e307)


def test_further_predicates_are_tested_and_sets_with_gaps_too() -> None:
    world = World({"x": "float", "y": "float", "category": "string"})
    fuel = Comparison("category", "=", "fuel")
    held = world.store([
        And((*rectangle(1.5, 4.5, 1.5, 4.5).operands, fuel)),
        rectangle(1.5, 4.5, 1.5, 4.5),
        And((In("x", (1.0, 2.0, 4.0)), Between("y", 0.0, 5.0))),
        And((Between("x", 1.0, 5.0), Comparison("x", "<>", 2.0), Between("y", 0.0, 5.0))),
        fuel,
        Comparison("x", ">", 0.5),
        And((Comparison("x", ">=", 2.0), Comparison("y", "<", 2.0))),
    ])  # fmt: skip
    raw: list[dict[str, object]] = [
        {"x": x, "y": y, "category": category}
        for x in (None, 1.0, 1.5, 2.0, 3.25, 4.5, NAN, INF)
        for y in (None, 1.4999, 1.5, 2.0, 4.0)
        for category in (None, "fuel", "food")
    ]
    index = VCR.build(world.table, held, attributes=(0, 1))
    check_vcr(index, world.table, held)
    assert index.stats()["rest"] == 2
    expected = [[s for s in held.tolist() if matches(world.exprs[s], each)] for each in raw]
    assert answers(index, world, raw) == expected


def test_what_would_be_cut_into_too_many_pieces_is_held_elsewhere() -> None:
    world = World({"x": "int", "y": "int"})
    exprs = [rectangle(i, i + 1, i, i + 1) for i in range(100)] + [rectangle(0, 100, 0, 100)]
    held = world.store(exprs)
    index = VCR.build(world.table, held, sides=(1, 1), most_vcrs=100)
    assert index.stats()["rest"] == 1
    assert answers(index, world, [{"x": 50, "y": 50}, {"x": 0, "y": 100}]) == [[49, 50, 100], [100]]
    index.delete(held[-1:])
    assert index.stats()["rest"] == 0
    assert answers(index, world, [{"x": 0, "y": 100}]) == [[]]


# ── changing ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("decomposition", "lists"), VARIANTS)
@pytest.mark.parametrize("kind", ["int", "float"])
def test_lists_are_exactly_the_decompositions_after_every_change(
    decomposition: str, lists: str, kind: str
) -> None:
    rng = Random(decomposition + lists)
    world = World({"x": kind, "y": kind})
    world.store([rectangle(*box) for box in many_rectangles(rng, kind, 120)])
    held = set(world.speaking("conjunctions")[:40].tolist())
    index = VCR.build(
        world.table, _array(held), decomposition=decomposition, lists=lists, sides=(4, 2)
    )
    rest = set(world.speaking("conjunctions").tolist()) - held
    raw: list[dict[str, object]] = [
        {"x": box[0], "y": box[2]} for box in many_rectangles(rng, kind, 40)
    ]
    for _ in range(25):
        coming = set(rng.sample(sorted(rest), min(len(rest), rng.randint(0, 9))))
        index.insert(_array(coming))
        held, rest = held | coming, rest - coming
        check_vcr(index, world.table, _array(held))
        going = set(rng.sample(sorted(held), rng.randint(0, len(held) // 4)))
        index.delete(_array(going))
        held, rest = held - going, rest | going
        check_vcr(index, world.table, _array(held))
        expected = [[s for s in sorted(held) if matches(world.exprs[s], e)] for e in raw]
        assert answers(index, world, raw) == expected


def _array(slots: set[int]) -> np.ndarray:
    return np.array(sorted(slots), np.int32)


@pytest.mark.parametrize("lists", ["table", "hash"])
def test_deleting_deactivates_vcrs_and_gives_memory_back(lists: str) -> None:
    loaded = load_subscriptions(Skew2D(n_subscriptions=20_000))
    index = VCR.build(loaded.table, loaded.slots, lists=lists)
    full = index.stats()
    shuffled = np.random.default_rng(1).permutation(loaded.slots)
    few = VCR.build(loaded.table, np.sort(shuffled[:500]), lists=lists).stats()
    for portion in np.array_split(shuffled[500:], 40):
        index.delete(portion)
    left = index.stats()
    for what in ("activated_vcrs", "ids_in_lists", "bytes"):
        assert left[what] < 2 * few[what]
    assert left["bytes"] < full["bytes"] / (1.5 if lists == "table" else 8)


def test_one_by_one_the_grid_follows_the_data() -> None:
    loaded = load_subscriptions(Skew2D(n_subscriptions=600))
    index = VCR.build(loaded.table, loaded.slots[:0])
    for slot in loaded.slots:
        index.insert(np.array([slot]))
    grown, built = index.stats(), VCR.build(loaded.table, loaded.slots).stats()
    assert grown["attributes"] == built["attributes"] == [0, 1]
    assert grown["cells"][0] > built["cells"][0] / 2
    assert grown["sides"][0] * 2 >= built["sides"][0]


def test_rectangles_after_others_get_a_grid_of_their_own() -> None:
    world = World({"x": "int", "y": "int", "z": "int"})
    others = world.store([Comparison("z", ">", i) for i in range(500)])
    rectangles = world.store([rectangle(i, i + 3, i, i + 3) for i in range(60)])
    index = VCR.build(world.table, others, attributes=(0, 1))
    assert index.stats()["cells"] == [1, 1]
    for slot in rectangles:
        index.insert(np.array([slot]))
    check_vcr(index, world.table, np.concatenate([others, rectangles]))
    assert index.stats()["cells"][0] > 20
    assert answers(index, world, [{"x": 10, "y": 10, "z": 0}]) == [[507, 508, 509, 510]]


def test_attributes_that_nobody_has_yet() -> None:
    m = mw.Matcher(
        index="vcr",
        attributes=("a98", "a99"),
        schema={f"a{i}": "int" for i in range(100)},
    )
    m.add(1, "a0 = 1")
    assert m.match({"a0": 1}) == [1]
    m.add(2, "a98 BETWEEN 1 AND 3 AND a99 BETWEEN 1 AND 3")
    assert m.match({"a0": 1, "a98": 2, "a99": 3}) == [1, 2]


# ── settings ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("workload", "sides"),
    [
        (Skew2D(width_x=20, width_y=20), [4, 4]),
        (Skew2D(width_x=40, width_y=40), [8, 8]),
        (Skew2D(), [8, 4]),
    ],
)
def test_auto_chooses_sides_that_follow_the_average_width(
    workload: Skew2D, sides: list[int]
) -> None:
    loaded = load_subscriptions(workload)
    found = VCR.build(loaded.table, loaded.slots).stats()
    assert found["sides"] == sides
    assert found["attributes"] == [0, 1]
    assert found["rest"] == 0
    assert (found["lists"], found["decomposition"]) == ("table", "simple")
    assert abs(found["cells"][0] - 300) <= 3
    assert abs(found["cells"][1] - 200) <= 3


def test_auto_chooses_a_coarser_grid_for_real_numbers() -> None:
    loaded = load_subscriptions(Skew2D(whole=False))
    found = VCR.build(loaded.table, loaded.slots).stats()
    assert max(found["sides"]) <= 32
    assert found["cells"][0] < 4_000


def test_cells_are_at_most_so_many() -> None:
    loaded = load_subscriptions(Skew2D(n_subscriptions=2_000))
    for cells in ((1, 1), (2, 3), (10, 7), (200, 200)):
        index = VCR.build(loaded.table, loaded.slots, cells=cells)
        assert all(n <= most for n, most in zip(index.stats()["cells"], cells, strict=True))
        check_vcr(index, loaded.table, loaded.slots)


def test_auto_chooses_the_attributes_that_most_have_ranges_on() -> None:
    world = World({"z": "int", "a": "int", "b": "int", "kind": "string"})
    exprs = []
    for i in range(50):
        parts = [Between("a", i, i + 9), Between("b", i, i + 5), Comparison("kind", "=", "x")]
        exprs.append(And((*parts, Comparison("z", ">", i))))
    held = world.store([*exprs, rectangle(1, 2, 3, 4), rectangle(1, 2, 3, 5)])
    found = VCR.build(world.table, held).stats()
    names = [world.attributes.all[attr].name for attr in found["attributes"]]
    assert (names, found["rest"]) == (["a", "b"], 2)


def test_overlapped_decomposition_activates_fewer_vcrs_in_figure_9() -> None:
    loaded = load_subscriptions(find_workload("skew2d:figure-9", n_subscriptions=32_000))
    shares = {
        how: VCR.build(loaded.table, loaded.slots, decomposition=how, lists="hash").stats()
        for how in ("simple", "overlapped")
    }
    assert shares["overlapped"]["activated_vcrs"] < 0.7 * shares["simple"]["activated_vcrs"]
    assert shares["overlapped"]["ids_in_lists"] < shares["simple"]["ids_in_lists"]


def test_a_hash_needs_less_memory_than_a_table_in_figure_8() -> None:
    loaded = load_subscriptions(find_workload("skew2d:figure-8", n_subscriptions=32_000))
    of = {
        lists: VCR.build(loaded.table, loaded.slots, lists=lists).stats()
        for lists in ("table", "hash", "auto")
    }
    assert of["hash"]["bytes"] < of["table"]["bytes"] / 10
    assert (of["auto"]["lists"], of["auto"]["decomposition"]) == ("hash", "overlapped")


def test_work_is_bounded_by_the_covering_set_and_the_matches() -> None:
    workload = Skew2D(n_subscriptions=5_000, n_events=300)
    loaded = load_subscriptions(workload)
    index = VCR.build(loaded.table, loaded.slots)
    hits = search(index, load_events(workload, loaded.attributes))
    work = work_of(hits)
    assert work["nodes"] <= index.stats()["covering_vcrs"] * work["events"]
    assert work["candidates"] == work["matches"] > 0  # whole numbers on grid lines: exact
    assert work["predicates"] == 0


def test_a_matcher_takes_the_attributes_by_name(tmp_path) -> None:
    m = mw.Matcher(index="vcr", attributes=("lon", "lat"), schema={"lat": "float"})
    m.add_many([
        (1, "lon BETWEEN 13.0 AND 13.5 AND lat BETWEEN 52.3 AND 52.6 AND category = 'fuel'"),
        (2, "lon BETWEEN 13.0 AND 13.5 AND lat BETWEEN 52.3 AND 52.6"),
        (3, "category = 'food'"),
    ])  # fmt: skip
    event = {"lon": 13.5, "lat": 52.3, "category": "fuel"}
    assert m.match(event) == [1, 2]
    assert m.match({**event, "category": "food"}) == [2, 3]
    m.save(tmp_path / "snapshot")
    again = mw.Matcher.load(tmp_path / "snapshot")
    again.add(4, "lon > 13.2 AND lat > 52.1")
    assert again.match(event) == [1, 2, 4]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sides": (3, 4)}, 'expected two powers of two up to 64, or "auto", for sides'),
        ({"sides": 8}, "for sides, found 8"),
        ({"cells": (0, 5)}, "for cells"),
        ({"attributes": ("a",)}, "expected two attributes"),
        ({"attributes": ("a", "a")}, "expected two attributes"),
        (
            {"decomposition": "od"},
            "expected one of auto, simple, overlapped for decomposition, found 'od'",
        ),
        ({"lists": "tree"}, "for lists"),
        ({"most_vcrs": 0}, "for most_vcrs"),
        ({"colour": 1}, "expected settings among attributes, cells"),
    ],
)
def test_a_wrong_setting_is_explained(settings: dict[str, object], message: str) -> None:
    with pytest.raises(mw.IndexBuildError, match=f"vcr: .*{message}"):
        mw.Matcher(index="vcr", **settings)


@pytest.mark.parametrize("places", [2, 1009])
def test_the_hash_of_the_paper_has_a_fixed_size_and_its_load_grows(places):
    workload = Skew2D(n_subscriptions=200, n_events=50)
    loaded = load_subscriptions(workload)
    events = load_events(workload, loaded.attributes)
    index = VCR.build(loaded.table, loaded.slots[:100], lists="chains", places=places)
    before = index.stats()
    index.insert(loaded.slots[100:])
    after = index.stats()
    assert before["places"] == after["places"] == places
    assert after["load"] == after["activated_vcrs"] / places > before["load"]
    check_vcr(index, loaded.table, loaded.slots)
    expected = search(VCR.build(loaded.table, loaded.slots), events)
    assert found(search(index, events)) == found(expected)
    index.delete(loaded.slots[::2])
    check_vcr(index, loaded.table, loaded.slots[1::2])


def test_the_hash_of_the_paper_has_a_prime_number_of_places():
    with pytest.raises(mw.IndexBuildError, match="prime"):
        VCR.build(World().table, np.empty(0, np.int32), lists="chains", places=1000)
