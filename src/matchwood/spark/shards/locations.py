"""Where shards are kept: a folder that all workers see, or the address of a store.

    /mnt/shards/<name>/                       s3://bucket/shards/<name>/
    ├── manifest.json                         ├── manifest.json           put last
    ├── route_key.npy, route_shard.npy,       └── <build>/
    │   refused.arrow                             ├── route_key.npy, route_shard.npy, refused.arrow
    └── shard-5f3a.../snapshot, homes.npy         └── shard-5f3a.../snapshot, homes.npy

A folder is made aside and renamed.  A store has no such step: every build puts its files under a
name of its own, and the manifest, which names the build, is put last.  So a reader finds one whole
build or none; what a build that failed has left there is not removed.
Workers copy a shard from a store once per host and map the copy (`stores`).

Shards that a later version of the table does not change are its shards, too: by hard links in a
folder, where old versions are removed (`prune`); by their address on a store, where none is.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from matchwood.spark.folders import local_folder, made_aside
from matchwood.spark.increments import DIGESTS, REFUSED, SNAPSHOT
from matchwood.spark.stores import inside, is_address, local_files, put_file, read_bytes

MANIFEST = "manifest.json"
ROUTE_FILES = ("route_key.npy", "route_shard.npy")
HOMES = "homes.npy"
PLAN = "plan.npz"
KEPT = 8
"""Versions of the same settings that a folder keeps; those that were used in the last hour stay."""
_HOUR = 3600


def home_of(folder: str, name: str) -> str:
    """The path or address of the shards of a name."""
    return (
        inside(folder, name) if is_address(folder) else str(local_folder(folder, "folder") / name)
    )


def is_built(home: str) -> bool:
    """Whether there are shards."""
    if is_address(home):
        return read_bytes(inside(home, MANIFEST)) is not None
    return Path(home, MANIFEST).exists()


def files_of(home: str) -> Path:
    """A folder of this host with the manifest, the routes and what was refused."""
    if not is_address(home):
        return Path(home)
    manifest = read_bytes(inside(home, MANIFEST))
    if manifest is None:
        return Path(home)  # which is no folder: reading the manifest says what is missing
    record = json.loads(manifest)
    base = inside(home, str(record["build"]))
    names = (*ROUTE_FILES, REFUSED, *((PLAN, DIGESTS) if record.get("key") else ()))
    return local_files(home, {MANIFEST: manifest, **{name: inside(base, name) for name in names}})


def base_of(home: str, build: str) -> str:
    """The path or address that the shards of a build are in."""
    return inside(home, build) if is_address(home) else home


def file_of(home: str, build: str, shard: dict[str, Any], name: str = SNAPSHOT) -> str:
    """The path or address of the index of a shard, or of another file of it."""
    base, inner = shard.get("at") or base_of(home, build), f"{shard['folder']}/{name}"
    return inside(base, inner) if is_address(base) else str(Path(base, inner))


def make_shards(
    home: str, build: Callable[[str], Any], finish: Callable[[Path, Any, str], None]
) -> None:
    """Build shards and publish them.

    build   is given the path or address where tasks put their shards; returns what they report
    finish  is given a folder of the driver, the reports and the name of the build, and writes the
            manifest, the routes and what was refused
    """
    name = uuid.uuid4().hex
    if not is_address(home):
        with made_aside(Path(home), lambda found: (found / MANIFEST).exists()) as aside:
            finish(aside, build(str(aside)), name)
        return
    base = inside(home, name)
    reports = build(base)
    with tempfile.TemporaryDirectory(prefix="matchwood-shards-") as work:
        for each in reports:
            if "homes" in each:
                continue
            there = inside(base, f"{each['folder']}/{HOMES}")
            (Path(work) / each["folder"]).mkdir()
            Path(work, each["folder"], HOMES).write_bytes(read_bytes(there) or b"")
        finish(Path(work), reports, name)
        for file in (*ROUTE_FILES, REFUSED, PLAN, DIGESTS):
            if Path(work, file).exists():
                put_file(Path(work, file), inside(base, file))
        put_file(Path(work, MANIFEST), inside(home, MANIFEST))


# -- versions ----------------------------------------------------------------------------------


def newest(folder: str, key: str) -> str | None:
    """The version that was used last of those with a key; None if there is none."""
    if is_address(folder):
        found = read_bytes(inside(folder, f"newest-{key}"))
        return None if found is None else inside(folder, found.decode())
    used = sorted(_versions(local_folder(folder, "folder"), key))
    return str(used[-1][1]) if used else None


def use(home: str, key: str | None) -> None:
    """Note that a version is used."""
    if not is_address(home):
        with suppress(OSError):
            os.utime(home)
    elif key is not None:
        path, mark, options = home.partition("?")
        folder, _, name = path.rpartition("/")
        with tempfile.NamedTemporaryFile() as file:
            file.write(name.encode())
            file.flush()
            put_file(Path(file.name), inside(f"{folder}{mark}{options}", f"newest-{key}"))


def prune(folder: str, key: str) -> None:
    """Remove versions with a key, but the last ones and what was used lately; not on a store."""
    if is_address(folder):
        return
    for used, home in sorted(_versions(local_folder(folder, "folder"), key))[:-KEPT]:
        if time.time() - used > _HOUR:
            shutil.rmtree(home, ignore_errors=True)


def _versions(folder: Path, key: str) -> Iterator[tuple[float, Path]]:
    for home in folder.iterdir() if folder.exists() else ():
        with suppress(OSError, ValueError, AttributeError):
            if (
                not home.name.startswith(".")
                and json.loads((home / MANIFEST).read_text()).get("key") == key
            ):
                yield home.stat().st_mtime, home
