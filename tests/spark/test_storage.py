"""Where streams keep things: the same laws for folders and for stores."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import matchwood as mw
from matchwood.spark.exclusive import create_on
from matchwood.spark.storage import Folder, Storage, Store, open_storage
from matchwood.spark.stores import inside, open_store


@pytest.fixture(params=["folder", "file:", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def somewhere(request, tmp_path: Path) -> Storage:
    if request.param == "s3":
        return open_storage(
            inside(request.getfixturevalue("bucket"), f"places/{tmp_path.name}"), "x"
        )
    if request.param == "memory":
        pytest.importorskip("fsspec")
        return open_storage(f"memory://{tmp_path.name}", "x")
    return open_storage(f"{'file://' if request.param == 'file:' else ''}{tmp_path}/state", "x")


def test_a_file_is_put_read_listed_and_removed(somewhere: Storage) -> None:
    assert somewhere.read("a/b") is None
    assert not somewhere.exists("a/b")
    assert somewhere.names("a") == []
    somewhere.remove("a/b")
    for content in (b"one", b"two"):
        somewhere.put("a/b", content)
        assert somewhere.read("a/b") == content
    somewhere.put("a/c/d", b"three")
    assert somewhere.names("a") == ["b", "c"]
    assert somewhere.exists("a/b")
    assert not somewhere.is_old("a")
    somewhere.remove("a/b")
    assert somewhere.names("a") == ["c"]
    somewhere.remove("a")
    assert somewhere.read("a/c/d") is None
    again = pickle.loads(pickle.dumps(somewhere))
    again.put("x", b"")
    assert somewhere.read("x") == b""


def test_of_many_that_create_a_name_one_succeeds(somewhere: Storage) -> None:
    def create(n: int) -> bool:
        try:
            somewhere.create("epochs/1", b"%d" % n)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(create, range(24)))
    assert sum(made) == 1
    assert somewhere.read("epochs/1") == b"%d" % made.index(True)
    assert somewhere.names("epochs") == ["1"]


def test_a_folder_is_whole_or_not_there(somewhere: Storage) -> None:
    matcher = mw.Matcher()
    matcher.add("s", "a = 1")

    def make(fails: bool) -> None:
        with somewhere.made("snapshots/7", "last") as aside:
            matcher.save(aside / "snapshot")
            if fails:
                raise KeyError
            (aside / "last").write_bytes(b"x")

    with pytest.raises(KeyError):
        make(fails=True)
    assert not somewhere.exists("snapshots/7/last")
    make(fails=False)
    assert somewhere.names("snapshots") == ["7"]
    assert somewhere.read("snapshots/7/last") == b"x"
    found = mw.Matcher.load(somewhere.index("snapshots/7/snapshot"))
    assert found.match({"a": 1}) == ["s"]


@pytest.mark.parametrize("address", ["dbfs:/x", "DBFS:/x", "nosuchscheme://x"])
def test_an_address_that_nothing_opens_is_no_folder(
    address: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mw.StorageError, match="that pyarrow or fsspec opens"):
        open_storage(address, "state")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_tell_two_drivers_apart_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    address = f"local://{tmp_path}/x"
    store, path = open_store(address)
    with pytest.raises(mw.StorageError, match="only one of two drivers can create a file"):
        create_on(store, path, b"", address)


def test_what_spark_is_given_has_no_options_and_a_scheme() -> None:
    assert Store("s3a://bucket/x?region=r").spark("checkpoint") == "s3a://bucket/x/checkpoint"
    assert Folder("/x").spark("checkpoint") == "file:///x/checkpoint"
