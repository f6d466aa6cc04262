"""Limits and filters, without Spark: the best of what was found, and what filters let through."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from matchwood.engine.matches import Found
from matchwood.errors import ParseError, SchemaError
from matchwood.lang.parser import parse
from matchwood.spark.filters import Filters, OwnKind
from matchwood.spark.own import best

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
    plain = best(found_of(lists), None, limit)
    assert lists_of(plain) == [each[:limit] for each in lists]


FILTERS = [
    None, "age > 20", "age <= 20 OR city = 'Rome'", "age IS NULL", "age = '30'",
    "NOT city = 'Rome'", "city IN ('Rome', 'Oslo') AND NOT vip", "vip", "city LIKE 'R%'",
    "age IS NOT NULL AND vip",
    "since < DATE '2026-01-02'", "since = '2026-01-01'",
]  # fmt: skip
VALUES = {
    "age": st.sampled_from([None, 10, 30, "30", "old"]),
    "city": st.sampled_from([None, "Rome", "Oslo"]),
    "vip": st.sampled_from([None, True, False]),
    "since": st.sampled_from([None, "2026-01-01", "2026-01-02", "soon"]),
}


def naively(text: str | None, row: dict) -> bool:
    """Whether a filter is TRUE; not where a value has another type than it compares with."""
    if text is None:
        return True
    if "DATE" in text and row.get("since") is not None:
        if row["since"] == "soon":
            return False
        row = {**row, "since": date.fromisoformat(row["since"])}
    try:
        return naive.matches(parse(text), row)
    except TypeError:
        return False


@given(
    st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=8),
    st.lists(st.sampled_from(FILTERS), min_size=1, max_size=12),
)
def test_filters_mean_together_what_each_means_alone(rows, texts) -> None:
    own = pa.table({"attributes": [json.dumps(row) for row in rows]})
    filters = Filters(pa.array(texts, pa.string()), OwnKind.of(pa.string()))
    assert filters.problems() == {}
    every = list(range(len(rows)))
    kept = lists_of(filters.keep(found_of([[], *[every for _ in texts[1:]]]), 0, own))
    expected = [[slot for slot in every if naively(text, rows[slot])] for text in texts]
    assert kept == [[], *expected[1:]]
    assert lists_of(filters.keep(found_of([every]), len(texts) - 1, own)) == expected[-1:]


def test_more_filters_than_share_a_matcher() -> None:
    own = pa.table({"attributes": pa.array([[("a", n)] for n in range(5000)],
                                           pa.map_(pa.string(), pa.int64()))})  # fmt: skip
    texts = pa.array([f"a < {n}" for n in range(0, 5000, 10)])
    filters = Filters(texts, OwnKind.of(own.schema.field(0).type))
    every = list(range(0, 5000, 7))
    kept = lists_of(filters.keep(found_of([every] * len(texts)), 0, own))
    assert kept == [[slot for slot in every if slot < n] for n in range(0, 5000, 10)]


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        (pa.string(), "age <", ParseError),
        (pa.string(), "", ParseError),
        (pa.string(), "age > 1 AND age = 'x'", SchemaError),
        (pa.string(), "age > ctx.age", SchemaError),
        (pa.struct([("age", pa.int32())]), "age = 'x'", SchemaError),
        (pa.struct([("of", pa.struct([("age", pa.int32())]))]), "of.age = 'x'", SchemaError),
        (pa.map_(pa.string(), pa.float64()), "age = 'x'", SchemaError),
    ],
)
def test_bad_filters_are_told_by_event(kind: pa.DataType, text: str, error: type) -> None:
    filters = Filters(pa.array([None, text, "other = 1", text]), OwnKind.of(kind))
    assert {row: type(each) for row, each in filters.problems().items()} == {1: error, 3: error}
