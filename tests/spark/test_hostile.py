"""What a hostile or careless user brings: odd names, nulls everywhere, damaged folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.functions import col

import matchwood as mw
from matchwood.spark import indexes, match, match_sharded, match_stream
from matchwood.spark.indexes import fingerprint
from matchwood.spark.shards import match_sharded as sharded
from spark.bookshop_frames import lists
from spark.logs import committed, read_log, write_log

pytestmark = pytest.mark.spark

NOW = {"availableNow": True}


def told(found) -> list[tuple[str, str | None, str]]:
    return sorted([(row.of, row.id, row.error) for row in found.errors.collect()], key=str)


def test_columns_of_any_name_are_attributes(spark, tmp_path: Path) -> None:
    names = ["a.b", "sp ace", "ünïcode", "tick`s", "error", "subscription_ids", "matchwood_shard"]
    columns = {name: [1, 2, None] for name in names} | {"Price": [1, 2, 3], "price": [3, 2, 1]}
    events = spark.createDataFrame(pa.table({"event_id": [7, 8, 9]} | columns))
    texts = [f"`{name.replace('`', '``')}` = 1" for name in names]
    texts += ["Price = 3", "price = 3", "`a.b` IS NULL AND Price = 3"]
    wishes = spark.createDataFrame(pa.table({"id": list(range(len(texts))), "expr": texts}))
    expected = {7: [*range(len(names)), len(names) + 1], 8: [], 9: [len(names), len(names) + 2]}
    found = match(events, wishes)
    assert lists(found.matches) == expected
    assert told(found) == []
    sharded = match_sharded(events, wishes, str(tmp_path), shards=3)
    assert lists(sharded.matches) == expected
    assert told(sharded) == []
    twice = events.selectExpr("event_id", "error AS a", "error + 1 AS a")
    with pytest.raises(mw.EventError, match="expected every column once, found 'a' twice"):
        match(twice, wishes)


def test_rows_of_predicates_with_nulls_refuse_their_subscription_alone(
    spark, tmp_path: Path
) -> None:
    table = pa.table(
        {
            "id": pa.array([1, None, 3, 4, 5, 5], pa.int64()),
            "attribute": ["a", "a", None, "a", "a", "a"],
            "operator": ["=", "=", "=", None, "=", "IN"],
            "values": [[1], [1], [1], [1], [1], [1, None]],
        }
    )
    events = spark.createDataFrame(pa.table({"event_id": [1, 2], "a": [1, 2]}))
    wishes = spark.createDataFrame(table).repartition(3)
    refused = [("subscription", id_) for id_ in ("3", "4", "5", None)]
    for found in (match(events, wishes), match_sharded(events, wishes, str(tmp_path), shards=2)):
        assert lists(found.matches) == {1: [1], 2: []}
        assert [each[:2] for each in told(found)] == refused


def test_nulls_in_lists_are_part_of_the_fingerprint(spark) -> None:
    plain = "id bigint, attribute string, operator string, values array<bigint>"
    lists_of = [[1], [1, None], [None, 1]]
    rows = [fingerprint(spark.createDataFrame([(1, "a", "IN", v)], plain), {})[0] for v in lists_of]
    assert len(set(rows)) == len(lists_of)
    fields = plain.replace("array<bigint>", "array<struct<a: bigint, b: bigint>>")
    pairs = [[(1, None)], [(None, 1)]]
    names = [fingerprint(spark.createDataFrame([(1, "a", "IN", v)], fields), {})[0] for v in pairs]
    assert len(set(names)) == len(pairs)


def test_an_event_id_of_two_events_is_an_error_in_shards(spark, tmp_path: Path) -> None:
    rows = [("x", 1, 5), ("x", 2, 5), ("y", 1, 6), ("z", 2, 6), ("z", 2, 6)]
    events = spark.createDataFrame(rows, "event_id string, a int, b int")
    texts = ["a = 1", "a = 2", "b = 5", "b = 6"]
    wishes = spark.createDataFrame(pa.table({"id": [1, 2, 3, 4], "expr": texts}))
    found = match_sharded(events, wishes, str(tmp_path), shards=4)
    assert lists(found.matches) == {"y": [1, 4]}
    assert told(found) == [("event", "x", "EventError"), ("event", "z", "EventError")]


def test_shards_that_are_built_anew_under_a_name_have_their_own_routes(
    spark, tmp_path: Path
) -> None:
    events = spark.createDataFrame(pa.table({"event_id": list(range(6)), "a": list(range(6))}))
    for turn in (1, 5):  # other keys in other shards
        texts = [f"a = {turn * n % 6}" for n in range(40)]
        wishes = spark.createDataFrame(pa.table({"id": list(range(40)), "expr": texts}))
        found = match_sharded(events, wishes, str(tmp_path), name="mine", shards=turn)
        assert not found.reused
        assert lists(found.matches) == {
            each: [n for n in range(40) if turn * n % 6 == each] for each in range(6)
        }
        shutil.rmtree(found.folder)


def test_damaged_shards_are_an_error_when_they_are_found_again(spark, tmp_path: Path) -> None:
    events = spark.createDataFrame(pa.table({"event_id": [1], "a": [1]}))
    texts = [f"a = {n}" for n in range(40)]
    wishes = spark.createDataFrame(pa.table({"id": list(range(40)), "expr": texts}))

    def again():
        return match_sharded(events, wishes, str(tmp_path), shards=3)

    folder = again().folder
    found = again()
    assert found.reused
    damages = {
        "shard 1: .*checksum": max(
            (folder / found.shards[1].folder).rglob("*.npy"), key=lambda file: file.stat().st_size
        ),
        "routes does not fit": folder / "route_shard.npy",
    }
    for message, file in damages.items():
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(mw.FormatError, match=message):
            again()
        file.write_bytes(whole)
    assert again().reused
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(mw.FormatError, match="remove the folder to build anew"):
        again()


@pytest.mark.parametrize("damage", ["snapshot/checkpoint.json", "snapshot", "refused.arrow"])
def test_an_index_without_a_part_is_built_anew(spark, tmp_path: Path, damage: str) -> None:
    events = spark.createDataFrame(pa.table({"event_id": [1], "a": [1]}))
    wishes = spark.createDataFrame(pa.table({"id": [1], "expr": ["a = 1"]}))
    first = match(events, wishes, snapshots=str(tmp_path))
    part = first.index.folder.parent / damage
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    again = match(events, wishes, snapshots=str(tmp_path))
    assert not again.index.reused
    assert lists(again.matches) == {1: [1]}


def test_who_builds_the_same_first_wins_and_what_is_half_built_gives_way(
    spark, tmp_path: Path, monkeypatch
) -> None:
    events = spark.createDataFrame(pa.table({"event_id": [1], "a": [1]}))
    wishes = spark.createDataFrame(pa.table({"id": [1], "expr": ["a = 1"]}))
    for kept, build in (("a", sharded.build_shards), ("b", indexes.built_by_tasks)):
        folder, rivals = str(tmp_path / kept), []

        def find(folder: str = folder, kept: str = kept):
            if kept == "a":
                return match_sharded(events, wishes, folder, shards=2)
            return match(events, wishes, snapshots=folder)

        def overtaken(*arguments, build=build, rivals=rivals, find=find):
            if not rivals:
                rivals.append(None)
                rivals.append(find())
            return build(*arguments)

        monkeypatch.setattr(sharded if kept == "a" else indexes, build.__name__, overtaken)
        found = find()
        monkeypatch.undo()
        inside = list(Path(folder).iterdir())
        assert len(inside) == 1  # nothing is left of the slower one
        assert lists(found.matches) == lists(rivals[1].matches) == {1: [1]}
        shutil.rmtree(inside[0])
        (inside[0] / "shard-00000").mkdir(parents=True)  # somebody was killed here
        assert lists(find().matches) == {1: [1]}
        assert lists(find().matches) == {1: [1]}


def test_a_new_stream_refuses_the_output_of_another(spark, tmp_path: Path) -> None:
    log = [{"offset": 0, "kind": "event", "id": "e0", "expr": None, "attributes": {"x": "1"}}]
    write_log(tmp_path / "log", log, 1)
    (tmp_path / "log" / "999.json").touch()  # a batch without a record
    frame = read_log(spark, tmp_path / "log")
    out, state = str(tmp_path / "out"), str(tmp_path / "state")
    for _ in range(2):
        match_stream(frame, f"file://{out}", state, trigger=NOW).awaitTermination()
    assert committed(tmp_path / "out") == {"e0": []}
    for settings, message in [
        ({"state": f"{state}-2"}, "expected output of the stream that has this state"),
        ({"state": "hdfs://host/state"}, "'hdfs://host/state' cannot be opened"),
        ({"snapshot_every": 0}, "expected snapshot_every from 1"),
    ]:
        with pytest.raises(mw.MatchwoodError, match=message):
            match_stream(frame, out, **({"state": state} | settings))
    numbered = read_log(spark, tmp_path / "log").withColumn("id", col("offset"))
    wishes = spark.createDataFrame(pa.table({"id": ["a"], "expr": ["x = 1"]}))
    with pytest.raises(mw.SubscriptionError, match="expected subscriptions named by bigint"):
        match_stream(numbered, f"{out}-3", f"{state}-3", subscriptions=wishes)
