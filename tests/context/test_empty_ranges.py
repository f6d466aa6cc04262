"""Subscriptions whose ranges were empty, as values were absent or crossed, are found again."""

from __future__ import annotations

import random
from typing import Any

import pytest

import matchwood as mw
from naive import flatten, in_context, matches

INDEXES = ["agile", "eager", "partial", "gbu", "no_index", "auto"]
TEXTS = [
    "a BETWEEN ctx.x - 1 AND ctx.y + 1",
    "a >= ctx.x AND a <= ctx.y",
    "a > ctx.x AND a < ctx.y AND b = ctx.z",
    "(a >= ctx.x AND a <= ctx.y) OR b = ctx.z",
    "a >= ctx.x AND a <= ctx.y AND NOT ctx.away",
    "a >= ctx.x AND a <= ctx.y AND ctx.x < 3",
    "a = ctx.x AND a = ctx.y",
    "a >= ctx.x AND a <= ctx.y AND a <> ctx.z",
]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(
    "changes",
    [
        [{"y": None}, {"x": 0}, {"y": 4}],  # absent meanwhile
        [{"y": -5}, {"x": 0}, {"y": 4}],  # crossed meanwhile
        [{"x": None, "y": None}, {"x": 0, "y": 4}],
    ],
)
def test_a_value_that_changed_while_the_range_was_empty_counts(index, changes) -> None:
    m = mw.Matcher(index=index)
    m.add("s", "a BETWEEN ctx.x - 1 AND ctx.y + 1", context="c")
    for context in ("c", "d"):  # d: the names stay in use
        m.set_context(context, {"x": 4, "y": 4})
    assert m.match({"a": 4}) == ["s"]
    for each in changes:
        m.set_context("c", each)
    assert m.match({"a": 1}) == ["s"]


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
def test_values_that_come_and_go_and_cross_are_followed(index: str) -> None:
    rng = random.Random(7)
    for _ in range(40):
        m = mw.Matcher(index=index)
        texts = [rng.choice(TEXTS) for _ in range(rng.randrange(1, 12))]
        for i, text in enumerate(texts):
            m.add(i, text, context=i % 2)
        values: list[dict[str, Any]] = [{"x": 3, "y": 4, "z": 1, "away": False} for _ in "cd"]
        for context, each in enumerate(values):
            m.set_context(context, each)
        m.set_context("e", values[0])  # the names stay in use
        m.match({"a": 1})
        for _ in range(60):
            name = rng.choice(["x", "y", "z", "away"])
            among = [True, False] if name == "away" else [*range(6), 1.5]
            change = {name: rng.choice([None, *among])}
            context = rng.randrange(2)
            m.set_context(context, change)
            values[context] |= change
            if rng.random() < 0.6:
                event = {"a": rng.randrange(-1, 7), "b": rng.randrange(6)}
                rows = [in_context(flatten(event), each) for each in values]
                trees = enumerate(map(mw.parse, texts))
                expected = [i for i, tree in trees if matches(tree, rows[i % 2])]
                assert m.match(event) == expected
