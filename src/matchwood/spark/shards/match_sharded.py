"""match_sharded: subscription sets that no worker can hold at once.

    subscriptions ──► home key, shard ──► by shard ──► one index per shard, a task each
                                                          │  keys it can be reached by
    events ──► keys of the event ──► routes ──► by shard ─┴─► match ──► by event ──► merged lists

Idea.    A conjunction lives with its rarest equality, an OR branch by branch (`homes`).  The routes
         list every key that is a home, and its shards; an event goes to the shards of the keys it
         has, and to those that hold subscriptions without a key.  With K shards an event of n
         attributes reaches at most 2n of them plus those: the more shards, the more it skips.
Memory.  Keys are weighed and packed into shards of one size (`shards/plan`).  A shard is built by
         one task from its own rows, which measures what it takes and splits what takes more than
         `max_bytes` (`shards/build`), and matched through a memory map; a worker keeps as many
         mapped as take no more than building one did (`shards/mapped`).
Types.   Shards must agree on them: they are those of the schema, else those of the events' columns,
         else what a sample shows.
Kept.    In <folder>/<fingerprint>, or at that address of a store (`shards/locations`); found
         again as indexes are.  A changed table writes the shards of what has changed
         (`shards/increments`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.answers.choices import check_limit
from matchwood.engine.snapshots.manifest import VERSION
from matchwood.errors import MatchwoodError, StorageError
from matchwood.spark.batch import column_types, with_id
from matchwood.spark.choices import check_filter, plan_choice
from matchwood.spark.column_types import check_types, types_of_contexts
from matchwood.spark.columns import (
    CONTEXT,
    EXPIRES,
    admit,
    both,
    error_table,
)
from matchwood.spark.context_frames import context_frame
from matchwood.spark.errors import ERROR_FIELDS, ERROR_STRUCT, IS_MATCHED
from matchwood.spark.fingerprints import Digest, column_of, digests, fingerprint, name_of
from matchwood.spark.shapes import ATTRIBUTES, find_shape, plain_names
from matchwood.spark.shards.build import LEAST, Wanted, build_shards
from matchwood.spark.shards.homes import HOMES
from matchwood.spark.shards.increments import advance_shards
from matchwood.spark.shards.locations import home_of, is_built, newest, prune, use
from matchwood.spark.shards.mapped import n_mapped
from matchwood.spark.shards.match import (
    FAILED,
    VISITS,
    RouteJob,
    are_checked,
    bad_events,
    check_shards,
    match_shard,
    note_checked,
    read_manifest,
    refused_of,
    route,
    snapshots_of,
)
from matchwood.spark.shards.save import SHARD, Shard
from matchwood.spark.stores import is_address
from matchwood.spark.unknown_names import columns_of, names_of_events

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Sharded:
    """The result of `match_sharded`; as `Matched`, with shards."""

    matches: DataFrame
    errors: DataFrame
    routed: DataFrame
    """Events with the shards that they go to, before they are sent there: `event_id` and what
    subscriptions use."""
    shards: list[Shard]
    folder: Path | str
    """Where they are: a path, or the address of a store."""
    reused: bool
    rows: DataFrame
    """event_id, subscription_ids and error, of events that went to shards."""
    pairs: bool = False
    bad: DataFrame | None = None
    """Errors of subscriptions and of events that went to no shard."""

    def persist(self) -> Sharded:
        """The same result with what the shards give kept by Spark; call `unpersist` at the end."""
        rows = self.rows.persist()
        assert self.bad is not None
        errors = self.bad.union(rows.where("error IS NOT NULL").select("error.*"))
        return replace(self, rows=rows, matches=_matches(rows, self.pairs), errors=errors)

    def unpersist(self) -> None:
        """Forget what `persist` kept."""
        self.rows.unpersist()


def match_sharded(
    events: DataFrame,
    subscriptions: DataFrame,
    folder: str,
    *,
    shards: int | None = None,
    max_bytes: int = MOST_BYTES,
    grouped: bool = False,
    event_id: str = "event_id",
    shape: str = "auto",
    pairs: bool = False,
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    contexts: Any = None,
    limit: int | None = None,
    now: datetime | None = None,
    name: str | None = None,
    profile: str | None = None,
) -> Sharded:
    """Which subscriptions hold for each event, with an index per shard.

    folder      where shards are kept: a folder that all workers share, or an address (s3://...),
                from which every host copies the shards that it matches
    shards      how many, about; by default as many as `max_bytes` asks for
    max_bytes   memory that a task may take to build one shard; what takes more is split
    grouped     the rows of an id lie side by side in one partition, as the data source `matchwood`
                makes them; saves a shuffle.  Not for files: Spark cuts them anywhere
    name        of this table of subscriptions, instead of a fingerprint of its rows: saves reading
                all of them, and it is up to you that another table, or other values of contexts,
                have another name; not for subscriptions that expire
    profile     a folder for times and memory of the tasks that match
    The rest is as for `match`.  Lists are merged by `event_id`: an id of several events is an error
    row, and has no list.
    """
    limit = check_limit(limit)
    columns = with_id(events, event_id)
    found = find_shards(
        columns, subscriptions, folder, shards, max_bytes, grouped, event_id, shape, index, config,
        schema, contexts, now, name,
    )  # fmt: skip
    return match_found(events, found, event_id, shape, pairs, limit, profile)


@dataclass(frozen=True)
class Found:
    """Shards that were built or are there."""

    home: str
    manifest: dict[str, Any]
    refused: pa.Table
    reused: bool


def find_shards(
    columns: StructType, subscriptions: DataFrame, folder: str, shards: int | None,
    max_bytes: int, grouped: bool, event_id: str, shape: str, index: str,
    config: Mapping[str, Any] | None, schema: Schema | Mapping[str, Any] | None, contexts: Any,
    now: datetime | None, name: str | None,
) -> Found:  # fmt: skip
    """The shards of a table of subscriptions, for events of some columns: those that are there, or
    made from an earlier version (`shards/increments`), or built.  The rest is as for
    `match_sharded`.
    """
    if max_bytes < LEAST:
        raise MatchwoodError(f"expected max_bytes from {LEAST:,}, found {max_bytes:,}")
    if name is not None and EXPIRES in subscriptions.columns:
        raise MatchwoodError(
            "expected no name beside the column expires: what is alive changes while the name "
            "stays; leave name out, or drop expires"
        )
    types = column_types(columns, shape, event_id, subscriptions)
    table, refused = admit(subscriptions, now)
    values = None if contexts is None else context_frame(table, contexts)
    declared = schema if isinstance(schema, Schema) else Schema(schema)
    names = names_of_events(columns, find_shape(columns, shape, columns.names))
    known = None if names is None else names | declared.keys()
    settings = {"index": index, "config": dict(config or {}), "schema": dict(declared),
                "shards": shards, "max_bytes": max_bytes, "column_types": types,
                "names": None if known is None else sorted(known), "format": VERSION,
                "homes": HOMES}  # fmt: skip
    n_rows, key, by_bucket = None, None, None
    if name is None:
        if values is not None:
            settings["contexts"], _ = fingerprint(values, {})
        by_bucket = digests(table)
        total = by_bucket.total()
        name, n_rows = name_of(table, total, settings), total.n_rows
        key = name_of(table, Digest(), settings)
    home = home_of(folder, name)
    reused = is_built(home)

    def check() -> None:
        if n_rows is not None and fingerprint(table, settings) != (name, n_rows):
            raise StorageError(
                "expected a table of subscriptions that stays as it is while shards are built, "
                "found other rows afterwards: match a version of it, or a copy"
            )

    if not reused:
        of_contexts = {} if values is None else types_of_contexts(values.schema)
        wanted = Wanted(
            table, n_rows, home, shards, max_bytes, grouped, index, config or {}, declared,
            {**types, **of_contexts}, values if CONTEXT in table.columns else None, known, check,
            key, by_bucket,
        )  # fmt: skip
        before = None if key is None else newest(folder, key)
        is_checked = before is None or are_checked(before)
        if before is None or not advance_shards(wanted, before):
            build_shards(wanted)
            is_checked = True
        if is_checked:
            note_checked(home)
    manifest = read_manifest(home)
    check_shards(table.sparkSession, home, manifest)
    if reused:
        check_types(manifest["types"], types, declared)
    use(home, key)
    if key is not None and not reused:
        prune(folder, key)
    return Found(home, manifest, both(refused, refused_of(home, manifest)), reused)


def open_shards(spark: SparkSession, home: str) -> Found:
    """The shards at a path or an address, checked; what they refused is not reported again."""
    manifest = read_manifest(home)
    check_shards(spark, home, manifest)
    return Found(home, manifest, error_table([]), True)


def match_found(
    events: DataFrame, found: Found, event_id: str = "event_id", shape: str = "auto",
    pairs: bool = False, limit: int | None = None, profile: str | None = None,
) -> Sharded:  # fmt: skip
    """Match events with shards that were found; see `match_sharded`."""
    columns, manifest = with_id(events, event_id), found.manifest
    choice = plan_choice(columns, manifest["attributes"], limit)
    layout = find_shape(columns, shape, (event_id, *choice.others))
    check_filter(choice, columns, layout, manifest["tests_filter"])
    events = _narrow(events, layout, manifest["used"], (event_id, *choice.others))
    n_shards, id_type = len(manifest["shards"]), manifest["id_type"]
    job = RouteJob(
        found.home, manifest["build"], snapshots_of(found.home, manifest), layout, event_id,
        max(1, n_shards), n_shards > 0, id_type, tuple(events.columns),
        n_mapped([Shard(**each) for each in manifest["shards"]]), choice, profile,
    )  # fmt: skip
    return _match(events, job, pairs, found)


def _narrow(events: DataFrame, shape: str, used: Sequence[str], others: Sequence[str]) -> DataFrame:
    """Events with the columns, or fields of their struct, that a subscription uses: what is sent to
    shards.  Maps, arrays and JSON stay as they are.
    """
    from pyspark.sql import functions as f

    if shape == "wide":
        return events.select(*map(column_of, columns_of(used, events.schema, others)))
    if shape != "struct":
        return events
    inner = columns_of(used, events.schema[ATTRIBUTES].dataType)  # type: ignore[arg-type]
    if not inner:
        return events
    fields = [f.col(ATTRIBUTES).getField(name).alias(name) for name in inner]
    return events.select(*map(column_of, others), f.struct(*fields).alias(ATTRIBUTES))


def _match(
    events: DataFrame,
    job: RouteJob,
    pairs: bool,
    by: Found,
) -> Sharded:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    spark = events.sparkSession
    plain = plain_names(events, (SHARD, VISITS))
    columns = StructType([*plain.schema.fields]).add(SHARD, "integer").add(VISITS, "integer")
    routed = plain.mapInArrow(partial(route, job), columns)
    id_type = events.schema[job.event_id].dataType.simpleString()
    item = job.id_type if job.choice.limit is None else f"struct<order:long,id:{job.id_type}>"
    out = f"event_id {id_type}, subscription_ids array<{item}>, error {ERROR_STRUCT}"
    placed = routed.repartitionById(job.n_shards, SHARD)
    out_of_shard = f"{out}, {VISITS} int, {FAILED} array<string>"

    def merged(job: RouteJob) -> DataFrame:
        found = placed.mapInArrow(partial(match_shard, job), out_of_shard)
        # with a limit an item is (order, id): sorted by priority, highest first, then by id
        lists = f.flatten(f.collect_list("subscription_ids"))
        if by.manifest["is_copied"]:  # shards of several homes may name the same subscription
            lists = f.array_distinct(lists)
        lists = f.array_sort(lists)
        if job.choice.limit is not None:
            lists = f.slice(lists, 1, job.choice.limit)["id"]
        # shards that an event went to may have the same formula: each message once
        failed = f.array_sort(f.array_distinct(f.flatten(f.collect_list(FAILED))))
        rows = _by_event(
            found.where(IS_MATCHED), "event_id", lists.alias("subscription_ids"),
            failed.alias(FAILED),
        )  # fmt: skip
        message = f.array_join(FAILED, "; ")
        error = f.when(f.size(FAILED) > 0, _error("attribute", "event_id", message))
        return rows.where(f"n <= {VISITS}").select(
            "event_id", "subscription_ids", error.alias("error")
        )

    rows = merged(job)
    bad = plain.mapInArrow(partial(bad_events, job), out).select("error.*")
    named_by = plain.columns[events.columns.index(job.event_id)]
    message = f.lit("expected event_id to name one event, found several: lists are merged by it")
    twice = _by_event(routed, named_by).where(f"n > {VISITS}")
    bad = bad.union(
        twice.select(_error("event", named_by, message).alias("error")).select("error.*")
    )
    if by.refused.num_rows:
        bad = spark.createDataFrame(by.refused, ERROR_FIELDS).union(bad)
    errors = bad
    if by.manifest.get("computes", True):
        failed = merged(replace(job, encode_only=True, profile=None))
        errors = bad.union(failed.where("error IS NOT NULL").select("error.*"))
    shards = [Shard(**each) for each in by.manifest["shards"]]
    folder = by.home if is_address(by.home) else Path(by.home)
    matches = _matches(rows, pairs)
    return Sharded(matches, errors, routed, shards, folder, by.reused, rows, pairs, bad)


def _matches(rows: DataFrame, pairs: bool) -> DataFrame:
    if pairs:
        return rows.selectExpr("event_id", "explode(subscription_ids) AS subscription_id")
    return rows.select("event_id", "subscription_ids")


def _by_event(rows: DataFrame, event_id: str, *more: Column) -> DataFrame:
    """A row per id of an event, with how many rows it has and to how many shards it went."""
    from pyspark.sql import functions as f

    counts = (f.count("*").alias("n"), f.max(VISITS).alias(VISITS))
    return rows.groupBy(event_id).agg(*counts, *more)


def _error(of: str, event_id: str, message: Column) -> Column:
    """An error row about an event."""
    from pyspark.sql import functions as f

    row = {
        "of": f.lit(of), "id": f.col(event_id).cast("string"), "error": f.lit("EventError"),
        "message": message,
    }  # fmt: skip
    fields = [each.split() for each in ERROR_FIELDS.split(", ")]
    none = f.lit(None)
    return f.struct(*[row.get(name, none).cast(kind).alias(name) for name, kind in fields])
