"""Events from a Kafka topic of several partitions beside rules that change; the broker is killed.

Needs the jars of a broker and of Spark's connector: `python tests/spark/kafka.py .venv/kafka`.
Took 59 s on two cores that other work (load 13) kept busy; most of it are starts of Java.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import matchwood as mw
from matchwood.spark import match_live
from spark import kafka

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not kafka.are_there(), reason="no jars of Kafka: bin/setup dev fetches them"
    ),
]

PARTITIONS = 4
N = 60
BEFORE = {1: "a = 3", 2: "b > 40 OR a = 5"}
AFTER = {1: "a = 4", 3: "b >= 0"}


@pytest.fixture
def broker(spark, tmp_path: Path) -> Iterator[kafka.Broker]:
    made = kafka.Broker(tmp_path / "broker", PARTITIONS)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def events(first: int, last: int) -> dict[int, dict[str, int]]:
    return {n: {"event_id": n, "a": n % 7, "b": n % 50} for n in range(first, last)}


def test_events_of_several_partitions_are_matched_once_though_the_broker_is_killed(
    spark, broker: kafka.Broker, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}"}
    (tmp_path / "rules").mkdir()

    def change(rules: dict[int, str]) -> None:
        rows = [json.dumps({"id": id_, "expr": text}) for id_, text in rules.items()]
        (tmp_path / "rules" / "all.json").write_text("\n".join(rows))

    def send(rows: dict[int, dict[str, int]]) -> None:
        table = [(str(n), json.dumps(row)) for n, row in rows.items()]
        frame = spark.createDataFrame(table, "key string, value string").coalesce(1)
        frame.write.format("kafka").options(**options).option("topic", "events").save()

    change(BEFORE)
    send(events(0, N))
    topic = spark.readStream.format("kafka").options(**options, startingOffsets="earliest")
    read = topic.option("subscribe", "events").load().selectExpr(
        "from_json(CAST(value AS STRING), 'event_id BIGINT, a BIGINT, b BIGINT') AS event",
        "partition",
    )  # fmt: skip
    query = match_live(
        read.select("event.*"),
        lambda session: session.read.schema("id BIGINT, expr STRING").json(str(tmp_path / "rules")),
        str(tmp_path / "out"), str(tmp_path / "state"),
    )  # fmt: skip
    try:
        query.processAllAvailable()
        broker.kill()
        change(AFTER)
        broker.start()
        send(events(N, 2 * N))
        query.processAllAvailable()
    finally:
        query.stop()
    stored = spark.read.format("kafka").options(**options).option("subscribe", "events").load()
    assert stored.select("partition").distinct().count() == PARTITIONS
    rows = [
        row
        for folder in (tmp_path / "out" / "matches").glob("batch=*")
        for row in pq.read_table(folder, partitioning=None).to_pylist()
    ]
    assert len(rows) == 2 * N
    found = {row["event_id"]: row["subscription_ids"] for row in rows}
    for rules, part in ((BEFORE, events(0, N)), (AFTER, events(N, 2 * N))):
        matcher = mw.Matcher()
        matcher.add_many(list(rules.items()))
        expected = dict(zip(part, matcher.match_many(list(part.values())), strict=True))
        assert {n: found[n] for n in part} == expected
