"""Where a stream keeps its state and puts its output: a folder that all workers see, or a store.

    Folder("/mnt/state")              Store("s3://bucket/state")
    a file gets its name by a link    a file is put by a request that fails if there is one
    a folder is renamed               files of a folder are put one by one, the one that says
                                      that it is whole as the last

Names are paths inside a storage, with `/`.  `create` decides between two drivers: of two that
create the same name one gets FileExistsError.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from matchwood.errors import StorageError
from matchwood.spark.exclusive import create_on
from matchwood.spark.folders import local_folder
from matchwood.spark.stores import inside, is_address, local_copy, open_store, put_bytes, shown

DAY = 24 * 3600


def open_storage(path: str, what: str) -> Storage:
    """The storage of a path or address.  StorageError if nothing opens the address.

    what  the argument that it was given as, for errors
    """
    if not is_address(path):
        return Folder(str(local_folder(path, what)))
    store = Store(path)
    store.open()
    return store


class Folder:
    """A folder of this machine, or of a mount that all workers have."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __str__(self) -> str:
        return self.path

    def spark(self, name: str) -> str:
        """The address of a name for Spark's own readers and writers, whatever their default is."""
        return f"file://{self.path}/{name}"

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder."""
        return Path(self.path, name).exists()

    def names(self, folder: str) -> list[str]:
        """Names of what is directly in a folder; none if there is no such folder."""
        found = Path(self.path, folder)
        return sorted(each.name for each in found.iterdir()) if found.exists() else []

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        try:
            return Path(self.path, name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        """Write a file that is whole or not there; the one of before is replaced."""
        with self._aside(name, content) as (aside, target):
            aside.replace(target)

    def create(self, name: str, content: bytes) -> None:
        """Write a file that is whole or not there; FileExistsError if there is one."""
        with self._aside(name, content) as (aside, target):
            os.link(aside, target)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A file to write to, of a new name in a folder that is there; whole when it is closed."""
        with Path(self.path, name).open("xb") as file:
            yield file

    @contextmanager
    def _aside(self, name: str, content: bytes) -> Iterator[tuple[Path, Path]]:
        target = Path(self.path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield aside, target
        finally:
            aside.unlink(missing_ok=True)

    @contextmanager
    def made(self, name: str, last: str) -> Iterator[Path]:
        """A folder to write files to, which gets its name at the end.

        last  the file without which the folder is not whole
        """
        target = Path(self.path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{uuid.uuid4().hex}")
        try:
            yield aside
            assert (aside / last).exists()
            aside.rename(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def index(self, name: str) -> Path:
        """A folder of this machine with the index that is saved under a name."""
        return Path(self.path, name)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing if it is not there."""
        target = Path(self.path, name)
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def is_old(self, name: str) -> bool:
        """Whether a folder was written to for the last time more than a day ago."""
        with suppress(OSError):
            return time.time() - Path(self.path, name).stat().st_mtime > DAY
        return False


class Store:
    """An address that pyarrow or fsspec opens, here and in every worker."""

    def __init__(self, address: str) -> None:
        self.path = address

    def __str__(self) -> str:
        return shown(self.path)

    def __reduce__(self) -> tuple[Any, ...]:  # without the connection
        return Store, (self.path,)

    def open(self) -> None:
        """StorageError if nothing opens the address."""
        _ = self._opened

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        return open_store(self.path)

    @contextmanager
    def _at(self, name: str, verb: str) -> Iterator[tuple[Any, str]]:
        store, path = self._opened
        try:
            yield store, f"{path}/{name}" if name else path
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as error:
            raise StorageError(f"{shown(self.path)!r} cannot be {verb}: {error}") from error

    def address(self, name: str) -> str:
        """The address of a name, for `stores`."""
        return inside(self.path, name)

    def spark(self, name: str) -> str:
        """The address of a name for Spark, which has settings of its own for its stores."""
        return inside(self.path, name).partition("?")[0]

    def exists(self, name: str) -> bool:
        from pyarrow.fs import FileType

        with self._at(name, "read") as (store, path):
            return bool(store.get_file_info(path).type != FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        with self._at(folder, "read") as (store, path):
            found = store.get_file_info(FileSelector(path, allow_not_found=True))
        return sorted(each.base_name for each in found)

    def read(self, name: str) -> bytes | None:
        try:
            with self._at(name, "read") as (store, path), store.open_input_stream(path) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        with self._at(name, "written") as (store, path):
            put_bytes(store, content, path)

    def create(self, name: str, content: bytes) -> None:
        with self._at(name, "written") as (store, path):
            create_on(store, path, content, self.path)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        content = io.BytesIO()
        yield content
        self.put(name, content.getvalue())

    @contextmanager
    def made(self, name: str, last: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="matchwood-store-") as work:
            folder = Path(work, "made")
            yield folder
            files = [each for each in folder.rglob("*") if each.is_file()]
            for file in sorted(files, key=lambda each: each == folder / last):
                self.put(f"{name}/{file.relative_to(folder)}", file.read_bytes())

    def index(self, name: str) -> Path:
        return local_copy(self.address(name))

    def copy(self, name: str, to: str) -> None:
        """Copy a file inside the store; FileNotFoundError if there is none."""
        store, path = self._opened
        with self._at(to, "written") as (_, target):
            store.create_dir(target.rpartition("/")[0], recursive=True)
            store.copy_file(f"{path}/{name}", target)

    def remove(self, name: str) -> None:
        from pyarrow.fs import FileType

        with suppress(FileNotFoundError), self._at(name, "written") as (store, path):
            kind = store.get_file_info(path).type
            if kind == FileType.Directory:
                store.delete_dir(path)
            elif kind == FileType.File:
                store.delete_file(path)

    def is_old(self, name: str) -> bool:
        from pyarrow.fs import FileSelector

        with self._at(name, "read") as (store, path):
            found = store.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        times = [each.mtime.timestamp() for each in found if each.mtime is not None]
        return bool(times) and time.time() - max(times) > DAY


Storage = Folder | Store
