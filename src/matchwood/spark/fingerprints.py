"""Fingerprints: a name for the rows of a table, by which an index of the same rows is found.

    name = hash of (digest of the rows, their types, settings)
    digest = number of rows, sums and XORs of two 64-bit hashes of each row

A digest does not depend on the order of rows, and digests of parts can be added.  So Spark computes
that of a whole table (`digest`), and a reader of the table that takes the columns HASHES along
computes that of the very rows that it has read (`digest_of`): a table that changes between the two
reads never gives an index the name of other rows.

Rows are in buckets by their ids (`with_buckets`), and the digests of a table of subscriptions are
kept by bucket: two versions of a table are compared bucket by bucket, and only the rows of buckets
that differ are read (`increments`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.engine.snapshots.snapshot import VERSION
from matchwood.spark.memory import spare_modules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

HASHES = ("matchwood_hash_1", "matchwood_hash_2")
"""Columns that `with_hashes` adds."""
BUCKET = "matchwood_bucket"
MARKS = (*HASHES, BUCKET)
"""Columns that `with_buckets` adds."""

HASH = "xxhash64"

N_BUCKETS = 4096
"""A change of one row in a million makes about 250 rows to be read again."""

_LOW = (1 << 32) - 1


class Digest(NamedTuple):
    """What is known of a set of rows; sums are of halves, which do not overflow."""

    n_rows: int = 0
    low_1: int = 0
    high_1: int = 0
    xor_1: int = 0
    low_2: int = 0
    high_2: int = 0
    xor_2: int = 0

    def plus(self, other: Digest) -> Digest:
        """The digest of both sets of rows."""
        return Digest(
            self.n_rows + other.n_rows,
            self.low_1 + other.low_1, self.high_1 + other.high_1, self.xor_1 ^ other.xor_1,
            self.low_2 + other.low_2, self.high_2 + other.high_2, self.xor_2 ^ other.xor_2,
        )  # fmt: skip


XOR = Digest._fields.index("xor_1")
"""Which of a digest's fields is the hash itself, if it is that of one row."""


class Digests(NamedTuple):
    """Digests of rows by bucket."""

    bucket: np.ndarray
    """int64[k], ascending."""
    values: np.ndarray
    """int64[k, 7], the fields of `Digest`."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Digests:
        """What `to_bytes` has given."""
        values = np.frombuffer(data, np.int64).reshape(-1, 1 + len(Digest._fields))
        return cls(values[:, 0], values[:, 1:])

    def to_bytes(self) -> bytes:
        """As bytes, for a row of a DataFrame."""
        return self.rows().tobytes()

    def rows(self) -> np.ndarray:
        """int64[k, 8]: the bucket and the fields of its digest."""
        return np.column_stack([self.bucket, self.values]).astype(np.int64)

    def total(self) -> Digest:
        """The digest of all rows."""
        sums, xors = self.values.sum(axis=0), np.bitwise_xor.reduce(self.values, axis=0)
        is_xor = [name.startswith("xor") for name in Digest._fields]
        found = np.where(is_xor, xors, sums).tolist() if len(self.values) else [0] * 7
        return Digest(*found)

    def plus(self, other: Digests) -> Digests:
        """The digests of both sets of rows."""
        mine, theirs = self._dense(), other._dense()
        is_xor = np.array([name.startswith("xor") for name in Digest._fields])
        dense = np.where(is_xor, mine ^ theirs, mine + theirs)
        used = np.flatnonzero(dense[:, 0])
        return Digests(used, dense[used])

    def differing(self, other: Digests) -> np.ndarray:
        """Buckets whose rows are not the same."""
        mine, theirs = self._dense(), other._dense()
        return np.flatnonzero((mine != theirs).any(axis=1))

    def rows_of(self, buckets: np.ndarray) -> np.ndarray:
        """int64[k, 7]: the digests of some buckets."""
        return self._dense()[buckets]

    def of_buckets(self, buckets: np.ndarray) -> Digests:
        """Those of some buckets alone."""
        return NO_DIGESTS.with_buckets_of(buckets, self)

    def n_rows(self, buckets: np.ndarray) -> int:
        """How many rows some buckets have."""
        return int(self._dense()[buckets, 0].sum())

    def with_buckets_of(self, buckets: np.ndarray, other: Digests) -> Digests:
        """These, but some buckets are those of another table."""
        dense = self._dense()
        dense[buckets] = other._dense()[buckets]
        used = np.flatnonzero(dense[:, 0])
        return Digests(used, dense[used])

    def _dense(self) -> np.ndarray:
        dense = np.zeros((N_BUCKETS, len(Digest._fields)), np.int64)
        dense[self.bucket] = self.values
        return dense


NO_DIGESTS = Digests(np.zeros(0, np.int64), np.zeros((0, len(Digest._fields)), np.int64))
"""Those of no rows."""


def fingerprint(table: DataFrame, settings: Mapping[str, Any]) -> tuple[str, int]:
    """A name for the rows of a table, whatever their order and partitioning; and their number."""
    found = digest(table)
    return name_of(table, found, settings), found.n_rows


def name_of(table: DataFrame, rows: Digest, settings: Mapping[str, Any]) -> str:
    """The name of rows with a digest, of the types of a table."""
    types = sorted(each for each in table.dtypes if each[0] not in MARKS)
    text = json.dumps([VERSION, types, rows, settings], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def with_hashes(table: DataFrame) -> DataFrame:
    """A table with the columns HASHES."""
    return table.selectExpr("*", *_hashes(table))


def with_buckets(table: DataFrame) -> DataFrame:
    """A table of subscriptions with the columns MARKS; all rows of an id are in one bucket."""
    return table.selectExpr("*", *_hashes(table), _BUCKET_OF_ID)


_BUCKET_OF_ID = f"CAST({HASH}(id) & {N_BUCKETS - 1} AS INT) AS {BUCKET}"


def _hashes(table: DataFrame) -> list[str]:
    """The columns HASHES of a table, in SQL."""
    parts = hashed_parts(table, sorted(table.columns))
    first, second = HASHES
    return [
        f"{HASH}({', '.join(parts)}) AS {first}",
        f"{HASH}({', '.join(['1', *reversed(parts)])}) AS {second}",
    ]


def digest(table: DataFrame) -> Digest:
    """The digest of all rows, computed by Spark."""
    return _summed(table.selectExpr(*_hashes(table), f"0 AS {BUCKET}")).total()


def digests(table: DataFrame) -> Digests:
    """The digests of a table of subscriptions by bucket, computed by Spark."""
    return _summed(table.selectExpr(*_hashes(table), _BUCKET_OF_ID))


MOST_TASKS = 64
"""Tasks that compute digests, at most: each sends 64 bytes a bucket to the driver."""


def in_few_tasks(rows: DataFrame) -> DataFrame:
    """The same rows, in no more partitions than may send digests."""
    return rows.coalesce(MOST_TASKS)


def _summed(marks: DataFrame) -> Digests:
    """The digests of rows of MARKS: one job of one stage, because parts can be added here."""
    parts = in_few_tasks(marks).mapInArrow(sum_batches, "digests binary").collect()
    return reduce(Digests.plus, [Digests.from_bytes(part.digests) for part in parts], NO_DIGESTS)


def sum_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The digests of rows of MARKS, as bytes: `mapInArrow`'s function."""
    spare_modules()
    found = pa.array([sums(batches).to_bytes()], pa.binary())
    yield pa.RecordBatch.from_arrays([found], names=["digests"])


