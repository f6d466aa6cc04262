"""Contexts on Spark: values in a table beside subscriptions, and as records of a stream."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match, match_sharded, match_stream
from matchwood.spark.indexes import fingerprint
from spark.bookshop_frames import lists
from spark.context_logs import TYPES, made_log, read_log, sequential
from spark.logs import committed, crash_at_each, dead_letters, write_cuts

pytestmark = pytest.mark.spark

WISHES = pa.table(
    {
        "id": ["a", "b", "c", "d", "e"],
        "expr": [
            "price < ctx.budget",
            "price < ctx.budget AND NOT ctx.away",
            "price < ctx.budget",
            "price > 10",
            "price < ctx.budget",  # no context: refused
        ],
        "context": ["ann", "bob", "eve", None, None],
    }
)
VALUES = pa.table(
    {"context": ["ann", "bob"], "budget": [12, 7], "least": [None, 3], "away": [None, False]}
)
PRICES = [3, 9, 11, 20]


def test_a_table_of_contexts_gives_the_local_answer_once_built(spark, tmp_path: Path) -> None:
    events = spark.createDataFrame(pa.table({"event_id": [0, 1, 2, 3], "price": PRICES}))
    wishes, values = spark.createDataFrame(WISHES), spark.createDataFrame(VALUES)
    matcher = mw.Matcher()
    assert len(matcher.add_many(WISHES).errors) == 1
    matcher.set_context_many(VALUES)
    expected = {n: matcher.match({"price": price}) for n, price in enumerate(PRICES)}
    assert expected == {0: ["a", "b"], 1: ["a"], 2: ["a", "d"], 3: ["d"]}
    kept = str(tmp_path / "indexes")
    found = match(events, wishes.repartition(3), contexts=values.repartition(2), snapshots=kept)
    assert lists(found.matches) == expected
    assert [(row.id, row.error) for row in found.errors.collect()] == [("e", "SchemaError")]
    again = match(events, wishes, contexts=VALUES, snapshots=kept)
    assert again.index.reused
    assert lists(again.matches) == expected
    swapped = VALUES.rename_columns(["context", "least", "budget", "away"]).select(
        VALUES.column_names
    )  # other values, under other names
    assert not match(events, wishes, contexts=swapped, snapshots=kept).index.reused
    saved = match(events, str(found.index.folder))
    assert lists(saved.matches) == expected
    sharded = match_sharded(events, wishes, str(tmp_path / "shards"), shards=2, contexts=values)
    assert lists(sharded.matches) == expected
    assert [(row.id, row.error) for row in sharded.errors.collect()] == [("e", "SchemaError")]


def test_nulls_that_change_places_are_another_table(spark) -> None:
    names = {
        fingerprint(spark.sql(f"SELECT 'ann' AS context, {row}"), {})
        for row in (
            "1 AS x, CAST(NULL AS INT) AS y",
            "CAST(NULL AS INT) AS x, 1 AS y",
            "named_struct('a', 1, 'b', CAST(NULL AS INT)) AS x",
            "named_struct('a', CAST(NULL AS INT), 'b', 1) AS x",
        )
    }
    assert len(names) == 4


def test_contexts_that_cannot_be_meant_are_refused(spark) -> None:
    events = spark.createDataFrame(pa.table({"event_id": [0], "price": [1]}))
    wishes = spark.createDataFrame(WISHES)
    for contexts, message in [
        (VALUES.set_column(0, "context", pa.array([1, 2])), "named by string"),
        (pa.concat_tables([VALUES, VALUES]), "every context once"),
        (VALUES.drop_columns(["context"]), "column 'context'"),
        ({"ann": {"budget": 3}}, "found dict"),
        (VALUES.set_column(1, "budget", pa.array(["x", "y"])).drop_columns(["least"]), "budget"),
    ]:
        with pytest.raises(mw.EventError, match=message):
            match(events, wishes.where("id <> 'b' OR expr <> ''"), contexts=contexts,
                  schema={"ctx": {"budget": "number"}})  # fmt: skip
    with pytest.raises(mw.EventError, match="before it is saved"):
        match(events, "/nowhere", contexts=VALUES)


def run(spark, work: Path, **options) -> None:
    query = match_stream(
        read_log(spark, work / "log"), str(work / "out"), str(work / "state"),
        schema=TYPES, snapshot_every=2, trigger={"availableNow": True}, **options,
    )  # fmt: skip
    query.awaitTermination()


def test_a_stream_with_contexts_is_one_record_after_the_other(spark, tmp_path: Path) -> None:
    for seed in (1, 2):
        random = Random(seed)
        log, work = made_log(seed, 160), tmp_path / str(seed)
        expected, refused = sequential(log)
        assert sum(map(len, expected.values())) > 60
        write_cuts(work / "log", log, random.sample(range(1, 160), 4))
        run(spark, work)
        found = committed(work / "out")
        assert {e: found.get(e) for e in expected} == expected
        assert found.keys() == expected.keys()
        assert len(dead_letters(work / "out")) == refused


def test_a_crash_repeats_no_update_and_loses_none(spark, tmp_path: Path, monkeypatch) -> None:
    log = made_log(3, 120)
    expected, refused = sequential(log)
    write_cuts(tmp_path / "log", log, (20, 50, 90))
    points = ["decided", "changes", "matched", "snapshot"]
    crash_at_each(monkeypatch, points, lambda: run(spark, tmp_path))
    assert committed(tmp_path / "out") == expected
    assert len(dead_letters(tmp_path / "out")) == refused


def test_a_stream_starts_from_tables_with_contexts(spark, tmp_path: Path) -> None:
    log = [
        {"offset": 0, "kind": "event", "id": "e0", "attributes": {"price": "9"}},
        {"offset": 1, "kind": "context", "id": "bob", "attributes": {"budget": "10"}},
        {"offset": 2, "kind": "event", "id": "e2", "attributes": {"price": "9"}},
    ]
    write_cuts(tmp_path / "log", log, ())
    wishes = spark.createDataFrame(WISHES.slice(0, 4))
    numbered = wishes.selectExpr("id", "expr", "CAST(NULL AS BIGINT) + 1 AS context")
    with pytest.raises(mw.EventError, match="named by"):
        run(spark, tmp_path, subscriptions=numbered, contexts=VALUES)
    run(spark, tmp_path, subscriptions=wishes, contexts=VALUES)
    assert committed(tmp_path / "out") == {"e0": ["a"], "e2": ["a", "b"]}
    other = read_log(spark, tmp_path / "log").selectExpr(
        "offset", "kind", "id", "expr", "attributes", "CAST(context AS BIGINT) AS context"
    )
    with pytest.raises(mw.EventError, match="context to be string"):
        match_stream(other, str(tmp_path / "out"), str(tmp_path / "new"))
