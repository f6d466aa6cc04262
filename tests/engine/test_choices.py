"""Limits and filters: the best of what was found, and what filters let through."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
import naive
from matchwood.engine.answers.choices import FILTERS_KEPT, best
from matchwood.engine.input.fields import attributes_text, declared_types
from matchwood.engine.matches import Found
from matchwood.engine.stores.own_attributes import Filters, FilterSet
from matchwood.errors import ParseError, SchemaError
from matchwood.lang.parser import parse

LEAST = -(2**63)


def found_of(lists: list[list[int]]) -> Found:
    offsets = np.cumsum([0, *map(len, lists)])
    slots = np.array([slot for each in lists for slot in each], np.int32)
    return Found(offsets, slots, {}, {})


def lists_of(found: Found) -> list[list[int]]:
    return [each.tolist() for each in np.split(found.slots, found.offsets[1:-1])]


@given(
    st.lists(st.lists(st.integers(0, 9), unique=True).map(sorted), min_size=1, max_size=6),
    st.lists(st.sampled_from([LEAST, -1, 0, 7, 2**63 - 1]), min_size=10, max_size=10),
    st.integers(1, 12),
)
def test_the_best_come_first_and_ties_stay_in_order(lists, priorities, limit: int) -> None:
    found = best(found_of(lists), np.array(priorities, np.int64), limit)
    expected = [sorted(each, key=lambda slot: -priorities[slot])[:limit] for each in lists]
    assert lists_of(found) == expected
    plain = best(found_of(lists), np.empty(0, np.int64), limit)
    assert lists_of(plain) == [each[:limit] for each in lists]


FILTERS = [
    None, "age > 20", "age <= 20 OR city = 'Rome'", "age IS NULL", "age = '30'",
    "NOT city = 'Rome'", "city IN ('Rome', 'Oslo') AND NOT vip", "vip", "city LIKE 'R%'",
    "age IS NOT NULL AND vip",
    "since < DATE '2026-01-02'", "since = '2026-01-01'", "age = 30 OR age = 'old'",
    "since > TIMESTAMP '2026-01-01 00:00:00' OR since = 'soon'", "NOT since < DATE '2026-01-02'",
]  # fmt: skip
VALUES = {
    "age": st.sampled_from([None, 10, 30, "30", "old"]),
    "city": st.sampled_from([None, "Rome", "Oslo"]),
    "vip": st.sampled_from([None, True, False]),
    "since": st.sampled_from([None, "2026-01-01", "2026-01-02", "soon"]),
}


def own_texts(values: list[Any]) -> Callable[[np.ndarray], list[str | None]]:
    kept = [attributes_text(value) for value in values]
    return lambda slots: [kept[slot] for slot in slots.tolist()]


def naively(text: str | None, row: dict[str, Any]) -> bool:
    """Whether a filter is TRUE; own attributes that nothing declares are open."""
    return text is None or naive.matches(parse(text), row)


@given(
    st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=8),
    st.lists(st.sampled_from(FILTERS), min_size=1, max_size=12),
)
def test_filters_mean_together_what_each_means_alone(rows, texts) -> None:
    texts_of = own_texts([json.dumps(row) for row in rows])
    filters = Filters(pa.array(texts, pa.string()), {})
    assert filters.problems() == {}
    every = list(range(len(rows)))
    kept = lists_of(filters.keep(found_of([[], *[every for _ in texts[1:]]]), 0, texts_of))
    expected = [[slot for slot in every if naively(text, rows[slot])] for text in texts]
    assert kept == [[], *expected[1:]]
    assert lists_of(filters.keep(found_of([every]), len(texts) - 1, texts_of)) == expected[-1:]


def test_a_filter_looks_at_values_of_several_kinds() -> None:
    m = mw.Matcher()
    moments = [datetime(2026, 5, 1, 10, tzinfo=UTC), date(2026, 5, 1), "2026-05-01", "soon", 5]
    for id_, since in enumerate(moments):
        m.add(id_, "TRUE", attributes={"since": since})
    assert m.match({}, where="since >= DATE '2026-01-01'") == [0, 1, 2]
    assert m.match({}, where="since >= TIMESTAMP '2026-01-01 00:00:00'") == [0, 1, 2]
    assert m.match({}, where="since = 5 OR since = 'soon'") == [3, 4]
    assert m.match({}, where="subscriber.since >= DATE '2026-01-01' OR since = 5") == [0, 1, 2, 4]
    rows = [[("since", value)] for value in ("2026-05-01", "soon", "5", None)]
    kept = pa.array(rows, pa.map_(pa.string(), pa.string()))
    m = mw.Matcher()
    m.add_many(pa.table({"id": [1, 2, 3, 4], "expr": ["TRUE"] * 4, "attributes": kept}))
    assert m.match({}, where="since = 5 OR since = 'soon'") == [2, 3]
    assert m.match({}, where="since >= DATE '2026-01-01' OR since = '5'") == [1, 3]
    assert m.match({}, where="since + 1 > 5 OR length(since) = 4") == [2, 3]


def test_more_filters_than_share_a_matcher() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    texts_of = own_texts([[("a", n)] for n in range(5000)])
    texts = pa.array([f"a < {n}" for n in range(0, 5000, 10)])
    filters = Filters(texts, declared_types(kind))
    every = list(range(0, 5000, 7))
    kept = lists_of(filters.keep(found_of([every] * len(texts)), 0, texts_of))
    assert kept == [[slot for slot in every if slot < n] for n in range(0, 5000, 10)]


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        (pa.string(), "age <", ParseError),
        (pa.string(), "", ParseError),
        (pa.string(), "age IN (1, 'x')", SchemaError),
        (pa.string(), "age > ctx.age", SchemaError),
        (pa.struct([("age", pa.int32())]), "age = 'x'", SchemaError),
        (pa.struct([("of", pa.struct([("age", pa.int32())]))]), "of.age = 'x'", SchemaError),
        (pa.map_(pa.string(), pa.float64()), "age = 'x'", SchemaError),
    ],
)
def test_bad_filters_are_told_by_event(kind: pa.DataType, text: str, error: type) -> None:
    filters = Filters(pa.array([None, text, "other = 1", text]), declared_types(kind))
    assert {row: type(each) for row, each in filters.problems().items()} == {1: error, 3: error}


# -- through the matcher -----------------------------------------------------------------------

OWN = st.fixed_dictionaries({}, optional={"age": st.integers(0, 3), "city": st.sampled_from("ab")})
ROWS = st.lists(
    st.tuples(
        st.integers(0, 4),  # x >= this
        st.integers(-2, 2),  # priority
        st.one_of(st.none(), st.integers(0, 6)),  # expires
        st.one_of(st.none(), OWN),
    ),
    max_size=12,
)
WHERE = [None, "age >= 2", "NOT city = 'a'", "age IS NULL OR city = 'b'", "other = 1", "TRUE"]


@given(ROWS, st.integers(0, 5), st.one_of(st.none(), st.integers(1, 4)), st.sampled_from(WHERE),
       st.integers(0, 7), st.integers(0, 11))  # fmt: skip
def test_a_matcher_gives_the_best_that_live_and_are_wanted(
    rows, x, limit, where, now, gone
) -> None:
    m = mw.Matcher()
    by_table = mw.Matcher()
    for id_, (least, priority, expires, own) in enumerate(rows):
        m.add(id_, f"x >= {least}", priority=priority, expires=expires, attributes=own)
    by_table.add_many(
        [{"id": id_, "expr": f"x >= {row[0]}", "priority": row[1], "expires": row[2],
          "attributes": row[3]} for id_, row in enumerate(rows)]
    )  # fmt: skip
    if gone < len(rows):
        for each in (m, by_table):
            each.remove(gone)
            each.add(gone, f"x >= {rows[gone][0]}", priority=0)
        rows = [*rows[:gone], (rows[gone][0], 0, None, None), *rows[gone + 1 :]]
    order = [*[id_ for id_ in range(len(rows)) if id_ != gone], *([gone] * (gone < len(rows)))]
    expected = [
        id_
        for id_ in order
        if x >= rows[id_][0]
        and (rows[id_][2] is None or rows[id_][2] > now)
        and (where is None or naive.matches(parse(where), rows[id_][3] or {}))
    ]
    alive = sum(row[2] is None or row[2] > now for row in rows)
    options = {"where": where, "now": now}
    for each in (m, by_table):
        assert each.match_count({"x": x}, **options) == len(expected)
        assert each.exists({"x": x}, **options) == bool(expected)
        best_first = sorted(expected, key=lambda id_: -rows[id_][1])[:limit] if limit else expected
        assert each.match({"x": x}, limit=limit, **options) == best_first
        assert each.match_many([{"x": x}, {}], limit=limit, **options).to_pylist() == [
            best_first,
            [],
        ]
        if limit:
            assert each.match({"x": x}, first=limit, **options) == best_first
            assert each.match({"x": x}, first=True, **options) == best_first[:1]
        assert each.sweep(now) == len(rows) - alive
        assert len(each) == alive
        assert each.match_count({"x": x}, **options) == len(expected)


def test_filters_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, compile_ = [], FilterSet.of

    def counted(where: Any, declared: Any) -> FilterSet:
        compiled.append(str(where))
        return compile_(where, declared)

    monkeypatch.setattr(FilterSet, "of", counted)
    m = mw.Matcher()
    m.add(1, "x = 1", attributes={"subscriber": {"age": 20}})
    for _ in range(3):
        assert m.match({"x": 1}, where="subscriber.age >= 18") == [1]
        assert m.match({"x": 1}, where=mw.attr("subscriber.age") < 18) == []
    assert len(compiled) == 2
    for n in range(100, 100 + FILTERS_KEPT):
        m.match({"x": 1}, where=f"subscriber.age >= {n}")
    assert len(compiled) == 2 + FILTERS_KEPT
    m.match({"x": 1}, where=f"subscriber.age >= {99 + FILTERS_KEPT}")
    assert len(compiled) == 2 + FILTERS_KEPT
    m.match({"x": 1}, where="subscriber.age >= 18")  # the oldest was given up
    assert len(compiled) == 3 + FILTERS_KEPT


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"limit": 0}, mw.MatchwoodError), ({"limit": 1.5}, mw.MatchwoodError),
        ({"first": 0}, mw.MatchwoodError), ({"first": 1, "limit": 2}, mw.MatchwoodError),
        ({"where": "age >"}, ParseError), ({"where": "ctx.age > 1"}, SchemaError),
        ({"now": "soon"}, mw.MatchwoodError),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_an_error(options, error) -> None:
    m = mw.Matcher()
    m.add(1, "x = 1")
    for ask in (m.match, lambda event, **each: m.match_many([event], **each)):
        with pytest.raises(error):
            ask({"x": 1}, **options)


def test_a_table_of_predicates_has_fields_too() -> None:
    own = {"priority": [5, 1, 5], "attributes": [{"a": 1}, None, {"a": 1}]}
    own["payload"] = ["p", None, "p"]
    predicates = {"attribute": ["x", "x", "y"], "operator": ["="] * 3, "value": [1, 1, 1]}
    table = pa.table({"id": [2, 1, 2], **predicates, **own})
    m = mw.Matcher()
    assert not m.add_many(table).errors
    assert m.match({"x": 1, "y": 1}, limit=2) == [2, 1]
    assert (m[2].priority, m[2].attributes, m[2].payload) == (5, {"a": 1}, "p")
    assert m.match({"x": 1, "y": 1}, where="a = 1") == [2]
    with pytest.raises(SchemaError):
        m.match({"x": 1}, where="a = 'text'")


def test_a_filter_may_say_whose_attributes_it_means() -> None:
    m = mw.Matcher()
    m.add("plain", "x = 1", attributes={"age": 20})
    m.add("nested", "x = 1", attributes={"subscriber": {"age": 20}, "age": 3})
    m.add("young", "x = 1", attributes={"age": 3})
    m.add("none", "x = 1")
    assert m.match({"x": 1}, where="subscriber.age >= 18") == ["plain", "nested"]
    assert m.match({"x": 1}, where="subscriber.age >= 18 AND age < 18") == ["nested"]
    assert m.match({"x": 1}, where="subscriber.age IS NULL") == ["none"]
    table = pa.table(
        {
            "id": [1, 2],
            "expr": ["x = 1", "x = 1"],
            "attributes": pa.array(
                [[("age", "20")], [("age", "3")]], pa.map_(pa.string(), pa.string())
            ),
        }
    )
    m = mw.Matcher()
    m.add_many(table)
    assert m.match({"x": 1}, where="subscriber.age >= 18") == [1]
    for name in ("age", "subscriber.age"):
        assert m.match({"x": 1}, where=f"{name} IS NULL") == []
        assert m.match({"x": 1}, where=f"{name} IS NOT NULL") == [1, 2]
