"""What tasks do for the next version of shards: read what shards hold, and write those that change.

A shard that changes is a version of its index (`engine.snapshots.versions`): it has the segments of
the one before, marks of what is gone, and a small segment of what is new.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.engine.snapshots.versions import load_version, near, save_version
from matchwood.errors import FormatError, StorageError
from matchwood.spark.build_tasks import TASK, add_rows
from matchwood.spark.fingerprints import BUCKET, HASHES, MARKS
from matchwood.spark.increments import SNAPSHOT, numbers_between
from matchwood.spark.memory import forget_peak, give_back, peak
from matchwood.spark.shards.build import BuildJob, memory_before
from matchwood.spark.shards.locations import HOMES
from matchwood.spark.shards.plan import HOME
from matchwood.spark.shards.save import (
    ROWS,
    SHARD,
    folder_of_tasks,
    hand_over,
    report_of,
    report_row,
    rows_of_shard,
    write_rows,
)
from matchwood.spark.stores import is_address, local_copy, local_files


def read_buckets(
    files: tuple[str, ...], buckets: list[int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows (id, HASHES, SHARD) of shards that are in some buckets: `mapInArrow`'s function."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            rows = _read_rows(files[number])
            first, last = (
                np.searchsorted(rows.column(BUCKET).to_numpy(), buckets, side=side)
                for side in ("left", "right")
            )
            for at, until in zip(first.tolist(), last.tolist(), strict=True):
                part = rows.slice(at, until - at).select(["id", *HASHES]).combine_chunks()
                for each in part.to_batches():
                    shard = pa.array(np.full(each.num_rows, number, np.int32))
                    yield each.append_column(SHARD, shard)


def _read_rows(file: str) -> pa.Table:
    if is_address(file):
        file = str(local_files(file, {ROWS: file}) / ROWS)
    with pa.memory_map(file) as mapped:
        return pa.ipc.open_file(mapped).read_all()


@dataclass(frozen=True)
class Piece:
    """What happens to one shard.

    number    of the version before; None: there is none for these rows
    count     how many subscriptions it has
    snapshot, rows   paths or addresses
    gone      ids that are removed
    added     rows with HOME, SOURCE and SHARD
    """

    number: int | None
    planned: int
    count: int
    snapshot: str
    rows: str
    gone: tuple[Any, ...]
    added: pa.Table | None


@dataclass(frozen=True)
class AdvanceJob:
    """What the tasks need to know."""

    build: BuildJob
    pieces: tuple[Piece, ...]


def advance_pieces(job: AdvanceJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the next version of shards; yields a report of each."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            try:
                report = _advanced(job.build, job.pieces[number])
            except (FormatError, StorageError, OSError) as error:
                report = {"failed": str(error)}
            yield report_row(report)


def _advanced(job: BuildJob, piece: Piece) -> dict[str, Any]:
    before = memory_before(job)
    forget_peak()
    source: Path | None = None
    matcher, rows = job.matcher(), None
    if piece.count:
        copied = is_address(piece.snapshot)
        source = local_copy(piece.snapshot) if copied else Path(piece.snapshot)
        matcher = load_version(source, verify=True, column_types=job.sampled.column_types)
    if piece.number is not None:
        rows = _read_rows(piece.rows)
        rows = rows.filter(pc.invert(pc.is_in(rows.column("id"), _ids(rows, piece.gone))))
    is_copied, errors = False, []
    matcher.remove_many([id_ for id_ in piece.gone if id_ is not None and id_ in matcher])
    if piece.added is not None:
        added, is_copied = rows_of_shard(piece.added)
        numbers = None
        if source is not None:
            ids = sorted(set(added.column("id").drop_null().to_pylist()))
            numbers = numbers_between(near(matcher, ids), ids) if len(matcher) else None
            if numbers is None and len(matcher):
                return {"failed": "no number is left between two ids"}
        errors = add_rows(matcher, added, job.known, TASK, numbers)
        fresh = piece.added.select(["id", *MARKS, HOME])
        rows = fresh if rows is None else pa.concat_tables([rows, fresh.cast(rows.schema)])
    if not len(matcher):
        return {"folder": None, "failed": None, "errors": errors}
    folder = folder_of_tasks(job.home) / f"shard-{uuid.uuid4().hex}"
    save_version(matcher, folder / SNAPSHOT, source)
    assert rows is not None
    write_rows(folder, rows)
    np.save(folder / HOMES, np.unique(rows.column(HOME).to_numpy().view(np.uint64)))
    took = max(0, peak() - before)
    report = report_of(matcher, folder, piece.planned, len(errors))
    del matcher
    give_back()
    failed = "took more than the cap" if took > job.max_bytes else None
    hand_over(folder, job.home)
    report["shard"]["peak"] = took
    return {**report, "failed": failed, "errors": errors, "is_copied": is_copied}


def _ids(rows: pa.Table, ids: tuple[Any, ...]) -> pa.Array:
    return pa.array(ids, rows.schema.field("id").type)
