"""match_sharded: subscription sets that no worker can hold at once.

    subscriptions ──► home key, shard ──► by shard ──► one index per shard, a task each
                                                          │  keys it can be reached by
    events ──► keys of the event ──► routes ──► by shard ─┴─► match ──► by event ──► merged lists

Idea.    A subscription lives with its rarest equality (`home_keys`).  The routes list every key
         that is a home, and its shards; an event goes to the shards of the keys it has, and to
         those that hold subscriptions without a key.  With K shards an event of n attributes
         reaches at most 2n of them plus those: the more shards, the more it skips.
Memory.  A shard is built by one task from its own rows, and matched through a memory map.  The
         number of shards follows from `max_bytes`, what building one may take, and from what a
         sample of the subscriptions took.  Every shard tells what it took (`Shard.peak`).
Types.   Shards must agree on them: they are those of the schema, else what the sample shows.
Kept.    <folder>/<fingerprint>/shard-00003/snapshot, routes, manifest.json; found again as indexes
         are.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.errors import FormatError, MatchwoodError, SchemaError, StorageError
from matchwood.spark.batch import with_id
from matchwood.spark.errors import ERROR_FIELDS, ERROR_STRUCT, ERROR_TYPE, error_row
from matchwood.spark.home_keys import (
    ANY,
    Costs,
    candidate_keys,
    event_keys,
    home_of_text,
    homes_of_predicates,
    keys_of_text,
)
from matchwood.spark.indexes import checked, fingerprint, id_type_of
from matchwood.spark.shapes import find_shape, read_events
from matchwood.spark.worker import Location, Times, match_parts, opened, out_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE = 20_000
"""Subscriptions that tell how much memory one takes, and which keys are frequent."""

BUILD_FACTOR = 4.0
"""What building an index takes, in sizes of the index: rows, tables and room to grow."""

ENTRY = 1 << 16


@dataclass(frozen=True)
class Shard:
    """One shard as it was built."""

    number: int
    count: int
    bytes: int
    peak: int
    """What the task that built it took beyond what it had before, in bytes."""
    refused: int


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
) -> Sharded:
    """Which subscriptions hold for each event, with an index per shard.

    folder      where shards are kept; on a file system that all workers share
    shards      how many; by default as many as `max_bytes` asks for
    max_bytes   memory that building one shard may take
    grouped     the rows of an id lie side by side in one partition, as the data source `matchwood`
                makes them; saves a shuffle.  Not for files: Spark cuts them anywhere
    The rest is as for `match`.  `event_id` must name an event once: lists are merged by it.
    """
    table = checked(subscriptions)
    declared = schema if isinstance(schema, Schema) else Schema(schema)
    settings = {"index": index, "config": dict(config or {}), "schema": dict(declared),
                "shards": shards, "max_bytes": max_bytes}  # fmt: skip
    home = Path(folder).absolute() / fingerprint(table, settings)
    reused = (home / "manifest.json").exists()
    if not reused:
        _build(table, home, shards, max_bytes, grouped, index, config, declared)
    manifest = _read_manifest(home)
    found = find_shape(with_id(events, event_id), shape, (event_id,))
    if found == "json":
        raise MatchwoodError("expected events as columns, map or arrays, found JSON: read it first")
    job = RouteJob(str(home), found, event_id, len(manifest["shards"]), manifest["id_type"])
    return _match(events, job, pairs, manifest, home, reused)


# -- building ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BuildJob:
    """What the tasks that assign and build need to know."""

    home: str
    n_shards: int
    costs: Costs
    """How often keys are offered: the rarest becomes the home."""
    homes: Costs
    """How often keys are homes: frequent ones are spread."""
    types: dict[str, str]
    index: str
    config: dict[str, Any]


def _build(
    table: DataFrame, home: Path, shards: int | None, max_bytes: int, grouped: bool, index: str,
    config: Mapping[str, Any] | None, schema: Schema,
) -> None:  # fmt: skip
    sample, n_total = _sample(table)
    per_subscription, types = _measure(sample, index, config, schema)
    costs, homes = _frequencies(sample, types)
    wanted = math.ceil(n_total * per_subscription * BUILD_FACTOR / max_bytes)
    n_shards = shards or max(1, wanted)
    job = BuildJob(str(home), n_shards, costs, homes, types, index, dict(config or {}))
    is_table = "attribute" in table.columns
    if is_table and not grouped:
        table = table.repartition("id").sortWithinPartitions("id")
    columns = ", ".join([f"`{name}` {kind}" for name, kind in table.dtypes])
    assigned = table.mapInArrow(
        partial(assign, job), f"{columns}, matchwood_home bigint, matchwood_shard int"
    )
    placed = assigned.repartitionById(n_shards, "matchwood_shard")
    home.mkdir(parents=True, exist_ok=True)
    built = placed.mapInArrow(partial(build_shard, job), "shard int, told string").collect()
    _finish(home, n_shards, [json.loads(row.told) for row in built], id_type_of(table))


def _sample(table: DataFrame) -> tuple[pa.Table, int]:
    """About SAMPLE subscriptions with all their rows, and how many there are."""
    from pyspark.sql import functions as f

    ids = table.select("id")
    counted = ids.agg(f.approx_count_distinct("id", 0.02)) if "attribute" in table.columns else None
    n = int((counted.first() or [0])[0]) if counted is not None else ids.count()
    if n <= SAMPLE:
        return table.toArrow(), n
    part = f.pmod(f.xxhash64("id"), f.lit(1_000_000)) < int(1_000_000 * SAMPLE / n) + 1
    return table.where(part).toArrow(), n


def _measure(
    sample: pa.Table, index: str, config: Mapping[str, Any] | None, schema: Schema
) -> tuple[float, dict[str, str]]:
    """Bytes of a subscription, and the types of attributes."""
    matcher = Matcher(index=index, schema=schema, **(config or {}))
    matcher.add_many(sample)
    size = float(matcher.stats()["bytes_per_subscription"]) if len(matcher) else 1000.0
    return size, {name: kind for name, kind in matcher.schema.items() if kind}


def _frequencies(sample: pa.Table, types: Mapping[str, str]) -> tuple[Costs, Costs]:
    """How often keys are offered, and how often they become homes, in a sample."""
    if "attribute" in sample.column_names:
        sample = sample.sort_by("id").combine_chunks()
        offered, _ = candidate_keys(sample, types)
        ids = pa.compute.count_distinct(sample.column("id")).as_py()
        costs = _shares(offered, ids)
        home, number = homes_of_predicates(sample, costs, types)
        return costs, _shares(home[np.unique(number, return_index=True)[1]], ids)
    texts = sample.column("expr").to_pylist()
    keys = [np.array(keys_of_text(text, types), np.uint64) for text in texts]
    costs = _shares(np.concatenate([*keys, np.empty(0, np.uint64)]), len(texts))
    homes = np.array([home_of_text(text, costs, types) for text in texts], np.uint64)
    return costs, _shares(homes, len(texts))


def _shares(keys: np.ndarray, n: int) -> Costs:
    """Those that are more than rare: two of a kind say nothing."""
    distinct, counts = np.unique(keys, return_counts=True)
    often = counts > 2
    return Costs(distinct[often], counts[often] / max(n, 1))


def assign(job: BuildJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the home key and the shard to every row."""
    costs = job.costs
    for table in _whole_ids(batches):
        if "attribute" in table.column_names:
            home, _ = homes_of_predicates(table, costs, job.types)
        else:
            texts = table.column("expr").to_pylist()
            home = np.array([home_of_text(text, costs, job.types) for text in texts], np.uint64)
        shard = _shards_of(home, table.column("id"), job.homes, job.n_shards)
        table = table.append_column("matchwood_home", pa.array(home.view(np.int64)))
        table = table.append_column("matchwood_shard", pa.array(shard.astype(np.int32)))
        yield from table.combine_chunks().to_batches()


