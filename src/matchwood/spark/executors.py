"""The executors of a session: how many tasks run at once, and snapshots that are sent to them.

Only calls that Spark Connect has, too: there is no `sparkContext` in this package.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from matchwood.engine.durable.segment_files import FOLDER, NAME, segment_names
from matchwood.engine.snapshots.versions import generation_of, is_version
from matchwood.spark.worker import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROBE = 1 << 12
"""Rows of the table whose default partitions are counted."""

_parallelism: dict[str, int] = {}
_shipped: dict[tuple[str, str], int] = {}
_packed_in: list[Path] = []
_versions: dict[str, dict[str, tuple[float, tuple[str, ...]]]] = {}
"""By session: versions that were sent, when they were last asked for, and their archives."""
_dropped: dict[str, dict[str, None]] = {}
"""By session: archives that executors remove."""
KEPT = 8
"""Versions that executors keep at least."""
HOUR = 3600


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect."""
    return "connect" in type(spark).__module__.split(".")


def reads_driver_files(spark: SparkSession) -> bool:
    """Whether tasks run on the driver's machine and user: the master is `local`.

    The server of a Connect session may be anywhere, whatever its master.
    """
    if is_connect(spark):
        return False
    return _setting(spark, "spark.master").partition("[")[0] == "local"


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once, as Spark assumes it: `spark.default.parallelism`, or counted as
    the partitions of a small table.
    """
    from pyspark.sql import functions as f

    given = _setting(spark, "spark.default.parallelism")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    application = _session(spark)
    if application not in _parallelism:
        last = spark.range(_PROBE).agg(f.max(f.spark_partition_id())).first()
        assert last is not None
        _parallelism[application] = int(last[0]) + 1
    return _parallelism[application]


def ship(spark: SparkSession, folder: Path) -> Location:
    """Send an index to every executor, which unpacks it.

    Each segment of a version is an archive of its own and is sent once, whichever versions have it;
    what else belongs to a version is small.  A snapshot that `Matcher.save` wrote is one archive.
    The names are those of the content, so other content has another name.
    """
    session = _session(spark)
    name = f"matchwood-{generation_of(folder)}"
    if not is_version(folder):
        return Location(str(folder), _send(spark, session, folder, name, folder.rglob("*")))
    base = folder / FOLDER
    names = segment_names(folder)
    small = [folder / NAME, *base.glob("*.npy")]
    segments = tuple(
        (each, _send(spark, session, base / each, f"matchwood-{each}", (base / each).rglob("*")))
        for each in names
    )
    shipped = _send(spark, session, folder, name, small)
    dropped = _use(session, shipped, [archive for _, archive in segments])
    return Location(str(folder), shipped, segments, dropped)


def ship_file(spark: SparkSession, file: Path) -> Location:
    """Send a file whose name is used once to every executor; returns the folder that has it."""
    name = f"matchwood-{file.parent.name}-{file.stem}"
    return Location(str(file.parent), _send(spark, _session(spark), file.parent, name, [file]))


def _send(spark: SparkSession, session: str, folder: Path, name: str, files: Iterable[Path]) -> str:
    """Send files as an archive unless they were sent before; returns its name.

    What executors have dropped gets another name: Spark sends no archive twice.
    """
    times = sum(each == name or each.startswith(f"{name}+") for each in _dropped.get(session, ()))
    name = f"{name}+{times}" if times else name
    if (session, name) not in _shipped:
        packed = _pack(folder, name, files)
        spark.addArtifacts(f"{packed}#{name}", archive=True)
        _shipped[session, name] = packed.stat().st_size
    return name


def _use(session: str, version: str, segments: list[str]) -> tuple[str, ...]:
    """Note that a version is used; returns the archives that no version in use has.

    In use are the last ones that were sent, and what was asked for in the last hour.
    """
    versions = _versions.setdefault(session, {})
    versions[version] = (time.time(), (version, *segments))
    by_age = sorted(versions, key=lambda name: versions[name][0])
    old = [name for name in by_age[:-KEPT] if time.time() - versions[name][0] > HOUR]
    gone = [versions.pop(name)[1] for name in old]
    needed = {name for _, names in versions.values() for name in names}
    dropped = _dropped.setdefault(session, {})
    dropped |= dict.fromkeys(name for names in gone for name in names if name not in needed)
    return tuple(dropped)


def bytes_shipped() -> dict[str, int]:
    """What was sent to executors so far: names and bytes."""
    return {name: size for (_, name), size in _shipped.items()}


def _pack(folder: Path, name: str, files: Iterable[Path]) -> Path:
    """Files of a folder as an archive, kept until the process ends: executors that start later ask
    the driver for it.
    """
    if not _packed_in:
        _packed_in.append(Path(tempfile.mkdtemp(prefix="matchwood-ship-")))
        atexit.register(shutil.rmtree, _packed_in[0], ignore_errors=True)
    packed = _packed_in[0] / f"{name}.zip"
    if packed.exists():
        return packed
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(files):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return packed


def _session(spark: SparkSession) -> str:
    """What artifacts belong to: the application, and on Connect the session."""
    return f"{_setting(spark, 'spark.app.id')}/{getattr(spark, 'session_id', '')}"


def _setting(spark: SparkSession, name: str) -> str:
    return spark.conf.get(name, None) or ""
