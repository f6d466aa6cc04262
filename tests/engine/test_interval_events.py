"""Events of predicates: which values they stand for, law by law, through the matcher."""

from __future__ import annotations

import math

import pytest

import matchwood as mw
from matchwood.lang.nodes import And, Comparison, Expr

NAN, INF = "double('NaN')", "double('Infinity')"
INT_MAX = 2**63 - 1


def of(sub: str | Expr, event: str | Expr, **schema: str) -> bool:
    """Whether a subscription matches an event of predicates."""
    m = mw.Matcher(schema=schema)
    m.add(1, sub)
    return m.match(mw.parse(event) if isinstance(event, str) else event) == [1]


def between(name: str, low: object, high: object) -> Expr:
    """Strictly between two values."""
    return And((Comparison(name, ">", low), Comparison(name, "<", high)))


# ── lists of strings ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "event",
    [
        "(s = 'c' OR s = 'aXb') AND y = 1",
        "(s = 'aXb' OR s = 'c') AND y = 1",
        "s IN ('c', 'aXb') AND y = 1",
        "(s IN ('c', 'd') OR s LIKE 'aXb') AND s <> 'd' AND y = 1",
    ],
)
def test_a_pattern_sees_every_string_that_an_event_lists(event):
    assert of("s LIKE '%X%'", event)
    assert of("s NOT LIKE '%X%'", event)


@pytest.mark.parametrize(
    "event", ["s IN ('c', 'aXb') AND s <> 'aXb'", "s IN ('c', 'aXb') AND s > 'b'", "s <= ''"]
)
def test_a_pattern_sees_no_string_that_an_event_rules_out(event):
    assert not of("s LIKE '%X%'", event)
    assert of("s NOT LIKE '%X%'", event)


# ── values that exist ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "sub", "event"),
    [
        ("bool", "x <> TRUE", "x <> FALSE"),
        ("bool", "x > TRUE", "x IS NOT NULL"),
        ("bool", "x < FALSE", "x IS NOT NULL"),
        ("bool", "x NOT IN (TRUE, FALSE)", "x IS NOT NULL"),
        ("string", "x < ''", "x <= 'b'"),
        ("string", between("x", "a", "a\0"), "x <= 'b'"),
        ("string", between("x", "a", "a\0"), "x LIKE 'a%'"),
        ("string", "x > 'a'", Comparison("x", "<", "a\0")),
        ("string", Comparison("x", "<", "a\0"), "x > 'a'"),
        ("int", f"x > {INT_MAX}", f"x >= {INT_MAX}"),
        ("int", "x > 1 AND x < 2", "x IS NOT NULL"),
        ("int", "x > 1", "x < 2"),
        ("date", "x > DATE '2024-01-01' AND x < DATE '2024-01-02'", "x IS NOT NULL"),
        ("float", f"x > {NAN}", "x > 5"),
        ("float", f"x > {INF} AND x < {NAN}", "x > 5"),
        ("float", "x < double('-Infinity')", "x < 5"),
        ("float", between("x", -5e-324, 0), "x < 5"),
        ("float", between("x", 1.0, math.nextafter(1, 2)), "x < 5"),
        ("number", f"x > {NAN}", "x > 5"),
        ("number", f"x > {INF} AND x < {NAN}", "x > 5"),
        ("number", f"x < {NAN}", f"x > {INF}"),
        ("number", "x < double('-Infinity')", "x < 5"),
    ],
)
def test_an_event_of_predicates_allows_no_value_that_does_not_exist(kind, sub, event):
    assert not of(sub, event, x=kind)


