"""Large batches that `blocks` searches block by block: the answers of searching one by one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from encode.world import World, found
from inside import built_of
from matchwood.index.blocks import by_groups, index
from matchwood.index.blocks.groups import MARKS, MOST_TAGS
from matchwood.index.blocks.index import BlockIndex
from matchwood.index.scan.index import Scan
from matchwood.kernel.verify_kernels import PREDICATES
from matchwood.lang import parse
from searching import search

ROWS = {"exact": 0.0, "columns": 1.0}
FORMS = [ROWS, {}, {"exact": 0.0, "columns": 0.0, "sieve": 0.0, "least": 0.0},
         {**ROWS, "ungated": 1, "gated": 3}]  # fmt: skip


@pytest.fixture(params=[1, 7, 10_000])
def gathered(request, monkeypatch):
    """Searches go block by block, so many events at a time; the ends of groups are noted."""
    ends: list[int] = []
    gather = by_groups.gather_group

    def noted(*given):
        ends.append(gather(*given) - given[4])
        return ends[-1] + given[4]

    monkeypatch.setattr(by_groups, "MOST_EVENTS", request.param)
    monkeypatch.setattr(by_groups, "LEAST_VISITS", 0)
    monkeypatch.setattr(by_groups, "gather_group", noted)
    monkeypatch.setattr(index, "is_for_groups", lambda *_: True)
    return ends


def agree(world: World, texts: list[str], raw: list, forms: list[dict] = FORMS) -> None:
    slots, events = world.store([parse(text) for text in texts]), world.events(raw)
    expected = found(search(Scan.build(world.table, slots), events))
    assert any(expected)
    for form in forms:
        blocks = BlockIndex.build(world.table, slots, **form)
        assert found(search(blocks, events)) == expected


def sparse(n: int, rng: Random, names: list[str]) -> list[dict]:
    """Events of five attributes; a third of them have x = 1."""
    return [
        {**{name: rng.randrange(12) for name in rng.sample(names, 5)}, "x": rng.randrange(3)}
        for _ in range(n)
    ]


SHAPES = ("{a} = {v}", "{a} > {v}", "{a} BETWEEN {v} AND {w}", "{a} IN ({v}, {w})", "{a} <> {v}",
          "{a} IS NULL", "{a} NOT IN ({v}, {w})")  # fmt: skip


def written(n: int, rng: Random, names: list[str]) -> list[str]:
    made = []
    for i in range(n):
        some = [SHAPES[rng.randrange(7)] for _ in range(rng.randrange(5))]
        some = [
            each.format(a=name, v=rng.randrange(12), w=rng.randrange(12, 14))
            for each, name in zip(some, rng.sample(names, len(some)), strict=True)
        ]
        made.append(" AND ".join([f"x = {i % 3}", *some]))
    return made


@pytest.mark.parametrize("n", [1, 40, 300])
def test_groups_of_any_size_answer_as_scan_does(gathered, n):
    rng, names = Random(n), [f"a{i}" for i in range(20)]
    agree(World(), written(n, rng, names), sparse(60, rng, names))
    assert gathered
    assert all(gathered)


def test_attributes_that_share_a_mark_are_told_apart(gathered):
    rng, n = Random(3), 2 * MARKS + 40
    every = [f"a{i}" for i in range(n)]
    world = World(dict.fromkeys(["x", *every], "int"))
    names = [f"a{i + k}" for i in range(4) for k in (0, MARKS, 2 * MARKS)]
    agree(world, written(300, rng, names), sparse(60, rng, names), [ROWS])
    assert gathered
    assert all(gathered)


def test_members_with_one_predicate_or_with_none_left_are_always_looked_at(gathered):
    texts = ["x = 1", "x = 2", "x > 0", *[f"x = 1 AND a{i} >= {i}" for i in range(20)], "x = 1"]
    raw = [{"x": x, f"a{a}": a + d} for x in range(3) for a in range(20) for d in (-1, 0)]
    agree(World(), texts, raw)


def test_folded_codes_of_attributes_with_many_cut_points_are_tested_exactly(gathered):
    texts = [f"x = 1 AND y = {3 * i} AND z > {i % 5}" for i in range(600)]
    raw = [{"x": 1, "y": y, "z": y % 7} for y in range(0, 1_800, 5)]
    agree(World({"x": "int", "y": "int", "z": "int"}), texts, raw, [ROWS])


def test_events_with_too_many_attributes_are_searched_one_by_one(gathered):
    names = [f"a{i}" for i in range(MOST_TAGS + 5)]
    texts = [f"x = 1 AND {name} > 3" for name in names]
    wide = {"x": 1, **dict.fromkeys(names, 4)}
    agree(World(), texts, [{"x": 1, "a3": 4}] * 9 + [wide, {"x": 1, "a4": 4}, wide], [ROWS])
    assert gathered[-1] == 0  # the rest went the other way


def test_output_that_is_full_in_the_middle_of_a_group_grows(gathered):
    texts = [f"x = 1 AND a{i % 9} >= {i % 4}" for i in range(400)] + ["x = 1 AND a0 >= 0"] * 90
    agree(World(), texts, [{"x": 1, f"a{i % 9}": 3} for i in range(120)])


def test_both_ways_count_the_same_work(gathered, monkeypatch):
    world, rng, names = World(), Random(5), [f"a{i}" for i in range(20)]
    slots = world.store([parse(text) for text in written(300, rng, names)])
    events = world.events(sparse(60, rng, names))
    for form in FORMS:
        blocks = BlockIndex.build(world.table, slots, **form)
        together = search(blocks, events).counters
        with monkeypatch.context() as other:
            other.setattr(index, "is_for_groups", lambda *_: False)
            alone = search(blocks, events).counters
        assert together.tolist() == alone.tolist()
        assert alone[PREDICATES] > 0


def test_only_large_batches_of_sparse_events_go_block_by_block():
    world, names = World(), [f"a{i}" for i in range(100)]
    texts = [f"x = {i % 9} AND {names[i % 100]} > 1 AND {names[i % 97]} < 9" for i in range(500)]
    slots, rng = world.store([parse(text) for text in texts]), Random(1)
    rows = BlockIndex.build(world.table, slots, **ROWS)
    columns = BlockIndex.build(world.table, slots, exact=1e6, columns=0.0)
    many, few = world.events(sparse(900, rng, names)), world.events(sparse(3, rng, names))
    dense = world.events([dict.fromkeys(names[:40], 3) for _ in range(900)])
    for built, events, words, expected in (
        (rows, many, 0, True), (rows, many, 2**30, False), (rows, few, 0, False),
        (rows, dense, 0, False), (columns, many, 0, False),
        (rows, world.events([{}] * 900), 0, False),
    ):  # fmt: skip
        assert by_groups.is_for_groups(built_of(built), events, words) == expected
    assert np.all(np.diff(search(rows, world.events([{}] * 900)).offsets) == 0)
