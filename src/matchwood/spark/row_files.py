"""Row files: which rows of a table a version of an index was built of, as ids and hashes.

    rows/
    ├── 000000-5f3a....arrow    id and MARKS of the rows that a task read; all buckets
    ├── 000000-77b1....arrow    ... of another task
    └── 000003-c04e....arrow    rows of the buckets that version 3 has read again

The rows of a bucket are those of the highest number that has read it (the schema's metadata lists
the buckets).  So a version adds a small file and links the others; when there are many, small files
are written as one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa

from matchwood.spark.fingerprints import BUCKET, HASHES, MARKS, N_BUCKETS

MOST_FILES = 32
"""Files of increments before they are written as one."""
ROWS_AT_ONCE = 1 << 16
"""Rows of a file that are read at a time."""
_BUCKETS = b"matchwood.buckets"


def write_rows(
    folder: Path, rows: pa.Table, number: int = 0, buckets: np.ndarray | None = None
) -> None:
    """Write a file of rows, with id and MARKS.

    buckets  those that it has all rows of; None: it belongs to a table that was read as a whole
    """
    table = rows.select(["id", *MARKS]).combine_chunks()
    listed = {} if buckets is None else {_BUCKETS: json.dumps(buckets.tolist()).encode()}
    table = table.replace_schema_metadata(listed)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{number:06}-{uuid.uuid4().hex}.arrow"
    with pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table, max_chunksize=ROWS_AT_ONCE)


def read_rows(folder: Path, buckets: np.ndarray) -> pa.Table:
    """The rows of some buckets."""
    found: list[pa.Table] = []
    left = np.asarray(buckets, np.int64)
    for file in sorted(folder.glob("*.arrow"), reverse=True):
        with pa.memory_map(str(file)) as mapped:
            reader = pa.ipc.open_file(mapped)
            listed = (reader.schema.metadata or {}).get(_BUCKETS)
            wanted = left if listed is None else np.intersect1d(left, json.loads(listed))
            is_wanted = np.isin(np.arange(N_BUCKETS), wanted)
            chosen = [_chosen(reader.get_batch(n), is_wanted)
                      for n in range(reader.num_record_batches)]  # fmt: skip
            table = pa.Table.from_batches(chosen, reader.schema)
        found.append(table.replace_schema_metadata(None))
        if listed is not None:
            left = np.setdiff1d(left, wanted)
    return pa.concat_tables(found).combine_chunks()


def _chosen(batch: pa.RecordBatch, is_wanted: np.ndarray) -> pa.RecordBatch:
    """The rows of some buckets, copied: a part of a file is in memory at a time."""
    rows = np.flatnonzero(is_wanted[batch.column(BUCKET).to_numpy()])
    return batch.take(pa.array(rows))


def advance_rows(before: Path, after: Path, rows: pa.Table, buckets: np.ndarray) -> None:
    """The row files of the next version, which has read some buckets again."""
    files = sorted(before.glob("*.arrow"))
    number = int(files[-1].name.partition("-")[0]) + 1
    small = [file for file in files if not file.name.startswith("000000-")]
    after.mkdir(parents=True)
    if len(small) >= MOST_FILES:
        known = np.unique(np.concatenate([_covered(file) for file in small]))
        others = np.setdiff1d(known, buckets)
        rows = pa.concat_tables([rows.select(["id", *MARKS]), read_rows(before, others)])
        buckets, files = np.union1d(known, buckets), [f for f in files if f not in small]
    for file in files:
        try:
            os.link(file, after / file.name)
        except OSError:  # another file system, or one without links
            shutil.copy2(file, after / file.name)
    write_rows(after, rows, number, buckets)


def _covered(file: Path) -> np.ndarray:
    with pa.memory_map(str(file)) as mapped:
        metadata = pa.ipc.open_file(mapped).schema.metadata
    return np.array(json.loads(metadata[_BUCKETS]), np.int64)


def changed_ids(before: pa.Table, after: pa.Table) -> list[int | str | None]:
    """Ids whose rows are not the same in two sets of rows, which have all rows of their buckets."""
    both = pa.concat_tables(
        [each.select(["id", *HASHES]).replace_schema_metadata(None) for each in (before, after)]
    )
    keys = np.empty(len(both), [(name, np.int64) for name in HASHES])
    for name in HASHES:
        keys[name] = both.column(name).to_numpy()
    distinct, which = np.unique(keys, return_inverse=True)
    n = before.num_rows
    counts = [np.bincount(each, minlength=len(distinct)) for each in (which[:n], which[n:])]
    is_other = (counts[0] != counts[1])[which]
    found: list[int | str | None] = (
        both.column("id").filter(pa.array(is_other)).unique().to_pylist()
    )
    return found
