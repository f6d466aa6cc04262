"""A nested object that is not null is present, whatever is in it."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import matchwood as mw

TEXTS = [
    "brand IS NULL",
    "brand IS NOT NULL",
    "brand.name IS NULL",
    "brand.name IS NOT NULL",
    "brand.name = 'Acme'",
    "NOT brand.name = 'Acme'",
    "brand.home IS NULL",
    "brand.home IS NOT NULL AND brand.home.city IS NULL",
    "brand.home.city = 'Ulm'",
    "brand IS NULL OR brand.name = 'Acme'",
    "NOT (brand IS NULL)",
]
EVENTS: list[dict[str, Any]] = [
    {"brand": {"name": "Acme", "home": {"city": "Ulm"}}},
    {"brand": {"name": "Acme", "home": None}},
    {"brand": {"name": None, "home": {"city": None}}},
    {"brand": {"name": None, "home": None}},
    {"brand": None},
]
STRUCT = pa.struct([("name", pa.string()), ("home", pa.struct([("city", pa.string())]))])


def matcher(**options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    m.add_many((text, text) for text in TEXTS)
    return m


def table() -> pa.Table:
    return pa.table({"brand": pa.array([each["brand"] for each in EVENTS], STRUCT)})


def asked_of_duckdb() -> list[list[str]]:
    events = table()  # noqa: F841 - duckdb reads it by its name
    columns = ", ".join(f'({text}) AS "{i}"' for i, text in enumerate(TEXTS))
    rows = duckdb.sql(f"SELECT {columns} FROM events").fetchall()
    return [[text for text, truth in zip(TEXTS, row, strict=True) if truth is True] for row in rows]


@pytest.mark.parametrize("index", ["auto", "be_tree", "a_tree", "counting"])
def test_a_nested_object_is_present_as_in_duckdb(index):
    expected = asked_of_duckdb()
    m = matcher(index=index)
    assert [m.match(event) for event in EVENTS] == expected
    assert list(m.match_many(EVENTS)) == expected
    found = m.match_many(table())
    assert found.errors == {}
    assert list(found) == expected
    frame = table().to_pandas(types_mapper=pd.ArrowDtype)
    assert list(m.match_many(frame)) == expected


def test_an_empty_object_is_present():
    m = matcher()
    present = ["brand IS NOT NULL", "brand.name IS NULL", "brand.home IS NULL"]
    expected = [text for text in TEXTS if text in (*present, "NOT (brand IS NULL)")]
    assert m.match({"brand": {}}) == expected
    column = pa.array([{}, None], pa.struct([]))
    assert list(m.match_many(pa.table({"brand": column}))) == [expected, m.match({"brand": None})]


def test_a_list_is_present():
    m = mw.Matcher()
    m.add("absent", "tags IS NULL")
    m.add("present", "tags IS NOT NULL")
    for value in ([], [1], [{"a": 1}]):
        assert m.match({"tags": value}) == ["present"]
    column = pa.array([[], [1], None])
    assert list(m.match_many(pa.table({"tags": column}))) == [["present"], ["present"], ["absent"]]


@pytest.mark.parametrize("value", [{}, {"name": "Acme"}, {"name": None}])
def test_an_object_where_a_value_is_compared_is_of_the_wrong_type(value):
    """As every other value of another type; it is not silently absent."""
    m = mw.Matcher(schema={"brand": "string"})
    m.add("value", "brand = 'Acme'")
    m.add("absent", "brand IS NULL")
    m.add("field", "brand.name = 'Acme'")
    with pytest.raises(mw.EventError, match=r"'brand': expected string, found dict"):
        m.match({"brand": value})
    kind = pa.struct([("name", pa.string())])
    found = m.match_many(pa.table({"brand": pa.array([value, None], kind)}))
    assert list(found) == [[], ["absent"]]
    assert "'brand': expected string" in str(found.errors[0])


def test_an_object_and_a_dotted_name_for_one_attribute_are_found_twice():
    m = mw.Matcher()
    m.add("s", "a.b IS NOT NULL")
    with pytest.raises(mw.EventError, match="twice"):
        m.match({"a": {"b": {"c": 1}}, "a.b": 1})


def test_an_explanation_shows_the_object():
    m = matcher()
    for event, expected in zip(EVENTS, asked_of_duckdb(), strict=True):
        for text in TEXTS:
            assert m.explain(text, event).matches == (text in expected)
    assert "brand is {'name': 'Acme'" in str(m.explain("brand IS NULL", EVENTS[0]))
