"""Snapshots on stores that are no file systems: s3, gs, abfs, hdfs, and what fsspec knows.

    s3://bucket/rules/               as Matcher.save writes a folder, the manifest put last
    ├── manifest.json
    └── g-5f3a.../*.npy

    $TMPDIR/matchwood-copies-UID/HASH/     a copy on every host that asks, mapped by its workers

A snapshot is read where it is used: every host copies it once, and nothing goes through the driver.
The manifest names the folder of its arrays, which is never written again, so a snapshot that is
replaced under its address is another copy.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from matchwood.engine.snapshot import read_manifest
from matchwood.errors import StorageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MANIFEST = "manifest.json"
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
    """The folder of this host that has the snapshot of an address, copied now if need be."""
    store, path = _open(address)
    try:
        with store.open_input_stream(f"{path}/{_MANIFEST}") as file:
            manifest = file.read()
    except FileNotFoundError as error:
        raise StorageError(
            f"expected a snapshot at {shown(address)!r}, found none: save one there first"
        ) from error
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be read: {error}") from error
    name = hashlib.blake2b(address.encode() + b"\0" + manifest, digest_size=12).hexdigest()
    home = _copies()
    folder = home / name
    if not folder.exists():
        _remove_unused(home)
        aside = home / f".{uuid.uuid4().hex}"
        try:
            aside.mkdir()
            (aside / _MANIFEST).write_bytes(manifest)
            generation = str(read_manifest(aside)["generation"])
            _copy_folder(store, f"{path}/{generation}", None, str(aside / generation))
            aside.rename(folder)
        except OSError as error:
            if not folder.exists():  # otherwise another worker was faster
                raise StorageError(f"{shown(address)!r} cannot be copied: {error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    os.utime(folder)
    return folder


def exists(address: str) -> bool:
    """Whether a snapshot is there."""
    from pyarrow.fs import FileType

    store, path = _open(address)
    try:
        return bool(store.get_file_info(f"{path}/{_MANIFEST}").type == FileType.File)
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be read: {error}") from error


def read_beside(address: str, name: str) -> bytes:
    """A file that `upload` put beside a snapshot."""
    store, path = _open(address)
    try:
        with store.open_input_stream(f"{path}/{name}") as file:
            return bytes(file.read())
    except OSError as error:
        raise StorageError(f"{shown(address)!r}: {name} cannot be read: {error}") from error


def upload(folder: Path, address: str, beside: Mapping[str, bytes] | None = None) -> None:
    """Put a snapshot under an address; the one before is replaced when all of it is there.

    beside  further files by name
    """
    store, path = _open(address)
    generation = str(read_manifest(folder)["generation"])
    try:
        store.create_dir(f"{path}/{generation}", recursive=True)
        _copy_folder(None, str(folder / generation), store, f"{path}/{generation}")
        files = {**(beside or {}), _MANIFEST: (folder / _MANIFEST).read_bytes()}
        for name, content in files.items():
            with store.open_output_stream(f"{path}/{name}") as file:
                file.write(content)
    except OSError as error:
        raise StorageError(f"{shown(address)!r} cannot be written: {error}") from error


def shown(address: str) -> str:
    """An address without a password in it."""
    return re.sub(r"//[^/@]*@", "//...@", address)


def _open(address: str) -> tuple[Any, str]:
    """A file system of pyarrow and the path on it: pyarrow's own, else fsspec's."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        store, path = FileSystem.from_uri(address)
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
    told = home.lstat()
    if told.st_uid != os.getuid() or told.st_mode & 0o022 or home.is_symlink():
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
