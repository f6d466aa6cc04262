"""The definition of correct, checked by hand: truth tables and one line per rule."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import product
from random import Random

import pytest

from matchwood.lang.nodes import (
    And,
    Between,
    Comparison,
    Const,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Xnor,
    Xor,
)
from naive import can_hold, compare, evaluate, flatten, holds_interval, like, matches
from strategies import POOL, expression, schema, value

T, F, U = True, False, None
NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right", "both", "either", "differ", "same"),
    [
        (T, T, T, T, F, T),
        (T, F, F, T, T, F),
        (T, U, U, T, U, U),
        (F, T, F, T, T, F),
        (F, F, F, F, F, T),
        (F, U, F, U, U, U),
        (U, T, U, T, U, U),
        (U, F, F, U, U, U),
        (U, U, U, U, U, U),
    ],
)
def test_connectives_follow_the_truth_tables(left, right, both, either, differ, same):
    a, b = Const(left), Const(right)
    assert evaluate(And((a, b)), {}) is both
    assert evaluate(Or((a, b)), {}) is either
    assert evaluate(Xor(a, b), {}) is differ
    assert evaluate(Xnor(a, b), {}) is same


@pytest.mark.parametrize(("operand", "expected"), [(T, F), (F, T), (U, U)])
def test_not_of_unknown_is_unknown(operand, expected):
    assert evaluate(Not(Const(operand)), {}) is expected


@pytest.mark.parametrize("event", [{}, {"x": None}])
def test_every_predicate_on_an_absent_attribute_is_unknown_except_is_null(event):
    assert evaluate(Comparison("x", "=", 1), event) is U
    assert evaluate(Comparison("x", "<>", 1), event) is U
    assert evaluate(Between("x", 1, 2, negated=True), event) is U
    assert evaluate(In("x", (1,), negated=True), event) is U
    assert evaluate(Like("x", "%", negated=True), event) is U
    assert evaluate(IsNull("x"), event) is T
    assert evaluate(IsNull("x", negated=True), event) is F


def test_only_true_matches():
    x_is_1 = Comparison("x", "=", 1)
    assert [matches(x_is_1, {"x": x}) for x in (1, 2, None)] == [True, False, False]


def test_in_with_null_is_true_or_unknown_and_never_false():
    assert [evaluate(In("x", (1, None)), {"x": x}) for x in (1, 2, None)] == [T, U, U]
    assert [evaluate(In("x", (1, None), negated=True), {"x": x}) for x in (1, 2)] == [F, U]


def test_between_includes_both_bounds_and_is_empty_when_they_are_swapped():
    assert [evaluate(Between("x", 1, 3), {"x": x}) for x in (0, 1, 3, 4)] == [F, T, T, F]
    assert [evaluate(Between("x", 3, 1), {"x": x}) for x in (0, 1, 2, 3, 4)] == [F] * 5
    assert evaluate(Between("x", 3, 1, negated=True), {"x": 2}) is T


def test_numbers_are_never_rounded():
    beyond = 2**53 + 1
    assert evaluate(Comparison("x", "=", float(2**53)), {"x": beyond}) is F
    assert evaluate(Comparison("x", ">", float(2**53)), {"x": beyond}) is T
    assert evaluate(Comparison("x", "<", 20), {"x": 19.99}) is T
    assert [evaluate(Comparison("x", ">", 1.5), {"x": x}) for x in (1, 2)] == [F, T]


def test_nan_equals_itself_and_is_above_infinity():
    assert compare(NAN, NAN) == 0
    assert compare(NAN, float("inf")) > 0
    assert compare(2**63, NAN) < 0


def test_minus_zero_equals_zero():
    assert compare(-0.0, 0.0) == compare(-0.0, 0) == 0


def test_strings_are_ordered_by_utf8_bytes():
    ordered = ["", "\x00", "A", "a", "a\x00", "ab", "é", "\uffff", "😀", "\U0010ffff"]
    for (i, left), (j, right) in product(enumerate(ordered), repeat=2):
        assert compare(left, right) == (i > j) - (i < j)


def test_a_datetime_without_zone_is_utc_and_a_date_is_its_midnight():
    noon = datetime(2024, 2, 29, 12)
    assert compare(noon, noon.replace(tzinfo=UTC)) == 0
    assert compare(noon, noon.replace(tzinfo=timezone(timedelta(hours=2)))) > 0
    assert compare(date(2024, 2, 29), datetime(2024, 2, 29)) == 0
    assert compare(date(2024, 2, 29), datetime(2024, 2, 29, 0, 0, 0, 1)) < 0


@pytest.mark.parametrize(("left", "right"), [(1, True), ("1", 1), (1, date(1970, 1, 1))])
def test_values_of_different_kinds_do_not_compare(left, right):
    with pytest.raises(TypeError):
        compare(left, right)


@pytest.mark.parametrize("kind", sorted(POOL))
def test_values_of_one_type_are_totally_ordered(kind):
    for a, b, c in product(POOL[kind][:8] + POOL[kind][-8:], repeat=3):
        assert compare(a, b) == -compare(b, a)
        assert not (compare(a, b) <= 0 and compare(b, c) <= 0 and compare(a, c) > 0)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "ab%", T),
        ("ab", "ab%", T),
        ("aB", "ab%", F),
        ("abc", "a_c", T),
        ("ac", "a_c", F),
        ("a\nb", "a_b", T),
        ("a\nb", "a%", T),
        ("😀", "_", T),
        ("e\u0301", "_", F),
        ("a%", "a\\%", T),
        ("ab", "a\\%", F),
        ("a\\", "a\\\\", T),
        ("a\\b", "a\\\\%", T),
        ("a.c", "a.c", T),
        ("abc", "a.c", F),
        ("", "", T),
        ("", "%", T),
        ("ab\n", "ab", F),
        (None, "%", U),
    ],
)
def test_like(text, pattern, expected):
    assert like(text, pattern) is expected


def test_flatten_gives_dotted_names():
    nested = {"a": 1, "user": {"age": 30, "home": {"city": "Ulm"}}, "gone": None}
    assert flatten(nested) == {"a": 1, "user.age": 30, "user.home.city": "Ulm", "gone": None}


# ── events that carry predicates instead of values ──────────────────────────────────────────────


def test_an_interval_event_satisfies_a_predicate_through_any_of_its_values():
    low = Comparison("x", "<", 5)
    assert holds_interval(low, {"x": (3, 7)})
    assert holds_interval(Not(low), {"x": (3, 7)})
    assert not holds_interval(low, {"x": (6, 7)})
    assert not holds_interval(low, {})
    assert not holds_interval(Not(low), {})
    assert holds_interval(IsNull("x"), {})


def test_two_predicates_on_one_attribute_may_choose_different_values():
    between = And((Comparison("x", ">", 3), Comparison("x", "<", 5)))
    assert holds_interval(between, {"x": (2, 7)})
    assert not can_hold(between, {"x": (2, 7)})


def test_an_event_of_single_values_is_an_ordinary_event():
    rng = Random(1)
    for _ in range(300):
        attributes = schema(rng)
        tree = expression(rng, attributes, rng.randint(1, 5))
        event = {name: value(rng, kind) for name, kind in attributes.items() if rng.random() < 0.8}
        singles = {name: (v,) for name, v in event.items()}
        assert holds_interval(tree, singles) is can_hold(tree, singles) is matches(tree, event)


def test_what_can_hold_at_once_can_hold_predicate_by_predicate():
    rng = Random(2)
    found = set()
    for _ in range(300):
        attributes = schema(rng, n_attributes=2)
        tree = expression(rng, attributes, rng.randint(1, 4))
        event = {n: tuple(value(rng, kind) for _ in range(3)) for n, kind in attributes.items()}
        at_once, one_by_one = can_hold(tree, event), holds_interval(tree, event)
        assert one_by_one or not at_once
        found.add((at_once, one_by_one))
    assert found == {(True, True), (False, False), (False, True)}
