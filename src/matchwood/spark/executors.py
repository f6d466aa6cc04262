"""The executors of a session: how many tasks run at once, and snapshots that are sent to them.

Only calls that Spark Connect has, too: there is no `sparkContext` in this package.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from matchwood.engine.snapshot import read_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROBE = 1 << 12
"""Rows of the table whose default partitions are counted."""

_parallelism: dict[str, int] = {}
_shipped: set[tuple[str, str]] = set()
_packed_in: list[Path] = []


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


def ship(spark: SparkSession, folder: Path) -> str:
    """Send a snapshot to every executor, which unpacks it; returns its name for `SparkFiles.get`.

    The name is that of the snapshot's generation, so other content has another name, and a snapshot
    that was sent before is not sent again.  As an archive: Spark sends folders on `local` alone.
    """
    name = f"matchwood-{read_manifest(folder)['generation']}"
    session = _session(spark)
    if (session, name) not in _shipped:
        packed = _pack(folder, name)
        spark.addArtifacts(f"{packed}#{name}", archive=True)
        _shipped.add((session, name))
    return name


def _pack(folder: Path, name: str) -> Path:
    """The snapshot as an archive, kept until the process ends: executors that start later ask the
    driver for it.
    """
    if not _packed_in:
        _packed_in.append(Path(tempfile.mkdtemp(prefix="matchwood-ship-")))
        atexit.register(shutil.rmtree, _packed_in[0], ignore_errors=True)
    packed = _packed_in[0] / f"{name}.zip"
    if packed.exists():
        return packed
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return packed


def _session(spark: SparkSession) -> str:
    """What artifacts belong to: the application, and on Connect the session."""
    return f"{_setting(spark, 'spark.app.id')}/{getattr(spark, 'session_id', '')}"


def _setting(spark: SparkSession, name: str) -> str:
    return spark.conf.get(name, None) or ""
