"""Folders that Python opens as files and Spark by address: here, or on a mount that all share."""

from __future__ import annotations

from pathlib import Path

from matchwood.errors import StorageError


def local_folder(path: str, what: str) -> Path:
    """A path as an absolute one; `file:` before it may be left out.

    Absolute, because workers begin in another folder than the driver may be in by now.
    """
    plain = path.removeprefix("file://").removeprefix("file:")
    if "://" in plain:
        raise StorageError(
            f"expected {what} as a path that the driver and all workers can open as a file, found "
            f"{path!r}: mount it, or choose another folder"
        )
    return Path(plain).absolute()


def address(folder: Path) -> str:
    """A folder for Spark's own readers and writers, whatever file system is their default."""
    return f"file://{folder}"