def _whole_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables that end where an id does: rows of an id lie side by side."""
    rest: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if "attribute" not in table.column_names:
            yield table
            continue
        table = table if rest is None else pa.concat_tables([rest, table]).combine_chunks()
        ids = table.column("id").combine_chunks()
        last = ids[len(ids) - 1]
        is_last = pa.compute.equal(ids, last).to_numpy(zero_copy_only=False)
        n_last = len(is_last) - int(np.flatnonzero(~is_last)[-1]) - 1 if not is_last.all() else 0
        if n_last == 0:
            rest = table
            continue
        rest = table.slice(len(ids) - n_last)
        yield table.slice(0, len(ids) - n_last)
    if rest is not None and rest.num_rows:
        yield rest


def _shards_of(home: np.ndarray, ids: Any, homes: Costs, n_shards: int) -> np.ndarray:
    """By key; those of a frequent key spread over several shards, in proportion."""
    spread = np.clip(np.ceil(homes.share(home) * n_shards), 1, n_shards).astype(np.int64)
    codes = pa.compute.dictionary_encode(ids.combine_chunks())
    words = codes.dictionary.to_pylist()
    if words and isinstance(words[0], str):
        import zlib

        number = np.array([zlib.crc32(word.encode()) for word in words], np.int64)
    else:
        number = np.array(words, np.int64)
    each = number[codes.indices.to_numpy(zero_copy_only=False)]
    start = (home % np.uint64(n_shards)).astype(np.int64)
    found: np.ndarray = (start + each % spread) % n_shards
    return found


def build_shard(job: BuildJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Build and save the index of one shard; tells what it holds."""
    before = _peak()
    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    del parts
    number = table.column("matchwood_shard")[0].as_py()
    homes = np.unique(table.column("matchwood_home").to_numpy().view(np.uint64))
    table = table.drop_columns(["matchwood_home", "matchwood_shard"])
    order = [("id", "ascending")] if "attribute" in table.column_names else [
        ("id", "ascending"), ("expr", "ascending")]  # fmt: skip
    table = table.sort_by(order)
    matcher = Matcher(index=job.index, schema=Schema(job.types), **job.config)
    refused = matcher.add_many(table, processes=1).errors
    del table
    target = Path(job.home) / f"shard-{number:05}"
    aside = Path(job.home) / f".{uuid.uuid4().hex}"
    try:
        matcher.save(aside / "snapshot")
        np.save(aside / "homes.npy", homes)
        if target.exists():  # an attempt before this one
            shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    size = sum(file.stat().st_size for file in target.rglob("*.npy"))
    shard = Shard(number, len(matcher), size, max(0, _peak() - before), len(refused))
    errors = [error_row("subscription", each.id, each.error) for each in refused]
    told = {"shard": asdict(shard), "schema": dict(matcher.schema), "errors": errors}
    yield pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([json.dumps(told)])], names=["shard", "told"]
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _finish(home: Path, n_shards: int, told: list[dict[str, Any]], id_type: str) -> None:
    """Routes of all shards together, then the manifest: without it nothing counts as built."""
    types: dict[str, str] = {}
    for each in told:
        for name, kind in each["schema"].items():
            if types.setdefault(name, kind) != kind:
                raise SchemaError(
                    f"attribute {name!r}: expected one type, found {types[name]} in one shard and "
                    f"{kind} in another: declare it with schema="
                )
    numbers = [each["shard"]["number"] for each in told]
    homes = [np.load(home / f"shard-{number:05}" / "homes.npy") for number in numbers]
    shard = np.repeat(np.array(numbers, np.int32), [len(each) for each in homes])
    keys = np.concatenate(homes) if homes else np.empty(0, np.uint64)
    order = np.argsort(keys, kind="stable")
    np.save(home / "route_key.npy", keys[order])
    np.save(home / "route_shard.npy", shard[order])
    by_number = {each["shard"]["number"]: each["shard"] for each in told}
    empty = {"count": 0, "bytes": 0, "peak": 0, "refused": 0}
    shards = [by_number.get(n, {"number": n, **empty}) for n in range(n_shards)]
    errors = [error for each in told for error in each["errors"]]
    manifest = {"id_type": id_type, "types": types, "shards": shards, "errors": errors}
    aside = home / f".{uuid.uuid4().hex}"
    aside.write_text(json.dumps(manifest))
    aside.replace(home / "manifest.json")


