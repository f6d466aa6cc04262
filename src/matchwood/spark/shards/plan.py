"""Which shard a subscription belongs to: home keys weighed, and packed into shards of one size.

    every home key ──► one of 65,536 buckets, by the key     weight: bytes of the rows in it, all
                                                             rows counted, none estimated
    buckets, heaviest first ──► the shard that is lightest   heavier than a shard: over several,
                                                             by id

Size.    How much weight a shard may have follows from `max_bytes` and from what a sample takes when
         it is built, with BUILD_FACTOR for what building needs beside the index.  That is an
         estimate; the task that builds measures, and splits what takes more (`shards/build`).
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.spark.context_frames import VALUES
from matchwood.spark.shards.homes import (
    Costs,
    candidate_keys,
    distinct,
    homes_of_predicates,
    homes_of_text,
    keys_of_text,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE = 20_000
"""Subscriptions that tell how much memory one takes, and which keys are frequent."""

BUILD_FACTOR = 4.0
"""What building an index takes, in sizes of the index: rows, tables and room to grow."""

BUCKETS = 1 << 16
MOST_SHARDS = 1 << 20
ROW = 40
"""Weight of a row without its constants or its text."""

HOME, SOURCE = "matchwood_home", "matchwood_source"
"""Columns of a row: its home key; and which text it is a copy or a branch of, null if it is all."""

WEIGHED = ("id", "expr", "value", "values", "attributes", VALUES)


@dataclass(frozen=True)
class Sampled:
    """What a sample of the subscriptions tells.

    costs   how often keys are offered: the rarest becomes the home
    types   of attributes that the sample tests: shards must agree on them
    bytes   that building takes, per byte of weight
    column_types   of all the events' columns, tested or not, and of the contexts'
    """

    costs: Costs
    types: dict[str, str]
    bytes: float
    column_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_types(self) -> dict[str, str]:
        """Of attributes that the sample does not test, too."""
        return {**self.column_types, **self.types}


@dataclass(frozen=True)
class Plan:
    """Bucket b belongs to the shards start[b] .. start[b] + spread[b] - 1, modulo n_shards."""

    n_shards: int
    start: np.ndarray
    spread: np.ndarray

    def shards_of(self, home: np.ndarray, ids: Any) -> np.ndarray:
        """The shard of every row."""
        bucket = (home % np.uint64(BUCKETS)).astype(np.int64)
        found: np.ndarray = self.start[bucket]
        spread = self.spread[bucket]
        if (spread > 1).any():
            found = (found + _numbers(ids) % spread) % self.n_shards
        return found.astype(np.int32)


# -- a sample ----------------------------------------------------------------------------------


def draw_sample(table: DataFrame, n_rows: int | None) -> pa.Table:
    """About SAMPLE subscriptions with all their rows, of `n_rows` in all, if that is known."""
    wanted = SAMPLE * (7 if "attribute" in table.columns else 1)
    if n_rows is None:
        found = _part(table, 1000)
        if found.num_rows >= wanted // 10:
            return found
        n_rows = table.count()
    return (
        _part(table, int(1_000_000 * wanted / n_rows) + 1) if n_rows > wanted else table.toArrow()
    )


def _part(table: DataFrame, of_a_million: int) -> pa.Table:
    from pyspark.sql import functions as f

    return table.where(f.pmod(f.xxhash64("id"), f.lit(1_000_000)) < of_a_million).toArrow()


def look_at(
    sample: pa.Table, index: str, config: Mapping[str, Any] | None, schema: Schema,
    column_types: Mapping[str, str] | None = None,
) -> Sampled:  # fmt: skip
    """Build the sample to see what it takes, and count its keys."""
    matcher = Matcher(index=index, schema=schema, column_types=column_types, **(config or {}))
    matcher.add_many(sample)
    size = float(matcher.stats()["bytes_per_subscription"]) * len(matcher) if len(matcher) else 0.0
    weight = int(weights_of(sample).sum()) if sample.num_rows else 0
    types = {name: kind for name, kind in matcher.schema.items() if kind}
    per_byte = BUILD_FACTOR * size / weight if size and weight else 2 * BUILD_FACTOR
    return Sampled(_frequencies(sample, types), types, per_byte, dict(column_types or {}))


def _frequencies(sample: pa.Table, types: Mapping[str, str]) -> Costs:
    if "attribute" in sample.column_names:
        sample = sample.combine_chunks()
        offered, _ = candidate_keys(sample, types)
        return _shares(offered, pc.count_distinct(sample.column("id")).as_py())
    texts = sample.column("expr").to_pylist()
    keys = [np.array(keys_of_text(text, types), np.uint64) for text in texts]
    return _shares(np.concatenate([*keys, np.empty(0, np.uint64)]), len(texts))


def _shares(keys: np.ndarray, n: int) -> Costs:
    """Those that are more than rare: two of a kind say nothing."""
    distinct, counts = np.unique(keys, return_counts=True)
    often = counts > 2
    return Costs(distinct[often], counts[often] / max(n, 1))


# -- homes and weights -------------------------------------------------------------------------


def with_homes(
    table: pa.Table, sampled: Sampled, may_divide: Callable[[list[str]], set[str]] = set
) -> pa.Table:
    """Rows with HOME and SOURCE; a text that has several homes has several rows.

    may_divide  which of some texts are to be divided into their branches; else every home has all
                of the text
    Rows of an id lie side by side.
    """
    types = sampled.all_types
    if "attribute" in table.column_names:
        home = homes_of_predicates(table, sampled.costs, types)[0]
        table = table.append_column(HOME, pa.array(home.view(np.int64)))
        return table.append_column(SOURCE, pa.nulls(table.num_rows, pa.int64()))
    texts = table.column("expr").to_pylist()
    homes = [homes_of_text(text, sampled.costs, types) for text in texts]
    branched = [
        text for text, found in zip(texts, homes, strict=True) if found[0].branch is not None
    ]
    divided = may_divide(branched) if branched else set()
    rows: list[int] = []
    keys: list[int] = []
    exprs: list[str] = []
    sources: list[int | None] = []
    for row, (text, found) in enumerate(zip(texts, homes, strict=True)):
        if text in divided:
            here = [(each.key, str(each.branch)) for each in found]
        else:
            here = [(key, text) for key in dict.fromkeys(each.key for each in found)]
        rows += [row] * len(here)
        keys += [key for key, _ in here]
        exprs += [expr for _, expr in here]
        sources += [_source(text) if len(here) > 1 else None] * len(here)
    at = table.column_names.index("expr")
    kind = table.schema.field("expr").type
    table = table.take(pa.array(rows, pa.int64()))
    table = table.set_column(at, "expr", pa.array(exprs, kind))
    table = table.append_column(HOME, pa.array(np.array(keys, np.uint64).view(np.int64)))
    return table.append_column(SOURCE, pa.array(sources, pa.int64()))


def _source(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def joined(table: pa.Table) -> pa.Table:
    """One row for the branches and copies of a text; rows are in the order of ids and texts."""
    ids, texts, sources = (table.column(name).to_pylist() for name in ("id", "expr", SOURCE))
    rows: list[int] = []
    found: list[list[str]] = []
    at: dict[tuple[Any, int], int] = {}
    for row, (id_, text, source) in enumerate(zip(ids, texts, sources, strict=True)):
        known = None if source is None else at.setdefault((id_, source), len(rows))
        if known is None or known == len(rows):
            rows.append(row)
            found.append([text])
        elif text != found[known][-1]:  # equal texts follow one another
            found[known].append(text)
    exprs = [each[0] if len(each) == 1 else " OR ".join(f"({text})" for text in each)
             for each in found]  # fmt: skip
    number = table.column_names.index("expr")
    kind = table.schema.field("expr").type
    return table.take(pa.array(rows, pa.int64())).set_column(number, "expr", pa.array(exprs, kind))


def weights_of(table: pa.Table) -> np.ndarray:
    """The weight of every row: about its bytes."""
    weight = np.full(table.num_rows, ROW, np.int64)
    for name in WEIGHED:
        if name in table.column_names:
            column = table.column(name).combine_chunks()
            weight += _lengths(column)
    return weight


def _lengths(column: pa.Array) -> np.ndarray:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found: np.ndarray = (
            pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        return found
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        inside = _lengths(column.flatten())
        before = np.concatenate([[0], np.cumsum(inside)])
        ends = np.cumsum(sizes.astype(np.int64))
        return before[ends] - before[ends - sizes]
    if pa.types.is_map(kind):
        column = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("v", kind.item_type)])))
        return _lengths(column)
    if pa.types.is_struct(kind):
        total = np.zeros(len(column), np.int64)
        for each in column.flatten():
            total += _lengths(each)
        return total
    return np.full(len(column), 8, np.int64)


def whole_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables that end where an id does: rows of an id lie side by side."""
    rest: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if "attribute" not in table.column_names:
            yield table
            continue
        if not table.num_rows:
            continue
        table = table if rest is None else pa.concat_tables([rest, table]).combine_chunks()
        ids = table.column("id").combine_chunks()
        same = pc.fill_null(pc.equal(ids, ids[len(ids) - 1]), False)
        others = np.flatnonzero(~same.to_numpy(zero_copy_only=False))
        until = int(others[-1]) + 1 if len(others) else 0
        rest = table.slice(until)
        if until:
            yield table.slice(0, until)
    if rest is not None and rest.num_rows:
        yield rest


