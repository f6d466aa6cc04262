"""Arguments that are of no use are refused with a sentence; those that `match` takes, all take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matchwood as mw


def filled() -> mw.Matcher:
    m = mw.Matcher()
    m.add("dear", "price > 10", attributes={"age": 30})
    m.add("both", "price > 10 AND stock > 0")
    return m


@dataclass
class Offer:
    price: int


WRONG: dict[str, Callable[[mw.Matcher], object]] = {
    "expected a list of events, .* found int": lambda m: m.verify(5),
    "expected a list of events, .* found NoneType": lambda m: m.verify(None),
    "expected a list of events, .* found dict": lambda m: m.verify({"price": 1, "b": 2}, sample=1),
    "expected sample .* found 0: leave it out to compare all": lambda m: m.verify([], sample=0),
    "expected k .* found -1: by default it is 10": lambda m: m.near({}, k=-1),
    "expected k .* found None: by default it is 10": lambda m: m.near({}, k=None),  # type: ignore[arg-type]
    "expected the expression as text .* found int": lambda m: m.match({}, where=5),  # type: ignore[arg-type]
    "expected the expression as text .* found list": lambda m: m.match_count({}, where=["a = 1"]),  # type: ignore[arg-type]
    "expected processes .* found 'two'": lambda m: m.add_many([("a", "x = 1")], processes="two"),  # type: ignore[arg-type]
    "attributes: expected names .* found int '5'": lambda m: m.add("a", "x = 1", attributes={5: 1}),  # type: ignore[dict-item]
    "attributes: expected names .* found NoneType": lambda m: m.add(
        "a", "x = 1", attributes={"user": [{None: 1}]}
    ),
    "expected a payload .* found what JSON cannot hold: Out of range float": lambda m: m.add(
        "a", "x = 1", payload=[float("nan")]
    ),
    "expected names of values as str, found int": lambda m: m.set_context("ann", {5: 1}),  # type: ignore[dict-item]
    "expected a mapping from names to types, found int": lambda m: mw.Matcher(schema=5),  # type: ignore[arg-type]
    "expected names of attributes to be str, found int 5": lambda m: mw.Schema({5: "int"}),  # type: ignore[dict-item]
    "expected column_types to be a mapping .* found int": lambda m: mw.Matcher(column_types=5),  # type: ignore[arg-type]
    "expected events, found those that `encode` made": lambda m: m.match_many(m.encode([{}])),
    "auto: expected no settings, found max_cap": lambda m: mw.Matcher(max_cap=5),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_cannot_be_meant_is_refused_with_a_sentence(sentence: str) -> None:
    m = filled()
    with pytest.raises(mw.MatchwoodError, match=sentence):
        WRONG[sentence](m)
    assert m.ids() == ["dear", "both"]
    assert m.context_ids() == []


@pytest.mark.parametrize(
    "frame",
    [pa.table, pd.DataFrame, pl.DataFrame, pa.record_batch, pl.LazyFrame,
     lambda columns: [{"price": price} for price in columns["price"]],
     lambda columns: iter([{"price": price} for price in columns["price"]]),
     lambda columns: np.array([{"price": price} for price in columns["price"]])],
    ids=["arrow", "pandas", "polars", "batch", "lazy", "list", "iterator", "array"],
)  # fmt: skip
def test_a_sample_of_any_kind_of_events_is_matched(frame: Callable[[Any], Any]) -> None:
    m = filled()
    prices = {"price": [26] * 10}
    assert m.verify(frame(prices)).matches == 10
    checked = m.verify(frame(prices), sample=3)
    assert (checked.events, checked.matches, checked.errors) == (3, 3, {})


def test_events_that_could_not_be_read_are_told_by_verify() -> None:
    checked = filled().verify([{"price": 26}, 5, None])
    assert list(checked.errors) == [1, 2]
    assert isinstance(checked.errors[1], mw.EventError)
    assert str(checked) == (
        "3 events, 1 matches: indexes and scan agree; 2 events could not be read"
    )


@pytest.mark.parametrize("event", [Offer(5), pd.Series({"price": 5}), {"price": 5}])
def test_questions_take_the_events_that_match_takes(event: Any) -> None:
    m = filled()
    assert m.match(event) == []
    assert m.why_not("dear", event) == ["price > 10 is FALSE: price is 5"]
    assert [str(miss) for miss in m.near(event)] == ["'dear' lacks price > 10: price is 5"]
    assert not m.explain("dear", event)


def test_numbers_of_numpy_are_numbers() -> None:
    m = filled()
    event = {"price": 26, "stock": 1}
    assert m.match(event, limit=np.int64(1)) == m.match(event, first=np.int32(1)) == ["dear"]  # type: ignore[arg-type]
    assert len(m.match_many([event], threads=np.int64(2))) == 1  # type: ignore[arg-type]


def test_a_matcher_is_read_from_its_end_and_asked_for_anything() -> None:
    m = filled()
    m.add(1, "x = 1")
    assert list(reversed(m)) == [1, "both", "dear"]
    assert [1] not in m
    assert {} not in m


def test_a_snapshot_is_not_opened_as_a_folder(tmp_path) -> None:
    filled().save(tmp_path / "kept")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(mw.StorageError, match=r"found a snapshot.*Matcher\.load"):
        mw.Matcher.open(tmp_path / "kept")
    assert sorted(tmp_path.rglob("*")) == before
    assert mw.Matcher.load(tmp_path / "kept").ids() == ["dear", "both"]


def test_a_folder_that_has_lost_its_log_is_not_opened_as_an_empty_one(tmp_path) -> None:
    with mw.Matcher.open(tmp_path / "state") as m:
        m.add("s", "x = 1")
        m.checkpoint()
    (tmp_path / "state" / "log.sqlite").unlink()
    before = sorted((tmp_path / "state").rglob("*"))
    with pytest.raises(mw.StorageError, match=r"expected log\.sqlite"):
        mw.Matcher.open(tmp_path / "state")
    assert sorted((tmp_path / "state").rglob("*")) == before


def test_fields_take_the_values_that_events_take() -> None:
    m = mw.Matcher()
    for missing in (pd.NaT, pd.NA, np.datetime64("NaT")):
        m.replace("s", "TRUE", expires=missing, attributes={"since": missing, "age": 3})
        assert (m["s"].expires, m["s"].attributes) == (None, {"since": None, "age": 3})
    m.replace("s", "TRUE", expires=np.datetime64("2030-01-01T00:00:00.000001"))
    assert m["s"].expires == datetime(2030, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    m.replace("s", "TRUE", attributes={"code": b"x", "at": np.datetime64("2030-01-01")})
    assert m["s"].attributes == {"code": "x", "at": date(2030, 1, 1)}
    for beyond in (np.datetime64(2**62, "s"), np.datetime64(2**40, "D")):
        with pytest.raises(mw.SubscriptionError, match="datetime64"):
            m.replace("s", "TRUE", expires=beyond)
    rows = [{"id": 1, "expr": "TRUE", "expires": pd.NaT}, {"id": 2, "expr": "TRUE", "expires": "x"}]
    assert [each.id for each in m.add_many(rows).errors] == [2]


def test_names_that_mark_kept_values_are_refused() -> None:
    m = mw.Matcher()
    for given in ({"\0date": "x"}, {"a": [{"\0time": "x"}]}, '{"a": {"\\u0000decimal": "x"}}'):
        with pytest.raises(mw.SubscriptionError):
            m.add("s", "TRUE", attributes=given)
    m.add("s", "TRUE", attributes={"since": date(2026, 1, 1)})
    other = mw.Matcher()
    assert not other.add_many(m.to_arrow()).errors
    assert other["s"].attributes == {"since": date(2026, 1, 1)}


def test_a_limit_beyond_64_bits_is_no_limit() -> None:
    m = mw.Matcher()
    m.add("s", "x = 1")
    assert m.match({"x": 1}, limit=2**70) == ["s"]
    assert m.near({"x": 2}, 2**70)


def test_documents_that_are_no_text_are_errors_of_their_own() -> None:
    m = mw.Matcher()
    m.add("s", "x = 1")
    found = m.match_many_json([b'{"x": 1}', None, 5, '{"x": 1}'])
    assert found.to_pylist() == [["s"], [], [], ["s"]]
    assert sorted(found.errors) == [1, 2]
    assert "NoneType" in str(found.errors[1])


def test_a_reader_of_batches_is_a_table() -> None:
    m = mw.Matcher()
    m.add("s", "x = 1")
    table = pa.table({"x": [1, 2, 1]})
    assert m.match_many(table.to_reader(2)).to_pylist() == [["s"], [], ["s"]]
    assert m.verify(table.to_reader(2), sample=2)
