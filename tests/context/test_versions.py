"""Events between which contexts change, searched some at a time: as one after the other."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import matchwood as mw
from matchwood.context import event_ranges, versions
from matchwood.context.cif_kernels import filter_batch, filter_chosen
from matchwood.engine.stores import context_changes
from matchwood.engine.stores.context_changes import ContextChange
from naive import flatten, in_context, matches

TEXTS = (
    "a BETWEEN ctx.x - 1 AND ctx.y + 1",
    "a >= ctx.x AND b < 3",
    "(a = ctx.x OR b = ctx.y) AND a < 6",
    "ctx.s LIKE 'r%' AND a > 2",
    "word = ctx.s",
    "ctx.x IS NULL AND b > 1",
    "NOT (a < ctx.x)",
    "ctx.x < ctx.y AND a = 3",
    "a > 4",
    "a > ctx.x + 2 OR word = ctx.s",
    "a < ctx.x OR b = ctx.y OR a = 7",
)
NUMBERS = (*range(8), 2.5, None, 2**53 + 1)
"""The last one lies between two doubles, which contexts are compared as."""
WORDS = ("red", "rose", "blue", "green")


def drawn(random: Random) -> dict[str, Any]:
    """Some values of a context, some of them absent."""
    made = {"x": random.choice([None, *range(7)]), "y": random.choice([None, *range(7)]),
            "s": random.choice([None, *WORDS])}  # fmt: skip
    return {name: made[name] for name in random.sample(sorted(made), random.randrange(1, 4))}


def world(random: Random, index: str) -> tuple[mw.Matcher, dict[int, dict[str, Any]]]:
    """A matcher, and the values of its contexts."""
    matcher = mw.Matcher(index=index)
    values: dict[int, dict[str, Any]] = {c: {"x": c, "y": c + 2, "s": WORDS[c]} for c in range(3)}
    matcher.set_context_many(list(values.items()))
    for word in WORDS:  # strings stay known
        matcher.set_context(f"all {word}", {"x": 0, "y": 0, "s": word})
    for id_ in range(20):
        matcher.add(id_, TEXTS[id_ % len(TEXTS)], context=id_ % 3)
    return matcher, values


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [
        {"MOST_COPIES": 0},
        {"MOST_COPIES": 40},
        {"FEW_MEMBERS": 0},  # versions are searched beside the index
        {"MOST_PAIRS": 30},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("index", ["auto", "agile", "eager", "no_index"])
def test_what_holds_between_changes_is_what_holds_one_after_the_other(index, limits, monkeypatch):
    for name, limit in limits.items():
        owner = {"MOST_COPIES": context_changes, "MOST_PAIRS": event_ranges}.get(name, versions)
        monkeypatch.setattr(owner, name, limit)
    random = Random(f"{index} {limits}")
    for _ in range(8):
        matcher, values = world(random, index)
        texts = [mw.parse(TEXTS[id_ % len(TEXTS)]) for id_ in range(20)]
        events = [
            {"a": random.choice(NUMBERS), "b": random.randrange(5), "word": random.choice(WORDS)}
            for _ in range(40)
        ]
        changes, expected = [], []
        done: list[tuple[int, dict[str, Any]]] = []
        n_made = 0

        def go(n: int, done=done, matcher=matcher) -> None:
            nonlocal n_made
            matcher.set_context_many(done[n_made:n])
            n_made = n

        for e, event in enumerate(events):
            if random.random() < 0.6:
                updates = [(random.randrange(3), drawn(random)) for _ in range(random.randrange(3))]
                for context, new in updates:
                    values[context].update(new)
                done += updates
                said = updates if random.random() < 0.9 else None
                changes.append(ContextChange(e, partial(go, len(done)), said))
            known = [{k: v for k, v in values[c].items() if v is not None} for c in range(3)]
            expected.append([
                id_ for id_ in range(20)
                if matches(texts[id_], in_context(flatten(event), known[id_ % 3]))
            ])  # fmt: skip
        found = matcher.find(matcher.encode(events), changes)
        ids = matcher.arrow_ids().to_pylist()
        for e, wanted in enumerate(expected):
            slots = found.slots[found.offsets[e] : found.offsets[e + 1]]
            assert sorted(ids[s] for s in slots.tolist()) == wanted, (e, events[e])
        assert n_made == len(done)


def test_versions_are_tested_by_the_kernel_that_is_there() -> None:
    """No second variant is compiled for copies of subscriptions."""
    matcher, _ = world(Random(1), "auto")
    events = matcher.encode([{"a": 3, "b": 2, "word": "red"}] * 3)
    matcher.find(events)
    before, seen = len(filter_batch.signatures), set()
    for value in (2, 3):
        updates = [(1, {"x": value})]
        change = ContextChange(1, partial(matcher.set_context_many, updates), updates)
        matcher.find(events, [change])
        seen.add(len(filter_chosen.signatures))
    assert len(filter_batch.signatures) == before
    assert len(seen) == 1


def test_what_no_context_is_linked_to_is_found_between_changes_too() -> None:
    matcher = mw.Matcher(index="agile")
    matcher.add_many([(n, f"a = {n}") for n in range(4)])
    matcher.add(9, "a = ctx.x", context=1)
    matcher.set_context(1, {"x": 0})
    events = matcher.encode([{"a": n} for n in range(4)])
    updates = [(1, {"x": 2})]
    change = ContextChange(1, partial(matcher.set_context_many, updates), updates)
    found, ids = matcher.find(events, [change]), matcher.arrow_ids().to_pylist()
    lists = [[ids[slot] for slot in found.slots[a:b]] for a, b in pairwise(found.offsets.tolist())]
    assert lists == [[0, 9], [1], [2, 9], [3]]


@pytest.mark.parametrize("index", ["auto", "agile", "eager"])
@pytest.mark.parametrize("is_told", [False, True])
@pytest.mark.parametrize(
    ("text", "values", "says"),
    [
        ("a < ctx.limit", {"limit": 5}, "first value of 'ctx.limit'"),
        ("ctx.low < ctx.limit AND a = 1", {"low": 1, "limit": 5}, "first value of 'ctx.l"),
        ("a = ctx.word", {"word": "seen"}, "first value of 'ctx.word'"),
        ("a = ctx.s", {"s": "new"}, "no new string"),
        ("a = 1 AND ctx.on", {"on": True}, None),
        ("a = 1 AND ctx.on IS NOT NULL", {"on": 1}, None),
        ("a = 1 AND ctx.t = 'new'", {"t": "new", "other": 3}, None),
    ],
)
def test_a_change_that_would_give_events_other_integers_is_refused(
    index: str, is_told: bool, text: str, values: dict[str, Any], says: str | None
) -> None:
    """What was encoded before a type or a string was known would match nothing afterwards."""
    matcher = mw.Matcher(index=index)
    matcher.add(1, text, context="k")
    matcher.set_context("k", {"s": "seen"})
    event = {"a": next(iter(values.values())) if "= ctx" in text else 1}
    updates = [("k", values)]
    change = ContextChange(
        2, partial(matcher.set_context_many, updates), updates if is_told else None
    )
    encoded = matcher.encode([event] * 4)
    if says is None:
        assert matcher.find(encoded, [change]).offsets.tolist() == [0, 0, 0, 1, 2]
    else:
        with pytest.raises(mw.EventError, match=says):
            matcher.find(encoded, [change])
        assert matcher.context("k") == {"s": "seen"}
        assert matcher.match(event) == []
        matcher.set_context("k", values)
    assert matcher.match(event) == [1]
    assert matcher.verify([event])
