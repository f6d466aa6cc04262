"""Shards: the same answer as one index, whatever their number; bounded and kept."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match_sharded, read_workload
from matchwood.workload import find_workload, plain_tables
from spark.bookshop_frames import events_frame, lists, shop, texts_frame

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(1200, 400)


def test_texts_in_shards_give_the_local_answer(spark, tmp_path: Path) -> None:
    """Branches of an OR live apart; one that would be refused is refused as a whole."""
    branched = [f"{a} OR {b}" for a, b in zip(TEXTS[:100], TEXTS[100:200], strict=True)]
    texts = [*TEXTS, *branched, "rating IS NULL", "price <", "price = 'x' OR genre = 'drama'"]
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    expected = dict(enumerate(matcher.match_many(EVENTS)))
    assert sum(map(len, expected.values())) > 100
    # types of columns are part of the fingerprint; maps and arrays of texts have none
    for shape, shards, reused in (
        ("wide", 4, False),
        ("map", 4, False),
        ("arrays", 4, True),
        ("arrays", 1, False),
    ):
        events = events_frame(spark, EVENTS, shape)
        if shape == "wide":
            events = events.withColumn("unused", events.event_id)
        found = match_sharded(events, texts_frame(spark, texts), str(tmp_path), shards=shards)
        refused = ["1301", "1302"] if shape == "wide" else ["1301"]  # the others declare no types
        assert lists(found.matches) == {
            event: [id_ for id_ in ids if str(id_) not in refused]
            for event, ids in expected.items()
        }
        assert "unused" not in found.routed.columns  # only what is used is sent to shards
        assert sorted(row.id for row in found.errors.collect()) == refused
        assert len(found.shards) == shards
        n_held, n_taken = sum(each.count for each in found.shards), 1303 - len(refused)
        assert n_held == n_taken if shards == 1 else n_taken < n_held < 2 * n_taken
        assert found.reused is reused


def test_tables_of_predicates_in_shards_and_events_skip_shards(spark, tmp_path: Path) -> None:
    options = {"subscriptions": 4000, "events": 60, "n_attributes": 40, "equality": 0.8}
    workload = find_workload("begen:smoke", n_attributes=40, equality=0.8)
    matcher = mw.Matcher()
    matcher.add_many(plain_tables.predicates(workload, 0, 4000))
    expected = dict(enumerate(matcher.match_many(plain_tables.wide(workload, 0, 60))))
    subscriptions = read_workload(spark, "begen:smoke", **options, partitions=3)
    events = read_workload(spark, "begen:smoke", "events", **options)
    shuffled = subscriptions.repartition(4, "attribute")
    grouped = match_sharded(events, subscriptions, str(tmp_path / "a"), shards=30, grouped=True)
    spread = match_sharded(events, shuffled, str(tmp_path / "b"), shards=5, name="mine")
    assert spread.folder.name == "mine"
    assert lists(grouped.matches) == expected
    assert lists(spread.matches) == expected
    assert [each.count for each in grouped.shards] != [0] * 30
    sent = grouped.routed.count()
    assert sent < 0.75 * 60 * 30  # of 60 events times 30 shards
    again = match_sharded(events, subscriptions, str(tmp_path / "a"), shards=30, grouped=True)
    assert again.reused
    shutil.rmtree(next(again.folder.glob("shard-*")))
    with pytest.raises(mw.StorageError, match="found none of number"):
        match_sharded(events, subscriptions, str(tmp_path / "a"), shards=30, grouped=True)


def test_an_attribute_of_several_kinds_has_no_type_in_any_shard(spark, tmp_path: Path) -> None:
    others = [f"y = {n}" for n in range(30)]
    either = "(x = 5 OR x = 'v') AND z > 0"
    events = [{"x": 5, "z": 1}, {"x": "v", "z": 2}, {"x": True}, {"x": 7, "y": 3}, {"x": 6}] * 4
    rows = [(n, json.dumps(each)) for n, each in enumerate(events)]
    frame = spark.createDataFrame(rows, "event_id bigint, attributes string")
    for texts in ([*others, either], [*others, either, "x = TRUE", "x = 7"]):  # then an increment
        matcher = mw.Matcher()
        matcher.add_many(list(enumerate(texts)))
        found = match_sharded(frame, texts_frame(spark, texts), str(tmp_path), shards=4)
        assert lists(found.matches) == dict(enumerate(matcher.match_many(events)))
        assert found.errors.count() == 0


def test_texts_in_json_are_routed_and_bad_events_are_told_once(spark, tmp_path: Path) -> None:
    texts = ["genre = 'art'", "price = 5", "user.age = 30 AND price < 9", "price > 5", "used"]
    texts += ["genre = 'art' AND price = 5.0", "seen = DATE '2026-01-02'", "genre IS NULL"]
    rows = [
        '{"genre": "art", "price": 5, "used": true}', '{"price": 5.0, "user": {"age": 30}}',
        '{"price": 6, "seen": "2026-01-02", "used": false}', "{}", "no JSON", '{"price": "much"}',
        '{"genre": null, "price": 5, "more": [1, 2]}',
    ]  # fmt: skip
    events = pa.table({"event_id": [*range(7), None], "attributes": [*rows, "{}"]})
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    good = [json.loads(rows[row]) for row in (0, 1, 2, 3, 6)]
    good[2]["seen"] = date(2026, 1, 2)
    expected = dict(zip((0, 1, 2, 3, 6), matcher.match_many(good), strict=True))
    assert sum(map(len, expected.values())) == 13
    found = match_sharded(
        spark.createDataFrame(events), texts_frame(spark, texts), str(tmp_path), shards=5
    )
    assert lists(found.matches) == expected
    assert sorted(str(row.id) for row in found.errors.collect()) == ["4", "5", "None"]


@pytest.mark.parametrize("shape", ["wide", "map", "json"])
def test_attributes_that_are_only_tested_for_presence_are_routed(
    spark, shape: str, tmp_path: Path
) -> None:
    texts = ["rating IS NOT NULL", "rating IS NOT NULL AND genre IS NULL", "genre IS NOT NULL"]
    rows = [{"rating": "5"}, {"rating": "5", "genre": "art"}, {"other": "x", "genre": "art"}]
    if shape == "json":
        table = pa.table({"event_id": [0, 1, 2], "attributes": [json.dumps(row) for row in rows]})
        events = spark.createDataFrame(table)
    else:
        events = events_frame(spark, rows, shape)
    found = match_sharded(events, texts_frame(spark, texts), str(tmp_path), shards=3)
    assert lists(found.matches) == {0: [0, 1], 1: [0, 2], 2: [2]}


@pytest.mark.slow
def test_computed_attributes_in_shards_give_the_local_answer(spark, tmp_path: Path) -> None:
    computed = [
        "lower(genre) = 'classics'", "price * 2 BETWEEN 20 AND 60", "length(genre) > 5",
        "coalesce(rating, 0) > 3", "price = rating", "(price > 20) IS UNKNOWN",
        "CASE WHEN price > 20 THEN 'dear' ELSE 'cheap' END = 'dear'", "price / 0 > 1",
        "genre RLIKE '^c' AND price < 30", "rating IS DISTINCT FROM 4",
    ]  # fmt: skip
    texts = [*TEXTS[:500], *computed]
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    matches = matcher.match_many(EVENTS)
    expected = dict(enumerate(matches))
    failed = [("attribute", str(event)) for event in sorted(matches.warnings)]
    assert failed
    ids = {id_ for found in expected.values() for id_ in found}
    assert len(ids & set(range(500, len(texts)))) >= 6
    for shards in (1, 5):
        found = match_sharded(
            events_frame(spark, EVENTS, "wide"), texts_frame(spark, texts), str(tmp_path),
            shards=shards,
        )  # fmt: skip
        errors = [(row["of"], row["id"]) for row in found.errors.collect()]
        assert sorted(errors, key=lambda each: int(each[1])) == failed
        assert lists(found.matches) == expected


def test_an_id_that_comes_twice_is_taken_once(spark, tmp_path: Path) -> None:
    rows = [(1, "price = 5"), (1, "genre = 'art'"), (2, "price = 5")]
    wishes = spark.createDataFrame(rows, "id bigint, expr string").repartition(3)
    events = spark.createDataFrame([(1, 5, "art")], "event_id bigint, price int, genre string")
    found = match_sharded(events, wishes, str(tmp_path), shards=3)
    assert lists(found.matches) == {1: [1, 2]}
    (error,) = found.errors.collect()
    assert (error.id, error.of) == ("1", "subscription")
    assert "found 1 2 times" in error.message


def test_a_cap_below_what_can_be_measured_is_refused(spark, tmp_path: Path) -> None:
    events = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    with pytest.raises(mw.MatchwoodError, match="expected max_bytes from"):
        match_sharded(events, texts_frame(spark, TEXTS), str(tmp_path), max_bytes=1 << 20)