@pytest.mark.parametrize(
    ("kind", "sub", "event"),
    [
        ("bool", "x <> TRUE", "x < TRUE"),
        ("bool", "x", "x <> FALSE"),
        ("string", "x <= ''", "x <= 'b'"),
        ("string", "x < 'b'", "x < 'a'"),
        ("string", "x > 'a'", Comparison("x", "<=", "a\0")),
        ("int", f"x >= {INT_MAX}", f"x >= {INT_MAX}"),
        ("int", "x > 1", "x < 3"),
        ("float", f"x = {NAN}", "x > 5"),
        ("float", f"x > {INF}", "x > 5"),
        ("float", f"x >= {INF} AND x < {NAN}", "x > 5"),
        ("float", "x = 0", "x BETWEEN -1 AND 1"),
        ("number", f"x = {NAN}", "x > 5"),
        ("number", f"x > {INF}", "x > 5"),
        ("number", between("x", 1.0, math.nextafter(1, 2)), "x < 5"),
        ("date", "x > DATE '9999-12-31'", "x >= DATE '9999-12-31'"),
    ],
)
def test_an_event_of_predicates_allows_every_value_that_exists(kind, sub, event):
    assert of(sub, event, x=kind)


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("bool", "x <> TRUE AND x <> FALSE"),
        ("bool", "x > TRUE"),
        ("string", "x < ''"),
        ("string", between("x", "a", "a\0")),
        ("int", "x > 1 AND x < 2"),
        ("float", f"x > {NAN}"),
        ("number", f"x > {INF} AND x < {NAN}"),
        ("number", "x IS NULL AND x = 5"),
        ("number", "x IS NULL AND x IS NOT NULL"),
    ],
)
def test_an_event_that_no_value_satisfies_is_refused(kind, event):
    m = mw.Matcher(schema={"x": kind})
    m.add(1, "x IS NOT NULL")
    m.add(2, "x IS NULL")
    with pytest.raises(mw.EventError, match="contradiction"):
        m.match(mw.parse(event) if isinstance(event, str) else event)


def test_gaps_without_values_are_known_after_constants_came_and_went(tmp_path):
    m = mw.Matcher(schema={"s": "string"})
    m.add(1, between("s", "a", "a\0"))
    event = mw.parse("s <= 'b'")
    assert m.match(event) == []
    m.add(2, between("s", "a\0", "a\0\0"))
    m.add(3, between("s", "a\0", "a\1"))
    assert m.match(event) == [3]
    m.remove(2)
    m.save(tmp_path / "saved")
    m = mw.Matcher.load(tmp_path / "saved")
    m.add(4, between("s", "b", "b\0"))
    assert m.match(mw.parse("s >= ''")) == [3]


# ── absent or not ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ("x IS NULL", ["null"]),
        ("x IS NULL OR x = 5", ["five", "null", "there"]),
        ("(x = 5 OR x IS NULL) AND y = 1", ["five", "null", "there"]),
        ("x IS NULL OR x = 6", ["null", "there"]),
        ("x IS NULL OR x > 7 AND x < 6", ["null"]),
        ("(x IS NULL OR x = 5) AND (x IS NULL OR x > 7)", ["null"]),
        ("(x IS NULL OR x = 5) AND x > 1", ["five", "there"]),
        ("(x IS NULL OR x = 5) AND (x = 5 OR x = 6)", ["five", "there"]),
        ("x IS NULL OR x IS NOT NULL", ["five", "null", "there"]),
        ("NOT (x IS NOT NULL AND x <> 5)", ["five", "null", "there"]),
    ],
)
def test_an_event_may_leave_open_whether_an_attribute_is_absent(event, found):
    m = mw.Matcher()
    m.add_many([("five", "x = 5"), ("null", "x IS NULL"), ("there", "x IS NOT NULL")])
    assert m.match(mw.parse(event)) == found


@pytest.mark.parametrize(
    "event", ["x IS NULL OR y = 5", "x IS NULL OR y IS NULL", "x IS NULL AND (x = 1 OR y = 1)"]
)
def test_absences_in_an_or_over_several_attributes_are_refused(event):
    m = mw.Matcher()
    m.add(1, "x IS NULL AND y IS NOT NULL")
    with pytest.raises(mw.EventError, match="OR over several"):
        m.match(mw.parse(event))


# ── no context ──────────────────────────────────────────────────────────────────────────────────


def test_an_event_of_predicates_has_no_context():
    m = mw.Matcher()
    m.add(1, "x < ctx.y", context="c")
    with pytest.raises(mw.EventError, match="context"):
        m.match(mw.parse("x < ctx.y"))
