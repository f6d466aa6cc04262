"""Fingerprints: a name for the rows of a table, by which an index of the same rows is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from matchwood.engine.snapshot import VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def fingerprint(table: DataFrame, settings: Mapping[str, Any]) -> tuple[str, int]:
    """A name for the rows of a table, whatever their order and partitioning; and their number."""
    from pyspark.sql import functions as f

    columns = sorted(table.columns)
    parts = hashed_parts(table, columns)
    row = f.xxhash64(*parts)
    other = f.hash(*reversed(parts)).cast("bigint")
    # sums of halves: they do not overflow, and a sum of decimals would cost more than the hashes
    low, high = f.col("a").bitwiseAND((1 << 32) - 1), f.shiftright("a", 32)
    counts = table.select(row.alias("a"), other.alias("b")).agg(
        f.count("*"), f.sum(low), f.sum(high), f.bit_xor("a"), f.sum("b"),
        f.bit_xor(f.xxhash64("a", "b")),
    )  # fmt: skip
    first = counts.first()
    assert first is not None
    rows = [str(value) for value in first]
    types = [(name, kind) for name, kind in table.dtypes if name in columns]
    told = json.dumps([VERSION, sorted(types), rows, settings], sort_keys=True, default=str)
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest(), int(first[0])


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
