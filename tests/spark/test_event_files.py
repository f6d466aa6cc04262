"""Events from Parquet files that workers open give what a DataFrame of them gives."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.errors import EventError, FormatError, StorageError
from matchwood.spark import event_files, match
from matchwood.spark.event_files import Piece, cut_groups, read_piece
from spark.bookshop_frames import events_frame, lists, shop, texts_frame

TEXTS, EVENTS = shop(3000, 300)
SIZES = st.lists(st.integers(0, 300_000), max_size=6)


@given(SIZES, st.integers(1, 32))
def test_pieces_are_all_rows_once_and_not_many_more_than_asked_for(sizes, least: int) -> None:
    groups = [("f", number, n) for number, n in enumerate(sizes)]
    pieces = cut_groups(groups, least)
    for _, number, n in groups:
        mine = [each for each in pieces if each.group == number]
        ends = [each.last for each in mine]
        assert [each.first for each in mine] == [0, *ends][: len(ends)]
        assert (ends[-1] if ends else 0) == n
    assert all(each.first < each.last for each in pieces)
    assert len(pieces) <= least + len(groups)


def test_a_piece_is_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "ROWS", 7)
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"event_id": list(range(100))}), path, row_group_size=40)
    for group, n in enumerate((40, 40, 20)):
        for first, last in ((0, n), (0, 1), (6, 8), (7, 14), (n - 1, n)):
            batches = list(read_piece(Piece(path, group, first, last)))
            assert max(each.num_rows for each in batches) <= 7
            found = [row for each in batches for row in each.column(0).to_pylist()]
            assert found == list(range(40 * group + first, 40 * group + last))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("shape", "times"),
    [("wide", "INT96"), ("struct", "TIMESTAMP_MICROS"), ("map", "INT96"), ("arrays", "INT96")],
)
def test_files_give_what_their_frame_gives(spark, tmp_path: Path, shape: str, times: str) -> None:
    path = str(tmp_path / "events.parquet")
    spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    try:
        events_frame(spark, EVENTS, shape).write.parquet(path)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    wishes = texts_frame(spark, TEXTS)
    found = match(path, wishes)
    expected = lists(match(spark.read.parquet(path), wishes).matches)
    assert sum(map(len, expected.values())) > 50
    assert lists(found.matches) == expected
    assert found.errors.count() == 0


@pytest.mark.spark
def test_files_of_other_writers(spark, tmp_path: Path) -> None:
    """Large strings, dictionaries, nanoseconds, several row groups, string ids."""
    n = 1000
    moments = pa.array([datetime(2024, 1, 1 + i % 28) for i in range(n)], pa.timestamp("ns"))
    rows = pa.table(
        {
            "event_id": pa.array([f"e{i}" for i in range(n)], pa.large_string()),
            "kind": pa.array(["abc"[i % 3] for i in range(n)]).dictionary_encode(),
            "at": moments,
            "size": pa.array(range(n), pa.int16()),
        }
    )
    path = tmp_path / "events.parquet"
    pq.write_table(rows, path, row_group_size=100, version="2.6")
    texts = ["kind = 'b' AND size >= 500", "at < timestamp'2024-01-03 00:00:00'", "size = 7"]
    found = lists(match(f"file:{path}", texts_frame(spark, texts)).matches)
    expected = {
        f"e{i}": [
            number
            for number, holds in enumerate((i % 3 == 1 and i >= 500, i % 28 < 2, i == 7))
            if holds
        ]
        for i in range(n)
    }
    assert found == expected


@pytest.mark.spark
def test_bad_events_are_rows_of_errors(spark, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    names = pa.array([["a"], ["a"], ["a", "a"], None])
    values = pa.array([["5"], ["five"], ["1", "2"], None])
    pq.write_table(
        pa.table({"event_id": [0, 1, 2, 3], "attributes": names, "values": values}), path
    )
    found = match(str(path), texts_frame(spark, ["a > 3"]))
    assert lists(found.matches) == {0: [0], 1: [], 3: []}
    assert {row.id for row in found.errors.collect()} == {"2"}


@pytest.mark.spark
def test_what_cannot_be_read_is_refused(spark, tmp_path: Path) -> None:
    wishes = texts_frame(spark, ["a > 3"])
    with pytest.raises(EventError, match="found nothing at"):
        match(str(tmp_path / "none.parquet"), wishes)
    with pytest.raises(StorageError, match="all workers can open"):
        match("s3://bucket/events.parquet", wishes)
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(FormatError, match="expected a Parquet file"):
        match(str(tmp_path / "bad.parquet"), wishes)
    (tmp_path / "parts" / "day=1").mkdir(parents=True)
    with pytest.raises(FormatError, match="day=1"):
        match(str(tmp_path / "parts"), wishes)
    old = pa.table({"event_id": [1]}).replace_schema_metadata({"org.apache.spark.legacyINT96": ""})
    pq.write_table(old, tmp_path / "old.parquet")
    with pytest.raises(FormatError, match="Julian"):
        match(str(tmp_path / "old.parquet"), wishes)
    (tmp_path / "mixed").mkdir()
    for name, kind in (("a", pa.int64()), ("b", pa.string())):
        table = pa.table({"event_id": pa.array([1]), "a": pa.array([1], pa.int64()).cast(kind)})
        pq.write_table(table, tmp_path / "mixed" / f"{name}.parquet")
    with pytest.raises(FormatError, match=r"b\.parquet"):
        match(str(tmp_path / "mixed"), wishes)
