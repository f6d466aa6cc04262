"""What tasks do to build an index: each makes a segment of its rows, by itself.

    rows of one range of ids, in order ──► matcher ──► segment      rows/      refused
                                                          └────────────┴──────────┴──► one folder

The folder goes to the driver's machine: it is written there where tasks can, else it travels as
rows of bytes.  The driver puts folders together and reads none of them.

Order.   A subscription's number in the order of addition is given by the number of its task and
         its position, with gaps, so that later versions can put others between (`increments`).
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.input.loading import CHUNK, Chunk, load_batches
from matchwood.engine.matcher import Matcher
from matchwood.engine.segments import tiers
from matchwood.engine.snapshots.versions import save_version
from matchwood.spark.columns import error_table
from matchwood.spark.errors import error_row
from matchwood.spark.fingerprints import MARKS, NO_DIGESTS, digests_of
from matchwood.spark.known_rows import KNOWN, parts_of, write_known
from matchwood.spark.row_files import write_rows
from matchwood.spark.unknown_names import Names, without_unknown
from matchwood.spark.worker import parse_rows

GAP = 1 << 28
"""Between the numbers of two subscriptions of a task, at most."""
TASK = 1 << 50
"""Between the first numbers of two tasks; there are at most 4,000 of them."""
PIECE = 1 << 24
"""Bytes of a row that carries a part of a folder."""
BUILT = "task int, n_held bigint, digests binary, folder string, piece binary"


@dataclass(frozen=True)
class BuildJob:
    """What a task needs to know."""

    schema: Mapping[str, Any]
    is_strict: bool
    column_types: Mapping[str, str]
    known: frozenset[str] | None
    folder: str | None
    """Where tasks put their folders; None: they send them."""

    def matcher(self) -> Matcher:
        declared = Schema(self.schema, strict=self.is_strict)
        return Matcher(schema=declared, column_types=self.column_types)


def build_batches(job: BuildJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows BUILT of one segment: `mapInArrow`'s function."""
    from pyspark import TaskContext

    context = TaskContext.get()
    task = context.partitionId() if context is not None else 0
    rows = [batch for batch in batches if batch.num_rows]
    if not rows and task:
        return
    made = Path(tempfile.mkdtemp(prefix=".segment-", dir=job.folder))
    digests = NO_DIGESTS
    matcher, refused = job.matcher(), []
    if rows:
        table = pa.Table.from_batches(rows)
        del rows
        refused = add_rows(matcher, table, job.known, (task + 1) * TASK)
        digests = digests_of(table)
        write_rows(made / "rows", table)
        write_known(made / KNOWN, parts_of(table))
    save_version(matcher, made / "snapshot")
    write_refused(made / "refused.arrow", error_table(refused))
    count = len(matcher)
    digest = digests.to_bytes()
    if job.folder is not None:
        yield _row(task, count, digest, made.name, b"")
        return
    try:
        for piece in _pieces(made):
            yield _row(task, count, digest, None, piece)
            digest = b""
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _row(task: int, n_held: int, digest: bytes, folder: str | None, piece: bytes) -> pa.RecordBatch:
    kinds = (pa.int32(), pa.int64(), pa.binary(), pa.string(), pa.binary())
    values = (task, n_held, digest, folder, piece)
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(
        arrays, names=["task", "n_held", "digests", "folder", "piece"]
    )


def _pieces(folder: Path) -> Iterator[bytes]:
    """An archive of a folder, piece by piece."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for each in sorted(folder.rglob("*")):
                if each.is_file():
                    archive.write(each, each.relative_to(folder))
        file.seek(0)
        while data := file.read(PIECE):
            yield data


def add_rows(
    matcher: Matcher,
    table: pa.Table,
    known: Names,
    first: int,
    order: Mapping[Any, int] | None = None,
) -> list[dict[str, Any]]:
    """Add rows, perhaps with MARKS, in the order of ids; returns error rows of what was refused.

    first  the number of the first one in the order of addition
    order  numbers by id, where they are given
    """
    refused: list[dict[str, Any]] = []
    if not table.num_rows:
        return refused
    if "attribute" in table.column_names:
        table, refused = without_unknown(_plain(table), known)
        chunks = load_batches(table, 1)
    else:
        chunks = _text_chunks(table, known)
    gap = min(GAP, TASK // (table.num_rows + 2))
    report = matcher.add_chunks(_numbered(chunks, first, gap, order))
    return refused + [error_row("subscription", each.id, each.error) for each in report.errors]


def _plain(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in MARKS if name in table.column_names])


def _text_chunks(table: pa.Table, known: Names) -> Iterator[Chunk]:
    first = 0
    for batch in _plain(table).to_batches(max_chunksize=CHUNK):
        ids, texts, contexts, fields, leaves, rows, refused = parse_rows(batch, known)
        last = first + len(ids)
        yield Chunk(first, ids, texts, leaves, rows, refused, last, last, contexts, fields)
        first = last


def _numbered(
    chunks: Iterator[Chunk], first: int, gap: int, order: Mapping[Any, int] | None
) -> Iterator[Chunk]:
    """Chunks with their numbers, which make a segment, however few they are."""
    for chunk in chunks:
        if order is None:
            chunk.order = first + gap * (1 + np.arange(chunk.first, chunk.first + len(chunk.ids)))
        else:
            chunk.order = np.array([order.get(id_, 0) for id_ in chunk.ids], np.int64)
        chunk.total = max(chunk.total, tiers.HEAD_MOST)
        yield chunk


def write_refused(file: Path, rows: pa.Table) -> None:
    with pa.ipc.new_file(str(file), rows.schema) as writer:
        writer.write_table(rows)
