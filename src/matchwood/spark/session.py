"""A local Spark session with the settings Matchwood's semantics ask for."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from matchwood.errors import MatchwoodError
from matchwood.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"

SHORT_JOB: dict[str, str | int | bool] = {
    "spark.driver.extraJavaOptions": (
        "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions "
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-BytecodeVerificationRemote"
    )
}
"""Options of a session on this machine for a job of seconds: the JVM uses its quick compiler alone,
and does not verify the classes of Spark's own jars.

`matchwood demo --subscriptions 20000 --events 50000`: 24 s of CPU in the JVM instead of 40.
"""

LONG_JOB: dict[str, str | int | bool] = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
"""Options of a session on this machine for jobs over millions of events: the JVM collects garbage
with fewer instructions, and with longer pauses.

Writing 20 million matches of 1M events as Parquet: 3.5 and 3.0 s of CPU in the JVM in the first and
second run, 4.3 and 3.4 without it (docs/spark.md).
"""


def local_session(
    app_name: str = "matchwood",
    cores: int = 2,
    master: str | None = None,
    **options: str | int | bool,
) -> SparkSession:
    """A Spark session on this machine alone, or on another master; stop it in a ``finally``.

    Options are Spark's own, and win over the settings here::

        local_session(cores=4, **{"spark.driver.memory": "4g"})

    If the process already has a session, Spark returns that one with the options applied.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MatchwoodError(
            f"Spark is not installed ({error}): pip install 'matchwood[spark]'"
        ) from error
    if shutil.which("bash") is None:
        raise MatchwoodError("Spark starts through its own bash script: install bash")
    ensure_java()
    # Workers run the Python that runs this, whatever `python3` means on PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master is None or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    settings, is_here = _settings(cores), master is None or master.startswith("local")
    if is_here:
        settings |= {**_THIS_MACHINE, "spark.driver.memory": heap()}
    builder = SparkSession.builder.master(master or f"local[{cores}]").appName(app_name)
    for name, value in (settings | options).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if is_here and CHECKPOINTS not in options:
        _write_checkpoints_quickly(session)
    return session


CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
"""Spark's setting for how streams write their checkpoints."""
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def _write_checkpoints_quickly(session: SparkSession) -> None:
    """Have checkpoints of streams written by Hadoop's `FileSystem`.

    Without Hadoop's native library its `FileContext`, Spark's first choice, starts some 50
    processes (chmod, readlink) for every micro-batch on a local disk, 0.1 s in all.  Versions of
    Spark that have the class elsewhere stay with their choice.
    """
    jvm = getattr(session, "_jvm", None)
    if jvm is None:  # Connect
        return
    with suppress(Exception):  # Py4J's, which says that there is no such class
        jvm.java.lang.Class.forName(_BY_FILE_SYSTEM)
        session.conf.set(CHECKPOINTS, _BY_FILE_SYSTEM)


MOST_HEAP = 4 << 30


def heap() -> str:
    """The JVM's memory: here it is driver and executors at once, and Spark's default is 1 GiB.

    A quarter of the machine's, at most 4 GiB: Python workers, where the work is done, have theirs
    beside it.  A limit, not a reservation.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        total = MOST_HEAP
    return f"{max(1 << 30, min(MOST_HEAP, total // 4)) >> 20}m"


_THIS_MACHINE: dict[str, str | int | bool] = {
    # nothing listens beyond this machine
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
}


def active_session() -> SparkSession | None:
    """The session that this process has already, if any."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _settings(cores: int) -> dict[str, str | int | bool]:
    return {
        # semantics: names are case-sensitive and time is UTC, as in the library
        "spark.sql.caseSensitive": True,
        "spark.sql.session.timeZone": "UTC",
        # 200 shuffle partitions would be all overhead
        "spark.sql.shuffle.partitions": cores,
        "spark.default.parallelism": cores,
        # an index is built in the driver from all subscriptions, whatever their size
        "spark.driver.maxResultSize": 0,
        # quiet
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.log.level": "ERROR",
    }
