"""Folders that Python opens as files and Spark by address: here, or on a mount that all share."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from matchwood.errors import StorageError
from matchwood.spark.stores import is_address

_DAY = 24 * 3600
ASIDE = ".building-"


def local_folder(path: str, what: str) -> Path:
    """A path as an absolute one; `file:` before it may be left out.  StorageError for addresses of
    other stores: `dbfs:/x` is no folder of that name.

    Absolute, because workers begin in another folder than the driver may be in by now.
    """
    if is_address(path):
        raise StorageError(
            f"expected {what} as a path that the driver and all workers can open as a file, found "
            f"{path!r}: mount it, or choose another folder"
        )
    return Path(path.removeprefix("file://").removeprefix("file:")).absolute()


def address(folder: Path) -> str:
    """A folder for Spark's own readers and writers, whatever file system is their default."""
    return f"file://{folder}"


class Checked:
    """Folders that this process has checked, and whether their files are still what they were."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[tuple[str, int, int, int], ...]] = {}

    def __contains__(self, folder: Path) -> bool:
        return self._seen.get(str(folder)) == _files(folder)

    def add(self, folder: Path) -> None:
        self._seen[str(folder)] = _files(folder)


def _files(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    found = [(str(each), each.stat()) for each in sorted(folder.rglob("*")) if each.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found)


@contextmanager
def made_aside(target: Path, is_whole: Callable[[Path], bool]) -> Iterator[Path]:
    """A temporary folder, renamed to the target when the block ends without an exception.

    If another process renamed first, its folder is kept.  An incomplete target is replaced, and
    temporary folders that are a day old are removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_old(target.parent, ASIDE)
    aside = target.with_name(f"{ASIDE}{uuid.uuid4().hex}")
    aside.mkdir()
    try:
        yield aside
        if target.exists() and not is_whole(target):
            shutil.rmtree(target, ignore_errors=True)
        try:
            aside.rename(target)
        except OSError:
            if not is_whole(target):
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def remove_old(folder: Path, prefix: str) -> None:
    """Remove what a killed process left behind a day ago under names with a prefix."""
    for each in folder.glob(f"{prefix}*"):
        if time.time() - each.stat().st_mtime > _DAY:
            shutil.rmtree(each, ignore_errors=True)
