"""Fingerprints: a name for the rows of a table, by which an index of the same rows is found.

    name = hash of (digest of the rows, their types, settings)
    digest = number of rows, sums and XORs of two 64-bit hashes of each row

A digest does not depend on the order of rows, and digests of parts can be added.  So Spark computes
that of a whole table (`digest`), and a reader of the table that takes the columns HASHES along
computes that of the very rows that it has read (`digest_of`): a table that changes between the two
reads never gives an index the name of other rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchwood.engine.snapshot import VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

HASHES = ("matchwood_hash_1", "matchwood_hash_2")
"""Columns that `with_hashes` adds."""

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


def fingerprint(table: DataFrame, settings: Mapping[str, Any]) -> tuple[str, int]:
    """A name for the rows of a table, whatever their order and partitioning; and their number."""
    found = digest(table)
    return name_of(table, found, settings), found.n_rows


def name_of(table: DataFrame, rows: Digest, settings: Mapping[str, Any]) -> str:
    """The name of rows with a digest, of the types of a table."""
    types = sorted(each for each in table.dtypes if each[0] not in HASHES)
    told = json.dumps([VERSION, types, rows, settings], sort_keys=True, default=str)
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()


def with_hashes(table: DataFrame) -> DataFrame:
    """A table with the columns HASHES."""
    from pyspark.sql import functions as f

    parts = hashed_parts(table, sorted(table.columns))
    first, second = HASHES
    return table.withColumns(
        {first: f.xxhash64(*parts), second: f.xxhash64(f.lit(1), *reversed(parts))}
    )


def digest(table: DataFrame) -> Digest:
    """The digest of all rows, computed by Spark."""
    from pyspark.sql import functions as f

    counts: list[Column] = [f.count("*")]
    for name in HASHES:
        counts += [f.sum(f.col(name).bitwiseAND(_LOW)), f.sum(f.shiftright(name, 32)),
                   f.bit_xor(name)]  # fmt: skip
    first = with_hashes(table).select(*HASHES).agg(*counts).first()
    assert first is not None
    return Digest(*[int(value or 0) for value in first])


def digest_of(rows: pa.Table | pa.RecordBatch) -> Digest:
    """The digest of rows that were read with their HASHES."""
    found: list[int] = []
    for name in HASHES:
        values = rows.column(name).to_numpy()
        found += [int((values & _LOW).sum()), int((values >> 32).sum()),
                  int(np.bitwise_xor.reduce(values))]  # fmt: skip
    return Digest(rows.num_rows, *found)


def hashed_parts(table: DataFrame, columns: list[str]) -> list[Column]:
    """What is hashed of some columns: rows that differ in them differ in a part."""
    return [
        part for name in columns for part in _parts(column_of(name), table.schema[name].dataType)
    ]


def column_of(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def _parts(column: Column, kind: DataType) -> Iterator[Column]:
    """The value, and whether it is null, which hashes pass over."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for each in kind:
            yield from _parts(column.getField(each.name), each.dataType)
    elif isinstance(kind, ArrayType) and kind.containsNull:
        inside = kind.elementType
        yield f.transform(column, lambda item: f.xxhash64(*_parts(item, inside)))
    elif isinstance(kind, MapType):
        yield entries(column)
    else:
        yield column
    yield column.isNull()


def entries(column: Column) -> Column:
    """A map as what Spark can hash and compare: its entries in order; a null is an absent one."""
    from pyspark.sql import functions as f

    known = f.filter(f.map_entries(column), lambda each: each["value"].isNotNull())
    return f.array_sort(known)
