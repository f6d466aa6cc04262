"""A Spark session for a command, and a bar that shows how far its jobs are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matchwood.cli.screen import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[
    str | None,
    typer.Option(help="The Spark master; this machine's cores unless given.", show_default=False),
]

_EVERY = 0.25


@contextmanager
def spark_session(
    master: str | None, log: Path | None = None, **options: str | int | bool
) -> Iterator[SparkSession]:
    """The session of the process, if it has one; else one of its own, stopped afterwards.

    log  a file for what Spark writes to stderr, warnings of its start among it; else the screen
    """
    from matchwood.spark import local_session
    from matchwood.spark.session import active_session

    active = active_session()
    if active is not None:
        yield active
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    with nullcontext() if log is None else _stderr_to(log):
        session = local_session("matchwood", cores, master=master, **options)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect standard error to a file, of child processes too: Java logs before any setting."""
    sys.stderr.flush()
    screen = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(screen, 2)
        os.close(screen)


@contextmanager
def job_progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Tasks done and tasks known of, while the block runs."""
    tracker = spark.sparkContext.statusTracker()
    is_over = threading.Event()
    seen: dict[int, tuple[int, int]] = {}

    def watch() -> None:
        while not is_over.wait(_EVERY):
            for stage in tracker.getActiveStageIds():
                found = tracker.getStageInfo(stage)
                if found is not None:
                    seen[stage] = (found.numCompletedTasks, found.numTasks)
            active = set(tracker.getActiveStageIds())
            done = sum(n if stage in active else total for stage, (n, total) in seen.items())
            advance(done, sum(total for _, total in seen.values()) or None)

    with progress(what) as advance:
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()


def spark_reason(error: Exception) -> str | None:
    """Why Spark failed, in a line; None for errors that are not Spark's."""
    if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
        return None
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("matchwood.errors.")]  # of a worker
    java = [line for line in lines if line.startswith((": ", "Caused by: "))]  # of Py4J: the cause
    last = (ours or java or lines[:1] or [type(error).__name__])[-1]
    for prefix in ("matchwood.errors.", "Caused by: ", ": "):
        last = last.removeprefix(prefix)
    return f"Spark failed: {last}"
