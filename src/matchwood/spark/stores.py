"""Indexes on stores that are no file systems: s3, gs, abfs, hdfs, and what fsspec knows.

    s3://bucket/rules/               a version of an index (`engine.snapshots.versions`)
    ├── checkpoint.json              put last
    ├── segments/s-5f3a.../...
    └── beside/                      what else belongs to it
    s3://bucket/other/               or as Matcher.save writes a folder
    ├── manifest.json                put last
    └── g-5f3a.../*.npy

    $TMPDIR/matchwood-copies-UID/HASH/         a copy on every host that asks, mapped by its workers
    $TMPDIR/matchwood-copies-UID/s-5f3a.../    a segment, copied once for all versions that have it

An index is read where it is used: every host copies it once, and nothing goes through the driver.
Segments and generations of arrays are never written again, so an index that is replaced under its
address is another copy, of which only new segments travel.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from matchwood.engine.durable.segment_files import FOLDER, NAME, segment_names
from matchwood.engine.snapshots.snapshot import read_manifest
from matchwood.engine.snapshots.versions import is_version, link_tree
from matchwood.errors import StorageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_HADOOP_S3 = re.compile(r"^s3[an]://")
_MANIFEST = "manifest.json"
_BESIDE = "beside"
_UNUSED = 24 * 3600
"""Seconds after which a copy that no task has opened is removed."""


def is_address(path: str) -> bool:
    """Whether a path begins with a scheme other than `file:`."""
    found = _SCHEME.match(path)
    return found is not None and found[1].lower() != "file"


def inside(address: str, name: str) -> str:
    """The address of something inside a folder; options after `?` stay at the end."""
    path, mark, options = address.partition("?")
    return f"{path.rstrip('/')}/{name}{mark}{options}"


def local_copy(address: str) -> Path:
    """The folder of this host that has the index of an address, copied now if need be."""
    store, path = open_store(address)
    kind, manifest = _manifest(store, path, address)
    name = hashlib.blake2b(address.encode() + b"\0" + manifest, digest_size=12).hexdigest()
    home = _copies()
    folder = home / name
    if not folder.exists():
        _remove_unused(home)

        def fill(aside: Path) -> None:
            aside.mkdir()
            (aside / kind).write_bytes(manifest)
            if kind == _MANIFEST:
                generation = str(read_manifest(aside)["generation"])
                _copy_folder(store, f"{path}/{generation}", None, str(aside / generation))
                return
            (aside / FOLDER).mkdir()
            for segment in segment_names(aside):
                copy = home / segment
                source = f"{path}/{FOLDER}/{segment}"
                _make(copy, partial(_copy_folder, store, source, None), address)
                os.utime(copy)
                link_tree(copy, aside / FOLDER / segment)
            for file in _files_in(store, f"{path}/{FOLDER}"):
                with store.open_input_stream(f"{path}/{FOLDER}/{file}") as opened:
                    (aside / FOLDER / file).write_bytes(opened.read())

        _make(folder, lambda aside: fill(Path(aside)), address)
    os.utime(folder)
    return folder


def _make(folder: Path, fill: Callable[[str], None], address: str) -> None:
    """A folder that is whole or not there; another process may make the same at the same time."""
    if folder.exists():
        return
    aside = folder.with_name(f".{uuid.uuid4().hex}")
    try:
        fill(str(aside))
        aside.rename(folder)
    except OSError as error:
        if not folder.exists():  # otherwise another worker was faster
            raise StorageError(f"{shown(address)!r} cannot be copied: {error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _manifest(store: Any, path: str, address: str) -> tuple[str, bytes]:
    """The file that says what an index is made of, and its content."""
    for name in (NAME, _MANIFEST):
        try:
            with store.open_input_stream(f"{path}/{name}") as file:
                return name, bytes(file.read())
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{shown(address)!r} cannot be read: {error}") from error
    raise StorageError(
        f"expected a snapshot at {shown(address)!r}, found none: save one there first"
    )


def _files_in(store: Any, path: str) -> list[str]:
    """Names of the files directly in a folder."""
    from pyarrow.fs import FileSelector, FileType

    found = store.get_file_info(FileSelector(path, allow_not_found=True))
    return [each.base_name for each in found if each.type == FileType.File]


def exists(address: str) -> bool:
    """Whether an index is there."""
    store, path = open_store(address)
    try:
        return any(_is_file(store, f"{path}/{name}") for name in (NAME, _MANIFEST))
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be read: {error}") from error


def _is_file(store: Any, path: str) -> bool:
    from pyarrow.fs import FileType

    return bool(store.get_file_info(path).type == FileType.File)


def read_beside(address: str, folder: Path) -> None:
    """Copy what `upload` put beside an index into a folder."""
    store, path = open_store(address)
    aside = folder / _BESIDE
    try:
        _copy_folder(store, f"{path}/{_BESIDE}", None, str(aside))
        for each in aside.iterdir():
            each.rename(folder / each.name)
        aside.rmdir()
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be read: {error}") from error


def upload(folder: Path, address: str, whole_folder: Path | None = None) -> None:
    """Put an index under an address; the one before is replaced when all of it is there.

    Segments that are there already are not sent again; those that neither this version nor the one
    before has are removed.

    whole_folder  the folder that has the index and other files, which go with it
    """
    store, path = open_store(address)
    try:
        if whole_folder is not None:
            for each in whole_folder.rglob("*"):
                if each.is_file() and folder not in each.parents:
                    _put_file(store, each, f"{path}/{_BESIDE}/{each.relative_to(whole_folder)}")
        if not is_version(folder):
            generation = str(read_manifest(folder)["generation"])
            store.create_dir(f"{path}/{generation}", recursive=True)
            _copy_folder(None, str(folder / generation), store, f"{path}/{generation}")
            _put_file(store, folder / _MANIFEST, f"{path}/{_MANIFEST}")
            return
        before = b""
        if _is_file(store, f"{path}/{NAME}"):
            before = _manifest(store, path, address)[1]
        base, there = folder / FOLDER, f"{path}/{FOLDER}"
        for segment in segment_names(folder):
            if not _is_file(store, f"{there}/{segment}/{_MANIFEST}"):
                _put_segment(store, base / segment, f"{there}/{segment}")
        for file in base.glob("*.npy"):
            _put_file(store, file, f"{there}/{file.name}")
        _put_file(store, folder / NAME, f"{path}/{NAME}")
        _remove_others(store, there, _named(before) | _named((folder / NAME).read_bytes()))
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be written: {error}") from error


def put_tree(folder: Path, address: str) -> None:
    """Put all files of a folder under an address."""
    _put(address, {str(each.relative_to(folder)): each for each in sorted(folder.rglob("*"))})


def put_file(file: Path, address: str) -> None:
    """Put one file under an address."""
    _put(address, {"": file})


def _put(address: str, files: dict[str, Path]) -> None:
    store, path = open_store(address)
    try:
        for name, each in files.items():
            if each.is_file():
                _put_file(store, each, f"{path}/{name}" if name else path)
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be written: {error}") from error


def read_bytes(address: str) -> bytes | None:
    """The content of one file; None if there is none."""
    store, path = open_store(address)
    try:
        with store.open_input_stream(path) as opened:
            return bytes(opened.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be read: {error}") from error


def local_files(address: str, files: dict[str, bytes | str]) -> Path:
    """A folder of this host with some files, copied now if need be.

    files  by name: the content, or the address that it is copied from; content decides whether a
           copy of before is the same
    """
    known = b"\0".join(each for each in files.values() if isinstance(each, bytes))
    name = hashlib.blake2b(address.encode() + b"\0" + known, digest_size=12).hexdigest()
    folder = _copies() / name

    def fill(aside: str) -> None:
        Path(aside).mkdir()
        for file, source in files.items():
            content = source if isinstance(source, bytes) else read_bytes(source)
            if content is None:
                raise StorageError(f"expected {file} at {shown(address)!r}, found none")
            Path(aside, file).write_bytes(content)

    _make(folder, fill, address)
    os.utime(folder)
    return folder


def _put_segment(store: Any, folder: Path, path: str) -> None:
    """A segment, whose manifest is put last: with it the segment is there."""
    for each in sorted(folder.rglob("*"), key=lambda file: file.name == _MANIFEST):
        if each.is_file():
            _put_file(store, each, f"{path}/{each.relative_to(folder)}")


def _put_file(store: Any, file: Path, path: str) -> None:
    put_bytes(store, file.read_bytes(), path)


def put_bytes(store: Any, content: bytes, path: str) -> None:
    """Write one file of a store, which appears as a whole."""
    store.create_dir(path.rpartition("/")[0], recursive=True)
    with store.open_output_stream(path) as opened:
        opened.write(content)


def _named(manifest: bytes) -> set[str]:
    """Segments and files of marks that a checkpoint.json names."""
    try:
        found = json.loads(manifest)["segments"]
        marks = {f"{name}.npy" for each in found for name in each["gone"]}
        return marks | {str(each["name"]) for each in found}
    except (ValueError, KeyError, TypeError):
        return set()


def _remove_others(store: Any, path: str, kept: set[str]) -> None:
    from pyarrow.fs import FileSelector, FileType

    for each in store.get_file_info(FileSelector(path, allow_not_found=True)):
        if each.base_name not in kept:
            remove = store.delete_dir if each.type == FileType.Directory else store.delete_file
            remove(each.path)


def shown(address: str) -> str:
    """An address without a password in it."""
    return re.sub(r"//[^/@]*@", "//...@", address)


def open_store(address: str) -> tuple[Any, str]:
    """A file system of pyarrow and the path on it: pyarrow's own, else fsspec's."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        store, path = FileSystem.from_uri(_HADOOP_S3.sub("s3://", address))
        return store, path.rstrip("/")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass  # a scheme that pyarrow does not know
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be opened: {error}") from error
    try:
        core = import_module("fsspec.core")
        scheme, _, rest = address.partition(":")
        # fsspec takes `dbfs:/x` for a local path
        found, path = core.url_to_fs(address if rest[:2] == "//" else f"{scheme}://{rest}")
    except (ImportError, ValueError, TypeError, KeyError, OSError) as error:
        raise StorageError(
            "expected the address of a store that pyarrow or fsspec opens, found "
            f"{shown(address)!r} ({error}): install fsspec and the package for this scheme, or "
            "mount the store and give the path of the mount"
        ) from error
    return PyFileSystem(FSSpecHandler(found)), path.rstrip("/")


