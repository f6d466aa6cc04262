"""Segments have the indexes of a plan: the plan is told, kept in snapshots, and checked there."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from inside import routing_of, table_of_routing
from matchwood.engine.segments import background, planner, tiers
from matchwood.engine.segments.planned import NOWHERE, Planned
from matchwood.errors import FormatError
from matchwood.index.blocks.index import BlockIndex
from matchwood.index.terms import conjunctions

N = 60


@pytest.fixture(autouse=True)
def _small_plans(monkeypatch):
    """Segments from 8 subscriptions on, none of them scanned."""
    monkeypatch.setattr(tiers, "HEAD_MOST", 8)
    monkeypatch.setattr(background, "IS_ON", False)
    monkeypatch.setattr(planner, "FEW", 0)
    monkeypatch.setattr(conjunctions, "FEW_BESIDE", 0)
    monkeypatch.setattr(planner, "RANGES_FROM", 5)


def rows(n: int = N) -> list[tuple[int, str]]:
    rng = Random(4)

    def text(i: int) -> str:
        low = rng.randrange(20)
        return [
            f"a = {low} AND b < {rng.randrange(9)}",
            f"a = {low} OR b = {rng.randrange(9)} AND s = 'v{i % 3}'",
            f"x BETWEEN {low} AND {low + 9} AND y BETWEEN {low} AND {low + 5}",
            "TRUE",
            "a < 1 AND a > 2",
        ][i % 5]

    return [(i, text(i)) for i in range(n)]


def events() -> list[dict[str, Any]]:
    rng = Random(5)
    return [
        {"a": rng.randrange(22), "b": rng.randrange(10), "s": f"v{rng.randrange(4)}",
         "x": rng.randrange(30), "y": rng.randrange(30)}
        for _ in range(40)
    ]  # fmt: skip


def answers(m: mw.Matcher) -> list[list[Any]]:
    return m.match_many(events()).to_pylist()


def scanned(given: list[tuple[int, str]]) -> list[list[Any]]:
    m = mw.Matcher("scan")
    m.add_many(given)
    return answers(m)


def without_segment(plan: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "segment"} for row in plan]


def test_a_plan_tells_what_will_be_before_anything_is_built():
    m = mw.Matcher()
    told = m.plan(rows())
    assert len(m) == 0
    m.add_many(rows())
    assert without_segment(m.plan()) == told == without_segment(m.stats()["plan"])
    assert {row["index"] for row in told} >= {"terms", "blocks", None}
    assert sum(row["subscriptions"] for row in told) == N
    assert all(row["reason"] for row in told)
    assert answers(m) == scanned(rows())


def test_a_named_index_and_a_head_have_a_plan_too():
    m = mw.Matcher("be_tree")
    m.add(1, "a = 1")
    (row,) = m.plan()
    assert (row["index"], row["reason"]) == ("be_tree", "chosen by name")
    m = mw.Matcher()
    m.add(1, "a = 1")
    (row,) = m.plan()
    assert row["index"] == "scan"


def test_a_snapshot_keeps_the_plan_whatever_the_planner_says_later(tmp_path, monkeypatch):
    m = mw.Matcher()
    m.add_many(rows())
    m.save(tmp_path / "kept")
    monkeypatch.setattr(planner, "FEW", 10_000)
    for verify in (True, False):
        loaded = mw.Matcher.load(tmp_path / "kept", verify=verify)
        assert [(row["index"], row["subscriptions"]) for row in loaded.plan()] == [
            (row["index"], row["subscriptions"]) for row in m.plan()
        ]
        assert answers(loaded) == answers(m)
        loaded.add("more", "a = 1 OR b = 2")
        loaded.remove(0)
        assert answers(loaded) == [
            [*[id_ for id_ in found if id_ != 0], *(["more"] if holds else [])]
            for found, holds in zip(
                answers(m), [e["a"] == 1 or e["b"] == 2 for e in events()], strict=True
            )
        ]


def test_contexts_leave_the_plan_for_indexes_that_change_in_place():
    m = mw.Matcher()
    m.add_many(rows())
    m.set_context("u", {"z": 3})
    m.add("bound", "a >= ctx.z", context="u")
    assert answers(m) == [
        [*found, *(["bound"] if event["a"] >= 3 else [])]
        for found, event in zip(scanned(rows()), events(), strict=True)
    ]


@pytest.mark.parametrize("damage", ["tree in blocks", "nowhere", "no such index", "short", "type"])
def test_a_forged_plan_is_refused(damage: str) -> None:
    m = mw.Matcher()
    m.add_many(rows())
    routing = routing_of(m)
    assert isinstance(routing, Planned)
    table, names = table_of_routing(routing), [index.name for index in routing.indexes]
    choice = routing.choice_of(len(table.layout.kind))
    tree = int(np.flatnonzero(choice == names.index("terms"))[0])
    if damage == "tree in blocks":
        choice[tree] = names.index("blocks")
    elif damage == "nowhere":
        choice[tree] = NOWHERE
    elif damage == "no such index":
        names[0] = "be_tree"
    elif damage == "short":
        choice = choice[:-1]
    else:
        choice = choice.astype(np.int64)
    with pytest.raises(FormatError):
        Planned.restored(table, [(name, None) for name in names], choice, verify=True)


def test_a_damaged_file_of_the_plan_is_found(tmp_path: Path) -> None:
    m = mw.Matcher()
    m.add_many(rows())
    m.save(tmp_path / "kept")
    (file,) = (tmp_path / "kept").rglob("planned*")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(FormatError):
        mw.Matcher.load(tmp_path / "kept")


def test_arrays_that_an_index_had_before_are_built_from_the_table(tmp_path, monkeypatch):
    m = mw.Matcher()
    m.add_many(rows())
    m.compact()
    expected = answers(m)
    assert "blocks" in {each["index"] for each in m.stats()["plan"]}
    m.save(tmp_path / "s")
    restored, real = [], BlockIndex.restore.__func__
    monkeypatch.setattr(
        BlockIndex, "restore", classmethod(lambda *given: restored.append(1) or real(*given))
    )
    assert answers(mw.Matcher.load(tmp_path / "s")) == expected
    assert restored
    restored.clear()
    monkeypatch.setattr(BlockIndex, "LAYOUT_VERSION", BlockIndex.LAYOUT_VERSION + 1)
    assert answers(mw.Matcher.load(tmp_path / "s")) == expected
    assert not restored
