"""Computed attributes through the matcher: computed once, indexed, reported where they fail."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from collections import namedtuple
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import matchwood as mw
from engine.invariants import check
from inside import is_bound
from matchwood.encode.entry_events import EntryEvents
from matchwood.kernel.store import IS_CHECKED
from matchwood.lang.functions.evaluate import Formula

EVENT = {
    "price": 30, "qty": 4, "name": "X", "a": 1, "b": 1, "tags": ["x", "y", "z"],
    "user": {"m": {"key": 3}, "age": 20}, "ts": "2026-02-01T09:30:00Z",
}  # fmt: skip
HOLDS = [
    "price * qty > 100", "lower(name) = 'x'", "a = b", "a < b + 3", "size(tags) > 2", "NOT a <> b",
    "array_contains(tags, 'x')", "tags[0] = 'x'", "user.m['key'] = 3", "exists(tags, t -> t = 'y')",
    "name RLIKE '^X$'", "coalesce(z, 0) = 0", "year(ts) = 2026",
    "name ILIKE 'x%'", "upper(z) IS NULL",
    "CASE WHEN a > 1 THEN 'y' ELSE 'n' END = 'n'", "tags = array('x', 'y', 'z')",
    "(a = b) IS NOT NULL",
    "arrays_overlap(tags, array('q', 'z'))", "price / qty BETWEEN 7 AND 8", "a <=> b",
    "substr(name, 1, 1) IN ('X', 'Y')", "user.age + a >= 21", "NOT array_contains(tags, 'q')",
]  # fmt: skip
FAILS = [
    "a <> b",
    "price * qty > 120",
    "array_contains(tags, 'q')",
    "z + 1 > 0",
    "lower(price) = '30'",
]


def matcher(**options: Any) -> mw.Matcher:
    m = mw.Matcher(**options)
    for text in HOLDS + FAILS:
        m.add(text, text)
    return m


@pytest.mark.parametrize("index", ["auto", "be_tree", "a_tree", "counting"])
def test_a_computed_attribute_stands_where_an_attribute_stands(index):
    assert matcher(index=index).match(EVENT) == HOLDS


def test_a_table_and_a_snapshot_say_the_same(tmp_path):
    m = matcher()
    found = m.match_many(pa.Table.from_pylist([EVENT, {"a": 2, "b": 2}]))
    assert found[0] == HOLDS
    assert found[1] == m.match({"a": 2, "b": 2})
    m.save(tmp_path / "s")
    m = mw.Matcher.load(tmp_path / "s")
    assert m.match(EVENT) == HOLDS
    for text in HOLDS + FAILS:
        m.remove(text)
    assert m.stats()["attributes"] == 0
    check(m)


def test_entries_say_the_same():
    m = mw.Matcher()
    m.add("product", "price * qty > 100")
    m.add("plain", "price > 5")
    events = EntryEvents(
        2, np.array([0, 0, 1]), pa.array(["price", "qty", "price"]), pa.array([30, 4, 30])
    )
    assert list(m.match_many(events)) == [["product", "plain"], ["plain"]]


def test_each_distinct_one_is_computed_once_per_event(monkeypatch):
    m = mw.Matcher()
    for i in range(50):
        m.add(i, f"price * qty > {i} AND x{i} = 1")
    calls = []
    monkeypatch.setattr(
        Formula,
        "with_types",
        lambda self, types, row: (calls.append(self) or 5, False),
    )
    m.match({"price": 2, "qty": 3})
    assert len(calls) == 1


def test_an_error_leaves_one_attribute_unknown_and_is_reported():
    m = mw.Matcher()
    for text in ("a / b > 1", "NOT a / b > 1", "a / b IS NULL", "a / b IS NOT NULL", "a > 0"):
        m.add(text, text)
    bad = {"a": 1, "b": 0}
    assert m.match(bad) == ["a > 0"]
    for events in (
        [bad, {"a": 4, "b": 2}, {"a": 1}],
        pa.table({"a": [1, 4, 1], "b": [0, 2, None]}),
    ):
        found = m.match_many(events)
        assert found.errors == {}
        assert list(found.warnings) == [0]
        assert "'a / b'" in str(found.warnings[0][0])
        assert "division by zero" in str(found.warnings[0][0])
        assert list(found) == [
            ["a > 0"], ["a / b > 1", "a / b IS NOT NULL", "a > 0"], ["a / b IS NULL", "a > 0"],
        ]  # fmt: skip
    assert m.stats()["failed"] == {"a / b": 3}
    assert "fails: division by zero" in str(m.explain("a / b > 1", bad))


def test_values_of_other_kinds_leave_it_unknown():
    m = mw.Matcher()
    m.add("lower", "lower(x) = 'a'")
    m.add("null", "lower(x) IS NULL")
    assert m.match({"x": 5}) == []
    assert m.match({"x": "A"}) == ["lower"]
    assert m.match({}) == ["null"]
    assert m.stats()["unknown"] == {"lower(x)": 1}


def test_an_explanation_agrees_with_the_match():
    m = matcher()
    for event in (EVENT, {"a": 1, "b": 0, "price": 3, "qty": 0}, {}):
        found = set(m.match(event))
        for text in HOLDS + FAILS:
            assert m.explain(text, event).matches == (text in found), text


def test_a_relation_may_have_a_computed_attribute():
    m = mw.Matcher()
    m.add("s", "price * 2 < ctx.limit", context="u")
    m.set_context("u", {"limit": 10})
    assert m.match({"price": 4}) == ["s"]
    assert m.match({"price": 6}) == []


# ── values and events as programs have them ─────────────────────────────────────────────────────


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class User:
    age: int


Row = namedtuple("Row", "price name")


def test_values_of_other_types_are_what_they_stand_for():
    m = mw.Matcher()
    id_ = uuid.UUID("12345678-1234-5678-1234-567812345678")
    texts = {
        "colour = 'red'": {"colour": Colour.RED},
        f"id = '{id_}'": {"id": id_},
        "raw = 'abc'": {"raw": b"abc"},
        "gone IS NULL AND x = 1": {"gone": pd.NA, "x": 1},
        "gone IS NULL AND x = 2": {"gone": pd.NaT, "x": 2},
        "gone IS NULL AND x = 3": {"gone": np.datetime64("NaT"), "x": 3},
        "gone IS NULL AND x = 4": {"gone": np.datetime64("NaT", "ns"), "x": 4},
        "big = 18446744073709551616": {"big": 2**64},
        "user.age >= 18": {"user": User(20)},
        "ts = TIMESTAMP '2024-01-01 00:00:00.123456Z'": {
            "ts": np.datetime64("2024-01-01T00:00:00.123456789", "ns")
        },
        "year(ts) = 2023": {"ts": pd.Timestamp("2023-01-01 00:00:00.123456789")},
    }
    for text in texts:
        m.add(text, text)
    for text, event in texts.items():
        assert text in m.match(event), text


@pytest.mark.parametrize(
    "event",
    [
        Row(6, "x"),
        pd.Series({"price": 6.0, "name": "x", "gone": float("nan")}),
        np.array([(6.5, "x")], dtype=[("price", "f8"), ("name", "U5")]).view(np.recarray)[0],
        dataclasses.make_dataclass("E", ["price", "name"])(6, "x"),
    ],
    ids=["named tuple", "series", "record", "dataclass"],
)
def test_events_of_other_types_are_mappings(event):
    m = mw.Matcher()
    m.add("s", "price > 5 AND name = 'x' AND gone IS NULL AND price * 2 > 11")
    assert m.match(event) == ["s"]
    assert list(m.match_many([event])) == [["s"]]
    assert m.explain("s", event).matches


def test_a_context_beyond_the_years_of_python_can_be_asked_for():
    m = mw.Matcher(schema={"ctx": {"until": "timestamp"}})
    m.add("s", "ts < ctx.until", context="c")
    m.set_context("c", {"until": np.datetime64(2**60, "us")})
    assert m.context("c") == {"until": np.datetime64(2**60, "us")}
    assert m.match({"ts": datetime(2026, 1, 1, tzinfo=UTC)}) == ["s"]


@pytest.mark.parametrize(
    ("text", "event", "is_failed"),
    [
        ("(y * (i + 1)) IS NULL", {"i": 2**63 - 1}, False),
        ("((i + 1) * y) IS NULL", {"i": 2**63 - 1}, True),
        ("(y < i + 1) IS NULL", {"i": 2**63 - 1}, False),
        ("(i + 1 < y) IS NULL", {"i": 2**63 - 1}, True),
        ("(y <=> i + 1) IS NULL", {"i": 2**63 - 1}, True),
        ("((i + 1) / y) IS NULL", {"i": 2**63 - 1}, False),
        ("(y / (i + 1)) IS NULL", {"i": 2**63 - 1}, True),
        ("(y % (i + 1)) IS NULL", {"i": 2**63 - 1}, True),
        ("(y / i) IS NULL", {"i": 0}, False),
        ("concat(y, i + 1) IS NULL", {"i": 2**63 - 1}, True),
        ("array_contains(y, i + 1) IS NULL", {"i": 2**63 - 1}, False),
    ],
)
def test_what_stands_behind_a_null_is_computed_where_spark_computes_it(text, event, is_failed):
    m = mw.Matcher()
    m.add(1, text)
    found = m.match_many([event])
    assert list(found[0]) == ([] if is_failed else [1])
    assert bool(found.warnings) is is_failed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_double_that_is_no_number_is_null_as_a_decimal(value):
    m = mw.Matcher()
    m.add(1, "cast(x AS decimal(10,2)) IS NULL")
    m.add(2, "cast(x AS decimal(10,2)) + 1 > 0")
    assert m.match({"x": value}) == [1]


def test_a_computed_attribute_beside_a_context_is_read_in_every_way():
    m = mw.Matcher()
    m.set_context("u", {"limit": 5.5, "word": "b"})
    m.add(1, "price * 5 > ctx.limit", context="u")
    m.add(2, "price * 5 > 3")
    m.add(3, "lower(name) < ctx.word", context="u")
    events = [
        {"price": Decimal("1.1000000000000000000001"), "name": "A"},
        {"price": Decimal("1.1"), "name": "C"},
        {"price": 2**53 + 1},
    ]
    expected = [[1, 2, 3], [2], [1, 2]]
    for n in (1, 60, 60):  # then compiled code reads dicts
        assert list(m.match_many(events * n)) == expected * n
        assert [m.match(each) for each in events * n] == expected * n
    for word, more in (("B", []), ("d", [3]), ("C", [])):  # keys of known values move
        m.set_context("u", {"limit": 5.5, "word": word})
        assert m.match(events[1]) == [2, *more]
        assert list(m.match_many(events[1:2])) == [[2, *more]]


@pytest.mark.parametrize(
    "text",
    ["floor(x) = x", "x + y = 2361183241434822606848", "cast(x AS decimal(38,0)) = x",
     "nums[0] + x = y * 2", "x % 7 = 2", "(0 - x) % 7 = -2", "round(x, -1) > 0"],
)  # fmt: skip
def test_an_int_beyond_64_bits_is_a_decimal(text):
    m = mw.Matcher()
    m.add(1, text)
    m.add(2, "cast(x AS int) = 1")  # fails, for this attribute alone
    assert m.match({"x": 2**70, "y": 2**70, "nums": [2**70]}) == [1]


class General(dict[str, Any]):
    """A dict that is read in the general way, because it is of another type."""


@pytest.mark.skipif(IS_CHECKED, reason="with checks nothing is chained")
def test_compiled_code_reads_dicts_with_computed_attributes_as_the_general_way_does():
    m = matcher()
    m.add("null", "price * qty IS NULL AND a IS NULL")
    m.add("unknown", "(lower(name) = 'x') IS UNKNOWN")
    m.add("fails", "price / qty > 1 OR b IS NULL")
    odd = [
        {"qty": 0},
        {"price": "3"},
        {"name": 7},
        {"tags": "x"},
        {"a": None},
        {"user": {"age": 1.5}},
    ]
    events = [{**EVENT, "price": i, **odd[i % 7]} if i % 7 < 6 else {} for i in range(100)]
    expected = [m.match(General(each)) for each in events]
    before = m.stats()
    many = m.match_many(events)
    assert list(many) == expected
    assert sorted(many.warnings) == [i for i in range(100) if i % 7 == 0]
    assert [m.match(each) for each in events] == expected
    assert is_bound(m)
    counted = m.stats()
    for kind in ("unknown", "failed"):
        assert counted[kind] == {name: 3 * n for name, n in before[kind].items()}


def test_an_absent_dotted_name_does_not_hide_a_value_inside():
    m = mw.Matcher()
    texts = ["v.k = 5", "v.k + 0 = 5", "coalesce(v.k, 1) = 5"]
    m.add_many([(text, text) for text in texts])
    event = {"v.k": None, "v": {"k": 5}}
    for each in (event, General(event)):
        assert m.match(each) == m.match_many([each])[0] == texts
    assert m.match({"v.k": 5, "v": {"k": None}}) == texts


_LISTS = [[], [None], [1], [1, None], [2], [[None]], [[1], [None]]]
_UNORDERED = [{"x": 1}, [{"x": 1}], [1, "x"], [[{"x": 1}]]]
_ORDERS = [
    "a < b", "a BETWEEN b AND b", "greatest(a, b) = a", "least(a, b) <=> b", "array_max(a) >= b",
    "array_min(a) <=> array_max(b)", "nullif(a, b) IS NULL", "a = b", "a IN (b)",
]  # fmt: skip


def test_values_without_an_order_leave_comparisons_unknown_and_no_event_fails():
    """Dicts, lists of them and lists of several kinds: an error here would end a whole batch."""
    m = mw.Matcher()
    m.add_many([*zip(_ORDERS, _ORDERS, strict=True), ("c = 1", "c = 1")])
    values = [1, "x", None, *_LISTS, *_UNORDERED]
    events = [{"a": a, "b": b, "c": 1} for a in values for b in values]
    found = m.match_many(events).to_pylist()
    assert found == [m.match(each) for each in events]
    assert all("c = 1" in each for each in found)
    alike = {"a": {"x": 1}, "b": {"x": 1}, "c": 1}
    assert m.match(alike) == ["c = 1"]


def test_arrays_are_in_the_order_of_their_elements_and_null_comes_first():
    m = mw.Matcher()
    m.add_many(
        {"less": "a < b", "greatest": "greatest(a, b) = b AND a <> b", "max": "array_max(c) = b"}
    )
    ordered = [[], [None], [None, 1], [1], [1, None], [1, 1], [2]]
    for n, a in enumerate(ordered):
        for b in ordered[n + 1 :]:
            assert m.match({"a": a, "b": b, "c": [b, a]}) == ["less", "greatest", "max"]
            assert m.match({"a": b, "b": a, "c": [b, a]}) == []
