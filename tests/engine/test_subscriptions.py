"""Adding, replacing, removing: what is refused leaves no trace, what is taken is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import matchwood as mw
from engine.invariants import check, trace
from matchwood.lang.nodes import MAX_DEPTH, And, Comparison, Expr, Not, Or, Xor
from naive import matches

# ── ids ─────────────────────────────────────────────────────────────────────────────────────────


def test_ids_may_be_ints_and_strs_side_by_side():
    m = mw.Matcher()
    ids = [1, "1", -5, "", "ü", 0, 2**63 - 1, -(2**63), "a b", "😀"]
    for id_ in ids:
        m.add(id_, "x = 1")
    assert m.match({"x": 1}) == ids
    assert [type(id_) for id_ in m.match({"x": 1})] == [type(id_) for id_ in ids]
    m.remove("1")
    assert 1 in m
    assert "1" not in m
    check(m)


def test_ids_of_numpy_become_pythons_own():
    m = mw.Matcher()
    m.add(np.int32(7), "x = 1")
    m.add_many([(np.int64(8), "x = 1"), (np.str_("nine"), "x = 1")])
    assert m.match({"x": 1}) == [7, 8, "nine"]
    assert 7 in m
    with pytest.raises(mw.SubscriptionError, match="taken"):
        m.add(7, "x = 1")


BAD_IDS: list[Any] = [True, False, 1.0, None, b"a", (1,), [1], {}, 2**63, -(2**63) - 1, 2**70]
BAD_IDS += [10**5_000, float("nan"), np.bool_(True), np.float64(1), object(), "\ud800"]


@pytest.mark.parametrize("id_", BAD_IDS, ids=range(len(BAD_IDS)))
def test_other_ids_are_refused_and_leave_no_trace(id_):
    m = mw.Matcher()
    m.add(1, "x = 1")
    before = trace(m)
    for change in (m.add, m.replace):
        with pytest.raises(mw.SubscriptionError) as caught:
            change(id_, "new_name = 1")
        assert len(str(caught.value)) < 300
    for lone in (m.remove, m.expression, lambda bad: m.explain(bad, {})):
        with pytest.raises(mw.SubscriptionError):
            lone(id_)
    assert trace(m) == before
    report = m.add_many([(2, "x = 1"), (id_, "x = 1"), (3, "x = 1")])
    assert ([each.row for each in report.errors], report.count) == ([1], 2)
    assert isinstance(report.errors[0].error, mw.SubscriptionError)
    assert m.remove_many([3, id_]).count == 1
    assert m.match({"x": 1}) == [1, 2]
    check(m)


def test_a_taken_id_is_refused_by_add_and_accepted_by_replace():
    m = mw.Matcher()
    m.add("a", "x = 1")
    with pytest.raises(mw.SubscriptionError, match="use replace"):
        m.add("a", "x = 2")
    m.replace("a", "x = 2")
    m.replace("b", "x = 2")
    assert m.match({"x": 2}) == ["a", "b"]


def test_unknown_ids_are_refused_with_advice():
    m = mw.Matcher()
    for ask in (m.remove, m.expression, lambda id_: m.explain(id_, {})):
        with pytest.raises(mw.SubscriptionError, match=r"'ghost'.*no such subscription"):
            ask("ghost")
    report = m.remove_many(["ghost", "ghost"])
    assert (report.count, len(report.errors)) == (0, 2)


@pytest.mark.parametrize("one", ["ab", b"\x01", 1, None])
def test_one_id_in_place_of_a_list_removes_nothing(one):
    m = mw.Matcher()
    m.add_many([(id_, "x = 1") for id_ in ("a", "b", "ab", 1)])
    for ask in (m.remove_many, m.batch().remove_many):
        with pytest.raises(mw.SubscriptionError, match=r"list of ids, found .*: use remove\(\)"):
            ask(one)
    assert len(m) == 4


def test_ids_of_an_arrow_column_are_removed():
    m = mw.Matcher()
    m.add_many([(id_, "x = 1") for id_ in range(5)])
    assert m.remove_many(m.to_arrow()["id"][:4]).count == 4
    assert m.match({"x": 1}) == [4]


# ── order ───────────────────────────────────────────────────────────────────────────────────────


def test_matches_come_in_the_order_of_adding_whatever_slots_they_have():
    m = mw.Matcher()
    for i in range(600):
        m.add(i, "x = 1" if i % 3 else "x = 1 OR y = 1")
    for i in range(0, 600, 2):
        m.remove(i)
    for i in range(600, 900):
        m.add(i, ("x = 1", "TRUE", "x = 1 OR y = 2")[i % 3])
    m.replace(1, "x = 1 OR z = 1")
    m.replace(3, "TRUE")
    expected = [*range(1, 600, 2), *range(600, 900)]
    assert m.match({"x": 1}) == expected
    m.compact()
    assert m.match({"x": 1}) == expected
    check(m)


def test_a_replaced_subscription_keeps_its_place():
    m = mw.Matcher()
    m.add_many([(i, "x = 1") for i in "abc"])
    m.replace("a", "x > 0")
    m.replace("b", "TRUE")
    m.replace("c", "x = 1 OR y = 1")
    assert m.match({"x": 1}) == ["a", "b", "c"]
    m.replace("b", "FALSE")
    assert m.match({"x": 1}) == ["a", "c"]


@pytest.mark.parametrize("shared", ["y IS NULL", "s LIKE '%a%'", "s NOT LIKE '_b%'", "y > 3"])
def test_a_replacement_may_share_what_it_replaces(shared):
    m = mw.Matcher()
    event = {"x": 1, "s": "xa", "y": 5 if ">" in shared else None}
    for text in (shared, f"{shared} AND x = 1", f"x = 2 OR {shared}", shared):
        m.replace(1, text)
        assert m.match(event) == [1]
        check(m)
    m.remove(1)
    m.add(2, shared)
    assert m.match(event) == [2]


# ── refused changes ─────────────────────────────────────────────────────────────────────────────

BAD_TEXTS: list[Any] = [
    "",
    "x = ",
    "x = 'text'",
    "s > 5",
    "s LIKE 'a%' AND new_name = 1 AND x LIKE 'b%'",
    "new_name = 1 AND x = TRUE",
    "new_name IN (5, 'a')",
    "new_name IS NULL AND x = 'a'",
    "s = 'fresh constant' AND x = 'a'",
    "d = 'not a date'",
    "other = 99 AND d = '2024-13-01'",
    " XOR ".join(f"x = {i}" for i in range(400)),
    "(" * 500 + "x = 1" + ")" * 500,
    None,
    5,
    b"x = 1",
    ["x = 1"],
]


@pytest.mark.parametrize("bad", BAD_TEXTS, ids=range(len(BAD_TEXTS)))
def test_a_refused_expression_leaves_no_trace(bad):
    m = mw.Matcher(schema={"d": "date", "x": "number", "s": "string"})
    m.add("kept", "x > 3 AND s = 'a'")
    before = trace(m)
    for change in (lambda: m.add("new", bad), lambda: m.replace("kept", bad)):
        with pytest.raises(mw.MatchwoodError):
            change()
        assert trace(m) == before
    with pytest.raises(mw.MatchwoodError):
        m.validate(bad)
    report = m.add_many([("new", bad)])
    assert (report.count, len(report.errors)) == (0, 1)
    assert trace(m) == before
    assert m.match({"x": 4, "s": "a"}) == ["kept"]
    m.add("new_name", "new_name = 'free to be a string'")
    check(m)


def test_validating_changes_nothing_and_returns_the_tree():
    m = mw.Matcher(schema={"x": "number"})
    m.add(1, "x > 3")
    before = trace(m)
    tree = m.validate("x > 5 AND y = 'new' AND z LIKE '%q%' AND w IS NULL")
    assert tree == mw.parse("x > 5 AND y = 'new' AND z LIKE '%q%' AND w IS NULL")
    assert m.validate(tree) == tree
    assert trace(m) == before
    with pytest.raises(mw.SchemaError) as caught:
        m.validate("y = 1 AND\n  x = 'a'")
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_an_error_points_into_the_text():
    m = mw.Matcher(schema={"price": "number"})
    m.add(1, "price > 3")
    with pytest.raises(mw.SchemaError) as caught:
        m.add(2, "genre = 'a' AND price = 'cheap'")
    assert caught.value.position == len("genre = 'a' AND ")
    assert "^" in str(caught.value)
    assert "genre" not in m.schema


# ── expressions of every shape ──────────────────────────────────────────────────────────────────


def test_texts_trees_and_builders_are_the_same():
    forms = ["price < 20 AND active", mw.parse("price < 20 AND active")]
    forms.append((mw.attr("price") < 20) & mw.attr("active"))
    m = mw.Matcher()
    m.add_many(list(enumerate(forms)))
    assert m.match({"price": 5, "active": True}) == [0, 1, 2]
    assert m.match({"price": 5, "active": False}) == []


def test_a_bare_attribute_is_an_expression():
    m = mw.Matcher()
    m.add("alone", mw.attr("active"))
    m.add_many([("many", mw.attr("active"))])
    m.replace("alone", mw.attr("active"))
    assert m.validate(mw.attr("active")) == mw.parse("active")
    assert m.match({"active": True}) == ["alone", "many"]


def test_always_and_never_true_expressions_are_kept():
    m = mw.Matcher(schema={"x": "number"})
    texts = ["TRUE", "FALSE", "NULL", "NOT NULL", "TRUE OR x = 1", "x > 2 AND x < 1", "NOT FALSE"]
    m.add_many((text, text) for text in texts)
    assert m.match({}) == m.match({"x": 5}) == ["TRUE", "TRUE OR x = 1", "NOT FALSE"]
    stats = m.stats()
    assert (stats["always_true"], stats["never_true"]) == (3, 4)
    m.remove("TRUE")
    m.replace("FALSE", "TRUE")
    m.replace("NOT FALSE", "FALSE")
    assert m.match({}) == ["FALSE", "TRUE OR x = 1"]
    assert list(m.match_many([{}, {"x": "bad"}, {"x": 1}])) == [
        ["FALSE", "TRUE OR x = 1"],
        [],
        ["FALSE", "TRUE OR x = 1"],
    ]
    check(m)


@pytest.mark.slow
def test_the_deepest_expressions():
    expr: Expr = Comparison("x", "=", 1)
    for level in range(MAX_DEPTH):
        side = Comparison("y", ">", level)
        expr = Not(expr) if level % 4 == 3 else (Or if level % 2 else And)((expr, side))
    m = mw.Matcher()
    m.add(1, expr)
    m.add(2, str(expr))
    for event in ({"x": 1, "y": 100}, {"x": 2, "y": 150}, {"x": 1, "y": 500}, {"y": 3}, {"x": 1}):
        expected = [1, 2] if matches(expr, event) else []
        assert m.match(event) == expected
        assert m.explain(2, event).matches is bool(expected)
    assert m.expression(1) == expr


@pytest.mark.slow
def test_xors_near_their_limit():
    n = 256
    chain: Expr = Comparison("x0", "=", 1)
    for i in range(1, 150):
        chain = Xor(chain, Comparison(f"x{i}", "=", 1))
    m = mw.Matcher()
    m.add(1, chain)
    assert m.match({f"x{i}": int(i < 7) for i in range(n)}) == [1]
    assert m.match({f"x{i}": int(i < 8) for i in range(n)}) == []


# ── memory ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("in_portions", [1, 20])
def test_removing_everything_gives_the_memory_back(in_portions):
    m = mw.Matcher()
    empty = m.stats()["bytes"]
    ids = [f"id-{i}" for i in range(4_000)]
    m.add_many((id_, f"x = {i} AND s = 'v{i}' OR t LIKE 'p{i}%'") for i, id_ in enumerate(ids))
    full = m.stats()["bytes"]
    for portion in np.array_split(ids, in_portions):
        m.remove_many(portion.tolist())
    left = m.stats()["bytes"]
    assert sum(full.values()) > 20 * sum(empty.values())
    for part, size in left.items():
        assert size <= 4 * empty[part], part
    assert m.stats()["predicates"] == 0
    m.add("again", "x = 1")
    assert m.match({"x": 1}) == ["again"]
    check(m)


@pytest.mark.slow
def test_replacing_without_end_needs_no_more_memory():
    m = mw.Matcher()
    m.add_many((i, f"x = {i}") for i in range(100))
    sizes = []
    for round_ in range(30):
        for i in range(100):
            m.replace(i, f"x = {round_ * 100 + i} AND y LIKE 'p{round_}%'")
        sizes.append(sum(m.stats()["bytes"].values()))
    assert max(sizes) < 3 * sizes[0]
    check(m)


def test_contains_and_len_know_what_is_there():
    m = mw.Matcher()
    m.add_many([(1, "x = 1"), ("b", "x = 1")])
    assert len(m) == 2
    assert 1 in m
    assert "b" in m
    assert "1" not in m
    assert None not in m
    assert pd.NA not in m


def test_ints_are_found_after_the_last_string_among_them_has_gone() -> None:
    m = mw.Matcher()
    m.add_many([("s", "x = 1"), (5, "x = 1"), (3, "x = 1")])
    m.remove("s")
    m.compact()
    assert 3 in m
    assert 4 not in m
    assert m.match({"x": 1}) == [5, 3]
    m.replace(5, "x = 2")
    assert m.match({"x": 2}) == [5]
