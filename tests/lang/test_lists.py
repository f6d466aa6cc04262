"""Lists of numbers and lists of several kinds, as JSON has them."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import matchwood as mw


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("exists(a, x -> x <> 2.5)", [2.5, 5], True),
        ("exists(a, x -> x <> 2.5)", [2.5, 2.5], False),
        ("array_contains(a, 5)", [2.5, 5], True),
        ("array_contains(a, 2.5)", [1, 2.5], True),
    ],
)
def test_ints_and_floats_of_one_list_are_compared_exactly(text, value, holds):
    m = mw.Matcher()
    m.add("s", text)
    assert m.match({"a": value}) == (["s"] if holds else [])


MIXED = {
    "array_contains(a, 'x')": (True, None, None, None),
    "array_contains(a, 2)": (True, True, True, None),
    "array_contains(a, 1)": (None, None, True, None),
    "array_contains(a, TRUE)": (None, True, None, None),
    "arrays_overlap(a, array('x', 'y'))": (True, None, None, None),
    "exists(a, e -> e > 1)": (True, True, True, None),
    "exists(a, e -> e = 'x')": (True, None, None, None),
    "exists(a, e -> upper(e) = 'X')": (True, None, None, None),
    "forall(a, e -> e > 1)": (None, None, False, None),
    "a[0] = 'x'": (True, None, None, False),
    "element_at(a, -1) = 2": (True, True, True, None),
    "size(a) = 2": (True, True, True, True),
}
LISTS = (["x", 2], [True, 2], [1, 2], ["q", None])


@pytest.mark.parametrize("text", MIXED)
def test_elements_of_another_kind_than_the_constant_are_as_null(text):
    m = mw.Matcher()
    m.add("yes", text)
    m.add("no", f"NOT ({text})")
    expected = [{True: ["yes"], False: ["no"], None: []}[truth] for truth in MIXED[text]]
    events = [{"a": each} for each in LISTS]
    assert [m.match(event) for event in events] == expected
    assert list(m.match_many_json([json.dumps(each) for each in events])) == expected


def test_a_list_of_several_kinds_is_counted_where_it_leaves_elements_out():
    m = mw.Matcher()
    m.add("c", "array_contains(a, 'x')")
    m.add("n", "size(a) = 2")
    m.match({"a": ["x", 2]})
    assert m.stats()["unknown"] == {"array_contains(a, 'x')": 1}


@pytest.mark.parametrize("text", ["a[i] = 2", "element_at(a, i) = 2", "element_at(a[0], i) = 2"])
@pytest.mark.parametrize("position", ["x", 1.0, Decimal(1), True, date(2026, 1, 1), [1], {"x": 1}])
def test_a_position_that_is_no_whole_number_leaves_it_unknown_and_stops_nothing(text, position):
    m = mw.Matcher()
    m.add("item", text)
    m.add("no item", f"NOT ({text})")
    m.add("null", text.replace("= 2", "IS NULL"))
    m.add("other", "size(a) = 2")
    event = {"a": [[1, 2], [3]], "i": position}
    assert m.match(event) == ["other"]
    assert m.match_many([event, {"a": [1, 2], "i": 1}])[0] == ["other"]
    assert sum(m.stats()["unknown"].values()) > 0


def test_a_key_or_a_position_that_is_absent_gives_null():
    m = mw.Matcher()
    texts = ["m[k] IS NULL", "element_at(m, k) IS NULL", "a[i] IS NULL", "element_at(a, i) IS NULL"]
    for text in texts:
        m.add(text, text)
    assert m.match({"m": {"k": 1}, "a": [1]}) == texts
    assert m.match({"m": {"k": 1}, "a": [1], "k": "k", "i": 1}) == []


DAY, NOON = date(2026, 1, 1), datetime(2026, 1, 1, 12, tzinfo=UTC)
MIDNIGHT, PLAIN_NOON = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    ("text", "event", "holds"),
    [
        ("array_contains(a, TIMESTAMP '2026-01-01 12:00:00Z')", {"a": [PLAIN_NOON]}, True),
        ("exists(a, v -> v > d)", {"a": [PLAIN_NOON], "d": DAY}, True),
        ("a = b", {"a": [PLAIN_NOON], "b": [NOON]}, True),
        ("a < b", {"a": [DAY], "b": [NOON]}, True),
        ("a = b", {"a": [DAY], "b": [MIDNIGHT]}, True),
        ("arrays_overlap(a, b)", {"a": [DAY], "b": [MIDNIGHT]}, True),
        ("array_contains(a, t)", {"a": [DAY], "t": MIDNIGHT}, True),
        ("array_contains(a, d)", {"a": [MIDNIGHT], "d": DAY}, True),
        ("array_contains(a, d)", {"a": [NOON], "d": DAY}, False),
        ("array_max(a) = t", {"a": [DAY, NOON], "t": NOON}, True),
        ("array_min(a) = t", {"a": [NOON, DAY], "t": MIDNIGHT}, True),
        ("hour(a[0]) = 0", {"a": [DAY, NOON]}, True),
    ],
)
def test_moments_in_lists_are_compared_as_those_outside_of_them(text, event, holds):
    m = mw.Matcher()
    m.add("yes", text)
    m.add("no", f"NOT ({text})")
    assert m.match(event) == (["yes"] if holds else ["no"])


def test_a_list_of_timestamps_without_a_zone_is_in_utc_in_a_table_too():
    m = mw.Matcher()
    m.add("s", "exists(a, v -> v > TIMESTAMP '2026-01-01 11:59:59Z')")
    m.add("t", "array_contains(a, TIMESTAMP '2026-01-01 12:00:00Z')")
    table = pa.table({"a": pa.array([[PLAIN_NOON], []], pa.list_(pa.timestamp("us")))})
    assert list(m.match_many(table)) == [["s", "t"], []]
