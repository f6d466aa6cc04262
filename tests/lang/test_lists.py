"""Lists whose numbers are ints and floats, as JSON has them."""

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
