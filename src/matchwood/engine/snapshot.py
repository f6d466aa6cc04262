"""Snapshot: a matcher as a directory of arrays that many processes can map at once.

    snapshot/
    ├── manifest.json        format, version, settings, attributes, every file's size and checksum
    └── g-5f3a.../           one generation of .npy files: exactly the arrays that matching reads
        ├── expression_code.npy
        ├── ...
        └── beside/          arrays of the matcher's owner, by slot or not: kept, never read here

Saving writes a new generation beside the old one, then replaces the manifest in one step: a reader
sees the old snapshot or the new one, whole, also after a crash.  The old generation goes last; a
process that has it mapped keeps it.

Arrays are mapped copy-on-write, so that a loaded matcher can still be changed (privately) and its
arrays have the same type for the compiler as any others: nothing compiles twice.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.engine.parts import collect, rebuild
from matchwood.engine.store import Store
from matchwood.errors import FormatError, StorageError

FORMAT = "matchwood-snapshot"
VERSION = 1
"""Raised whenever an older version could misread what this one writes."""

_MANIFEST, _BESIDE = "manifest.json", "beside"
_DAY = 24 * 3600


def save(
    store: Store, path: str | os.PathLike[str], beside: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write a store, and arrays beside it; see the module's docstring."""
    folder = Path(path)
    try:
        previous = _prepare(folder)
        generation = folder / f"g-{secrets.token_hex(6)}"
        generation.mkdir()
        settings, arrays = collect(store)
        files = {name: _write_array(generation, name, array) for name, array in arrays.items()}
        others = _write_beside(generation, beside or {})
        _sync(generation)
        _write_manifest(folder, generation.name, settings, files, others)
    except OSError as error:
        raise StorageError(f"cannot write the snapshot {folder.name!r}: {error}") from error
    _clean(folder, generation.name, previous)


def load(path: str | os.PathLike[str], mmap: bool, verify: bool) -> Store:
    """Open a store; a save that replaces it meanwhile is followed."""
    folder = Path(path)
    for attempt in range(5):
        manifest = read_manifest(folder)
        try:
            generation = folder / manifest["generation"]
            arrays = _read_arrays(folder, generation, manifest["files"], mmap, verify)
            break
        except (FormatError, OSError):
            if attempt == 4 or read_manifest(folder)["generation"] == manifest["generation"]:
                raise
    try:
        return rebuild(manifest["settings"], arrays)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise FormatError(
            f"snapshot {folder.name!r} does not hold what version {VERSION} expects: {error!r}; "
            "save it again"
        ) from error


def verify(path: str | os.PathLike[str]) -> None:
    """Compare every file of a snapshot with its checksum; a damaged one is an error."""
    folder = Path(path)
    manifest = read_manifest(folder)
    generation = folder / manifest["generation"]
    _read_arrays(folder, generation, manifest["files"], mmap=True, verify=True)
    read_beside(folder, verify=True)


def read_beside(path: str | os.PathLike[str], verify: bool) -> dict[str, np.ndarray]:
    """The arrays that were saved beside a matcher, mapped."""
    folder = Path(path)
    manifest = read_manifest(folder)
    generation = folder / manifest["generation"] / _BESIDE
    return _read_arrays(folder, generation, manifest.get(_BESIDE, {}), True, verify)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, checked."""
    try:
        text = (folder / _MANIFEST).read_bytes()
    except OSError as error:
        raise StorageError(
            f"expected a snapshot directory with a {_MANIFEST}, found none at {folder.name!r}: "
            "save one with Matcher.save(path)"
        ) from error
    try:
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise KeyError(manifest["format"])
        version = int(manifest["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{folder.name!r} has a damaged {_MANIFEST}: {error!r}") from error
    if version > VERSION:
        raise FormatError(
            f"snapshot {folder.name!r} has format version {version}, this Matchwood reads up to "
            f"{VERSION}: upgrade Matchwood, or save the snapshot with this version"
        )
    checksum = manifest.pop("checksum", None)
    if checksum != _checksum(manifest):
        raise FormatError(f"{folder.name!r} has a damaged {_MANIFEST}: its checksum does not fit")
    return dict(manifest)


def _checksum(manifest: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _prepare(folder: Path) -> str | None:
    """Make sure the folder is ours to write; returns the generation it holds now."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / _MANIFEST).exists():
        try:
            return str(read_manifest(folder)["generation"])
        except FormatError:
            return None  # damaged or newer: replaced as a whole, its files are left alone
    strangers = [each.name for each in folder.iterdir() if not each.name.startswith("g-")]
    if strangers:
        raise StorageError(
            f"expected an empty directory or a snapshot at {folder.name!r}, found "
            f"{sorted(strangers)[0]!r}: choose another directory"
        )
    return None


def _write_array(generation: Path, name: str, array: np.ndarray) -> dict[str, int]:
    target = generation / f"{name}.npy"
    with target.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    data = target.read_bytes()
    return {"bytes": len(data), "crc32": zlib.crc32(data)}


def _write_beside(generation: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    folder = generation / _BESIDE
    if arrays:
        folder.mkdir()
    return {name: _write_array(folder, name, array) for name, array in arrays.items()}


def _write_manifest(
    folder: Path,
    generation: str,
    settings: dict[str, Any],
    files: dict[str, Any],
    beside: dict[str, Any],
) -> None:
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "generation": generation,
        "settings": settings,
        "files": files,
        _BESIDE: beside,
    }
    manifest["checksum"] = _checksum(manifest)
    aside = folder / f"{generation}.json"
    with aside.open("w") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(folder / _MANIFEST)
    _sync(folder)


def _sync(folder: Path) -> None:
    """Make names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _clean(folder: Path, current: str, previous: str | None) -> None:
    """Remove the generation just replaced, and what crashed saves left behind a day ago."""
    for each in folder.glob("g-*"):
        if each.name == current:
            continue
        try:
            if each.name == previous or time.time() - each.stat().st_mtime > _DAY:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        except OSError:
            continue  # another process is at it


def _read_arrays(
    folder: Path, generation: Path, files: dict[str, Any], mmap: bool, verify: bool
) -> dict[str, np.ndarray]:
    arrays = {}
    for name, expected in files.items():
        file = generation / f"{name}.npy"
        if not file.is_file() or file.stat().st_size != expected["bytes"]:
            raise FormatError(
                f"snapshot {folder.name!r} is damaged: expected {file.name} with "
                f"{expected['bytes']} bytes; restore it from a copy or save it again"
            )
        if verify and zlib.crc32(file.read_bytes()) != expected["crc32"]:
            raise FormatError(
                f"snapshot {folder.name!r} is damaged: the checksum of {file.name} does not fit; "
                "restore it from a copy or save it again"
            )
        arrays[name] = _read_array(file, mmap)
    return arrays


def _read_array(file: Path, mmap: bool) -> np.ndarray:
    try:
        if mmap:
            array = np.load(file, mmap_mode="c", allow_pickle=False)
            if array.size:
                return np.asarray(array)
        return np.load(file, allow_pickle=False)
    except ValueError as error:
        raise FormatError(f"snapshot is damaged: {file.name} is no array ({error})") from error
