"""A computed attribute that fails for an event is reported once, wherever events are matched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.functions import struct

import matchwood as mw
from matchwood.spark import (
    Index,
    match,
    match_live,
    match_sharded,
    match_stream,
    match_udf,
    register_sql,
)
from spark.logs import (
    committed,
    crash_at_each,
    dead_letters,
    made_log,
    read_log,
    sequential,
    write_log,
)

pytestmark = pytest.mark.spark

NOW = {"availableNow": True}
RULES = ["10 / q > 1", "lower(s) = 'a'", "q = 0", "10 / q < 100 AND s = 'A'", "8 / q > 1 OR q = 0"]
ROWS = [(1, 0, "A"), (2, 5, "a"), (3, None, "b"), (4, 0, "b")]
EXPECTED = {1: [1, 2, 4], 2: [0, 1, 4], 3: [], 4: [2, 4]}


def events(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, "event_id long, q int, s string")


def rules(spark: Any, texts: list[str] = RULES) -> Any:
    return spark.createDataFrame(list(enumerate(texts)), "id long, expr string")


def answers(rows: Any) -> dict[int, list[int]]:
    return {row["event_id"]: sorted(row["subscription_ids"]) for row in rows}


def check_errors(rows: Any) -> None:
    rows = sorted(rows, key=lambda row: row["id"])
    assert [(row["of"], row["id"]) for row in rows] == [("attribute", "1"), ("attribute", "4")]
    for row in rows:
        for text in ("10 / q", "8 / q"):
            assert row["message"].count(text) == 1
        assert "division by zero" in row["message"]


def test_every_part_of_an_index_reports(spark: Any) -> None:
    match(events(spark), rules(spark, RULES[:4])).matches.collect()
    found = match(events(spark), rules(spark))  # the last rule is in a part of its own
    for each in (found, found.persist()):
        assert answers(each.matches.collect()) == EXPECTED
        check_errors(each.errors.collect())
    found.unpersist()


def test_the_column_function_keeps_the_list_and_says_what_failed(
    spark: Any, tmp_path: Path
) -> None:
    frame = events(spark)
    index = Index.build(rules(spark), frame)
    found = frame.withColumn("found", index.match(struct("q", "s"))).select("event_id", "found.*")
    rows = found.collect()
    assert answers(rows) == EXPECTED
    assert [row.event_id for row in rows if row.error is not None] == [1, 4]
    assert all("division by zero" in row.error for row in rows if row.error)
    index.save(str(tmp_path / "saved"))
    only = frame.withColumn(
        "subscription_ids", match_udf(str(tmp_path / "saved"))(struct("q", "s"))
    )
    assert answers(only.collect()) == EXPECTED


def test_the_table_function_keeps_the_list_and_says_what_failed(spark: Any, tmp_path: Path) -> None:
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(RULES)))
    matcher.save(tmp_path / "snapshot")
    register_sql(spark)
    events(spark).createOrReplaceTempView("offers")
    asked = f"SELECT * FROM matchwood_match(TABLE(offers), '{tmp_path / 'snapshot'}')"
    rows = spark.sql(asked).collect()
    assert answers(rows) == EXPECTED
    assert sorted(row.event_id for row in rows if row.error is not None) == [1, 4]


@pytest.mark.parametrize("shards", [1, 4])
def test_shards_report_an_event_once(spark: Any, tmp_path: Path, shards: int) -> None:
    found = match_sharded(events(spark), rules(spark), str(tmp_path), shards=shards)
    for each in (found, found.persist()):
        assert answers(each.matches.collect()) == EXPECTED
        check_errors(each.errors.collect())
    found.unpersist()


def test_an_id_of_two_events_has_its_own_error_alone(spark: Any, tmp_path: Path) -> None:
    twice = events(spark).union(events(spark).where("event_id = 1"))
    found = match_sharded(twice, rules(spark), str(tmp_path), shards=3)
    errors = {(row["of"], row["id"]) for row in found.errors.collect()}
    assert errors == {("event", "1"), ("attribute", "4")}


def test_a_stream_reports_and_matches(spark: Any, tmp_path: Path) -> None:
    log = [{"offset": n, "kind": "subscribe", "id": n, "expr": r} for n, r in enumerate(RULES)]
    for id_, q, s in ROWS:
        values = {name: value for name, value in (("q", q), ("s", s)) if value is not None}
        text = json.dumps(values)
        log.append({"offset": 10 + id_, "kind": "event", "id": id_, "attributes": text})
    log.append({"offset": 20, "kind": "event", "id": 9, "attributes": "broken"})
    (tmp_path / "log").mkdir()
    lines = "".join(json.dumps(each) + "\n" for each in log)
    (tmp_path / "log" / "0.json").write_text(lines)
    columns = "offset BIGINT, kind STRING, id BIGINT, expr STRING, attributes STRING"
    reader = spark.readStream.schema(columns).json(str(tmp_path / "log"))
    match_stream(
        reader, str(tmp_path / "out"), str(tmp_path / "state"), trigger=NOW
    ).awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out" / "matches")).collect()
    assert answers(rows) == EXPECTED
    letters = dead_letters(tmp_path / "out")
    assert [row["id"] for row in letters if row["of"] == "event"] == ["9"]
    check_errors([row for row in letters if row["of"] != "event"])


def test_crashes_repeat_no_report_and_lose_none(spark: Any, tmp_path: Path, monkeypatch) -> None:
    log = made_log(6, 90)
    log[0] = {**log[0], "id": "formula", "expr": "10 / size > 1"}
    expected, refused = sequential(log)
    write_log(tmp_path / "log", log, 30)

    def run() -> None:
        out, state = str(tmp_path / "out"), str(tmp_path / "state")
        source = read_log(spark, tmp_path / "log", 1)
        match_stream(source, out, state, trigger=NOW).awaitTermination()

    crash_at_each(monkeypatch, ["matched", "written", "committed"], run)
    assert committed(tmp_path / "out") == expected
    letters = dead_letters(tmp_path / "out")
    failed = [each["id"] for each in log if (each["attributes"] or {}).get("size") == "0"]
    assert len(failed) > 3
    assert sorted(row["id"] for row in letters if row["of"] == "attribute") == sorted(failed)
    assert len(letters) == refused + len(failed)


@pytest.mark.parametrize("shards", [None, 3])
def test_events_beside_a_table_report_once(spark: Any, tmp_path: Path, shards: int | None) -> None:
    events(spark).coalesce(1).write.parquet(str(tmp_path / "events"))
    reader = spark.readStream.schema("event_id long, q int, s string")
    match_live(
        reader.parquet(str(tmp_path / "events")), rules(spark), str(tmp_path / "out"),
        str(tmp_path / "state"), shards=shards, trigger=NOW,
    ).awaitTermination()  # fmt: skip
    assert answers(spark.read.parquet(str(tmp_path / "out" / "matches")).collect()) == EXPECTED
    check_errors(dead_letters(tmp_path / "out"))


def test_cutting_encoded_events_keeps_what_failed_with_its_event() -> None:
    from matchwood.spark.worker import cut

    matcher = mw.Matcher()
    matcher.add("a", "10 / q > 1")
    encoded = matcher.encode(pa.table({"q": [1, 0, 2, 0]}))
    assert sorted(encoded.warnings) == [1, 3]
    assert sorted(matcher.find(cut(encoded, 2, 4)).warnings) == [1]
