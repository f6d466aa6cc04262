"""Matching with shards: events to the shards that can match them, lists back by event.

events ──► keys of the event ──► routes ──► by shard ──► match ──► by event ──► merged lists
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.engine.matcher import Matcher
from matchwood.errors import FormatError, MatchwoodError, StorageError
from matchwood.spark.home_keys import ANY, event_keys
from matchwood.spark.shapes import read_events
from matchwood.spark.shard_build import folder_of
from matchwood.spark.worker import Location, Times, match_parts, opened, out_batch

ENTRY = 1 << 16


def read_manifest(home: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((home / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise FormatError(f"{str(home)!r}: expected the manifest of shards ({error})") from error
    missing = [
        each["number"]
        for each in manifest["shards"]
        if each["count"] and not (folder_of(home, each["number"]) / "snapshot").is_dir()
    ]
    if missing:
        raise StorageError(
            f"expected {len(manifest['shards'])} shards in {str(home)!r}, found none of number "
            f"{', '.join(map(str, missing))}: restore them, or remove the folder to build anew"
        )
    return manifest


@dataclass(frozen=True)
class RouteJob:
    """What the tasks that route and match need to know."""

    home: str
    shape: str
    event_id: str
    n_shards: int
    is_built: bool
    """Whether there is a shard at all."""
    id_type: str
    profile: str | None = None


class Routes:
    """Key to shards, mapped; and the types of all attributes, to refuse bad events once."""

    def __init__(self, home: Path) -> None:
        self.keys = np.load(home / "route_key.npy", mmap_mode="r")
        self.shards = np.load(home / "route_shard.npy", mmap_mode="r")
        self.types: dict[str, str] = {
            name: kind for name, kind in read_manifest(home)["types"].items() if kind
        }
        self.checker = Matcher(schema=Schema(self.types))
        at = slice(*np.searchsorted(self.keys, [ANY, ANY + np.uint64(1)]))
        self.always = np.unique(self.shards[at])

    def of(self, events: Any, n_events: int, n_shards: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of event and shard, each once, by event."""
        found = [np.repeat(np.arange(n_events), len(self.always)) * n_shards
                 + np.tile(self.always, n_events).astype(np.int64)]  # fmt: skip
        for rows, keys in event_keys(events, self.types, self.keys):
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
    times = Times()
    for batch in batches:
        if not batch.num_rows:
            continue
        times.lap("wait")
        number = batch.column("matchwood_shard")[0].as_py()
        batch = batch.drop_columns(["matchwood_shard"])
        ids = batch.column(job.event_id)
        if not job.is_built:
            none = pa.ListArray.from_arrays(np.zeros(len(ids) + 1, np.int32), pa.array([], kind))
            yield out_batch(ids, none, None)
            continue
        folder = folder_of(Path(job.home), number) / "snapshot"
        matcher, by_slot = opened(Location(str(folder)), keep=1)
        times.lap("open")
        events = matcher.encode(read_events(batch, job.shape))
        times.lap("encode")
        yield from match_parts(matcher, by_slot.cast(kind), ids, events, times)
    if job.profile is not None:
        times.save(Path(job.profile))
