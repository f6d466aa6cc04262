"""Matching with shards: events to the shards that can match them, lists back by event.

events ──► keys of the event ──► routes ──► by shard ──► match ──► by event ──► merged lists
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matchwood.encode.events import EncodedEvents
from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.errors import EventError, FormatError, StorageError
from matchwood.spark.choices import EVERYTHING, Choice, add_problems
from matchwood.spark.executors import parallelism
from matchwood.spark.folders import Checked
from matchwood.spark.increments import read_refused
from matchwood.spark.shapes import named, read_events
from matchwood.spark.shards.home_keys import ANY, event_keys
from matchwood.spark.shards.locations import MANIFEST, ROUTE_FILES, file_of, files_of
from matchwood.spark.shards.manifest import checksum
from matchwood.spark.shards.mapped import mapped
from matchwood.spark.shards.save import SHARD
from matchwood.spark.stores import exists, is_address, shown
from matchwood.spark.worker import (
    Times,
    bad_batch,
    match_parts,
    out_batch,
    refuse_nameless,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRY = 1 << 16
VISITS = "matchwood_visits"
"""To how many shards an event goes; more rows of its id than that are of two events."""

FAILED = "matchwood_failed"
"""Messages of computed attributes that failed for an event in one shard."""

_checked = Checked()
_MANIFEST = {"build", "id_type", "types", "shards", "routes", "tests_filter", "is_copied", "used",
             "attributes"}  # fmt: skip


def refused_of(home: str, manifest: dict[str, Any]) -> pa.Table:
    """Error rows of subscriptions that were refused when shards were built."""
    try:
        return read_refused(files_of(home))
    except (OSError, pa.ArrowException) as error:
        raise FormatError(
            f"shards in {str(home)!r}: what was refused cannot be read ({error}); remove the "
            "folder to build anew"
        ) from error


def read_manifest(home: str) -> dict[str, Any]:
    """What there is at a path or address; FormatError or StorageError if it is not whole."""
    try:
        manifest: dict[str, Any] = json.loads((files_of(home) / MANIFEST).read_text())
        missing_keys = _MANIFEST - manifest.keys()
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise FormatError(f"{shown(home)!r}: expected the manifest of shards ({error})") from error
    if missing_keys:
        raise FormatError(
            f"{shown(home)!r}: expected a manifest of shards with "
            f"{', '.join(sorted(missing_keys))}, found none: it is damaged or of another version; "
            "remove the folder to build anew"
        )
    missing = [
        each["number"]
        for each in manifest["shards"]
        if each["count"]
        and not is_address(home)
        and not Path(file_of(home, manifest["build"], each)).is_dir()
    ]  # a store is asked by tasks
    if missing:
        raise StorageError(
            f"expected {len(manifest['shards'])} shards in {home!r}, found none of number "
            f"{', '.join(map(str, missing))}: restore them, or remove the folder to build anew"
        )
    return manifest


def snapshots_of(home: str, manifest: dict[str, Any]) -> tuple[str, ...]:
    """The paths or addresses of the indexes of all shards."""
    return tuple(file_of(home, manifest["build"], each) for each in manifest["shards"])


def are_checked(home: str) -> bool:
    """Whether this process has checked or built shards, and no file has changed since."""
    return files_of(home) in _checked


def note_checked(home: str) -> None:
    """Note that shards were built here, perhaps from others that were checked."""
    _checked.add(files_of(home))


def check_shards(spark: SparkSession, home: str, manifest: dict[str, Any]) -> None:
    """Compare every file of shards that others may have built with its checksum, on the executors.

    Once, as long as no file changes.  On a store tasks see whether every shard is there.
    """
    n = len(manifest["shards"])
    files = files_of(home)
    if not n or files in _checked:
        return
    snapshots = snapshots_of(home, manifest)
    numbers = spark.range(0, n, 1, min(n, 4 * parallelism(spark)))
    rows = numbers.mapInArrow(partial(_check, snapshots), "problem string").collect()
    problems = [row.problem for row in rows]
    if [checksum(files / name) for name in ROUTE_FILES] != manifest["routes"]:
        problems.append("the checksum of its routes does not fit")
    if problems:
        raise FormatError(
            f"expected {n} whole shards in {shown(home)!r}, found {len(problems)} damaged: "
            f"{problems[0]}; restore the folder from a copy, or remove it to build anew"
        )
    _checked.add(files)


def _check(
    snapshots: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        problems = []
        for number in batch.column("id").to_pylist():
            try:
                if not is_address(snapshots[number]):
                    Matcher.load(Path(snapshots[number]), verify=True)
                elif not exists(snapshots[number]):
                    raise StorageError("there is none")
            except (FormatError, StorageError) as error:
                problems.append(f"shard {number}: {error}")
        yield pa.RecordBatch.from_arrays([pa.array(problems, pa.string())], names=["problem"])


@dataclass(frozen=True)
class RouteJob:
    """What the tasks that route and match need to know."""

    home: str
    build: str
    """Which build of the shards: the folder may be removed and made anew under its name."""
    snapshots: tuple[str, ...]
    """The paths or addresses of the shards' indexes."""
    shape: str
    event_id: str
    n_shards: int
    is_built: bool
    """Whether there is a shard at all."""
    id_type: str
    names: tuple[str, ...]
    """The events' columns, see `shapes.plain_names`."""
    n_mapped: int
    """How many shards a worker keeps open."""
    choice: Choice = EVERYTHING
    profile: str | None = None
    encode_only: bool = False
    """Look for computed attributes that fail, match nothing."""

    @property
    def item(self) -> pa.DataType:
        """What a list holds: ids, or with a limit also what the merge sorts by."""
        id_ = pa.int64() if self.id_type == "long" else pa.string()
        return id_ if self.choice.limit is None else pa.struct([("order", pa.int64()), ("id", id_)])

    def items(self, ids: pa.Array, matcher: Matcher) -> pa.Array:
        """The same by slot."""
        if self.choice.limit is None:
            return ids.cast(self.item)
        priority = matcher.priorities()
        return pa.StructArray.from_arrays(
            [pa.array(~priority), ids.cast(self.item.field("id").type)], fields=list(self.item)
        )