def _copy_folder(source: Any, path: str, target: Any, to: str) -> None:
    """Copy the files of a folder; None is the local file system."""
    from pyarrow.fs import LocalFileSystem, PyFileSystem, copy_files

    here = LocalFileSystem()
    if target is None:
        Path(to).mkdir(parents=True)
    # one at a time where a file system is Python's: its connection may not be shared by threads
    is_native = not isinstance(source, PyFileSystem) and not isinstance(target, PyFileSystem)
    copy_files(
        path, to, source_filesystem=source or here, destination_filesystem=target or here,
        use_threads=is_native,
    )  # fmt: skip


def _copies() -> Path:
    """The folder of this user's copies, which no other user can write to."""
    home = Path(tempfile.gettempdir(), f"matchwood-copies-{os.getuid()}")
    home.mkdir(mode=0o700, exist_ok=True)
    status = home.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022 or home.is_symlink():
        raise StorageError(
            f"expected {str(home)!r} to be a folder that this user alone can write to, found "
            "another: remove it, or set TMPDIR"
        )
    return home


def _remove_unused(home: Path) -> None:
    for each in home.iterdir():
        try:
            if time.time() - each.stat().st_mtime > _UNUSED:
                shutil.rmtree(each, ignore_errors=True)
        except OSError:
            continue  # another worker removed it
