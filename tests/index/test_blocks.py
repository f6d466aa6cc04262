"""What is special to blocks: codes of keys, sizes of blocks, forms of columns, equal members."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encode.world import World, found
from inside import built_of
from matchwood.encode.events import EventBatch
from matchwood.errors import FormatError
from matchwood.index.blocks.build import make_codes
from matchwood.index.blocks.index import BlockIndex
from matchwood.index.blocks.members import find_equal
from matchwood.index.blocks.words import FOLDED_ATTRIBUTES, MOST_CODE, code_of
from matchwood.index.scan.index import Scan
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel
from matchwood.lang import parse
from searching import search, work_of

FORMS = [
    {},
    {"exact": 1e6, "columns": 0.0},
    {"exact": 0.5, "columns": 0.0, "undecided": 0.0},
    {"exact": 0.0, "columns": 0.0, "sieve": 1e6, "least": 0.0},
    {"exact": 0.0, "columns": 0.0, "sieve": 0.0, "least": 0.0},
    {"exact": 0.0, "columns": 1.0},
    {"exact": 0.0, "columns": 1.0, "ungated": 1, "gated": 3},
]
"""All, exact columns, some dear ones, coarse ones, those of presence, rows, rows behind gates."""
ROWS = FORMS[5]


@kernel
def codes_of(codes, attr, keys, out):
    for i in range(len(keys)):
        out[i] = code_of(codes, attr, keys[i])


def naive_cuts(intervals: list[tuple[int, int]]) -> list[int]:
    """The keys where some interval begins or has just ended."""
    ends = {lo for lo, _ in intervals} | {hi + 1 for _, hi in intervals if hi != MAX_KEY}
    return sorted(ends - {int(MIN_KEY)})


KEYS = st.one_of(
    st.integers(-40, 40),
    st.integers(int(MIN_KEY), int(MAX_KEY)),
    st.sampled_from([int(MIN_KEY), int(MIN_KEY) + 1, int(MAX_KEY) - 1, int(MAX_KEY)]),
)


@given(
    intervals=st.lists(st.tuples(KEYS, KEYS).map(sorted).map(tuple), min_size=1, max_size=30),
    keys=st.lists(KEYS, min_size=1, max_size=30),
)
def test_the_code_of_a_key_is_one_more_than_the_cuts_up_to_it(intervals, keys):
    world = World({"x": "int"})
    world.store([parse(f"x BETWEEN {lo} AND {hi}") for lo, hi in intervals])
    p = world.table.predicates.layout
    used = np.flatnonzero(p.attr >= 0)
    codes = make_codes(p, used, world.table.n_attributes)
    kept = [i for pred in used.tolist() for i in world.table.predicates.intervals(pred)]
    cuts, out = naive_cuts(kept), np.empty(len(keys), np.int64)
    if not kept:
        return
    attr = int(p.attr[used[0]])
    codes_of(codes, attr, np.array(keys, np.int64), out)
    assert out.tolist() == [1 + sum(cut <= key for cut in cuts) for key in keys]
    assert codes.n[attr] == len(cuts) + 1


@pytest.mark.parametrize("n", [65_534, 65_535])
def test_as_many_codes_as_a_table_of_them_can_hold_are_told_apart(n):
    lo = np.arange(0, n - 1, 2)
    world = World({"x": "int"})
    world.store([parse(f"x IN ({', '.join(map(str, lo.tolist()))})"), parse(f"x >= {n - 1}")])
    p = world.table.predicates.layout
    used = np.flatnonzero(p.attr >= 0)
    codes = make_codes(p, used, world.table.n_attributes)
    keys, attr = np.arange(-1, n + 1), int(p.attr[used[0]])
    out = np.empty(len(keys), np.int64)
    codes_of(codes, attr, keys, out)
    assert out.tolist() == [*range(1, n + 2), n + 1]
    assert codes.n[attr] == n + 1


def agree(world: World, slots: np.ndarray, raw: list, **config) -> None:
    """Blocks answer as scan does, by each form, together and one by one, and after a snapshot."""
    events = world.events(raw)
    expected = found(search(Scan.build(world.table, slots), events))
    for form in FORMS:
        index = BlockIndex.build(world.table, slots, **{**form, **config})
        assert found(search(index, events)) == expected
        layout = index.layout()
        BlockIndex.check(world.table, slots, layout)
        again = BlockIndex.restore(world.table, layout)
        assert found(search(again, events)) == expected


def texts(n: int, seed: int) -> list[str]:
    """Members of one space, x = 1, that share y and z and have rare attributes."""
    rng = Random(seed)
    shapes = ("y = {0}", "y BETWEEN {0} AND {1}", "y IN ({0}, {1}, {2})", "y <> {0}",
              "y NOT IN ({0}, {2})", "y IS NOT NULL", "y IS NULL", "z > {1}")  # fmt: skip
    made = []
    for i in range(n):
        a, b, c = sorted(rng.sample(range(40), 3))
        more = rng.choice(["", f" AND r{rng.randrange(9)} >= {a}", f" AND z < {c}"])
        made.append(f"x = 1 AND {shapes[i % len(shapes)].format(a, b, c)}{more}")
    return made


RAW = [
    *[{"x": 1, "y": y, "z": z, "r3": 30} for y in range(-1, 41, 7) for z in (3, 38)],
    {"x": 1}, {"x": 2, "y": 3}, {"y": 3}, {"x": 1, "z": 20}, {},
    {"x": 1, "y": 5, **{f"r{i}": 39 for i in range(9)}},
]  # fmt: skip


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_blocks_of_every_size_answer_as_scan_does(n):
    world = World()
    slots = world.store([parse(text) for text in texts(n, n)])
    agree(world, slots, RAW)


@pytest.mark.slow
@pytest.mark.parametrize("n", [511, 512, 513, 1_100])
def test_spaces_of_several_blocks_answer_as_scan_does(n):
    world = World()
    slots = world.store([parse(text) for text in texts(n, n)])
    agree(world, slots, RAW, space_size=2_000)


def test_equal_subscriptions_are_one_member():
    world = World()
    slots = world.store([parse("x = 1 AND y < 5")] * 300 + [parse("x = 1 AND y < 6")])
    agree(world, slots, [{"x": 1, "y": 4}, {"x": 1, "y": 5}, {"x": 1, "y": 6}, {"x": 1}])
    index = BlockIndex.build(world.table, slots)
    assert index.stats()["records"] == 2
    assert index.stats()["twins"] == 300
    hits = search(index, world.events([{"x": 1, "y": 4}]))
    assert len(hits.slots) == 301
    assert work_of(hits)["candidates"] == 2


def test_subscriptions_that_share_a_hash_by_accident_stay_apart():
    world = World()
    written = ["x = 1", "x = 2", "x = 1 AND y < 5", "x = 2", "x = 1", "x = 1 AND y < 5", "y < 5"]
    slots, first_of = world.store(list(map(parse, written))), np.empty(len(written), np.int64)
    for number in (0, 2**63 - 1):
        hashes, table = np.full(len(slots), number, np.int64), np.full(16, -1, np.int32)
        find_equal(world.table.layout, slots, hashes, table, first_of)
        assert first_of.tolist() == [written.index(text) for text in written]


def test_attributes_without_another_predicate_match_by_their_space_alone():
    world = World()
    slots = world.store([parse("x = 1"), parse("x IN (1, 2)"), parse("x <> 3"), parse("x > 5")])
    agree(world, slots, [{"x": x} for x in range(8)] + [{}], space_size=0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "apart"), [(300, 1), (300, 10**12), (70_000, 1), (70_000, 10**9)])
def test_attributes_with_many_cut_points_answer_as_scan_does(n, apart):
    """More than 255 and more than 65,535; dense keys have a table of codes, others are searched."""
    world = World({"x": "int", "y": "int"})
    exprs = [f"x = {i % 3} AND y BETWEEN {i * apart} AND {(i + i % 7) * apart}" for i in range(n)]
    some = [f"x = 1 AND y IN ({', '.join(str(j * apart) for j in range(k, n, n // 40))})"
            for k in range(5)]  # fmt: skip
    slots = world.store([parse(text) for text in exprs + some])
    keys = [0, 1, 5, n // 2, n - 1, n, n + 10, -1]
    raw = [{"x": x, "y": key * apart + off} for x in (0, 1) for key in keys for off in (0, 1)]
    events = world.events(raw)
    expected = found(search(Scan.build(world.table, slots), events))
    for form in ({}, {"exact": 0.0, "columns": 0.0, "sieve": 1.0, "least": 0.0}, ROWS):
        assert found(search(BlockIndex.build(world.table, slots, **form), events)) == expected


@pytest.mark.parametrize("n", [253, 254, 255, 256, 511])
def test_gates_of_members_let_every_event_through_that_they_accept(n):
    """Codes of 8 bits are exact up to 255 and folded beyond: one event for every key."""
    world = World({"x": "int", "y": "int", "z": "int"})
    shapes = ("= {0}", "BETWEEN {0} AND {1}", "< {0}", ">= {0}", "<> {0}", "IN ({0}, {1})")
    exprs = [
        f"x = 1 AND y {shapes[i % 6].format(i, i + i % 9 + 1)} AND z > {i % 5}" for i in range(n)
    ]
    slots = world.store([parse(text) for text in [*exprs, "x = 1 AND y IS NULL AND z > 0"]])
    raw = [{"x": 1, "y": y, "z": 3} for y in range(-1, n + 12)]
    events = world.events([*raw, {"x": 1, "z": 9}, {"x": 1, "y": 7}])
    expected = found(search(Scan.build(world.table, slots), events))
    index = BlockIndex.build(world.table, slots, **ROWS)
    assert index.stats()["in_rows"] == index.stats()["records"]
    assert found(search(index, events)) == expected
    BlockIndex.check(world.table, slots, index.layout())


def test_gates_of_members_tell_codes_beyond_those_of_a_cell_apart():
    world = World({"x": "int", "y": "int"})
    n = MOST_CODE + 40_000
    lists = [", ".join(map(str, range(first, n, 8))) for first in range(0, 8, 2)]
    ends = [0, MOST_CODE - 2, MOST_CODE, MOST_CODE + 2, MOST_CODE + 20_000, n - 10]
    some = [f"x = 1 AND y {op} {end}" for end in ends for op in ("=", "<=", ">=", "<>")]
    many = [f"x = 1 AND y IN ({each})" for each in lists]
    slots = world.store([parse(text) for text in [*many, *some]])
    events = world.events([{"x": 1, "y": end + off} for end in ends for off in (-1, 0, 1)])
    expected = found(search(Scan.build(world.table, slots), events))
    for form in FORMS[5:]:
        index = BlockIndex.build(world.table, slots, **form)
        assert index.stats()["in_rows"] == index.stats()["records"]
        assert found(search(index, events)) == expected


def test_attributes_that_gates_of_members_have_no_room_for_are_tested():
    names = [f"a{i}" for i in range(FOLDED_ATTRIBUTES + 2)]
    world = World(dict.fromkeys(names, "int"))
    first, last, other = names[0], names[-1], names[-2]
    slots = world.store(
        [parse(f"{first} = 1 AND {last} > {i} AND {other} < {3 * i}") for i in range(20)]
    )
    index = BlockIndex.build(world.table, slots, **ROWS)
    events = world.events([{first: 1, last: v, other: w} for v in (-1, 0, 9) for w in (0, 5, 60)])
    assert found(search(index, events)) == found(search(Scan.build(world.table, slots), events))


def test_codes_beyond_those_that_fit_into_a_cell_are_in_the_pool():
    world = World({"x": "int", "y": "int"})
    wide = ", ".join(str(7 * i) for i in range(400))
    slots = world.store([parse(f"x = 1 AND y IN ({wide})"), parse("x = 1 AND y > 500")])
    agree(world, slots, [{"x": 1, "y": y} for y in (0, 6, 7, 8, 490, 497, 504, 2793, 2800)])
    assert len(built_of(BlockIndex.build(world.table, slots, exact=0.0)).blocks.pool)


def test_keys_at_the_ends_of_int64_are_inside_and_outside():
    world = World({"x": "int", "y": "int"})
    low, high = int(MIN_KEY), int(MAX_KEY)
    slots = world.store(
        [parse(f"x = 1 AND y {text}") for text in
         (f"<= {low}", f">= {high}", f"= {low}", f"= {high}", f"> {low}", f"< {high}", "> 0")]
    )  # fmt: skip
    agree(world, slots, [{"x": 1, "y": y} for y in (low, low + 1, -1, 0, 1, high - 1, high)])
    slots = world.store([parse(f"y = {low}"), parse(f"y = {high}"), parse(f"y <> {low}")])
    agree(world, slots, [{"y": y} for y in (low, low + 1, 0, high - 1, high)], space_size=0)


def test_events_of_sets_meet_members_of_all_spaces_once():
    world = World({"x": "int", "y": "int"})
    slots = world.store(
        [parse("x BETWEEN 2 AND 9 AND y IN (1, 5)"), parse("x = 4"), parse("x = 4 AND y = 3")] * 2
    )
    agree(world, slots, [parse("x > 3 AND y < 4"), parse("x IN (1, 20) AND y = 1"), parse("y = 5")])


def test_a_row_of_bits_answers_for_all_members_of_a_block():
    """Work is counted in blocks, members and rows, so it does not depend on the machine."""
    world = World({"x": "int", "y": "int", "z": "int"})
    exprs = [parse(f"x = 1 AND y <= {i % 8} AND z >= {i // 8}") for i in range(64)]
    slots = world.store([*exprs, *[parse(f"x = {i}") for i in range(2, 60)]])
    index = BlockIndex.build(world.table, slots)
    hits = search(index, world.events([{"x": 1, "y": 7, "z": 7}]))
    assert work_of(hits)["nodes"] == 1
    assert work_of(hits)["candidates"] == 64
    assert work_of(hits)["predicates"] == 2
    assert found(hits) == [[i for i in range(64) if i % 8 == 7]]


def test_more_is_paid_for_columns_where_members_would_be_left_undecided():
    """A twentieth of the predicates are on an attribute with ten times as many codes."""
    world = World({"x": "int", "y": "int", "z": "int"})
    exprs = [parse(f"x = 1 AND y <= {i % 8}") for i in range(60)]
    exprs += [parse(f"x = 1 AND y <= 7 AND z >= {i}") for i in (5, 10, 30, 35)]
    slots = world.store([*exprs, *[parse(f"x = {i} AND z >= {i}") for i in range(2, 42)]])
    events = world.events([{"x": 1, "y": 7, "z": 20}])
    paid = search(BlockIndex.build(world.table, slots), events)
    assert work_of(paid)["predicates"] == 2
    saved = search(BlockIndex.build(world.table, slots, undecided=1.0), events)
    assert work_of(saved)["predicates"] > 2
    assert found(paid) == found(saved) == [[*range(7, 60, 8), 60, 61]]


def test_an_event_that_lacks_what_members_need_tests_no_entry():
    world = World()
    exprs = [parse(f"x = 1 AND n{i} > 1 AND m{i} > 2") for i in range(50)]
    many = [parse(f"n{i} > {k} AND m{i} > {k}") for i in range(50) for k in range(3, 9)]
    slots = world.store([*exprs, *[parse(f"x = {i}") for i in range(2, 60)], *many])
    index = BlockIndex.build(world.table, slots, exact=0.0)
    work = work_of(search(index, world.events([{"x": 1}])))
    assert work["candidates"] == 50
    assert work["predicates"] == 0


def test_members_behind_a_closed_gate_are_not_looked_at():
    world = World({"x": "int", "y": "int"})
    exprs = [parse(f"x = 1 AND y BETWEEN {i} AND {i + 40}") for i in range(200)]
    slots = world.store([*exprs, *[parse(f"x = {i}") for i in range(2, 60)]])
    index = BlockIndex.build(world.table, slots, exact=0.0, ungated=8, gated=8)
    work = work_of(search(index, world.events([{"x": 1}])))
    assert work["nodes"] == work["candidates"] == 0
    hits = search(index, world.events([{"x": 1, "y": 100}]))
    assert found(hits) == [list(range(60, 101))]
    assert 41 <= work_of(hits)["candidates"] <= 41 + 2 * 8


@pytest.mark.parametrize("n", [40, 300])
def test_gates_let_every_event_through_that_a_member_accepts(n):
    """Sets, one-sided ranges and codes that no cell has room for, one event for every key."""
    world = World({"x": "int", "y": "int"})
    rng, exprs = Random(n), []
    for i in range(n):
        a, b, c = sorted(rng.sample(range(60), 3))
        shape = rng.choice(("= {0}", "< {1}", ">= {1}", "<> {1}", "IN ({0}, {1}, {2})"))
        exprs.append(parse(f"x = {1 + i % 2} AND y {shape.format(a, b, c)}"))
    slots = world.store(exprs)
    raw = [{"x": x, "y": y} for x in (1, 2) for y in range(-1, 61)]
    events = world.events(raw)
    expected = found(search(Scan.build(world.table, slots), events))
    for gated in (1, 5, 64):
        index = BlockIndex.build(world.table, slots, exact=0.0, ungated=1, gated=gated)
        assert found(search(index, events)) == expected


def test_matching_writes_to_nothing_but_scratch():
    world = World()
    slots = world.store([parse(text) for text in texts(100, 3)])
    index = BlockIndex.build(world.table, slots)
    layout = {name: array.copy() for name, array in index.layout().items()}
    for array in layout.values():
        array.flags.writeable = False
    restored = BlockIndex.restore(world.table, layout)
    events = world.events(RAW)
    assert found(search(restored, events)) == found(search(index, events))


@pytest.mark.slow
def test_a_damaged_layout_is_refused_or_harmless():
    """Any word may be changed: either `check` says so, or a search stays inside its arrays."""
    world = World()
    slots = world.store([parse(text) for text in texts(150, 5)])
    layout = BlockIndex.build(world.table, slots, exact=1.0).layout()
    rng, refused = Random(1), 0
    events = world.events(RAW)
    for _ in range(300):
        damaged = {name: array.copy() for name, array in layout.items()}
        name = rng.choice([name for name, array in damaged.items() if len(array)])
        flat = damaged[name].view(np.uint8)
        flat[rng.randrange(len(flat))] ^= 1 << rng.randrange(8)
        try:
            BlockIndex.check(world.table, slots, damaged)
        except FormatError:
            refused += 1
            continue
        search(BlockIndex.restore(world.table, damaged), events)
    assert refused > 30


def test_an_event_with_an_attribute_that_no_subscription_has_is_taken():
    world = World({"x": "int"})
    slots = world.store([parse("x = 1")])
    index = BlockIndex.build(world.table, slots)
    keys = np.array([1, 7], np.int64)
    events = EventBatch(np.array([0, 2]), np.array([0, 900], np.int32), keys, keys)
    assert found(search(index, events)) == [[0]]
