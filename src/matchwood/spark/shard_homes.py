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
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matchwood.spark.folders import local_folder, made_aside
from matchwood.spark.increments import REFUSED
from matchwood.spark.stores import inside, is_address, local_files, put_file, read_bytes

MANIFEST = "manifest.json"
ROUTE_FILES = ("route_key.npy", "route_shard.npy")
HOMES = "homes.npy"


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
    base = inside(home, str(json.loads(manifest)["build"]))
    others = {name: inside(base, name) for name in (*ROUTE_FILES, REFUSED)}
    return local_files(home, {MANIFEST: manifest, **others})


def snapshot_of(home: str, build: str, folder: str) -> str:
    """The path or address of the index of a shard."""
    if is_address(home):
        return inside(home, f"{build}/{folder}/snapshot")
    return str(Path(home, folder, "snapshot"))


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
            there = inside(base, f"{each['folder']}/{HOMES}")
            (Path(work) / each["folder"]).mkdir()
            Path(work, each["folder"], HOMES).write_bytes(read_bytes(there) or b"")
        finish(Path(work), reports, name)
        for file in (*ROUTE_FILES, REFUSED):
            put_file(Path(work, file), inside(base, file))
        put_file(Path(work, MANIFEST), inside(home, MANIFEST))
