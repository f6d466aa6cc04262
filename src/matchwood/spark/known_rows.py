"""Known rows: one pass over a changed table gives its digests, and the rows that are new.

    version/known/
    ├── 5f3a....npy    uint32, ascending: a part of the hash of each row that a task has read
    ├── 77b1....npy    ... of rows that a later version has read
    └── gone.npy       ... of rows that were replaced or removed lately

A task knows a row by 32 bits of its hash; rows that it does not know go to the driver beside the
digests.  So a table of which few rows have changed is read once (`increments.read_of`).

Safe.    A new row that is taken for one of before is missing then.  The digests of its bucket tell,
         and the bucket is read again.  The same holds for rows that are back as they were earlier.
Files.   Those of a task are sent to executors that cannot read the driver's, once for all versions
         that have them.  Small ones travel with the job, and are written as one when they are many.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from matchwood.engine.snapshots.versions import link_tree
from matchwood.spark.executors import reads_driver_files, ship_file
from matchwood.spark.fingerprints import (
    HASHES,
    NO_DIGESTS,
    Digests,
    digests,
    in_few_tasks,
    sums,
    with_buckets,
)
from matchwood.spark.memory import spare_modules
from matchwood.spark.worker import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KNOWN = "known"
"""The folder in that of a version."""
GONE = "gone.npy"
SMALL = 1 << 12
"""Rows of a file that travels with a job, at most."""
MOST_SMALL = 32
"""Small files before they are written as one."""
MOST_GONE = 1 << 12
"""Rows that are gone and remembered; of older ones it is not known that they are."""
MOST_NEW = 1 << 14
"""New rows that a task sends, at most: a table that has more is read again."""
_PART = (1 << 32) - 1


@dataclass(frozen=True)
class Known:
    """The rows of a version, as tasks ask for them."""

    version: Path
    files: tuple[tuple[Location, str], ...]
    few: np.ndarray
    gone: np.ndarray
    most: int
    """New rows that a task sends, at most."""

    def open(self) -> list[np.ndarray]:
        """All parts of hashes, in ascending pieces; mapped, where they are files."""
        paths = [where.folder() / name for where, name in self.files]
        return [self.few, *[np.load(each, mmap_mode="r", allow_pickle=False) for each in paths]]


@dataclass(frozen=True)
class Seen:
    """What a pass over a table gives."""

    digests: Digests
    new: pa.Table | None = None
    """Rows that `version` has not, with MARKS; None: they were not asked for, or are many."""
    version: Path | None = None


def look_at(table: DataFrame, known: Known | None) -> Seen:
    """The digests of a table of subscriptions by bucket, and its rows that are not known."""
    if known is None:
        return Seen(digests(table))
    rows = in_few_tasks(with_buckets(table))
    parts = rows.mapInArrow(partial(sum_and_find, known), "digests binary, new binary").collect()
    total = reduce(Digests.plus, [Digests.from_bytes(each.digests) for each in parts], NO_DIGESTS)
    if any(each.new is None for each in parts):
        return Seen(total)
    new = [pa.ipc.open_stream(each.new).read_all() for each in parts if each.new]
    if not new:
        return Seen(total)
    return Seen(total, pa.concat_tables(new).combine_chunks(), known.version)


def sum_and_find(known: Known, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The digests of rows with MARKS, and those that are not known: `mapInArrow`'s function."""
    spare_modules()
    pieces, new = known.open(), _New(known.most)

    def looked_at() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            new.take(batch, pieces, known.gone)
            yield batch

    found = [sums(looked_at()).to_bytes(), new.to_bytes()]
    arrays = [pa.array([each], pa.binary()) for each in found]
    yield pa.RecordBatch.from_arrays(arrays, names=["digests", "new"])


class _New:
    """Rows that are not known, as long as they are few."""

    def __init__(self, most: int) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._n, self._most = 0, most

    def take(self, batch: pa.RecordBatch, pieces: list[np.ndarray], gone: np.ndarray) -> None:
        """Take those of a batch."""
        if self._n > self._most:
            return
        parts = parts_of(batch)
        is_new = ~np.logical_or.reduce([_are_in(parts, each) for each in pieces])
        is_new |= _are_in(parts, gone)
        rows = np.flatnonzero(is_new)
        self._n += len(rows)
        if len(rows) or not self._batches:
            self._batches.append(batch.take(pa.array(rows)))

    def to_bytes(self) -> bytes | None:
        """A stream; nothing if there were no rows at all, None if too many are new."""
        if self._n > self._most:
            return None
        if not self._batches:
            return b""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._batches[0].schema) as writer:
            for each in self._batches:
                writer.write_batch(each)
        return bytes(sink.getvalue().to_pybytes())


def parts_of(rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """By row the 32 bits of its hash by which it is known."""
    hashes: np.ndarray = rows.column(HASHES[0]).to_numpy()
    return (hashes & _PART).astype(np.uint32)


def _are_in(parts: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    if not len(ascending):
        return np.zeros(len(parts), bool)
    at = np.searchsorted(ascending, parts)
    at[at == len(ascending)] = 0
    found: np.ndarray = ascending[at] == parts
    return found


# -- files ---------------------------------------------------------------------------------------


def known_of(spark: SparkSession, version: Path) -> Known | None:
    """The rows of a version; None if it has none, or an earlier release wrote it."""
    files, few, gone = read_known(version / KNOWN)
    if not files and not len(few):
        return None
    is_here = reads_driver_files(spark)
    found = [
        (Location(str(file.parent)) if is_here else ship_file(spark, file), file.name)
        for file in files
    ]
    return Known(version, tuple(found), few, gone, MOST_NEW)


def read_known(folder: Path) -> tuple[list[Path], np.ndarray, np.ndarray]:
    """Large files, what is in small ones, and what is gone."""
    large, few, gone = [], [_NONE], _NONE
    for file in sorted(folder.glob("*.npy")):
        parts = np.load(file, mmap_mode="r", allow_pickle=False)
        if file.name == GONE:
            gone = np.array(parts)
        elif len(parts) > SMALL:
            large.append(file)
        else:
            few.append(np.array(parts))
    return large, np.unique(np.concatenate(few)), gone


_NONE = np.zeros(0, np.uint32)


def write_known(folder: Path, parts: np.ndarray) -> None:
    """Write a file of some rows."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{uuid.uuid4().hex}.npy", np.unique(parts))


def advance_known(before: Path, after: Path, new: np.ndarray, old: np.ndarray) -> None:
    """The files of the next version, which has some rows that the version before has not, and the
    other way round.
    """
    if not before.exists():
        return
    large, few, gone = read_known(before)
    gone = np.setdiff1d(np.concatenate([gone, old]), new)
    files = [file for file in before.glob("*.npy") if file.name != GONE]
    if len(files) - len(large) >= MOST_SMALL:
        files, new = large, np.concatenate([np.setdiff1d(few, gone), new])
    after.mkdir(parents=True)
    for file in files:
        link_tree(file, after / file.name)
    write_known(after, new)
    np.save(after / GONE, gone if len(gone) <= MOST_GONE else np.unique(old)[:MOST_GONE])
