"""Frames of pandas and polars say what dicts say."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matchwood as mw
from encode.dicts import HALVES, WORDS, matcher, says_what_dicts_say


def frame(values: Any, dtype: Any = None) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(values, dtype=dtype)})


FRAMES: dict[str, tuple[str, Callable[[], Any], list[Any]]] = {
    "objects of mixed types": (
        "number",
        lambda: frame([1, "a", None, 0.5, 5]),
        [1, "a", None, 0.5, 5],
    ),
    "objects that a double would round": (
        "number",
        lambda: frame([2**53 + 1, 0.5], object),
        [2**53 + 1, 0.5],
    ),
    "objects beyond 64 bits": ("number", lambda: frame([2**70, 5], object), [2**70, 5]),
    "objects within an object": (
        "number",
        lambda: frame([[1, 2], 5, {"a": 1}], object),
        ["list", 5, {"a": 1}],
    ),
    "float64 whose NaN is absent": ("number", lambda: frame([0.5, math.nan]), [0.5, None]),
    "Int64 with NA": ("number", lambda: frame([2**53 + 1, None], "Int64"), [2**53 + 1, None]),
    "boolean with NA": ("bool", lambda: frame([True, None, False], "boolean"), [True, None, False]),
    "strings with NA": ("string", lambda: frame(["ab", None], "string"), ["ab", None]),
    "categories": ("string", lambda: frame(["ab", "b", None], "category"), ["ab", "b", None]),
    "datetime64 with NaT": (
        "timestamp",
        lambda: frame([datetime(1970, 1, 3), pd.NaT]),
        [datetime(1970, 1, 3), None],
    ),
    "zoned datetime64": (
        "timestamp",
        lambda: frame(pd.to_datetime(["1970-01-03"]).tz_localize("America/New_York")),
        [datetime(1970, 1, 3, 5, tzinfo=UTC)],
    ),
    "dates as objects": ("date", lambda: frame([date(1970, 1, 1), None]), [date(1970, 1, 1), None]),
    "no rows": ("number", lambda: frame([], "float64"), []),
    "polars strings": ("string", lambda: pl.DataFrame({"x": WORDS}), WORDS),
    "polars categories": (
        "string",
        lambda: pl.DataFrame({"x": WORDS}, schema={"x": pl.Categorical}),
        WORDS,
    ),
    "polars numbers": ("number", lambda: pl.DataFrame({"x": HALVES}), HALVES),
    "polars moments": (
        "timestamp",
        lambda: pl.DataFrame({"x": [datetime(1970, 1, 3), None]}),
        [datetime(1970, 1, 3), None],
    ),
    "polars dates": (
        "date",
        lambda: pl.DataFrame({"x": [date(1970, 1, 3), None]}),
        [date(1970, 1, 3), None],
    ),
    "polars nothing": ("number", lambda: pl.DataFrame({"x": [None, None]}), [None, None]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_says_what_its_values_say(name):
    kind, made, values = FRAMES[name]
    says_what_dicts_say(kind, made(), values)


def test_the_index_of_a_frame_does_not_number_its_events():
    m = matcher("number")
    frame_ = frame([5, 0, 5]).iloc[[2, 1]]
    assert [bool(ids) for ids in m.match_many(frame_)] == [True, True]
    assert m.match_many(frame_)[0] == m.match({"x": 5})


def test_frames_with_one_name_twice_are_refused():
    m = matcher("number")
    with pytest.raises(mw.EventError):
        m.match_many(pd.DataFrame([[5, 1]], columns=["x", "x"]))


def test_numpy_records_are_no_events():
    with pytest.raises(mw.EventError):
        matcher("number").match_many(np.float64(5))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_nan_as_the_only_constant_is_above_every_value_of_a_column(kind):
    m = mw.Matcher()
    m.add("below", mw.attr("x") < math.nan)
    m.add("not", mw.attr("x") != math.nan)
    m.add("from", mw.attr("x") >= math.nan)
    assert list(m.match_many(pa.table({"x": pa.array([0, 1, -5], kind)}))) == 3 * [["below", "not"]]
    assert m.match_many(pa.table({"x": [math.nan]}))[0] == ["from"]
    assert m.match({"x": 0}) == ["below", "not"]


def test_a_lazy_frame_is_carried_out():
    subscriptions = pl.LazyFrame({"id": ["a", "b"], "expr": ["x > 1", "ctx.y = x"]})
    events = pl.LazyFrame({"x": [1, 2, 3]}).filter(pl.col("x") > 1)
    m = mw.Matcher()
    m.add_many(subscriptions.with_columns(context=pl.lit("c")))
    m.set_context_many(pl.LazyFrame({"context": ["c"], "y": [3]}))
    assert m.match_many(events).to_pylist() == [["a"], ["a", "b"]]


def test_nan_of_a_pandas_frame_is_absent_unless_it_is_asked_for_as_a_number():
    m = mw.Matcher()
    m.add("absent", "x IS NULL")
    m.add("number", "x > 5")
    frame = pd.DataFrame({"x": [math.nan, 1.0], "name": ["a", None]})
    assert m.match_many(frame).to_pylist() == [["absent"], []]
    assert m.match_many(frame, nan="number").to_pylist() == [["number"], []]
    assert m.match({"x": math.nan}) == ["number"]
    with pytest.raises(mw.EventError, match="absent, number"):
        m.match_many(frame, nan="zero")


@pytest.mark.parametrize("kind", ["int", "number", "string"])
def test_slices_and_chunks_of_columns_with_nulls_say_what_dicts_say(kind: str) -> None:
    rng = Random(kind)
    values = [None if rng.random() < 0.5 else rng.randrange(4) for _ in range(90)]
    if kind == "string":
        values = [None if each is None else str(each) for each in values]
    m = mw.Matcher(schema=mw.Schema({"x": kind, "y": kind}))
    m.add_many([(i, f"x = {i!r}" if kind != "string" else f"x = '{i}'") for i in range(4)])
    m.add_many([("absent", "x IS NULL"), ("there", "y IS NOT NULL"), ("y", "y IS NULL")])
    table = pa.table({"x": values, "y": pa.array([None] * 90, pa.array(values).type)})
    rows = table.to_pylist()
    expected = [m.match(row) for row in rows]
    assert m.match_many(table).to_pylist() == expected
    for first in range(20):
        part = table.slice(first, 31)
        assert m.match_many(part).to_pylist() == expected[first : first + 31]
        both = pa.concat_tables([part, table.slice(first + 40, 9)])
        wanted = expected[first : first + 31] + expected[first + 40 : first + 49]
        assert m.match_many(both).to_pylist() == wanted
