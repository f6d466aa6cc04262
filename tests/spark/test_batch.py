"""match on DataFrames equals the local engine, whatever the shape and the partitioning."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match, read_workload
from matchwood.spark.executors import parallelism
from matchwood.spark.worker import FIRST_PART
from matchwood.workload import find_workload, plain_tables
from spark.bookshop_frames import events_frame, lists, shop, texts_frame

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(3000, 2 * FIRST_PART + 30)


@pytest.fixture(scope="module")
def expected() -> dict[int, list[int]]:
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(TEXTS)))
    found = dict(enumerate(matcher.match_many(EVENTS)))
    assert sum(map(len, found.values())) > 200
    return found


@pytest.mark.parametrize("shape", ["wide", "struct", "map", "arrays"])
def test_every_shape_of_events_gives_the_local_answer(spark, expected, shape: str) -> None:
    found = match(events_frame(spark, EVENTS, shape), texts_frame(spark, TEXTS))
    assert lists(found.matches) == expected
    assert found.errors.count() == 0


def test_partitioning_does_not_change_the_answer(spark, expected) -> None:
    for parts in (1, 5):
        found = match(
            events_frame(spark, EVENTS, "wide", parts), texts_frame(spark, TEXTS, parts), pairs=True
        )
        pairs = sorted((r.event_id, r.subscription_id) for r in found.matches.collect())
        assert pairs == sorted((e, s) for e, ids in expected.items() for s in ids)


def test_events_of_one_file_are_matched_by_all_cores(spark, expected, tmp_path: Path) -> None:
    """One file, or one row group, would be one task."""
    from pyspark.sql.functions import spark_partition_id

    path = str(tmp_path / "events")
    events_frame(spark, EVENTS, "wide", 1).write.parquet(path)
    found = match(spark.read.parquet(path), texts_frame(spark, TEXTS))
    parts = found.matches.select(spark_partition_id()).distinct().count()
    assert parts == min(2, parallelism(spark))
    assert lists(found.matches) == expected
    assert found.errors.count() == 0


def test_an_unchanged_table_is_not_indexed_twice(spark, expected, tmp_path: Path) -> None:
    events = events_frame(spark, EVENTS, "wide").where("event_id < 20")
    kept = str(tmp_path / "indexes")
    first = match(events, texts_frame(spark, TEXTS), snapshots=kept)
    again = match(events, texts_frame(spark, TEXTS, 5), snapshots=kept)
    assert (first.index.reused, again.index.reused) == (False, True)
    assert first.index.folder == again.index.folder
    assert lists(again.matches) == {e: expected[e] for e in range(20)}
    other = match(events, texts_frame(spark, TEXTS[:-1]), snapshots=kept)
    scan = match(events, texts_frame(spark, TEXTS), snapshots=kept, index="scan")
    assert not other.index.reused
    assert not scan.index.reused
    assert other.index.count == len(TEXTS) - 1
    assert len(list((tmp_path / "indexes").iterdir())) == 3


def test_a_damaged_index_is_built_anew_and_a_damaged_snapshot_is_an_error(
    spark, tmp_path: Path
) -> None:
    events = events_frame(spark, EVENTS[:20], "wide")
    kept = str(tmp_path / "indexes")
    first = match(events, texts_frame(spark, TEXTS), snapshots=kept)
    before = lists(first.matches)
    largest = max(first.index.folder.rglob("*.npy"), key=lambda file: file.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1] + b"\x01")
    with pytest.raises(mw.FormatError, match="checksum"):
        match(events, str(first.index.folder))
    again = match(events, texts_frame(spark, TEXTS), snapshots=kept)
    assert not again.index.reused
    assert lists(again.matches) == before


def test_a_saved_snapshot_with_string_ids_is_matched(spark, tmp_path: Path) -> None:
    matcher = mw.Matcher()
    matcher.add_many([(f"reader-{n}", text) for n, text in enumerate(TEXTS)])
    matcher.save(tmp_path / "snapshot")
    found = match(events_frame(spark, EVENTS[:50], "wide"), str(tmp_path / "snapshot"))
    assert dict(found.matches.dtypes)["subscription_ids"] == "array<string>"
    assert lists(found.matches) == dict(enumerate(matcher.match_many(EVENTS[:50])))


def test_bad_rows_are_described_and_stop_nothing(spark) -> None:
    texts = ["price < 10", "price <", "price = 'x'", "genre = 'art'", None]
    wishes = pa.table({"id": pa.array(["a", "b", "c", "d", "e"]), "expr": pa.array(texts)})
    events = pa.table(
        {
            "event_id": ["ok", "bad", "none"],
            "attributes": pa.array(
                [[("price", "5")], [("price", "much"), ("genre", "art")], None],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )
    found = match(spark.createDataFrame(events), spark.createDataFrame(wishes))
    assert lists(found.matches) == {"ok": ["a"], "bad": ["d"], "none": []}  # a price that is none
    rows = {row.id: row for row in found.errors.collect()}
    assert set(rows) == {"b", "e"}
    assert (rows["b"].of, rows["b"].error, rows["b"].column) == ("subscription", "ParseError", 8)


def test_lists_of_unequal_length_and_names_twice_are_bad_events(spark) -> None:
    events = pa.table(
        {
            "event_id": [1, 2, 3, 4],
            "attributes": [["a", "b"], ["a"], ["a", "a"], ["b"]],
            "values": [[1, 2], [1, 2], [1, 1], [2]],
        }
    )
    wishes = pa.table({"id": [1, 2], "expr": ["a = 1 AND b = 2", "a IS NULL"]})
    found = match(spark.createDataFrame(events), spark.createDataFrame(wishes))
    assert lists(found.matches) == {1: [1], 4: [2]}
    assert sorted(row.id for row in found.errors.collect()) == ["2", "3"]


def test_tables_of_predicates_from_the_source(spark) -> None:
    options = {"subscriptions": 3000, "events": 40, "n_attributes": 40, "partitions": 3}
    subscriptions = read_workload(spark, "begen:smoke", **options)
    events = read_workload(spark, "begen:smoke", "events", **options)
    wide = read_workload(spark, "begen:smoke", "events", layout="wide", **options)
    workload = find_workload("begen:smoke", n_attributes=40)
    matcher = mw.Matcher()
    matcher.add_many(plain_tables.predicates(workload, 0, 3000))
    expected = dict(enumerate(matcher.match_many(plain_tables.wide(workload, 0, 40))))
    assert sum(map(len, expected.values())) >= 40 * 20
    shuffled = subscriptions.repartition(4, "attribute")
    for frame in (events, wide):
        assert lists(match(frame, shuffled).matches) == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1]}, "expected columns id and expr"),
        ({"id": [1], "attribute": ["a"]}, "expected columns id, attribute, operator"),
        ({"id": [1.5], "expr": ["a"]}, "expected whole numbers or strings as ids"),
        ({"id": [1], "expr": ["a"], "expires": [1]}, "expected timestamps or dates"),
    ],
)
def test_wrong_tables_are_refused_before_anything_runs(spark, columns, message: str) -> None:
    events = spark.createDataFrame(pa.table({"event_id": [1], "a": [True]}))
    with pytest.raises(mw.SubscriptionError, match=message):
        match(events, spark.createDataFrame(pa.table(columns)))


def test_events_without_an_id_or_with_strange_columns_are_refused(spark) -> None:
    wishes = spark.createDataFrame(pa.table({"id": [1], "expr": ["a"]}))
    plain = spark.createDataFrame(pa.table({"a": [True]}))
    with pytest.raises(mw.EventError, match="expected the column 'event_id'"):
        match(plain, wishes)
    mixed = pa.table({"event_id": [1], "attributes": [["a"]], "values": [[1]], "more": [1]})
    with pytest.raises(mw.EventError, match="found more: drop them"):
        match(spark.createDataFrame(mixed), wishes)
