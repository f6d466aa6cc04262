"""Snapshots on stores that are no file systems; addresses that are no folders."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchwood as mw
from matchwood.spark.folders import local_folder
from matchwood.spark.stores import exists, is_address, local_copy, read_beside, upload
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
    upload(saved(tmp_path / "one", "a = 1", "a > 0"), store, {"more": b"bytes"})
    assert exists(store)
    assert read_beside(store, "more") == b"bytes"
    first = local_copy(store)
    assert opened(Location(store))[0].match({"a": 1}) == [0, 1]
    assert local_copy(store) == first
    upload(saved(tmp_path / "two", "a = 2"), store)
    assert local_copy(store) != first
    assert opened(Location(store))[0].match({"a": 2}) == [0]
    assert len(list(first.parent.iterdir())) == 2


def test_a_store_that_nothing_opens_is_a_clear_error() -> None:
    for address in ("dbfs:/x", "nosuchscheme://x"):
        with pytest.raises(mw.StorageError, match="that pyarrow or fsspec opens"):
            local_copy(address)
