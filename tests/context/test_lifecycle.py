"""Few subscriptions and few contexts that come, change their kind and go, against a naive model.

Indexes become empty and are filled again all the time here; `test_model` has them full.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

import naive
from matchwood import Matcher, parse

INDEXES = ["auto", "agile", "eager", "gbu", "partial", "no_index", "be_tree"]
LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
RUNS = 400 if LONG else 12
STEPS = 60

NEVER = ["a < 1 AND a > 2", "FALSE", "ctx.c > 5 AND ctx.c < 5", "city = 'x' AND city = 'y'"]
ALWAYS = ["TRUE", "TRUE OR a < ctx.c"]
FREE = ["a0 = 1", "a < 3", "a IS NULL", "city LIKE '%o_e%'", "a = 1 OR city = 'Rome'"]
LINKED = [
    "a < ctx.c - 5",
    "a BETWEEN ctx.c - 2.5 AND ctx.c + 2.5",
    "a = ctx.d",
    "a <> ctx.c AND ctx.d IS NULL",
    "city = ctx.home",
    "city < ctx.home OR a >= ctx.c",
    "ctx.home LIKE '%o_e%' AND a > 0",
    "ctx.c > 50 AND NOT a = ctx.c",
    "ctx.c < ctx.d",
]
VALUES: dict[str, list[Any]] = {
    "c": [0, 1, 6, 7.5, 100, -3],
    "d": [1, 2, 8],
    "home": ["Rome", "Oslo", ""],
}
EVENTS: dict[str, list[Any]] = {"a": [0, 1, 2, 7, 95], "a0": [1], "city": ["Rome", "Oslo", "Bonn"]}


def some(rng: Random, pool: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: rng.choice(values) for name, values in pool.items() if rng.random() < 0.6}


class Model:
    """The matcher, and what it should be."""

    def __init__(self, index: str, seed: int) -> None:
        self.rng = Random(seed)
        settings: dict[str, Any] = {"low": 1, "high": 6} if index == "partial" else {}
        if index in ("agile", "eager", "gbu"):
            kinds = ["auto", "interval_skip_list", "search_tree", "hash_table"]
            settings["structure"] = kinds[seed % 4]
        self.matcher = Matcher(index, **settings)
        self.subscriptions: dict[int, tuple[str, str | None]] = {}
        self.contexts: dict[str, dict[str, Any]] = {}

    def text(self, is_linked: bool) -> str:
        pools = (
            [NEVER[:2], ALWAYS[:1], FREE] if not is_linked else [NEVER, ALWAYS, FREE, *[LINKED] * 4]
        )
        return self.rng.choice(self.rng.choice(pools))

    def put(self) -> None:
        """Add one, or give one that is there another expression, and perhaps another context."""
        id_ = self.rng.randrange(4)
        _, linked = self.subscriptions.get(id_, ("", None))
        context = self.rng.choice([None, "k", "l"])
        now = context or linked
        text = self.text(now is not None)
        self.matcher.replace(id_, text, context=context)
        self.subscriptions[id_] = text, now

    def remove(self) -> None:
        if self.subscriptions:
            id_ = self.rng.choice(list(self.subscriptions))
            self.matcher.remove(id_)
            del self.subscriptions[id_]

    def set_context(self) -> None:
        id_, values = self.rng.choice("klm"), some(self.rng, VALUES)
        for name in values:
            if self.rng.random() < 0.15:
                values[name] = None
        known = {**self.contexts.get(id_, {}), **values}
        self.matcher.set_context(id_, values)
        self.contexts[id_] = {name: value for name, value in known.items() if value is not None}

    def remove_context(self) -> None:
        id_ = self.rng.choice("klm")
        self.matcher.remove_context(id_)
        self.contexts.pop(id_, None)

    def match(self) -> None:
        event = some(self.rng, EVENTS)
        expected = [
            id_
            for id_, (text, context) in self.subscriptions.items()
            if naive.matches(
                parse(text), naive.in_context(event, self.contexts.get(context or "", {}))
            )
        ]
        assert sorted(self.matcher.match(event)) == sorted(expected)

    def check_contexts(self) -> None:
        """A context is known while it has a value or a subscription."""
        linked = {context for _, context in self.subscriptions.values() if context is not None}
        known = linked | {id_ for id_, values in self.contexts.items() if values}
        assert sorted(self.matcher.context_ids()) == sorted(known)
        for id_ in "klm":
            assert self.matcher.context(id_) == self.contexts.get(id_, {})

    def step(self) -> None:
        verbs = [self.put, self.remove, self.set_context, self.remove_context, self.match]
        self.rng.choices(verbs, [30, 15, 25, 8, 35])[0]()
        self.check_contexts()


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
def test_subscriptions_and_contexts_may_come_change_and_go_in_any_order(index: str) -> None:
    for seed in range(RUNS):
        model = Model(index, seed)
        for _ in range(STEPS):
            model.step()
        model.match()


@pytest.mark.parametrize("index", INDEXES)
def test_a_value_may_change_after_its_last_subscription_became_never_true(index: str) -> None:
    m = Matcher(index)
    m.add("s", "a0 = 1", context="k")
    m.replace("s", "a < ctx.c - 5")
    m.match({"a": 1})
    m.replace("s", "a < 1 AND a > 2")
    m.set_context("k", {"c": 100})
    assert m.context("k") == {"c": 100}
    m.replace("s", "a < ctx.c - 5")
    assert m.match({"a": 1}) == ["s"]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("more", [1, 70])
def test_values_that_were_kept_without_a_subscription_take_some_that_have_no_context(
    index: str, more: int, tmp_path: Path
) -> None:
    with Matcher.open(tmp_path / "durable", index) as m:
        m.set_context("k", {"c": 1})
        m.checkpoint()
        m.save(tmp_path / "snapshot")
        m.add_many([(i, "a > 1") for i in range(more)])
    kept = Matcher.load(tmp_path / "snapshot")
    kept.add_many([(i, "a > 1") for i in range(more)])
    with Matcher.open(tmp_path / "durable") as opened:
        for each in (opened, kept):
            each.add("linked", "a > ctx.c", context="k")
            assert each.match({"a": 2}) == [*range(more), "linked"]
