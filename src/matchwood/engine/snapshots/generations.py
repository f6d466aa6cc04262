"""Generations: the folders of a snapshot, one writer at a time, and which of them are dead.

    snapshot/
    ├── .matchwood-snapshot    the marker: locked by the writer, names every generation it began
    ├── manifest.json          names the one that readers open
    └── g-5f3a.../

A folder is a snapshot if its manifest or its marker says so, and only generations that one of the
two names are ever removed: a folder of the user's that happens to begin with g- is not.

The writer holds the marker's lock (flock) from its first step to its last; the lock ends with the
process that holds it, however that ends.  So under the lock every generation that the marker names
and the manifest does not is dead, and goes at once.  Readers take no lock: a process that has
removed files mapped keeps them, and one that finds them gone reads the manifest again.

On a file system without locks (some network mounts) two writers may overlap: there a save removes
only the generation that it replaced and, if it fails, its own.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from matchwood.engine.snapshots.manifest import FORMAT, GENERATION, NAME, sync
from matchwood.errors import StorageError

if sys.platform != "win32":
    import fcntl

MARKER = ".matchwood-snapshot"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def new_generation(folder: Path) -> Iterator[Path]:
    """A new, empty generation to write to; call `write_manifest` at the end.

    Another process or thread that saves to the same folder is waited for.  When this ends, by an
    exception or not, only the generation that the manifest names is left.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    _check_ours(folder)
    with _locked(folder) as (marker, is_locked):
        begun = _begun(marker) if is_locked else []
        named = named_generation(folder)
        if named is not None or not (folder / NAME).exists():
            begun = _remove(folder, [each for each in begun if each != named])
        # else the manifest is damaged: what it named stays until there is a new snapshot
        generation = folder / _unused_name(folder)
        old = [*begun, *([] if named is None else [named])]
        try:
            _write_marker(marker, [*old, generation.name])
            generation.mkdir()
            yield generation
        finally:
            is_done = named_generation(folder) == generation.name
            _remove(folder, old if is_done else [generation.name])
            if not (folder / NAME).exists():
                _forget(folder, is_new)


def named_generation(folder: Path) -> str | None:
    """The generation that a manifest of ours names, also one of another version."""
    try:
        manifest = json.loads((folder / NAME).read_bytes())
        generation = manifest["generation"] if manifest["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_name = isinstance(generation, str) and GENERATION.fullmatch(generation)
    return generation if is_name else None


def _check_ours(folder: Path) -> None:
    """Refuse a folder that holds anything, unless its manifest or its marker is ours."""
    names = sorted(each.name for each in folder.iterdir())
    if not names or named_generation(folder) is not None or _is_marked(folder):
        return
    raise StorageError(
        f"expected an empty directory or a snapshot at {str(folder)!r}, found {names[0]!r}: choose "
        "another directory"
    )


def _is_marked(folder: Path) -> bool:
    try:
        text = (folder / MARKER).read_bytes()[: len(FORMAT)]
    except OSError:
        return False
    return FORMAT.encode().startswith(text)  # empty: another writer has just made it


@contextmanager
def _locked(folder: Path) -> Iterator[tuple[IO[str], bool]]:
    """The marker, opened and locked; whether the file system knows locks."""
    while True:
        folder.mkdir(exist_ok=True)  # a writer that failed may have removed what it had made
        with (folder / MARKER).open("a+", encoding="utf-8") as marker:
            is_locked = _lock(marker)
            if is_locked and not _is_same_file(marker, folder / MARKER):
                continue  # removed with the folder
            yield marker, is_locked  # closing the file ends the lock
            return


def _lock(marker: IO[str]) -> bool:
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(marker, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _is_same_file(marker: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(marker.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _begun(marker: IO[str]) -> list[str]:
    marker.seek(0)
    return [each for each in marker.read().split() if GENERATION.fullmatch(each)]


def _write_marker(marker: IO[str], generations: list[str]) -> None:
    """Write the marker, before the generation is made: one that was cut off names no folder."""
    marker.seek(0)
    marker.truncate()
    marker.write("\n".join([FORMAT, *generations, ""]))
    marker.flush()
    os.fsync(marker.fileno())


def _unused_name(folder: Path) -> str:
    while True:
        name = f"g-{secrets.token_hex(6)}"
        if not os.path.lexists(folder / name):
            return name


def _remove(folder: Path, generations: list[str]) -> list[str]:
    """Remove generations; returns those that could not be removed."""
    for name in generations:
        with suppress(OSError):
            (folder / f"{name}.json").unlink(missing_ok=True)
        shutil.rmtree(folder / name, ignore_errors=True)  # refuses links
    return [name for name in generations if os.path.lexists(folder / name)]


def _forget(folder: Path, is_new: bool) -> None:
    """After a first save that failed: remove the marker, and the folder if the save created it."""
    with suppress(OSError):
        (folder / MARKER).unlink()
        if is_new:
            folder.rmdir()
        else:
            sync(folder)
