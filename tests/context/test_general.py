"""Which subscriptions with a context have an index: every attribute, trees, the context alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from definition import by_definition
from matchwood import Matcher

INDEXES = ["agile", "eager", "gbu", "partial"]


def state(m: Matcher) -> dict[str, Any]:
    return next(each for each in m.stats()["indexes"] if "unindexed" in each)


@pytest.mark.parametrize("index", INDEXES)
def test_subscriptions_on_many_attributes_are_all_in_an_index(index: str) -> None:
    m = Matcher(index)
    for i in range(120):
        m.add(i, f"a{i % 40} <= ctx.v AND b{i % 7} > 3", context=i)
    m.set_context_many({i: {"v": float(i)} for i in range(120)})
    assert m.match({"a5": 45, "b5": 4}) == []
    assert m.match({"a5": 45, "b3": 4}) == [45]
    assert sorted(m.match({"a5": 4, **{f"b{k}": 4 for k in range(7)}})) == [5, 45, 85]
    assert state(m)["unindexed"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(
    "text",
    [
        "(x < ctx.a AND y = {k}) OR (x > ctx.b AND y = 1{k})",
        "x = {k} OR y = ctx.b",
        "(x = {k} OR x = ctx.a) AND (y = 2 OR z = 3)",
        "ctx.a > {k}",
        "ctx.a > {k} AND x = {k}",
        "ctx.a IS NULL AND x < {k}",
    ],
)
def test_trees_and_conditions_on_the_context_are_in_an_index(index: str, text: str) -> None:
    m, plain, rng = Matcher(index), Matcher("no_index"), Random(text)
    for i in range(30):
        m.add(i, text.format(k=i % 8), context=i % 20)
        plain.add(i, text.format(k=i % 8), context=i % 20)
    for _ in range(60):
        values = {name: rng.choice([None, *range(8)]) for name in ("a", "b")}
        event = {name: rng.randrange(8) for name in rng.sample("xyz", rng.randint(0, 3))}
        context = rng.randrange(20)
        m.set_context(context, values)
        plain.set_context(context, values)
        assert m.match(event) == plain.match(event) == by_definition(m, event)
    assert state(m)["unindexed"] == 0
    assert state(plain)["unindexed"] == 30


def test_what_the_context_rules_out_is_not_looked_at() -> None:
    m = Matcher("eager")
    for i in range(50):
        m.add(i, "ctx.open = TRUE", context=i)
        m.add(100 + i, "ctx.open = TRUE AND x >= 0", context=i)
    m.set_context_many({i: {"open": i == 7} for i in range(50)})
    assert sorted(m.match({"x": 1})) == [7, 107]
    assert state(m)["false_positives"] == 0
    m.set_context(7, {"open": False})
    m.set_context(8, {"open": True})
    assert sorted(m.match({"x": 1})) == [8, 108]
    m.set_context(8, {"open": None})
    assert m.match({"x": 1}) == []
    assert state(m)["false_positives"] == 0


def test_a_tree_without_leaves_that_it_needs_is_tested_for_every_event() -> None:
    m = Matcher("agile")
    m.add(1, "x = ctx.a OR y = ctx.a OR z = ctx.a", context="c")
    m.set_context("c", {"a": 4.0})
    assert m.match({"z": 4}) == [1]
    assert state(m)["unindexed"] == 1  # three indexes, and two are what a subscription has


@pytest.mark.slow
def test_after_a_burst_indexes_become_exact_while_values_rest() -> None:
    m, rng = Matcher("agile"), Random(1)
    for i in range(300):
        m.add(i, "x BETWEEN ctx.v - 1 AND ctx.v + 1 AND y >= 0", context=i)
    m.set_context_many({i: {"v": float(i)} for i in range(300)})
    m.match({"x": 5, "y": 1})
    for _ in range(20):
        m.set_context_many({i: {"v": rng.uniform(0, 300)} for i in range(300)})
        m.match({"x": 5, "y": 1})
    escalated = state(m)["false_positives"]
    events = [{"x": rng.randrange(300), "y": 1} for _ in range(300)]
    for event in events:
        m.match(event)
    m.stats()
    assert escalated > 20
    before = state(m)["false_positives"]
    for event in events[:50]:
        m.match(event)
    assert state(m)["false_positives"] - before < 50


@pytest.mark.parametrize("structure", ["interval_skip_list", "search_tree", "hash_table"])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "<>", "="])
def test_a_value_that_appears_opens_a_branch_of_a_tree(structure: str, op: str) -> None:
    declared = {"x": "float", "ctx": {"a": "float", "b": "float"}}
    m = Matcher("agile", structure=structure, schema=declared)
    m.add("s", f"x = 5 OR x {op} ctx.a", context="k")
    for i in range(20):  # others, so that x has an index
        m.add(i, "x = ctx.b", context=f"k{i}")
    assert m.match({"x": 9.0}) == []
    m.set_context("k", {"a": 7.0})
    found = {x: m.match({"x": x}) == ["s"] for x in (5.0, 3.0, 7.0, 9.0)}
    holds = {
        "<": [3.0],
        "<=": [3.0, 7.0],
        ">": [9.0],
        ">=": [7.0, 9.0],
        "<>": [3.0, 9.0],
        "=": [7.0],
    }
    assert found == {x: x == 5.0 or x in holds[op] for x in found}
