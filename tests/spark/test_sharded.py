"""Shards: the same answer as one index, whatever their number; bounded and kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match_sharded, read_workload
from matchwood.workload import find_workload, plain_tables
from spark.bookshop_frames import events_frame, lists, shop, texts_frame

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(2500, 200)


def test_texts_in_shards_give_the_local_answer(spark, tmp_path: Path) -> None:
    texts = [*TEXTS, "rating IS NULL", "price <", "price = 'x'"]
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    expected = dict(enumerate(matcher.match_many(EVENTS)))
    assert sum(map(len, expected.values())) > 100
    for shape, shards in (("wide", 7), ("map", 7), ("arrays", 1)):
        found = match_sharded(
            events_frame(spark, EVENTS, shape), texts_frame(spark, texts), str(tmp_path),
            shards=shards,
        )  # fmt: skip
        assert lists(found.matches) == expected
        assert sorted(row.id for row in found.errors.collect()) == ["2501", "2502"]
        assert len(found.shards) == shards
        assert sum(each.count for each in found.shards) == 2501
        assert found.reused is (shape == "map")
    counts = sorted(each.count for each in found.shards)
    assert counts[0] > 0


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
    spread = match_sharded(events, shuffled, str(tmp_path / "b"), shards=5)
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


def test_the_cap_decides_the_number_of_shards_and_bad_events_are_told_once(
    spark, tmp_path: Path
) -> None:
    events = pa.table(
        {
            "event_id": [1, 2, 3, None],
            "attributes": pa.array(
                [[("genre", "art")], [("price", "much")], [], []],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )
    found = match_sharded(
        spark.createDataFrame(events), texts_frame(spark, TEXTS), str(tmp_path), max_bytes=1 << 20
    )
    assert len(found.shards) > 2
    assert max(each.bytes for each in found.shards) < 1 << 20
    assert set(lists(found.matches)) == {1, 3}
    assert sorted(str(row.id) for row in found.errors.collect()) == ["2", "None"]
