"""Near misses, reasons of misses, and indexes compared with a scan."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from definition import by_definition
from inside import attributes_of, routing_of, slot_of, table_of
from matchwood.encode.decode import decode
from matchwood.lang.nodes import And, Const, Expr, Or
from naive import matches

EVENT = {"x": 2, "s": "ab"}
LEAVES = ["x = 2", "x > 5", "y = 1", "s = 'ab'", "s LIKE '%z%'", "z IS NULL", "s IS NULL", "y < 3"]
TREES = st.recursive(
    st.sampled_from(LEAVES).map(mw.parse),
    lambda below: st.builds(
        lambda kind, parts: kind(tuple(parts)),
        st.sampled_from([And, Or]),
        st.lists(below, min_size=2, max_size=3),
    ),
    max_leaves=6,
)


def lacks(expr: Expr) -> int:
    """Predicates that an expression without negations lacks, the definition."""
    if isinstance(expr, Const):
        return 0 if expr.value else 99
    if isinstance(expr, And):
        return sum(map(lacks, expr.operands))
    if isinstance(expr, Or):
        return min(map(lacks, expr.operands))
    return 0 if matches(expr, EVENT) else 1


@given(st.lists(TREES, min_size=1, max_size=8))
def test_a_subscription_is_near_exactly_when_one_more_predicate_makes_it_match(trees) -> None:
    m = mw.Matcher()
    m.add_many([(i, tree) for i, tree in enumerate(trees)])
    near = {each.id: each for each in m.near(EVENT, len(trees))}
    for i, _ in enumerate(trees):
        stored = _stored(m, i)
        assert (i in near) == (lacks(stored) == 1), str(stored)
    for each in near.values():
        assert not matches(each.missing, EVENT)
        assert each.id not in m.match(EVENT)


def _stored(m: mw.Matcher, id_: int) -> Expr:
    """The expression as the table has it, with predicates on one attribute merged."""
    return decode(table_of(m), attributes_of(m), slot_of(m, id_))


def test_near_misses_come_by_priority_with_what_was_found() -> None:
    m = mw.Matcher()
    m.add("a", "price < 10 AND genre = 'art'")
    m.add("b", "price < 30 AND stock > 0", priority=5)
    m.add("hit", "price < 30")
    m.add("far", "price < 10 AND stock > 0")
    m.add("old", "price < 10 AND genre = 'art'", expires=1)
    found = m.near({"price": 20, "genre": "art"}, 5)
    assert [str(each) for each in found] == [
        "'b' lacks stock > 0: stock is absent",
        "'a' lacks price < 10: price is 20",
    ]
    assert [each.id for each in m.near({"price": 20, "genre": "art"}, 1)] == ["b"]
    for bad in (0, 1.5):
        with pytest.raises(mw.MatchwoodError, match="k"):
            m.near({}, bad)
    with pytest.raises(mw.EventError):
        m.near(mw.parse("x > 1"), 1)


def test_why_not_names_the_fewest_reasons() -> None:
    m = mw.Matcher()
    m.add("a", "price < 10 AND (genre = 'art' OR stock > 0)", expires=100)
    assert m.why_not("a", {"price": 5, "genre": "art"}, now=50) == []
    assert m.why_not("a", {"price": 50, "genre": "art"}, now=50) == [
        "price < 10 is FALSE: price is 50"
    ]
    assert m.why_not("a", {"price": 5, "genre": "art"}) == [
        "it expired at 1970-01-01 00:01:40+00:00"
    ]
    with pytest.raises(mw.SubscriptionError):
        m.why_not("b", {})


# -- verify ------------------------------------------------------------------------------------

EVENTS = [{"x": x, "y": y} for x in range(6) for y in range(3)]


@pytest.mark.parametrize("index", ["auto", "be_tree", "a_tree", "pst_bloom", "counting"])
def test_indexes_and_scan_agree(index: str) -> None:
    m = mw.Matcher(index)
    m.add_many([(i, f"x >= {i % 7} AND y = {i % 3}") for i in range(40)])
    m.add_many([("t", "x = 1 OR y = 2"), ("always", "TRUE"), ("never", "FALSE")])
    m.add("old", "x = 1", expires=5)
    found = m.verify(EVENTS)
    assert found
    assert found.events == len(EVENTS)
    assert "agree" in str(found)
    assert m.verify(pa.Table.from_pylist(EVENTS), sample=5).events == 5
    assert m.verify(EVENTS, sample=4, seed=2).events == 4


def test_a_scan_follows_contexts_and_changes_nothing() -> None:
    m = mw.Matcher()
    m.add_many([(i, f"x < ctx.c AND y = {i % 3}", "kl"[i % 2]) for i in range(20)])
    m.add("plain", "x = 1")
    for c in range(6):
        m.set_context("k", {"c": c})
        m.set_context("l", {"c": 5 - c})
        before = m.match_many(EVENTS).to_pylist()
        assert before == [by_definition(m, each) for each in EVENTS]
        assert m.verify(EVENTS)
        assert m.match_many(EVENTS).to_pylist() == before
    m.remove(3)
    m.add(3, "x < ctx.c", context="k")
    assert m.verify(EVENTS)


def test_the_first_difference_is_explained() -> None:
    m = mw.Matcher("be_tree")
    m.add_many([(i, f"x >= {i}") for i in range(5)])
    routing_of(m).indexes[0].delete(np.array([slot_of(m, 2)], np.int32))
    found = m.verify(EVENTS)
    assert not found
    assert found.difference is not None
    assert (found.difference.id, found.difference.is_found) == (2, False)
    assert found.difference.event["x"] == 2
    assert "matches by a scan and not by the index" in str(found)
    assert "x >= 2" in str(found)


def test_a_near_miss_is_shown_with_its_predicate_as_text() -> None:
    m = mw.Matcher()
    m.add("a", "lower(g) = 'x'")
    (miss,) = m.near({"g": "Y"}, 1)
    assert repr(miss) == """NearMiss(id='a', missing="lower(g) = 'x'", found="lower(g) is 'y'")"""
