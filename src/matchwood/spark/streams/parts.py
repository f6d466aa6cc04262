"""Parts: files of a micro-batch's output that tasks write themselves.

    task ──► matches: aside/part-5f3a.parquet      one file a kind and task, if it has rows
         ──► errors:  aside/part-81c0.parquet
         ──► (kind, file) to the driver             which takes these files and no others

Idea.    Rows that a worker has as Arrow are written by it: else they travel to the JVM, become rows
         there, and then columns again.  All of them, errors too, come from one pass.
Once.    Every attempt of a task writes files of new names, and the driver takes those that the
         attempt that counts has reported.  What others leave aside goes with the folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from matchwood.spark.storage import Storage

MATCHES, ERRORS = "matches", "errors"
FILES = "kind STRING, file STRING"
"""What tasks report."""
_AT_ONCE = 64 << 20
"""Bytes of rows that are written at once."""


@dataclass(frozen=True)
class Parts:
    """Where tasks put their files."""

    out: Storage
    folder: str

    def put(self, rows: pa.Table) -> str:
        """Write rows as one file; returns its name."""
        with Part(self) as part:
            for batch in rows.to_batches() or [_empty(rows.schema)]:
                part.write(batch)
        return part.name


class Part:
    """One file, opened when rows come.  Leave it without an error, or its file is not whole."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.name = f"part-{uuid.uuid4().hex}.parquet"
        self._waiting: list[pa.RecordBatch] = []
        self._n_bytes = 0
        self._writer: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._stack.__exit__(kind, error, trace)

    @property
    def has_rows(self) -> bool:
        """Whether there is a file, or will be at the end."""
        return self._writer is not None or bool(self._waiting)

    def write(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self._n_bytes += rows.nbytes
        if self._n_bytes > _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            name = f"{self._parts.folder}/{self.name}"
            file = self._stack.enter_context(self._parts.out.writing(name))
            self._writer = self._stack.enter_context(pq.ParquetWriter(file, table.schema))
        self._writer.write_table(table)
        self._waiting, self._n_bytes = [], 0


def put_rows(parts: Parts, kind: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Write the rows of a task as one file: `mapInArrow`'s function."""
    with Part(parts) as part:
        for batch in batches:
            if batch.num_rows:
                part.write(batch)
    if part.has_rows:
        yield reported([(kind, part.name)])


def reported(files: list[tuple[str, str]]) -> pa.RecordBatch:
    """Files by kind, as tasks report them."""
    kinds, names = [kind for kind, _ in files], [name for _, name in files]
    return pa.RecordBatch.from_pydict(
        {"kind": pa.array(kinds, pa.string()), "file": pa.array(names, pa.string())}
    )


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)