def _numbers(ids: Any) -> np.ndarray:
    """Ids as numbers that are not negative."""
    words, code = distinct(ids)
    if any(isinstance(word, str) for word in words):
        number = np.array([zlib.crc32((word or "").encode()) for word in words], np.int64)
    else:
        number = np.array([word or 0 for word in words], np.int64) & (2**63 - 1)
    found: np.ndarray = number[code]
    return found


# -- packing -----------------------------------------------------------------------------------


def weigh(sampled: Sampled, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows (bucket, weight) of a partition: `mapInArrow`'s function."""
    total = np.zeros(BUCKETS)
    for table in whole_ids(batches):
        table = with_homes(table, sampled)
        home = table.column(HOME).to_numpy().view(np.uint64)
        bucket = (home % np.uint64(BUCKETS)).astype(np.int64)
        total += np.bincount(bucket, weights_of(table), BUCKETS)
    used = np.flatnonzero(total)
    yield pa.RecordBatch.from_arrays(
        [pa.array(used), pa.array(total[used].astype(np.int64))], names=["bucket", "weight"]
    )


def weigh_buckets(table: DataFrame, sampled: Sampled) -> np.ndarray:
    """The weight of every bucket."""
    from pyspark.sql import functions as f

    parts = table.mapInArrow(partial(weigh, sampled), "bucket bigint, weight bigint")
    rows = parts.groupBy("bucket").agg(f.sum("weight").alias("weight")).toArrow()
    weights = np.zeros(BUCKETS, np.int64)
    weights[rows.column("bucket").to_numpy()] = rows.column("weight").to_numpy()
    return weights


def make_plan(weights: np.ndarray, most: float, shards: int | None) -> Plan:
    """As many shards as are asked for, or as few as keep each at a weight of `most`."""
    if shards is not None:
        return _pack(weights, shards)[0]
    n = max(1, math.ceil(float(weights.sum()) / most))
    while n < MOST_SHARDS:
        plan, heaviest = _pack(weights, n)
        if heaviest <= most:
            return plan
        n += max(1, n // 20)
    return plan


def _pack(weights: np.ndarray, n: int) -> tuple[Plan, float]:
    """Heaviest first into the lightest shard; also the weight of the heaviest shard."""
    start = np.arange(BUCKETS, dtype=np.int64) % n
    spread = np.ones(BUCKETS, np.int64)
    load = np.zeros(n)
    share = float(weights.sum()) / n
    order = np.argsort(-weights, kind="stable")
    heavy = order[weights[order] > share]
    at = 0
    for bucket in heavy.tolist():
        over = min(n, math.ceil(weights[bucket] / share))
        start[bucket], spread[bucket] = at, over
        load[(at + np.arange(over)) % n] += weights[bucket] / over
        at = (at + over) % n
    heap = [(weight, shard) for shard, weight in enumerate(load.tolist())]
    heapq.heapify(heap)
    for bucket in order[len(heavy) :].tolist():
        weight = int(weights[bucket])
        if not weight:
            break
        lightest, shard = heap[0]
        heapq.heapreplace(heap, (lightest + weight, shard))
        start[bucket] = shard
    return Plan(n, start, spread), max(weight for weight, _ in heap)