def digests_of(rows: pa.Table | pa.RecordBatch) -> Digests:
    """The digests of rows that were read with their MARKS."""
    return sums([rows])


def sums(parts: Iterable[pa.Table | pa.RecordBatch]) -> Digests:
    """The digests of rows with MARKS."""
    dense = np.zeros((N_BUCKETS, len(Digest._fields)), np.int64)
    for rows in parts:
        bucket = rows.column(BUCKET).to_numpy()
        np.add.at(dense[:, 0], bucket, 1)
        for n, name in enumerate(HASHES):
            values = rows.column(name).to_numpy()
            np.add.at(dense[:, 3 * n + 1], bucket, values & _LOW)
            np.add.at(dense[:, 3 * n + 2], bucket, values >> 32)
            np.bitwise_xor.at(dense[:, 3 * n + 3], bucket, values)
    used = np.flatnonzero(dense[:, 0])
    return Digests(used, dense[used])


def digest_of(rows: pa.Table | pa.RecordBatch) -> Digest:
    """The digest of rows that were read with their HASHES."""
    found: list[int] = []
    for name in HASHES:
        values = rows.column(name).to_numpy()
        found += [int((values & _LOW).sum()), int((values >> 32).sum()),
                  int(np.bitwise_xor.reduce(values))]  # fmt: skip
    return Digest(rows.num_rows, *found)


def hashed_parts(table: DataFrame, columns: list[str]) -> list[str]:
    """What is hashed of some columns, in SQL: rows that differ in them differ in a part."""
    return [part for name in columns for part in _parts(quoted(name), table.schema[name].dataType)]


def column_of(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))


def quoted(name: str) -> str:
    """A name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def _parts(value: str, kind: DataType, depth: int = 0) -> Iterator[str]:
    """The value, and whether it is null, which hashes pass over."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for each in kind:
            yield from _parts(f"{value}.{quoted(each.name)}", each.dataType, depth)
    elif isinstance(kind, ArrayType) and kind.containsNull:
        item = f"item_{depth}"
        inside = ", ".join(_parts(item, kind.elementType, depth + 1))
        yield f"transform({value}, {item} -> {HASH}({inside}))"
    elif isinstance(kind, MapType):
        yield entries(value)
    else:
        yield value
    yield f"{value} IS NULL"


def entries(value: str) -> str:
    """A map as what Spark can hash and compare, in SQL: its entries in order; a null is an absent
    one.
    """
    return f"array_sort(filter(map_entries({value}), each -> each.value IS NOT NULL))"
