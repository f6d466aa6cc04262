"""Events as dicts: absent and null, nested and dotted, and values that do not fit."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import matchwood as mw
from inside import attributes_of
from matchwood.encode.attributes import Attributes
from matchwood.encode.events import encode_event, encode_events
from matchwood.encode.schema import Schema
from naive import flatten
from oracle.columns import nested
from strategies import workloads

TYPES = {
    "b": "bool",
    "n": "number",
    "i": "int",
    "f": "float",
    "s": "string",
    "t": "timestamp",
    "d": "date",
    "user.age": "int",
}


def matcher(*texts: str, schema: Any = TYPES) -> mw.Matcher:
    m = mw.Matcher(schema=schema)
    m.add_many((text, text) for text in texts)
    assert len(m) == len(texts)
    return m


# ── absent ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", TYPES)
def test_none_is_absent_and_absent_is_null(name):
    m = matcher(f"{name} IS NULL", f"{name} IS NOT NULL", f"NOT {name} IS NULL")
    assert m.match({}) == m.match({name: None}) == [f"{name} IS NULL"]


def test_absent_attributes_satisfy_no_comparison_and_no_negation():
    m = matcher("i <> 1", "NOT i = 1", "i NOT IN (1)", "s NOT LIKE 'a%'", "s NOT LIKE '%a'")
    assert m.match({}) == []
    assert len(m.match({"i": 2, "s": "b"})) == 5


def test_an_attribute_whose_presence_alone_is_asked_takes_any_value():
    m = matcher("x IS NOT NULL", schema=None)
    for value in (1, "a", 2.5, True, date(2024, 1, 1), [1], object(), b"raw", float("nan")):
        assert m.match({"x": value}) == ["x IS NOT NULL"]
    m.add("typed", "x > 1")
    assert m.match({"x": "a"}) == ["x IS NOT NULL"]
    assert m.match({"x": 2}) == ["x IS NOT NULL", "typed"]


# ── nesting ─────────────────────────────────────────────────────────────────────────────────────


def test_nested_mappings_are_dotted_names():
    m = matcher("user.age >= 18")
    for event in (
        {"user.age": 30},
        {"user": {"age": 30}},
        {"user": OrderedDict(age=30)},
        {"user": MappingProxyType({"age": 30})},
        {"user": {"age": 30, "other": {"deep": 1}}},
        {"user": {"age": None}, "user.age": 30},
    ):
        assert m.match(event) == ["user.age >= 18"]
    for event in ({"user": None}, {"user": {}}, {"user": {"age": None}}, {"age": 30}):
        assert m.match(event) == []


@given(workload=workloads(n_expressions=8, n_events=6))
def test_nesting_never_changes_the_answer(workload):
    types, subscriptions, events = workload
    m = mw.Matcher(schema=types)
    for id_, expr in subscriptions:
        m.add(id_, expr)
    for event in events:
        deep = nested(types, event)
        known = {name: value for name, value in event.items() if value is not None}
        assert {n: v for n, v in flatten(deep).items() if v is not None} == known
        assert m.match(deep) == m.match(event)


def test_one_attribute_given_twice_is_refused():
    with pytest.raises(mw.EventError, match=r"'user\.age' once"):
        matcher("user.age > 1").match({"user.age": 1, "user": {"age": 1}})


# ── what does not fit ───────────────────────────────────────────────────────────────────────────

WRONG: list[tuple[str, Any]] = [
    ("b", 1),
    ("b", "true"),
    ("n", "1"),
    ("n", True),
    ("n", np.array([1, 2])),
    ("i", 1.5),
    ("i", "1"),
    ("f", 2**53 + 1),
    ("s", 1),
    ("s", b"\xff"),
    ("s", "lone \ud800 surrogate"),
    ("t", "2024-01-01"),
    ("t", 0),
    ("d", datetime(2024, 1, 1)),
    ("d", 0),
    ("user.age", "old"),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=range(len(WRONG)))
def test_an_error_names_attribute_expected_and_found(name, value):
    m = matcher(f"{name} IS NOT NULL")
    with pytest.raises(mw.EventError) as caught:
        m.match({name: value})
    message = str(caught.value)
    assert repr(name) in message
    assert f"expected {TYPES[name]}" in message
    assert "found" in message


def test_bad_events_are_collected_and_stop_nothing():
    m = matcher("i > 0")
    good = {"i": 1}
    bad: list[Any] = [{"i": "x"}, {"i": 1.5}, "not a mapping", 5, None, [("i", 1)], {"i": [1]}]
    bad += [{"i": np.array([1, 2])}, {"i": 10**5_000}, {"user": {1: 2, "age": "x"}}]
    events = [each for pair in zip(bad, [good] * len(bad), strict=True) for each in pair]
    found = m.match_many(events)
    assert sorted(found.errors) == list(range(0, len(events), 2))
    assert all(isinstance(error, mw.EventError) for error in found.errors.values())
    assert list(found) == [[], ["i > 0"]] * len(bad)


def test_a_bad_event_does_not_match_even_what_is_always_true_or_absent():
    m = matcher("TRUE", "s IS NULL", "i > 0")
    found = m.match_many([{"i": "x"}, {"i": 1}])
    assert list(found) == [[], ["TRUE", "s IS NULL", "i > 0"]]


def test_names_that_are_no_strings_are_nobodys_attributes():
    m = matcher("i > 0")
    for event in ({5: 1, "i": 1}, {"user": {5: 1}, "i": 1}, {None: 1, ("i",): 2, "i": 1}):
        assert m.match(event) == ["i > 0"]


def test_mappings_within_mappings_without_end_are_refused():
    m = matcher("i > 0")
    endless: dict[str, Any] = {"i": 1}
    endless["inner"] = endless
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"inner": deep}
    found = m.match_many([endless, {"i": 1}, deep, {"i": 2}])
    assert found[1] == found[3] == ["i > 0"]
    assert set(found.errors) <= {0, 2}
    assert 0 in found.errors


@pytest.mark.parametrize(
    "events", [{"i": 1}, "text", b"bytes", 5, None, mw.parse("i > 1")], ids=repr
)
def test_what_is_no_list_of_events_is_refused(events):
    with pytest.raises(mw.EventError, match="expected a list of events"):
        matcher("i > 0").match_many(events)


def test_events_may_come_from_a_generator():
    found = matcher("i > 0").match_many({"i": i} for i in range(3))
    assert list(found) == [[], ["i > 0"], ["i > 0"]]
    assert len(matcher("i > 0").match_many([])) == 0


# ── the arrays ──────────────────────────────────────────────────────────────────────────────────


@given(workload=workloads(n_expressions=8, n_events=6))
def test_entries_of_an_event_ascend_and_say_what_the_event_says_alone(workload):
    types, subscriptions, events = workload
    m = mw.Matcher(schema=types)
    for id_, expr in subscriptions:
        m.add(id_, expr)
    batch = encode_events(attributes_of(m), events).batch
    for e, event in enumerate(events):
        mine = slice(batch.start[e], batch.start[e + 1])
        assert (np.diff(batch.attr[mine]) > 0).all()
        single = encode_event(attributes_of(m), event)
        assert single.attr.tolist() == batch.attr[mine].tolist()
        assert single.lo.tolist() == batch.lo[mine].tolist() == batch.hi[mine].tolist()


def test_reading_an_event_teaches_no_attribute():
    attributes = Attributes(Schema(TYPES))
    encode_events(attributes, [{"unknown": 1, "n": 5, "s": "x", "user": {"age": 3}}])
    assert set(attributes.by_name) == set(TYPES)


def test_the_index_of_a_frame_is_no_attribute():
    m = mw.Matcher()
    m.add(1, "x > 0")
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    assert list(m.match_many(frame)) == [[1], [1]]
    assert list(m.match_many(frame.set_index("x"))) == [[], []]
