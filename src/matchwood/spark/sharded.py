"""match_sharded: subscription sets that no worker can hold at once.

    subscriptions ──► home key, shard ──► by shard ──► one index per shard, a task each
                                                          │  keys it can be reached by
    events ──► keys of the event ──► routes ──► by shard ─┴─► match ──► by event ──► merged lists

Idea.    A subscription lives with its rarest equality (`home_keys`).  The routes list every key
         that is a home, and its shards; an event goes to the shards of the keys it has, and to
         those that hold subscriptions without a key.  With K shards an event of n attributes
         reaches at most 2n of them plus those: the more shards, the more it skips.
Memory.  Keys are weighed and packed into shards of one size (`shard_plan`).  A shard is built by
         one task from its own rows, which measures what it takes and splits what takes more than
         `max_bytes` (`shard_build`), and matched through a memory map, one at a time in a worker
         (`shard_match`).
Types.   Shards must agree on them: they are those of the schema, else what a sample shows.
Kept.    <folder>/<fingerprint>/shard-00003/snapshot, routes, manifest.json; found again as indexes
         are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.errors import MatchwoodError
from matchwood.spark.batch import with_id
from matchwood.spark.errors import ERROR_FIELDS, ERROR_STRUCT, ERROR_TYPE
from matchwood.spark.indexes import checked, fingerprint, id_type_of
from matchwood.spark.shapes import find_shape
from matchwood.spark.shard_build import LEAST, Shard, build_shards
from matchwood.spark.shard_match import RouteJob, bad_events, match_shard, read_manifest, route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Sharded:
    """The result of `match_sharded`; as `Matched`, with shards."""

    matches: DataFrame
    errors: DataFrame
    routed: DataFrame
    """Events with the shards that they go to, before they are sent there."""
    shards: list[Shard]
    folder: Path
    reused: bool


def match_sharded(
    events: DataFrame,
    subscriptions: DataFrame,
    folder: str,
    *,
    shards: int | None = None,
    max_bytes: int = 1 << 30,
    grouped: bool = False,
    event_id: str = "event_id",
    shape: str = "auto",
    pairs: bool = False,
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    name: str | None = None,
    profile: str | None = None,
) -> Sharded:
    """Which subscriptions hold for each event, with an index per shard.

    folder      where shards are kept; on a file system that all workers share
    shards      how many, about; by default as many as `max_bytes` asks for
    max_bytes   memory that a task may take to build one shard; what takes more is split
    grouped     the rows of an id lie side by side in one partition, as the data source `matchwood`
                makes them; saves a shuffle.  Not for files: Spark cuts them anywhere
    name        of this table of subscriptions, instead of a fingerprint of its rows: saves reading
                all of them, and it is up to you that another table has another name
    profile     a folder for times and memory of the tasks that match
    The rest is as for `match`.  `event_id` must name an event once: lists are merged by it.
    """
    if max_bytes < LEAST:
        raise MatchwoodError(f"expected max_bytes from {LEAST:,}, found {max_bytes:,}")
    table = checked(subscriptions)
    declared = schema if isinstance(schema, Schema) else Schema(schema)
    settings = {"index": index, "config": dict(config or {}), "schema": dict(declared),
                "shards": shards, "max_bytes": max_bytes}  # fmt: skip
    n_rows = None
    if name is None:
        name, n_rows = fingerprint(table, settings)
    home = Path(folder).absolute() / name
    reused = (home / "manifest.json").exists()
    if not reused:
        build_shards(
            table, n_rows, home, shards, max_bytes, grouped, index, config, declared,
            id_type_of(table),
        )  # fmt: skip
    manifest = read_manifest(home)
    found = find_shape(with_id(events, event_id), shape, (event_id,))
    n_shards, id_type = len(manifest["shards"]), manifest["id_type"]
    job = RouteJob(str(home), found, event_id, max(1, n_shards), n_shards > 0, id_type, profile)
    return _match(events, job, pairs, manifest, home, reused)


def _match(
    events: DataFrame,
    job: RouteJob,
    pairs: bool,
    manifest: dict[str, Any],
    home: Path,
    reused: bool,
) -> Sharded:
    from pyspark.sql import functions as f

    spark = events.sparkSession
    columns = ", ".join([f"`{name}` {kind}" for name, kind in events.dtypes])
    routed = events.mapInArrow(partial(route, job), f"{columns}, matchwood_shard int")
    id_type = events.schema[job.event_id].dataType.simpleString()
    out = f"event_id {id_type}, subscription_ids array<{job.id_type}>, error {ERROR_STRUCT}"
    placed = routed.repartitionById(job.n_shards, "matchwood_shard")
    found = placed.mapInArrow(partial(match_shard, job), out).where("error IS NULL")
    merged = found.groupBy("event_id").agg(
        f.array_sort(f.flatten(f.collect_list("subscription_ids"))).alias("subscription_ids")
    )
    if pairs:
        merged = merged.selectExpr("event_id", "explode(subscription_ids) AS subscription_id")
    bad = events.mapInArrow(partial(bad_events, job), out).select("error.*")
    if manifest["errors"]:
        refused = pa.Table.from_struct_array(pa.array(manifest["errors"], ERROR_TYPE))
        bad = spark.createDataFrame(refused, ERROR_FIELDS).union(bad)
    shards = [Shard(**each) for each in manifest["shards"]]
    return Sharded(merged, bad, routed, shards, home, reused)
