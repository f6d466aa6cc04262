"""Entries say what dicts say: typed ones, and texts that are read by type."""

from __future__ import annotations

from datetime import date, datetime
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import matchwood as mw
from matchwood.encode import entry_events
from matchwood.encode.entry_events import EntryEvents
from matchwood.encode.entry_kernels import order_entries
from matchwood.lang.cells import read_cell
from strategies import Event, seeds, workload

FIELDS = {
    bool: ("b", pa.bool_()),
    int: ("i", pa.int64()),
    float: ("f", pa.float64()),
    str: ("s", pa.string()),
    datetime: ("t", pa.timestamp("us", "UTC")),
    date: ("d", pa.date32()),
}


def entries(events: list[Event]) -> list[tuple[int, str, Any]]:
    return [(n, name, value) for n, event in enumerate(events) for name, value in event.items()]


def typed(events: list[Event]) -> EntryEvents:
    rows = entries(events)
    values = [None if v is None else {FIELDS[type(v)][0]: v} for _, _, v in rows]
    return EntryEvents(
        len(events),
        np.array([n for n, _, _ in rows], np.int64),
        pa.array([name for _, name, _ in rows], pa.string()),
        pa.array(values, pa.struct(list(FIELDS.values()))),
    )


def as_texts(events: list[Event]) -> EntryEvents:
    rows = entries(events)
    return EntryEvents(
        len(events),
        np.array([n for n, _, _ in rows], np.int64),
        pa.array([name for _, name, _ in rows], pa.string()),
        pa.array([None if value is None else str(value) for _, _, value in rows], pa.string()),
        read=read_cell,
    )


@given(seed=seeds())
def test_typed_entries_say_what_dicts_say(seed):
    schema, subscriptions, events = workload(Random(seed))
    m = mw.Matcher(schema=schema)
    m.add_many(subscriptions)
    mine, theirs = m.match_many(typed(events)), m.match_many(events)
    assert list(mine) == list(theirs)
    assert sorted(mine.errors) == sorted(theirs.errors)


EVENTS: list[Event] = [
    {"price": 5, "note": "ab"},
    {"price": 2**53 + 1, "note": None},
    {"price": 2.5},
    {"note": "b", "price": -1},
    {},
]


@pytest.mark.parametrize("make", [typed, as_texts])
def test_entries_meet_constants_patterns_absences_and_contexts(make):
    m = mw.Matcher(schema={"price": "number", "note": "string"})
    m.add("constant", "price > 2 AND note IS NULL")
    m.add("pattern", "note LIKE '%b%'")
    m.add("context", "price < ctx.limit + 1", context="u")
    m.set_context("u", {"limit": 2})
    assert list(m.match_many(make(EVENTS))) == list(m.match_many(EVENTS))
    assert [row for row, ids in enumerate(m.match_many(EVENTS)) if "context" in ids] == [2, 3]


def test_an_event_supplies_no_value_of_the_context():
    m = mw.Matcher()
    m.add("gate", "ctx.unread < 3", context="u")
    for form in (typed, list):
        assert list(m.match_many(form([{"ctx.unread": 1}]))) == [[]]


def test_a_bad_text_spoils_its_event_alone():
    m = mw.Matcher(schema={"price": "int"})
    m.add("s", "price < 9")
    found = m.match_many(as_texts([{"price": 5}, {"price": "five"}, {"price": 7}]))
    assert list(found) == [["s"], [], ["s"]]
    assert "'price': expected int, found" in str(found.errors[1])


def test_an_attribute_that_comes_twice_is_refused():
    m = mw.Matcher(schema={"price": "int"})
    m.add("s", "price < 9")
    twice = EntryEvents(
        2, np.array([0, 0, 1]), pa.array(["price"] * 3), pa.array([1, 2, 3], pa.int64())
    )
    found = m.match_many(twice)
    assert list(found) == [[], ["s"]]
    assert "once, found it twice" in str(found.errors[0])


def test_entries_without_a_name_say_nothing():
    m = mw.Matcher(schema={"price": "int"})
    m.add("s", "price IS NULL")
    unnamed = EntryEvents(1, np.array([0]), pa.array([None], pa.string()), pa.array([1]))
    assert list(m.match_many(unnamed)) == [["s"]]


@given(seed=seeds())
def test_entries_are_ordered_by_event_and_those_that_come_twice_are_counted(seed):
    rng = np.random.default_rng(seed)
    n, n_parts = int(rng.integers(1, 6)), int(rng.integers(0, 6))
    part_attr = np.sort(rng.integers(0, 4, n_parts))
    sizes = rng.integers(0, 5, n_parts)
    rows = rng.integers(0, n, int(sizes.sum()))
    is_bad = rng.random(n) < 0.2
    start = np.zeros(n + 1, np.int64)
    attr, order = np.full(len(rows), 3, np.int32), np.full(len(rows), 10**9)
    n_twice = order_entries(part_attr, np.cumsum(sizes), rows, is_bad, start, attr, order)
    attrs = np.repeat(part_attr, sizes)
    kept = [i for i in np.argsort(rows, kind="stable").tolist() if not is_bad[rows[i]]]
    assert order[: start[-1]].tolist() == kept
    assert attr[: start[-1]].tolist() == attrs[kept].tolist()
    assert np.diff(start).tolist() == [0 if is_bad[e] else int((rows == e).sum()) for e in range(n)]
    pairs = [(rows[i], attrs[i]) for i in kept]
    assert n_twice == sum(a == b for a, b in pairwise(pairs))


INTS = [0, 1, -1, 5, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("schema", [{}, {"x": "number"}, {"x": "int"}, {"x": "float"}])
@pytest.mark.parametrize(
    "texts",
    [
        ["x > 4", "x <= 9007199254740993", "x <> 1.5"],
        ["x > 4", "x IS NULL", "x IN (5, 9223372036854775807)"],
        ["x > 4", "x < ctx.limit"],
        ["x > 0.1234567890123456789", "y = 'a'"],
    ],
)
def test_ints_are_encoded_as_other_columns_are(schema, texts, monkeypatch):
    def matches() -> list[list[Any]]:
        m = mw.Matcher(schema=schema)
        for text in texts:
            m.add(text, text, context="u" if "ctx." in text else None)
        m.set_context("u", {"limit": 3})
        rows = np.arange(2 * len(INTS)) // 2
        names = pa.array(["x", "z"] * len(INTS))
        values = pa.array([value for value in INTS for _ in range(2)], pa.int64())
        return list(m.match_many(EntryEvents(len(INTS) + 1, rows, names, values)))

    found = matches()
    monkeypatch.setattr(entry_events, "_integers", lambda values: None)
    assert found == matches()
    assert any(found)
