"""Constants at the door: a formula that cannot change the result is not computed."""

from __future__ import annotations

import pytest

import matchwood as mw
from matchwood.lang.general import read_scalar
from matchwood.lang.lower import settled
from matchwood.lang.scalars import text_of

FALSE, TRUE = [[], [], []], [["s"], ["s"], ["s"]]
EVENTS = [{"q": 0}, {"q": 5}, {}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 / q > 2 AND 1 > 2", FALSE),
        ("1 > 2 AND 10 / q > 2", FALSE),
        ("10 / q > 2 AND NULL", FALSE),
        ("10 / q > 2 OR 1 = 1", TRUE),
        ("NOT (10 / q > 2 OR TRUE)", FALSE),
        ("NOT (10 / q > 2 AND FALSE)", TRUE),
        ("(10 / q > 2 AND FALSE) IS NULL", FALSE),
        ("CASE WHEN 10 / q > 2 AND FALSE THEN 1 ELSE 2 END = 2", TRUE),
        ("10 / q BETWEEN NULL AND 3", FALSE),
        ("coalesce(10 / q = NULL, TRUE)", TRUE),
        ("((floor(10 / q) - 1) > 1) = isnull(q) AND 0.25 > 1", FALSE),
        ("FALSE AND (10 / q > 2 OR (10 % q = 1 AND q > 0))", FALSE),
    ],
)
def test_what_cannot_change_the_result_is_not_computed(text: str, expected: list[list[str]]):
    m = mw.Matcher()
    m.add("s", text)
    found = m.match_many(EVENTS)
    assert found.to_pylist() == expected
    assert [m.match(event) for event in EVENTS] == expected
    assert found.warnings == {}
    assert m.stats()["failed"] == {}


@pytest.mark.parametrize(
    "text", ["10 / q > 2 AND q >= 0", "10 / q > 2 OR q < 0", "10 / q > 2 AND TRUE"]
)
def test_what_may_change_it_is_computed_and_reported(text: str):
    m = mw.Matcher()
    m.add("s", text)
    assert list(m.match_many(EVENTS).warnings) == [0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > 1 AND FALSE", "FALSE"),
        ("x > 1 AND TRUE", "x > 1"),
        ("FALSE OR x > 1 OR y IS NULL", "x > 1 OR y IS NULL"),
        ("x > 1 OR 2 > 1", "TRUE"),
        ("b AND TRUE", "b AND TRUE"),  # of b only the event tells whether it is a boolean
        ("b AND 1", "b AND 1"),
        ("x > 1 AND NULL", "x > 1 AND NULL"),
        ("x + 1 = NULL", "NULL"),
        ("x + 1 <=> NULL", "x + 1 <=> NULL"),
    ],
)
def test_constants_inside_of_a_formula_are_folded(text: str, expected: str):
    assert text_of(settled(read_scalar(text))) == expected


def test_names_beside_a_constant_are_checked_all_the_same():
    m = mw.Matcher(schema=mw.Schema(price="int", strict=True))
    with pytest.raises(mw.MatchwoodError, match="prcie"):
        m.add(1, "prcie > 3 AND FALSE")
    with pytest.raises(mw.MatchwoodError, match="prcie"):
        m.add(1, "abs(prcie) > 3 AND FALSE")
