"""Snapshot: a matcher as a directory of arrays that many processes can map at once.

    snapshot/
    ├── .matchwood-snapshot  the lock of its writer, and the generations it began (generations.py)
    ├── manifest.json        format, version, settings, attributes, every file's size and checksum
    └── g-5f3a.../           one generation of .npy files: exactly the arrays that matching reads
        ├── expression_code.npy
        ├── ...
        └── beside/          arrays of the matcher's owner, by slot or not: kept, never read here

Saving writes a new generation beside the old one, then replaces the manifest in one step: a reader
sees the old snapshot or the new one, whole, also after a crash.  The old generation goes last; a
process that has it mapped keeps it.  One process writes at a time, the next one waits.

Arrays are mapped copy-on-write, so that a loaded matcher can still be changed (privately) and its
arrays have the same type for the compiler as any others: nothing compiles twice.
"""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from matchwood.engine.snapshots.generations import new_generation
from matchwood.engine.snapshots.manifest import (
    BESIDE,
    OF_ONE_STORE,
    VERSION,
    is_plain_name,
    read_manifest,
    sync,
    write_manifest,
)
from matchwood.engine.snapshots.pairs import collect_pair, rebuild_pair
from matchwood.engine.stores.store import Store
from matchwood.errors import FormatError, MatchwoodError, StorageError

__all__ = ["VERSION", "load", "load_stores", "read_beside", "read_manifest", "save", "verify"]

_ATTEMPTS = 100
"""How often a reader follows a writer that replaces the snapshot while it is being opened."""
_CHUNK = 2**20
Found = TypeVar("Found")


def save(
    store: Store,
    path: str | os.PathLike[str],
    extra_arrays: Mapping[str, np.ndarray] | None = None,
    pause: Callable[[], None] | None = None,
    is_synced: bool = True,
    linked: Store | None = None,
) -> None:
    """Write a store, and arrays beside it; see the module's docstring.

    pause  called before each array; may raise to give up
    is_synced  wait until every array is on the disk
    linked  a second store, of subscriptions with contexts (`pairs`)

    If it fails, nothing of it is left behind and the snapshot before is untouched.
    """
    save_collected(collect_pair(store, linked), path, extra_arrays, pause, is_synced)


def save_collected(
    collected: tuple[dict[str, Any], dict[str, np.ndarray]],
    path: str | os.PathLike[str],
    extra_arrays: Mapping[str, np.ndarray] | None = None,
    pause: Callable[[], None] | None = None,
    is_synced: bool = True,
) -> None:
    """As `save`, of the settings and arrays of a store."""
    folder = Path(path)
    for name in extra_arrays or {}:
        if not is_plain_name(name):
            raise StorageError(f"expected a plain name for an array beside, found {name!r}")
    try:
        with new_generation(folder) as generation:
            settings, arrays = collected
            files = {}
            for name, array in arrays.items():
                if pause is not None:
                    pause()
                files[name] = write_array(generation, name, array, is_synced)
            others = _write_beside(generation, extra_arrays or {}, is_synced)
            sync(generation)
            write_manifest(folder, generation.name, settings, files, others)
    except OSError as error:
        raise StorageError(f"cannot write the snapshot {str(folder)!r}: {error}") from error


def load(path: str | os.PathLike[str], mmap: bool, verify: bool) -> Store:
    """Open the one store of a snapshot; FormatError if it has two."""
    store, linked = load_stores(path, mmap, verify)
    if linked is not None:
        raise FormatError(f"expected one store in {str(path)!r}, found two: use Matcher.load")
    return store


def load_stores(
    path: str | os.PathLike[str], mmap: bool, verify: bool
) -> tuple[Store, Store | None]:
    """Open a store, or two (`pairs`); a save that replaces it meanwhile is followed."""
    folder = Path(path)

    def read(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        generation = folder / manifest["generation"]
        return manifest, read_arrays(folder, generation, manifest["files"], mmap, verify)

    manifest, arrays = _following(folder, read)
    try:
        is_current = manifest["version"] >= OF_ONE_STORE
        return rebuild_pair(manifest["settings"], arrays, verify, is_current)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
        MatchwoodError,
    ) as error:
        raise FormatError(
            f"snapshot {str(folder)!r} does not hold what version {VERSION} expects: "
            f"{error if isinstance(error, MatchwoodError) else repr(error)}; save it again"
        ) from error


