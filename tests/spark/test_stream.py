"""Streams: the log's order decides, whatever the batches; state and output survive everything."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchwood as mw
from matchwood.spark import match_stream, register_source
from matchwood.workload import find_workload, plain_tables
from spark.logs import (
    committed,
    crash_at_each,
    dead_letters,
    made_log,
    read_log,
    sequential,
    wait_for_snapshot,
    write_log,
)

pytestmark = pytest.mark.spark

NOW = {"availableNow": True}


def run(spark, source: Path, work: Path, files: int = 1, **options) -> None:
    log = read_log(spark, source, files)
    options = {"snapshot_every": 3, **options}
    query = match_stream(log, str(work / "out"), str(work / "state"), trigger=NOW, **options)
    query.awaitTermination()
    wait_for_snapshot(str(work / "state"))


@pytest.mark.parametrize("per_file", [30, 75])
def test_batches_of_any_size_give_what_one_record_after_the_other_gives(
    spark, tmp_path: Path, per_file: int
) -> None:
    log = made_log(1, 150)
    expected, refused = sequential(log)
    write_log(tmp_path / "log", log[: 60 // per_file * per_file], per_file)
    run(spark, tmp_path / "log", tmp_path)
    write_log(tmp_path / "log", log, per_file)  # the same files, and more
    run(spark, tmp_path / "log", tmp_path)
    found = committed(tmp_path / "out")
    assert {e: found.get(e) for e in expected} == expected
    assert found.keys() == expected.keys()
    assert sum(map(len, expected.values())) > 50
    assert len(dead_letters(tmp_path / "out")) == refused


def test_a_crash_at_any_point_loses_nothing_and_repeats_nothing(
    spark, tmp_path: Path, monkeypatch
) -> None:
    log = made_log(2, 120)
    expected, refused = sequential(log)
    write_log(tmp_path / "log", log, 30)
    points = ["decided", "changes", "matched", "written", "committed", "written"]
    names = ("spark.sql.adaptive.enabled", "spark.sql.inMemoryColumnarStorage.compressed")
    settings = [spark.conf.get(name) for name in names]
    crash_at_each(monkeypatch, points, lambda: run(spark, tmp_path / "log", tmp_path))
    assert committed(tmp_path / "out") == expected
    assert len(dead_letters(tmp_path / "out")) == refused
    assert [spark.conf.get(name) for name in names] == settings, "they are the session's"


def test_a_crash_while_a_snapshot_is_written_is_raised_by_a_later_batch(
    spark, tmp_path: Path, monkeypatch
) -> None:
    log = made_log(13, 140)
    expected, refused = sequential(log)
    write_log(tmp_path / "log", log, 20)
    crash_at_each(
        monkeypatch, ["snapshot written", "snapshot", "cleaned"],
        lambda: run(spark, tmp_path / "log", tmp_path, snapshot_every=1),
    )  # fmt: skip
    assert committed(tmp_path / "out") == expected
    assert len(dead_letters(tmp_path / "out")) == refused
    # the last two, and the changes since; which they are depends on when a crash was noticed
    names = sorted(each.name for each in (tmp_path / "state" / "snapshots").iterdir())
    assert names in ([f"{first:010}", f"{7:010}"] for first in (5, 6))
    changes = sorted(each.name for each in (tmp_path / "state" / "changes").iterdir())
    assert changes == [f"{n:010}.arrow" for n in range(int(names[0]), 7)]


def test_subscriptions_at_the_start_and_a_source_of_our_own(spark, tmp_path: Path) -> None:
    workload = find_workload("begen:smoke", n_subscriptions=500, n_attributes=30)
    register_source(spark)
    log = (
        spark.readStream.format("matchwood")
        .options(workload="begen:smoke", table="log", subscriptions="500", n_attributes="30")
        .options(records="300", every="7", batch="100")
        .load()
    )
    start = spark.createDataFrame(plain_tables.predicates(workload, 0, 500))
    query = match_stream(
        log, str(tmp_path / "out"), str(tmp_path / "state"), subscriptions=start, trigger=NOW
    )
    query.awaitTermination()
    matcher = mw.Matcher()
    matcher.add_many(plain_tables.predicates(workload, 0, 500))
    expected = {}
    for row in plain_tables.log(workload, 0, 300, 7).to_pylist():
        if row["kind"] == "subscribe":
            matcher.add(row["id"], row["expr"])
        elif row["kind"] == "unsubscribe":
            matcher.remove(row["id"])
        else:
            event = dict(zip(row["attributes"], row["values"], strict=True))
            expected[row["id"]] = sorted(matcher.match(event))
    found = committed(tmp_path / "out")
    assert found == expected
    assert sum(map(len, found.values())) > 200


def test_late_records_are_refused_or_taken_now(spark, tmp_path: Path) -> None:
    log = [
        {"offset": 5, "kind": "subscribe", "id": "a", "expr": "x = 1", "attributes": None},
        {"offset": 6, "kind": "event", "id": "e6", "expr": None, "attributes": {"x": "1"}},
        {"offset": 2, "kind": "event", "id": "e2", "expr": None, "attributes": {"x": "1"}},
        {"offset": 3, "kind": "unsubscribe", "id": "a", "expr": None, "attributes": None},
        {"offset": 7, "kind": "event", "id": "e7", "expr": None, "attributes": {"x": "1"}},
    ]
    for late, expected, n_letters in [
        ("refuse", {"e6": ["a"], "e7": ["a"]}, 2),
        ("now", {"e6": ["a"], "e2": ["a"], "e7": []}, 0),
    ]:
        work = tmp_path / late
        write_log(work / "log", log, 2)
        run(spark, work / "log", work, late=late)
        assert committed(work / "out") == expected
        letters = dead_letters(work / "out")
        assert len(letters) == n_letters
        assert all("is late" in row["message"] for row in letters)


def test_another_log_or_a_damaged_state_is_a_clear_error(spark, tmp_path: Path) -> None:
    write_log(tmp_path / "log", made_log(3, 40), 20)
    run(spark, tmp_path / "log", tmp_path)
    other = spark.readStream.schema(
        "offset BIGINT, kind STRING, id STRING, expr STRING, attributes STRUCT<price: DOUBLE>"
    ).json(str(tmp_path / "log"))
    with pytest.raises(mw.FormatError, match="expected a log with the columns"):
        match_stream(other, str(tmp_path / "out"), str(tmp_path / "state"))
    with pytest.raises(mw.EventError, match="expected a log with offset"):
        match_stream(other.drop("kind"), str(tmp_path / "out"), str(tmp_path / "new"))
    for file in (tmp_path / "state" / "snapshots").glob("*/snapshot/segments/*/g-*/*.npy"):
        file.write_bytes(file.read_bytes()[:-1])
    write_log(tmp_path / "log", made_log(3, 60), 20)
    with pytest.raises(Exception, match=r"FormatError|damaged"):
        run(spark, tmp_path / "log", tmp_path)


def test_a_damaged_snapshot_gives_way_to_the_one_before(spark, tmp_path: Path) -> None:
    log = made_log(4, 160)
    expected, _ = sequential(log)
    write_log(tmp_path / "log", log[:140], 20)  # seven batches: snapshots before 0, 3 and 6
    run(spark, tmp_path / "log", tmp_path)
    newest = sorted((tmp_path / "state" / "snapshots").iterdir())[-1]
    assert newest.name == f"{6:010}"
    (newest / "versions.arrow").write_bytes(b"nothing")
    write_log(tmp_path / "log", log, 20)
    run(spark, tmp_path / "log", tmp_path)
    assert committed(tmp_path / "out") == expected


def test_an_idle_stream_does_nothing(spark, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    run(spark, tmp_path / "log", tmp_path)
    assert committed(tmp_path / "out") == {}
    assert not list((tmp_path / "state").glob("changes/*"))
