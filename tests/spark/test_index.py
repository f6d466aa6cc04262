"""Index.match as a column; columns that are kept, and columns that are not read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql.functions import struct

import matchwood as mw
from matchwood.spark import Index, match
from spark.bookshop_frames import events_frame, lists, shop, texts_frame

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(1500, 60)


def frame(spark, texts: dict):
    return spark.createDataFrame(pa.table({"id": list(texts), "expr": list(texts.values())}))


def test_a_column_of_matches_keeps_all_columns_and_gives_the_local_answer(spark) -> None:
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(TEXTS)))
    expected = dict(enumerate(matcher.match_many(EVENTS)))
    assert sum(map(len, expected.values())) > 20
    offers = events_frame(spark, EVENTS, "wide")
    index = Index.build(texts_frame(spark, TEXTS), offers)
    assert len(index) == len(TEXTS)
    assert index.errors.count() == 0
    attributes = [name for name in offers.columns if name != "event_id"]
    found = offers.withColumn("found", index.match(struct(*attributes)))
    assert found.columns == [*offers.columns, "found"]
    rows = found.select("event_id", "found.*").collect()
    assert {row.event_id: row.subscription_ids for row in rows} == expected
    assert {row.error for row in rows} == {None}


def test_a_bad_event_has_an_error_instead_of_a_silent_null(spark, tmp_path: Path) -> None:
    events = spark.createDataFrame(
        pa.table({"n": [1, 2, 3], "attributes": ['{"price": 1}', "broken", '{"price": 9}']})
    )
    rules = frame(spark, {"cheap": "price < 3", "any": "price > 0", "odd": "price <"})
    rules = rules.selectExpr("*", "IF(id = 'any', 2, 1) AS priority")
    index = Index.build(rules, schema={"price": "number"})
    assert [row.id for row in index.errors.collect()] == ["odd"]
    index.save(str(tmp_path / "saved"))
    again = Index.open(str(tmp_path / "saved"))
    asked = events.select(
        "n",
        index.match(struct("attributes")).alias("all"),
        again.match(struct("attributes"), limit=1).alias("one"),
    )
    rows = {row.n: row for row in asked.collect()}
    assert sorted(rows[1].all.subscription_ids) == ["any", "cheap"]
    assert rows[1].one.subscription_ids == rows[3].one.subscription_ids == ["any"]
    assert (rows[2].all.subscription_ids, rows[2].one.subscription_ids) == (None, None)
    assert "expected a JSON object" in rows[2].all.error
    assert rows[1].all.error is rows[3].one.error is None
    with pytest.raises(mw.MatchwoodError, match="found one that was opened"):
        again.refresh(rules)
    with pytest.raises(mw.MatchwoodError, match="whole number from 1"):
        index.match(struct("attributes"), limit=0)


def test_a_stream_of_any_sink_follows_a_published_index(spark, tmp_path: Path) -> None:
    source, out = tmp_path / "events", tmp_path / "out"
    source.mkdir()
    index = Index.build(frame(spark, {1: "a = 1"}), path=str(tmp_path / "index"))
    events = spark.readStream.schema("n BIGINT, a BIGINT").json(str(source))
    found = events.withColumn("found", index.match(struct("a")))
    for n, rules in enumerate([{1: "a = 1"}, {1: "a = 1", 2: "a > 0"}, {7: "a = 1"}]):
        index = index.refresh(frame(spark, rules))
        (source / f"{n}.json").write_text(json.dumps({"n": n, "a": 1}))
        writer = found.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).format("parquet").start(str(out))
        query.awaitTermination()
    rows = spark.read.parquet(str(out)).selectExpr("n", "a", "found.subscription_ids").collect()
    assert {(row.n, row.a): row.subscription_ids for row in rows} == {
        (0, 1): [1], (1, 1): [1, 2], (2, 1): [7],
    }  # fmt: skip


WIDE = """
SELECT id AS event_id, CAST(id AS INT) AS n, named_struct('age', id, 'gap', INTERVAL '1' DAY) AS u,
       INTERVAL '2' HOUR AS gap, INTERVAL '3' MONTH AS months, 'x' AS unused, id % 2 AS odd
