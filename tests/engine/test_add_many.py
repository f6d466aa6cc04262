"""add_many: rows that are bad are reported, the others are taken, however they come."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import matchwood as mw
from engine.invariants import check, trace
from matchwood.engine.input import loading
from strategies import workloads

ROWS = [("a", "x = 1"), ("b", "x = = 1"), ("c", "x = 'no'"), ("a", "x = 2"), ("d", "y = 'ok'")]


def as_arrow(rows: list) -> Any:
    return pa.table({"id": [id_ for id_, _ in rows], "expr": [text for _, text in rows]})


FORMS = {
    "pairs": lambda rows: rows,
    "generator": lambda rows: (row for row in rows),
    "lists": lambda rows: [list(row) for row in rows],
    "mappings": lambda rows: [{"id": id_, "expr": text} for id_, text in rows],
    "arrow": as_arrow,
    "record batch": lambda rows: as_arrow(rows).to_batches()[0],
    "pandas": lambda rows: as_arrow(rows).to_pandas(),
    "polars": lambda rows: pl.from_arrow(as_arrow(rows)),
    "more columns": lambda rows: as_arrow(rows).append_column("note", [["n"] * len(rows)]),
    "categories": lambda rows: as_arrow(rows).to_pandas().astype("category"),
}


@pytest.mark.parametrize("form", FORMS)
def test_bad_rows_are_reported_and_the_others_go_on(form):
    m = mw.Matcher(schema={"x": "number"})
    report = m.add_many(FORMS[form](ROWS))
    assert report.count == len(m) == 2
    assert [(each.row, each.id) for each in report.errors] == [(1, "b"), (2, "c"), (3, "a")]
    kinds = [type(each.error) for each in report.errors]
    assert kinds == [mw.ParseError, mw.SchemaError, mw.SubscriptionError]
    assert "x = 'no'" in str(report.errors[1].error)
    assert m.match({"x": 1, "y": "ok"}) == ["a", "d"]
    check(m)


def test_a_mapping_from_ids_to_texts():
    m = mw.Matcher()
    assert m.add_many({1: "x = 1", 2: "x = 2"}).count == 2
    assert m.match({"x": 2}) == [2]


@pytest.mark.parametrize(
    "wrong",
    ["text", b"bytes", 5, None, [1, 2], [("a",)], [("a", "x = 1", None, 4)], pa.table({"id": [1]})],
    ids=range(8),
)
def test_what_holds_no_subscriptions_is_refused_whole(wrong):
    m = mw.Matcher()
    before = trace(m)
    with pytest.raises(mw.SubscriptionError, match="expected"):
        m.add_many(wrong)
    assert trace(m) == before


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 3, 7])
@given(workload=workloads(n_expressions=12, n_events=6))
def test_the_size_of_chunks_does_not_matter(chunk, workload):
    types, subscriptions, events = workload
    rows: list[tuple[str, Any]] = [(id_, str(expr)) for id_, expr in subscriptions]
    rows[5:5] = [("bad", "x ="), (rows[0][0], "TRUE")]
    whole = mw.Matcher(schema=types)
    expected = whole.add_many(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "CHUNK", chunk)
        m = mw.Matcher(schema=types)
        seen: list[tuple[int, int]] = []
        report = m.add_many(rows, progress=lambda done, total: seen.append((done, total)))
    assert report.count == expected.count
    assert [(e.row, e.id) for e in report.errors] == [(e.row, e.id) for e in expected.errors]
    assert [done for done, _ in seen] == [*range(chunk, len(rows), chunk), len(rows)]
    assert {total for _, total in seen} == {len(rows)}
    assert list(m.match_many(events)) == list(whole.match_many(events))
    check(m)


def test_a_batch_that_is_interrupted_leaves_the_matcher_as_it_was():
    m = mw.Matcher()
    m.add("before", "x = 1")

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "CHUNK", 2)
        with pytest.raises(KeyboardInterrupt):
            m.add_many([(i, "x = 1") for i in range(5)], progress=interrupt)
    assert m.match({"x": 1}) == ["before"]
    assert len(m) == 1
    check(m)


def test_a_progress_callback_sees_what_was_there_before():
    m = mw.Matcher()
    m.add("before", "x >= 1")
    seen = []
    m.add_many(
        [(i, "x = 10") for i in range(3)], progress=lambda *_: seen.append(m.match({"x": 10}))
    )
    assert seen == [["before"]]
    assert m.match({"x": 10}) == ["before", 0, 1, 2]


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_a_progress_callback_cannot_change_a_matcher_that_is_not_ready(index):
    m = mw.Matcher(index=index)
    rows = [(i, f"x >= {i * 7 % 10}") for i in range(12)]
    uses = [lambda: m.add("new", "x = 1"), lambda: m.remove(0)]
    for use in [*uses, lambda: m.match({"x": 10})] if index == "scan" else uses:
        with pytest.raises(mw.MatchwoodError, match="progress"):
            m.add_many(rows, progress=lambda done, total, use=use: use())
        assert m.match({"x": 10}) == []
        assert len(m) == 0
        check(m)


def test_a_batch_and_single_additions_refuse_the_same():
    rows = [(1, "x LIKE '%'"), (2, "x = 5"), (3, "x = 'a'"), (4, "y = DATE '2024-01-01'")]
    rows += [(5, "y = '2024-01-02'"), (6, "y = 'never'"), (7, "z IS NULL"), (8, "z = 1")]
    m, one_by_one = (mw.Matcher(schema={"x": "string", "y": "date"}) for _ in range(2))
    refused = [each.id for each in m.add_many(rows).errors]
    for id_, text in rows:
        try:
            one_by_one.add(id_, text)
        except mw.SchemaError:
            assert id_ in refused
    assert refused == [2, 6]
    assert dict(m.schema) == dict(one_by_one.schema)


@pytest.mark.slow
def test_parsing_in_processes_equals_parsing_here():
    texts: list[tuple[Any, Any]] = [(i, f"x >= {i} AND y LIKE '%{i}%'") for i in range(60)]
    texts[7] = (7, "x = ")
    texts[9] = (9, None)
    texts[11] = (11, mw.attr("x").isin(1, 2) | ~(mw.attr("y") == "it's"))
    texts[13] = (13, "x = 'clash'")
    alone, helped = (mw.Matcher(schema={"x": "number"}) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "CHUNK", 8)
        here = alone.add_many(texts, processes=1)
        there = helped.add_many(texts, processes=2)
    assert here.count == there.count == 57
    assert [(e.row, str(e.error)) for e in here.errors] == [
        (e.row, str(e.error)) for e in there.errors
    ]
    for event in ({"x": 30, "y": "a 5"}, {"x": 1, "y": "z"}, {"y": "1"}):
        assert helped.match(event) == alone.match(event)
    check(helped)
