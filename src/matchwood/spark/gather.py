"""Rows from executors to the driver, without a heap that holds them all.

    partition ──► packed by a worker: Arrow, names as dictionaries, compressed ──► disk
                                                         a partition at a time ──► driver

Why.     Collecting a DataFrame holds it in the JVM's heap, 263 bytes a subscription as rows of
         predicates: a million of them did not fit into the default heap.  Packed they take about 40
         bytes, and the heap sees one partition at a time.
Disk.    Partitions are made in parallel and kept on the executors' disks first: Spark hands
         partitions over one after the other, and would compute them one after the other, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKED = "chunk binary"
ROWS_AT_ONCE = 200_000
_WORDS = ("attribute", "operator", "context")


def gather(table: DataFrame) -> pa.Table:
    """A table of predicates, or of what belongs to ids, in the order of ids."""
    chunks = [_unpacked(data) for data in bring(table.mapInArrow(pack_batches, PACKED))]
    if not chunks:
        return table.limit(0).toArrow()
    return in_order(chunks)


def bring(packed: DataFrame) -> Iterator[bytes]:
    """The packed chunks of a DataFrame, computed in parallel, in the order of partitions."""
    from pyspark import StorageLevel

    packed = packed.persist(StorageLevel.DISK_ONLY)
    try:
        packed.count()
        for row in packed.toLocalIterator(True):
            yield bytes(row.chunk)
    finally:
        packed.unpersist()


def pack_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of predicates as a few compressed chunks: `mapInArrow`'s function."""
    held: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        held.append(batch)
        n += batch.num_rows
        if n >= ROWS_AT_ONCE:
            yield _packed(held)
            held, n = [], 0
    if n:
        yield _packed(held)


def _packed(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    for name in table.column_names:
        if name not in _WORDS:
            continue
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pc.dictionary_encode(table.column(at)))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data = pa.array([sink.getvalue().to_pybytes()], pa.binary())
    return pa.RecordBatch.from_arrays([data], names=["chunk"])


def _unpacked(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def in_order(chunks: list[pa.Table]) -> pa.Table:
    """All rows by ascending id.

    Files that were written in order come out of order, but each is sorted: then only the chunks
    change places.
    """
    has_null = any(each.column("id").null_count for each in chunks)
    if not has_null:
        chunks = sorted(chunks, key=lambda each: each.column("id")[0].as_py())
    rows = pa.concat_tables(chunks).unify_dictionaries()
    ids = rows.column("id")
    before, after = ids.slice(0, max(len(ids) - 1, 0)), ids.slice(1)
    if has_null or pc.all(pc.less_equal(before, after)).as_py() is False:
        rows = rows.take(pc.sort_indices(ids))  # null comes last, and is refused by the engine
    return rows