FROM range(6)
"""


def test_columns_that_no_subscription_uses_do_not_leave_the_jvm(spark, tmp_path: Path) -> None:
    # before: UNSUPPORTED_DATA_TYPE for the INTERVAL columns, and no result
    events = spark.sql(WIDE).drop("u")
    texts = {1: "n > 3", 2: "odd = 1 AND n < 2", 3: "event_id = 0"}
    found = match(events, frame(spark, texts), keep=["unused", "odd"])
    assert found.matches.columns == ["event_id", "unused", "odd", "subscription_ids"]
    expected = {0: [3], 1: [2], 2: [], 3: [], 4: [1], 5: [1]}
    assert lists(found.matches) == expected
    assert {(row.event_id, row.unused, row.odd) for row in found.matches.collect()} == {
        (n, "x", n % 2) for n in range(6)
    }
    assert found.errors.count() == 0
    events.drop("gap", "months").write.parquet(str(tmp_path / "events"))
    files = match(str(tmp_path / "events"), frame(spark, texts), keep=["odd"], pairs=True)
    rows = {(row.event_id, row.odd, row.subscription_id) for row in files.matches.collect()}
    assert rows == {(e, e % 2, s) for e, ids in expected.items() for s in ids}


def test_columns_that_cannot_be_kept_are_refused(spark) -> None:
    events, rules = (
        spark.sql("SELECT 1 AS event_id, 2 AS a, 3 AS error"),
        frame(spark, {1: "a = 2"}),
    )
    for keep, message in [
        (["b"], "found 'b', which is none of event_id, a, error"),
        (["error"], "other names than event_id, subscription_ids"),
        (["a", "a"], "expected columns to keep once"),
        ("a", "expected a list of columns"),
    ]:
        with pytest.raises(mw.EventError, match=message):
            match(events, rules, keep=keep)


def test_a_result_that_is_kept_reads_events_once(spark, tmp_path: Path) -> None:
    read = tmp_path / "read"
    read.mkdir()

    def note(batches):
        import uuid

        (read / uuid.uuid4().hex).touch()
        yield from batches

    plain = spark.createDataFrame(
        pa.table({"event_id": [1, 2], "attributes": ['{"a": 1}', "broken"]})
    ).coalesce(1)
    events = plain.mapInArrow(note, plain.schema)
    found = match(events, frame(spark, {1: "a = 1", 2: "a <"}), schema={"a": "int"}).persist()
    assert lists(found.matches) == {1: [1]}
    assert sorted((row.of, row.id) for row in found.errors.collect()) == [
        ("event", "2"), ("subscription", "2"),
    ]  # fmt: skip
    assert len(list(read.iterdir())) == 1
    found.unpersist()


MONTHS = """
SELECT id AS event_id, CAST(id AS INT) AS n,
       IF(id = 1, NULL, make_ym_interval(CAST(id AS INT))) AS age,
       named_struct('city', 'Ulm', 'since', IF(id = 2, NULL, make_ym_interval(1))) AS user,
       map('a', make_ym_interval(2)) AS others, array(make_ym_interval(3)) AS more
FROM range(4)
"""


def test_intervals_of_months_beside_what_is_tested_keep_no_job_from_running(spark) -> None:
    """Python's Arrow has a type for them and no array: reading one was a KeyError."""
    texts = ["n >= 2", "user.city = 'Ulm'", "age IS NULL", "user.since IS NOT NULL", "age > 1"]
    texts += ["more IS NOT NULL AND others IS NOT NULL", "abs(n) = 3"]
    events = spark.sql(MONTHS)
    rules = spark.createDataFrame(list(enumerate(texts)), "id BIGINT, expr STRING")
    index = Index.build(rules, events)
    assert [row.id for row in index.errors.collect()] == ["4"]
    expected = {0: [1, 3, 5], 1: [1, 2, 3, 5], 2: [0, 1, 5], 3: [0, 1, 3, 5, 6]}
    found = events.withColumn("found", index.match(struct("*"))).select("event_id", "found")
    assert {row.event_id: row.found.subscription_ids for row in found.collect()} == expected
    assert lists(match(events, rules).matches) == expected
    with pytest.raises(mw.EventError, match="found 'age', interval year to month: cast it"):
        match(events, rules, keep=["age"])


def test_a_struct_without_a_field_that_subscriptions_test_fails_and_names_it(
    spark, tmp_path: Path
) -> None:
    """`m` was NULL without any sign: rule 2 held for no event."""
    events = spark.sql("SELECT id AS n, id AS m, named_struct('age', id) AS user FROM range(3)")
    texts = {1: "n > 0", 2: "m > 0", 3: "lower(word) = 'x' OR user.name = 'y'", 4: "ctx.away"}
    index = Index.build(frame(spark, texts))
    index.save(str(tmp_path / "saved"))
    expected = {0: [], 1: [1, 2], 2: [1, 2]}
    for each in (index, Index.open(str(tmp_path / "saved"))):
        asked = events.select("n", each.match(struct("n", "user")).alias("found"))
        with pytest.raises(PythonException, match=r"found no 'm', 'user.name', 'word' in the"):
            asked.collect()
        nested = events.select(struct("n", "m", "user").alias("attributes"))
        with pytest.raises(PythonException, match=r"found no 'user.name', 'word' in the"):
            nested.select(each.match(struct("attributes")).alias("found")).collect()
        for absent in (["user.name", "word"], True):
            column = each.match(struct("n", "m", "user"), absent=absent).alias("found")
            rows = events.select("n", column).collect()
            assert {row.n: row.found.subscription_ids for row in rows} == expected
            assert {row.found.error for row in rows} == {None}
    with pytest.raises(mw.EventError, match="expected a list of names"):
        index.match("n", absent="m")
    declared = Index.build(frame(spark, {1: "n > 0 OR m > 0"}), schema={"m": "int"})
    rows = events.select(declared.match(struct("n")).alias("found")).collect()
    assert [row.found.subscription_ids for row in rows] == [[], [1], [1]]


def test_a_later_subscription_on_a_field_that_is_not_there_fails_no_stream(
    spark, tmp_path: Path
) -> None:
    index = Index.build(frame(spark, {1: "n > 0"}), path=str(tmp_path / "index"))
    events = spark.range(3).selectExpr("id AS n")
    found = events.withColumn("found", index.match(struct("n")))
    lax = events.withColumn("found", index.match(struct("n"), absent=["m"]))
    assert [row.found.error for row in found.collect()] == [None] * 3
    index.refresh(frame(spark, {1: "n > 0", 2: "m > 0"}))
    assert [row.found.subscription_ids for row in found.collect()] == [[], [1], [1]]
    assert all("found no 'm' in the struct of n" in row.found.error for row in found.collect())
    assert [row.found.error for row in lax.collect()] == [None] * 3