def _read_manifest(home: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((home / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise FormatError(f"{str(home)!r}: expected the manifest of shards ({error})") from error
    missing = [
        each["number"]
        for each in manifest["shards"]
        if each["count"] and not (home / f"shard-{each['number']:05}" / "snapshot").is_dir()
    ]
    if missing:
        raise StorageError(
            f"expected {len(manifest['shards'])} shards in {str(home)!r}, found none of number "
            f"{', '.join(map(str, missing))}: restore them, or remove the folder to build anew"
        )
    return manifest


# -- matching ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RouteJob:
    """What the tasks that route and match need to know."""

    home: str
    shape: str
    event_id: str
    n_shards: int
    id_type: str


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


class Routes:
    """Key to shards, mapped; and the types of all attributes, to refuse bad events once."""

    def __init__(self, home: Path) -> None:
        self.keys = np.load(home / "route_key.npy", mmap_mode="r")
        self.shards = np.load(home / "route_shard.npy", mmap_mode="r")
        self.types: dict[str, str] = {
            name: kind for name, kind in _read_manifest(home)["types"].items() if kind
        }
        self.checker = Matcher(schema=Schema(self.types))
        at = slice(*np.searchsorted(self.keys, [ANY, ANY + np.uint64(1)]))
        self.always = np.unique(self.shards[at])

    def of(self, events: Any, n_events: int, n_shards: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of event and shard, each once, by event."""
        found = [np.repeat(np.arange(n_events), len(self.always)) * n_shards
                 + np.tile(self.always, n_events).astype(np.int64)]  # fmt: skip
        for rows, keys in event_keys(events, self.types):
            first = np.searchsorted(self.keys, keys, side="left")
            last = np.searchsorted(self.keys, keys, side="right")
            hit = np.flatnonzero(last > first)
            sizes = (last - first)[hit]
            ends = np.cumsum(sizes)
            places = np.arange(int(ends[-1]) if len(ends) else 0)
            places += np.repeat(first[hit] - (ends - sizes), sizes)
            found.append(np.repeat(rows[hit], sizes) * n_shards + self.shards[places])
        pairs = np.unique(np.concatenate(found))
        return pairs // n_shards, pairs % n_shards


_routes: dict[str, Routes] = {}


def _routes_of(home: str) -> Routes:
    if home not in _routes:
        _routes.clear()
        _routes[home] = Routes(Path(home))
    return _routes[home]


def route(job: RouteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each good event once for every shard it may match in; one that may match nowhere goes to one.

    So that it has a row in the result.
    """
    routes = _routes_of(job.home)
    for batch in batches:
        events = read_events(batch, job.shape)
        good = np.ones(batch.num_rows, bool)
        good[list(_problems(routes, batch, events, job))] = False
        rows, shards = routes.of(events, batch.num_rows, job.n_shards)
        nowhere = np.setdiff1d(np.arange(batch.num_rows), rows)
        rows = np.concatenate([rows, nowhere])
        shards = np.concatenate([shards, nowhere % job.n_shards])
        keep = good[rows]
        rows, shards = rows[keep], shards[keep]
        for at in range(0, len(rows), ENTRY):
            part = batch.take(pa.array(rows[at : at + ENTRY]))
            yield pa.RecordBatch.from_arrays(
                [*part.columns, pa.array(shards[at : at + ENTRY].astype(np.int32))],
                names=[*part.schema.names, "matchwood_shard"],
            )


def _problems(
    routes: Routes, batch: pa.RecordBatch, events: Any, job: RouteJob
) -> dict[int, Exception]:
    found: dict[int, Exception] = dict(routes.checker.encode(events).errors)
    nulls = batch.column(job.event_id).is_null().to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(nulls).tolist():
        found[row] = MatchwoodError("expected an event_id, found null")
    return found


def bad_events(job: RouteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of errors for the events that are not routed."""
    routes = _routes_of(job.home)
    kind = pa.list_(pa.int64() if job.id_type == "long" else pa.string())
    for batch in batches:
        found = _problems(routes, batch, read_events(batch, job.shape), job)
        rows = sorted(found)
        ids = batch.column(job.event_id).take(pa.array(rows, pa.int64()))
        yield out_batch(ids, pa.nulls(len(rows), kind), [found[row] for row in rows])


def match_shard(job: RouteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Match the events of one shard with its index."""
    kind = pa.int64() if job.id_type == "long" else pa.string()
    for batch in batches:
        if not batch.num_rows:
            continue
        number = batch.column("matchwood_shard")[0].as_py()
        batch = batch.drop_columns(["matchwood_shard"])
        ids = batch.column(job.event_id)
        folder = Path(job.home) / f"shard-{number:05}" / "snapshot"
        if not folder.exists():  # a shard that no subscription fell into
            none = pa.ListArray.from_arrays(np.zeros(len(ids) + 1, np.int32), pa.array([], kind))
            yield out_batch(ids, none, None)
            continue
        matcher, by_slot = opened(Location(str(folder)), keep=1)
        events = matcher.encode(read_events(batch, job.shape))
        yield from match_parts(matcher, by_slot.cast(kind), ids, events, Times())
