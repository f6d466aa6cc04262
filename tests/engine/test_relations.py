"""Overlap, inclusion and equality of subscriptions: never a wrong claim."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood as mw
from naive import in_context, matches

IS_LONG = os.environ.get("MATCHWOOD_PROFILE") == "long"
LEAVES = [
    "n < 1", "n >= 1", "n = 2", "n <> 1", "n BETWEEN 1 AND 2", "n IN (0, 2)", "n IS NULL",
    "n IS NOT NULL", "b", "NOT b", "b > TRUE", "s = 'a'", "s >= 'a'", "s > 'a'", r"s < 'a\0'",
    r"s >= 'a\0'", "s < ''", "s LIKE 'a%'", "s LIKE '%a%'", "s LIKE '%'", "s IS NULL", "i > 1",
    "i <= 1", "i > 1 AND i < 3", "i NOT IN (2)",
]  # fmt: skip
TERMS = st.lists(st.sampled_from(LEAVES), min_size=1, max_size=3).map(" AND ".join)
TREES = st.lists(TERMS.map("({})".format), min_size=2, max_size=3).map(" OR ".join)
TEXTS = st.one_of(TERMS, TERMS, TREES, st.sampled_from(["TRUE", "FALSE"]))
VALUES: dict[str, list[Any]] = {
    "n": [None, 0, 0.5, 1, 1.5, 2, 3],
    "b": [None, True, False],
    "s": [None, "", "a", "a\0", "ab", "ba", "b"],
    "i": [None, 1, 2, 3],
}
EVENTS = [dict(zip(VALUES, each, strict=True)) for each in product(*VALUES.values())]
SCHEMA = {"i": "int", "n": "number", "b": "bool", "s": "string"}


def matched(text: str) -> frozenset[int]:
    """Numbers of the events that a text matches: the domain is rich enough for its constants."""
    tree = mw.parse(text)
    return frozenset(n for n, event in enumerate(EVENTS) if matches(tree, event))


@pytest.mark.slow
@settings(max_examples=1500 if IS_LONG else 60)
@given(st.lists(TEXTS, min_size=2, max_size=5, unique=True))
def test_claims_are_true_for_every_event(texts: list[str]) -> None:
    m = mw.Matcher(schema=SCHEMA)
    m.add_many(list(enumerate(texts)))
    truth = {i: matched(text) for i, text in enumerate(texts)}
    for i in m.ids():
        found = m.overlaps(i)
        certain, unknown = set(found), set(found.unknown)
        assert i not in certain | unknown
        for j in m.ids():
            if i == j:
                continue
            meets = bool(truth[i] & truth[j])
            assert not (j in certain and not meets), (texts[i], texts[j])
            assert not (j not in certain | unknown and meets), (texts[i], texts[j])
            included = m.subsumes(i, j)
            assert included in (None, truth[j] <= truth[i]), (texts[i], texts[j])
    for group in m.duplicates():
        assert len({truth[i] for i in group}) == 1


PLAIN = [leaf for leaf in LEAVES if "LIKE" not in leaf]


@pytest.mark.slow
@settings(max_examples=1500 if IS_LONG else 60)
@given(st.lists(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3).map(" AND ".join),
                min_size=2, max_size=4, unique=True))  # fmt: skip
def test_conjunctions_are_decided(texts: list[str]) -> None:
    m = mw.Matcher(schema=SCHEMA)
    m.add_many(list(enumerate(texts)))
    truth = {i: matched(text) for i, text in enumerate(texts)}
    for i in m.ids():
        found = m.overlaps(i)
        if found.unknown:  # a conjunction that asks for n and for its absence is not folded
            assert any(not truth[j] for j in (*m.ids(),))
            continue
        assert list(found) == [j for j in m.ids() if j != i and truth[i] & truth[j]]
        for j in m.ids():
            assert m.subsumes(i, j) == (truth[j] <= truth[i]) or not truth[j]


def test_overlap_inclusion_and_equality_of_alerts() -> None:
    m = mw.Matcher()
    m.add("cheap", "price < 20")
    m.add("cheaper", "price < 10 AND genre = 'art'")
    m.add("dear", "price > 50")
    m.add("same", "genre = 'art' AND price < 10")
    m.add("odd", "genre LIKE '%r_'")
    m.add("either", "price > 60 OR price < 5")
    assert m.overlaps("cheap") == ["cheaper", "same", "either"]
    assert m.overlaps("cheap").unknown == ["odd"]
    assert m.subsumes("cheap", "cheaper") is True
    assert m.subsumes("cheaper", "cheap") is False
    assert m.subsumes("odd", "cheap") is None
    assert m.subsumes("cheap", "either") is False
    assert m.duplicates() == [["cheaper", "same"]]
    with pytest.raises(mw.SubscriptionError):
        m.overlaps("nobody")


def test_members_of_an_object_are_independent_of_each_other_and_not_of_it() -> None:
    m = mw.Matcher()
    m.add(1, "user.age >= 18 AND user.name = 'ann'")
    m.add(2, "user.age < 30")
    assert m.overlaps(1) == [2]
    m.add(3, "user IS NULL")
    assert m.overlaps(2) == [] or 1 in m.overlaps(2)
    assert 3 not in m.overlaps(1)


def test_subscriptions_of_different_contexts_are_not_compared_by_them() -> None:
    m = mw.Matcher()
    m.add(1, "x < 5 AND ctx.a > 7", context="ann")
    m.add(2, "x < 5 AND ctx.a < 3", context="bob")
    m.add(3, "x > 6 AND ctx.a < 3", context="bob")
    m.add(4, "x < 5 AND ctx.a > 7", context="bob")
    m.add(5, "x < 4 AND ctx.a > 7", context="bob")
    m.set_context("ann", {"a": 8})
    m.set_context("bob", {"a": 2})
    event = {"x": 1}
    assert m.match(event) == [1, 2]
    assert matches(mw.parse("x < 5 AND ctx.a > 7"), in_context(event, {"a": 8}))
    assert m.overlaps(1) == []
    assert m.overlaps(1).unknown == [2, 4, 5]
    assert m.subsumes(1, 4) is None
    assert m.subsumes(4, 5) is True
    assert m.duplicates() == []