class Routes:
    """Key to shards, mapped; and the types of all attributes, to refuse bad events once."""

    def __init__(self, home: str) -> None:
        files = files_of(home)
        self.keys, self.shards = (np.load(files / name, mmap_mode="r") for name in ROUTE_FILES)
        manifest = read_manifest(home)
        self.types: dict[str, str] = {
            name: kind for name, kind in manifest["types"].items() if kind
        }
        self.used = frozenset(manifest["used"])
        self.checker = Matcher(schema=Schema(self.types))
        at = slice(*np.searchsorted(self.keys, [ANY, ANY + np.uint64(1)]))
        self.always = np.unique(self.shards[at])

    def of(self, events: Any, n_events: int, n_shards: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of event and shard, each once, by event."""
        found = [np.repeat(np.arange(n_events), len(self.always)) * n_shards
                 + np.tile(self.always, n_events).astype(np.int64)]  # fmt: skip
        for rows, keys in event_keys(events, self.types, self.used):
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


_routes: dict[tuple[str, str], Routes] = {}


def _routes_of(job: RouteJob) -> Routes:
    key = (job.home, job.build)
    if key not in _routes:
        _routes.clear()
        _routes[key] = Routes(job.home)
    return _routes[key]


def route(job: RouteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each good event once for every shard it may match in; one that may match nowhere goes to one.

    So that it has a row in the result.
    """
    routes = _routes_of(job)
    for batch in batches:
        events, problems = _read(routes, named(batch, job.names), job)
        good = np.ones(batch.num_rows, bool)
        good[list(problems.errors)] = False
        rows, shards = routes.of(events, batch.num_rows, job.n_shards)
        nowhere = np.setdiff1d(np.arange(batch.num_rows), rows)
        rows = np.concatenate([rows, nowhere])
        shards = np.concatenate([shards, nowhere % job.n_shards])
        keep = good[rows]
        rows, shards = rows[keep], shards[keep].astype(np.int32)
        visits = np.bincount(rows, minlength=batch.num_rows).astype(np.int32)
        for at in range(0, len(rows), ENTRY):
            row, shard = rows[at : at + ENTRY], shards[at : at + ENTRY]
            part = batch.take(pa.array(row))
            yield pa.RecordBatch.from_arrays(
                [*part.columns, pa.array(shard), pa.array(visits[row])],
                names=[*part.schema.names, SHARD, VISITS],
            )


def _read(routes: Routes, batch: pa.RecordBatch, job: RouteJob) -> tuple[Any, EncodedEvents]:
    """Events, and what is wrong with the bad ones; the shards compute attributes."""
    without, filters = job.choice.filters_of(batch)
    events = read_events(without, job.shape)
    found = routes.checker.encode(events)
    add_problems(found.errors, filters)
    refuse_nameless(found.errors, batch.column(job.event_id))
    return events, found


def bad_events(job: RouteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of errors for the events that are not routed."""
    routes = _routes_of(job)
    for batch in batches:
        batch = named(batch, job.names)
        _, found = _read(routes, batch, job)
        yield bad_batch(batch.column(job.event_id), found, job.item)


def match_shard(job: RouteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Match the events of one shard with its index."""
    times, n_before = Times(), mapped.n_opened
    for batch in batches:
        if not batch.num_rows:
            continue
        times.lap("wait")
        number, visits = batch.column(SHARD)[0].as_py(), batch.column(VISITS)
        batch = named(batch.drop_columns([SHARD, VISITS]), job.names)
        ids = batch.column(job.event_id)
        if not job.is_built:
            yield _shard_rows(out_batch(ids, _empty(len(ids), job.item), None), visits, {})
            continue
        matcher, by_slot = mapped.shard(job.snapshots[number], job.build, job.n_mapped)
        times.lap("open")
        batch, filters = job.choice.filters_of(batch)
        events = matcher.encode(read_events(batch, job.shape))
        times.lap("encode")
        if job.encode_only:
            rows = out_batch(ids, _empty(len(ids), job.item), None)
            yield _shard_rows(rows, visits, events.warnings)
            continue
        at, choice = 0, partial(job.choice.part, filters)
        for part in match_parts(matcher, job.items(by_slot, matcher), ids, events, times, choice):
            yield _shard_rows(part, visits, events.warnings, at)
            at += part.num_rows
    times.n_opened = mapped.n_opened - n_before
    if job.profile is not None:
        times.save(Path(job.profile))


def _empty(n: int, item: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(np.zeros(n + 1, np.int32), pa.array([], item))


def _shard_rows(
    part: pa.RecordBatch, visits: pa.Array, failed: dict[int, list[EventError]], at: int = 0
) -> pa.RecordBatch:
    """Rows from `at` on with what the merge by event needs: visits, and what failed here."""
    n = part.num_rows
    messages = pa.nulls(n, pa.list_(pa.string()))
    if failed:
        each = [[str(one) for one in failed.get(row, ())] or None for row in range(at, at + n)]
        messages = pa.array(each, pa.list_(pa.string()))
    part = part.append_column(VISITS, visits.slice(at, n))
    return part.append_column(FAILED, messages)
