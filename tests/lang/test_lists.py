"""Lists of numbers and lists of several kinds, as JSON has them."""

import json

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
