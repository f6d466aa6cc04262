"""The driver's side of building an index by tasks: what they make is put together, not read.

table ──► ranges of ids, sorted ──► tasks, a segment each (`build_tasks`) ──► one version
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.snapshots.versions import join_versions, save_version
from matchwood.spark.build_tasks import BUILT, BuildJob, build_batches
from matchwood.spark.columns import in_order, with_readable_attributes
from matchwood.spark.executors import reads_driver_files
from matchwood.spark.fingerprints import NO_DIGESTS, Digest, Digests, digests_of, with_buckets
from matchwood.spark.folders import ASIDE
from matchwood.spark.increments import REFUSED, ROWS, SNAPSHOT, write_digests
from matchwood.spark.known_rows import KNOWN
from matchwood.spark.row_files import write_rows
from matchwood.spark.unknown_names import Names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LARGE = 1_500_000
"""Subscriptions of a segment, at most, about.  No more segments in order to build at the same
time: events are encoded and searched for each (decision 0029)."""
_ROWS_EACH = 5
"""Rows of a subscription in a table of predicates, about."""


@dataclass
class Made:
    """What tasks have made."""

    work: Path
    job: BuildJob
    unreadable: pa.Table
    left_out: pa.Table | None
    folders: list[Path]
    counts: list[int]
    digests: Digests

    def put_together(self, aside: Path) -> None:
        """One version from the folders of all tasks."""
        full = [folder for folder, n in zip(self.folders, self.counts, strict=True) if n]
        chosen = full or self.folders[:1]
        if not chosen:
            chosen = [self.work / "empty"]
            save_version(self.job.matcher(), chosen[0] / SNAPSHOT)
        join_versions([folder / SNAPSHOT for folder in chosen], aside / SNAPSHOT)
        for part in (ROWS, KNOWN):
            (aside / part).mkdir()
            for folder in self.folders:
                for file in (folder / part).glob("*"):
                    file.rename(aside / part / file.name)
        if self.left_out is not None:
            write_rows(aside / ROWS, self.left_out)
        write_digests(aside, self.digests)
        with pa.ipc.new_file(str(aside / REFUSED), self.unreadable.schema) as writer:
            writer.write_table(self.unreadable)
            for folder in self.folders:
                with pa.memory_map(str(folder / REFUSED)) as file:
                    for batch in _batches(pa.ipc.open_file(file)):
                        writer.write_batch(batch)


def _batches(reader: pa.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    return (reader.get_batch(n) for n in range(reader.num_record_batches))


@contextmanager
def built_by_tasks(
    table: DataFrame,
    n_rows: int,
    home: Path,
    declared: Schema,
    types: Mapping[str, str],
    known: Names,
) -> Iterator[tuple[Made, Digest]]:
    """Segments of a table, and the digest of the rows that were read for them."""
    spark = table.sparkSession
    home.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=ASIDE, dir=home))
    try:
        readable = with_readable_attributes(with_buckets(table))
        names = None if known is None else frozenset(known)
        here = str(work) if reads_driver_files(spark) else None
        job = BuildJob(dict(declared), declared.is_strict, dict(types), names, here)
        n = n_rows // (_ROWS_EACH if "attribute" in table.columns else 1)
        n_tasks = n_segments(n)
        good = readable.table
        ranges = good.repartition(1) if n_tasks == 1 else good.repartitionByRange(n_tasks, "id")
        rows = ranges.sortWithinPartitions(*in_order(good))
        built = rows.mapInArrow(partial(build_batches, job), BUILT)
        made = Made(work, job, readable.refused, readable.rows, [], [], NO_DIGESTS)
        _take(made, built.collect() if here else _one_by_one(built))
        if readable.rows is not None:
            made.digests = made.digests.plus(digests_of(readable.rows))
        yield made, made.digests.total()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def n_segments(n: int) -> int:
    """How many segments hold n subscriptions, each built by a task of its own."""
    return max(1, -(-n // LARGE))


def _one_by_one(built: DataFrame) -> Iterator[Any]:
    """Rows that are computed in parallel, kept on executors' disks and handed over one by one."""
    from pyspark import StorageLevel

    kept = built.persist(StorageLevel.DISK_ONLY)
    try:
        kept.count()
        yield from kept.toLocalIterator(True)
    finally:
        kept.unpersist()


def _take(made: Made, rows: Iterable[Any]) -> None:
    """Take over what tasks tell; rows of one task come one after the other."""
    archives: dict[int, Path] = {}
    for row in rows:
        if row.digests:
            made.digests = made.digests.plus(Digests.from_bytes(row.digests))
        if row.folder is not None:
            made.folders.append(made.work / row.folder)
            made.counts.append(row.n_held)
            continue
        archive = archives.get(row.task)
        if archive is None:
            archive = archives[row.task] = made.work / f"{row.task}.zip"
            made.counts.append(row.n_held)
        with archive.open("ab") as file:
            file.write(row.piece)
    for task, archive in archives.items():
        folder = made.work / f"task-{task}"
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        archive.unlink()
        made.folders.append(folder)