def _following(folder: Path, read: Callable[[dict[str, Any]], Found]) -> Found:
    """Read what a manifest names; if that vanishes because it was replaced, what the next names."""
    manifest = read_manifest(folder)
    for attempt in range(_ATTEMPTS):
        try:
            return read(manifest)
        except (FormatError, OSError):
            newer = read_manifest(folder)
            if attempt == _ATTEMPTS - 1 or newer["generation"] == manifest["generation"]:
                raise
            manifest = newer
            time.sleep(attempt * 0.001)
    raise AssertionError("returned or raised")


def verify(path: str | os.PathLike[str]) -> None:
    """Compare every file of a snapshot with its checksum; a damaged one is an error."""
    folder = Path(path)

    def read(manifest: dict[str, Any]) -> None:
        generation = folder / manifest["generation"]
        read_arrays(folder, generation, manifest["files"], mmap=True, verify=True)
        _read_beside(folder, manifest, verify=True)

    _following(folder, read)


def read_beside(path: str | os.PathLike[str], verify: bool) -> dict[str, np.ndarray]:
    """The arrays that were saved beside a matcher, mapped."""
    folder = Path(path)
    return _following(folder, lambda manifest: _read_beside(folder, manifest, verify))


def _read_beside(folder: Path, manifest: dict[str, Any], verify: bool) -> dict[str, np.ndarray]:
    generation = folder / manifest["generation"] / BESIDE
    return read_arrays(folder, generation, manifest.get(BESIDE, {}), True, verify)


def write_array(
    generation: Path, name: str, array: np.ndarray, is_synced: bool = True
) -> dict[str, int]:
    """Write an array to a file; returns its size and its checksum."""
    target = generation / f"{name}.npy"
    with target.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        if is_synced:
            file.flush()
            os.fsync(file.fileno())
    return {"bytes": target.stat().st_size, "crc32": _checksum(target)}


def _write_beside(
    generation: Path, arrays: Mapping[str, np.ndarray], is_synced: bool
) -> dict[str, Any]:
    folder = generation / BESIDE
    if arrays:
        folder.mkdir()
    return {name: write_array(folder, name, array, is_synced) for name, array in arrays.items()}


def _checksum(file: Path) -> int:
    crc = 0
    with file.open("rb") as opened:
        while data := opened.read(_CHUNK):
            crc = zlib.crc32(data, crc)
    return crc


def read_arrays(
    folder: Path, generation: Path, files: dict[str, Any], mmap: bool, verify: bool
) -> dict[str, np.ndarray]:
    """Arrays by name, each of the expected size and, with `verify`, checksum; else FormatError."""
    arrays = {}
    parents: set[Path] = set()
    for name, expected in files.items():
        file = generation / f"{name}.npy"
        if _size_inside(folder, file, parents) != expected["bytes"]:
            raise FormatError(
                f"snapshot {str(folder)!r} is damaged: expected {file.name} with "
                f"{expected['bytes']} bytes; restore it from a copy or save it again"
            )
        if verify and _checksum(file) != expected["crc32"]:
            raise FormatError(
                f"snapshot {str(folder)!r} is damaged: the checksum of {file.name} does not fit; "
                "restore it from a copy or save it again"
            )
        arrays[name] = _read_array(file, mmap)
    return arrays


def _size_inside(folder: Path, file: Path, parents: set[Path]) -> int | None:
    """The size of a file below the folder; None if it is none, or if a link leads out of it.

    parents  folders below that are known to be no links; those of the file are added
    """
    try:
        found = os.lstat(file)
        if not stat.S_ISREG(found.st_mode):
            return None
        if file.parent not in parents:
            for each in file.parents:
                if folder in each.parents and not stat.S_ISDIR(os.lstat(each).st_mode):
                    return None
            parents.add(file.parent)
    except OSError:
        return None
    return found.st_size


def _read_array(file: Path, mmap: bool) -> np.ndarray:
    try:
        if mmap:
            # a plain string: `np.memmap` resolves the links of a Path, step by step
            array = np.load(str(file), mmap_mode="c", allow_pickle=False)
            if array.size:
                return np.asarray(array)
        return np.load(file, allow_pickle=False)
    except (
        ValueError,
        SyntaxError,
        MemoryError,
        RecursionError,
        TypeError,
        OverflowError,
    ) as error:
        raise FormatError(f"snapshot is damaged: {file.name} is no array ({error})") from error
