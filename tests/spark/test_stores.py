"""Snapshots on stores that are no file systems; addresses that are no folders."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchwood as mw
from matchwood.engine.snapshots.versions import load_version, save_version
from matchwood.spark.folders import local_folder
from matchwood.spark.stores import exists, inside, is_address, local_copy, read_beside, upload
from matchwood.spark.worker import Location, opened

ADDRESSES = ["dbfs:/x", "s3://bucket/x", "abfss://c@a.net/x", "hdfs:///x", "DBFS:/x", "memory://x"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch) -> str:
    """An address on a store of fsspec that lives in this process."""
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # copies of this test alone
    memory = fsspec.filesystem("memory")
    if memory.exists("/rules"):
        memory.rm("/rules", recursive=True)
    return "memory://rules"


def saved(folder: Path, *texts: str) -> Path:
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    matcher.save(folder)
    return folder


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_never_a_local_folder(address: str, tmp_path: Path, monkeypatch) -> None:
    # before: dbfs:/x was the folder "dbfs:" of the working directory
    monkeypatch.chdir(tmp_path)
    assert is_address(address)
    with pytest.raises(mw.StorageError, match="expected state as a path"):
        local_folder(address, "state")
    with pytest.raises(mw.StorageError):
        local_copy(address) if address.lower().startswith("dbfs") else local_folder(address, "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/x/y", "x", "file:/x", "file:///x", "./a:b", "/a:b/c"])
def test_a_path_is_no_address(path: str) -> None:
    assert not is_address(path)
    assert local_folder(path, "state").is_absolute()


def test_a_snapshot_on_a_store_is_copied_once_and_again_when_it_changes(
    store: str, tmp_path: Path
) -> None:
    assert not exists(store)
    with pytest.raises(
        mw.StorageError, match="expected a snapshot at 'memory://rules', found none"
    ):
        local_copy(store)
    upload(saved(tmp_path / "whole" / "one", "a = 1", "a > 0"), store)
    assert exists(store)
    first = local_copy(store)
    assert opened(Location(store))[0].match({"a": 1}) == [0, 1]
    assert local_copy(store) == first
    upload(saved(tmp_path / "two", "a = 2"), store)
    assert local_copy(store) != first
    assert opened(Location(store))[0].match({"a": 2}) == [0]
    assert len(list(first.parent.iterdir())) == 2


def test_versions_on_a_store_share_their_segments(store: str, tmp_path: Path) -> None:
    matcher = mw.Matcher()
    matcher.add_many([(n, f"a = {n % 50}") for n in range(5000)])
    folders = [tmp_path / "one" / "snapshot", tmp_path / "two" / "snapshot"]
    save_version(matcher, folders[0])
    (folders[0].parent / "more").write_bytes(b"bytes")
    upload(folders[0], store, folders[0].parent)
    read_beside(store, tmp_path)
    assert (tmp_path / "more").read_bytes() == b"bytes"
    first = local_copy(store)
    assert opened(Location(store))[0].match({"a": 7})[:2] == [7, 57]
    changed = load_version(folders[0])
    changed.remove(7)
    changed.add(5000, "a = 7")
    save_version(changed, folders[1], folders[0])
    old = {file: file.stat().st_ino for file in first.rglob("*.npy")}
    upload(folders[1], store)
    second = local_copy(store)
    assert opened(Location(store))[0].match({"a": 7})[::99] == [57, 5000]
    again = [file for file in second.rglob("*.npy") if file.stat().st_ino in old.values()]
    assert len(again) == len(old), "the segment was copied again"
    changed.clear()
    for n, text in enumerate(["a = 1", "a = 2"]):
        changed.add(n, text)
        save_version(changed, tmp_path / str(n))
        upload(tmp_path / str(n), store)
    memory = pytest.importorskip("fsspec").filesystem("memory")
    inside_store = memory.ls("/rules/segments", detail=False)
    assert len([name for name in inside_store if not name.endswith(".npy")]) <= 3
    assert opened(Location(store))[0].match({"a": 2}) == [1]


def test_a_store_that_nothing_opens_is_a_clear_error() -> None:
    for address in ("dbfs:/x", "nosuchscheme://x"):
        with pytest.raises(mw.StorageError, match="that pyarrow or fsspec opens"):
            local_copy(address)


def test_options_of_an_address_stay_at_its_end() -> None:
    assert inside("s3://b/x/?region=r", "y") == "s3://b/x/y?region=r"
    assert inside("memory://x", "y") == "memory://x/y"


@pytest.mark.spark
@pytest.mark.slow
def test_indexes_in_an_object_store_are_found_again_and_read_by_workers(
    spark, bucket: str, tmp_path: Path, monkeypatch
) -> None:
    from pyspark.sql.functions import struct

    from matchwood.spark import Index, indexes, match

    events = spark.sql("SELECT id AS event_id, CAST(id AS INT) AS a FROM range(3)")
    rules = spark.sql("SELECT 7 AS id, 'a = 1' AS expr UNION ALL SELECT 8, 'a >'")
    expected = {0: [], 1: [7], 2: []}
    for reused in (False, True):
        monkeypatch.setattr(indexes, "_session_folder", str(tmp_path / str(reused)))
        found = match(events, rules, snapshots=bucket)
        assert found.index.reused == reused
        assert {row.event_id: row.subscription_ids for row in found.matches.collect()} == expected
        assert [row.id for row in found.errors.collect()] == ["8"]
    again = match(events, found.index.address).matches.collect()
    assert {row.event_id: row.subscription_ids for row in again} == expected
    index = Index.build(rules, events, path=inside(bucket, "live"))
    index.refresh(rules.selectExpr("id + 1 AS id", "expr"))
    rows = events.select("event_id", index.match(struct("a")).alias("found")).collect()
    assert {row.event_id: row.found.subscription_ids for row in rows} == {0: [], 1: [8], 2: []}


@pytest.mark.spark
@pytest.mark.slow
def test_shards_in_an_object_store_are_built_found_again_and_read_by_workers(
    spark, bucket: str
) -> None:
    from matchwood.spark import match_sharded

    events = spark.sql("SELECT id AS event_id, CAST(id AS INT) AS a FROM range(3)")
    rules = spark.sql("SELECT 7 AS id, 'a = 1 OR a = 2' AS expr UNION ALL SELECT 8, 'a >'")
    folder = inside(bucket, "shards")
    for reused in (False, True):
        found = match_sharded(events, rules, folder, shards=2)
        assert found.reused == reused
        rows = found.matches.collect()
        assert {row.event_id: row.subscription_ids for row in rows} == {0: [], 1: [7], 2: [7]}
        assert [row.id for row in found.errors.collect()] == ["8"]
    assert str(found.folder).startswith("s3://")
    more = rules.selectExpr("id", "'a = 0' AS expr")
    rows = match_sharded(events, more, folder, shards=2).matches.collect()
    assert {row.event_id: row.subscription_ids for row in rows} == {0: [7, 8], 1: [], 2: []}
