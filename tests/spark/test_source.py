"""Workloads as Spark tables: the same rows whatever the partitioning."""

from __future__ import annotations

import pytest

from matchwood.spark import read_workload
from matchwood.workload import find_workload, list_workloads, plain_tables

pytestmark = pytest.mark.spark

SMOKE = [f"{each.name}:smoke" for each in list_workloads()]


def rows(frame) -> list[dict]:
    return frame.toArrow().to_pylist()


@pytest.mark.parametrize("name", SMOKE)
@pytest.mark.parametrize("table", ["subscriptions", "events"])
def test_rows_do_not_depend_on_partitioning(spark, name: str, table: str) -> None:
    many = read_workload(spark, name, table, subscriptions=211, events=211, partitions=3)
    workload = find_workload(name, n_subscriptions=211, n_events=211)
    make = plain_tables.predicates if table == "subscriptions" else plain_tables.arrays
    expected = make(workload, 0, 211).to_pylist()
    assert rows(many) == expected


def test_events_may_be_wide_and_subscriptions_texts(spark) -> None:
    options = {"n_attributes": 6, "event_size": 4, "predicates": 2, "match_probability": None}
    frame = read_workload(spark, "begen:smoke", "events", layout="wide", events=5, **options)
    assert frame.columns == ["event_id", "a0", "a1", "a2", "a3", "a4", "a5"]
    assert all(sum(v is not None for v in row) == 5 for row in frame.collect())
    texts = read_workload(spark, "begen:smoke", form="texts", subscriptions=3, **options)
    first = texts.orderBy("id").first()
    found = frame.where(first.expr).select("event_id").collect()
    assert first.id == 0
    assert 0 in [row.event_id for row in found]  # row 0 derives from event 0


def test_sql_reads_a_workload(spark) -> None:
    read_workload(spark, "uniform:smoke", subscriptions=10).createOrReplaceTempView("wishes")
    assert spark.sql("SELECT count(DISTINCT id) FROM wishes").first()[0] == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "event"}, "one of subscriptions, events, log"),
        ({"subscriptions": -1}, "expected a number from 0"),
        ({"n_atributes": 3}, "expected parameters among"),
    ],
)
def test_wrong_options_are_named(spark, options: dict, message: str) -> None:
    with pytest.raises(Exception, match=message):
        read_workload(spark, "begen:smoke", **options).collect()


def test_a_log_streams_in_batches(spark, tmp_path) -> None:
    from matchwood.spark import register_source

    register_source(spark)
    stream = (
        spark.readStream.format("matchwood")
        .options(workload="begen:smoke", table="log", records="50", every="10", batch="20")
        .load()
    )
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == [20, 20, 10]
    found = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").toArrow().to_pylist()
    workload = find_workload("begen:smoke")
    assert found == plain_tables.log(workload, 0, 50, 10).to_pylist()
    cuts = [(0, 7), (7, 30), (30, 50)]
    parts = [plain_tables.log(workload, first, last, 10).to_pylist() for first, last in cuts]
    assert [row for part in parts for row in part] == found
