"""match_live: a stream of events beside a table of subscriptions that changes.

    table of subscriptions ──► version: an index by fingerprint ──► state/versions/b
    micro-batch b of events ──► matched with that version alone ──► out/matches/batch=b

Idea.    Events need no order among themselves, so they may come from any number of partitions.
         Each micro-batch is matched with one version of the subscriptions: what the table held
         when the batch was first tried.  The version is recorded before it is used and is a column
         of the output, so an attempt after a crash uses the same one, whatever the table holds by
         then.
Order.   A change of the table takes effect with a later micro-batch, not at a certain event; where
         that is needed, `match_stream` takes one ordered log of both.
Once.    As in `match_stream`: one driver at a time, own folders for attempts, one step commits.
Shards.  With `shards` or `max_bytes` a version is a set of shards (`sharded`) instead of one index:
         events go to the shards that can match them, and a change of the table writes the shards of
         what has changed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matchwood.encode.schema import Schema
from matchwood.errors import FormatError, MatchwoodError, StorageError
from matchwood.spark.batch import column_types, match, with_id
from matchwood.spark.errors import ERROR_FIELDS
from matchwood.spark.indexes import build_index
from matchwood.spark.shapes import find_shape
from matchwood.spark.shards.locations import MANIFEST, home_of
from matchwood.spark.shards.match_sharded import MOST_BYTES, find_shards, match_found, open_shards
from matchwood.spark.storage import Folder, Storage, open_storage
from matchwood.spark.streams.commit import Attempt, is_done, remove_old_attempts
from matchwood.spark.streams.match_stream import reached, started
from matchwood.spark.streams.owner import Fence, release, released_after, take
from matchwood.spark.streams.start import NOTE, claim
from matchwood.spark.unknown_names import names_of_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    Table = DataFrame | Callable[[SparkSession], DataFrame]

VERSION = "version"
_KEPT = 3
"""Versions whose indexes are kept."""


@dataclass(frozen=True)
class Settings:
    """What a stream is started with."""

    out: Storage
    state: Storage
    event_id: str
    shape: str
    every: float
    index: str
    config: Mapping[str, Any] | None
    schema: Schema | Mapping[str, Any] | None
    shards: int | None
    max_bytes: int | None

    @property
    def is_sharded(self) -> bool:
        return self.shards is not None or self.max_bytes is not None


def match_live(
    events: DataFrame,
    subscriptions: Table,
    out: str,
    state: str,
    *,
    contexts: Any = None,
    every: float = 0.0,
    event_id: str = "event_id",
    shape: str = "auto",
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    shards: int | None = None,
    max_bytes: int | None = None,
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | None = None,
    take_over: bool = False,
) -> StreamingQuery:
    """Match a stream of events, each micro-batch with one version of the subscriptions.

    events         a streaming DataFrame of events, as `match` takes them
    subscriptions  a table as for `match`, or a function that gives one for a session, which is
                   called for each micro-batch: `lambda spark: spark.read.parquet(path)`
    contexts       values of contexts, or such a function
    out            gets matches/batch=N (event_id, subscription_ids, version) and errors/batch=N
    state          the folder of versions, their indexes and Spark's checkpoint, which all workers
                   can read, or an address on a store, as out may be
    every          seconds that a version is used before the table is looked at again
    shards, max_bytes  either makes a version a set of shards, as in `match_sharded`, for
                   subscriptions that no worker can hold; an id of several events of a micro-batch
                   is an error row then
    trigger        as for writeStream.trigger
    checkpoint, take_over  as for `match_stream`
    The rest is as for `match`.
    """
    with_id(events, event_id)
    find_shape(events.schema, shape, (event_id,))
    settings = Settings(
        open_storage(out, "out"), open_storage(state, "state"), event_id, shape, every, index,
        config, schema, shards, max_bytes,
    )  # fmt: skip
    fence = take(settings.state, take_over)
    try:
        _begin(settings)
        process = Live(settings, fence, subscriptions, contexts).process
        query = started(events, process, checkpoint or settings.state.spark("checkpoint"), trigger)
    except BaseException:
        release(settings.state)
        raise
    released_after(settings.state, query)
    return query


def _begin(settings: Settings) -> None:
    """Make the state of a new stream, or see that state and output belong together."""
    state = settings.state
    if state.exists(NOTE):
        raise FormatError(
            f"expected the state of match_live in {str(state)!r}, found that of match_stream: "
            "choose another folder"
        )
    note = state.read("live.json")
    if note is None:
        claim(settings.out, "")
        note = json.dumps({"stream": uuid.uuid4().hex}).encode()
        state.put("live.json", note)
    claim(settings.out, json.loads(note)["stream"])
    remove_old_attempts(settings.out)


class Live:
    """The driver's side of one stream."""

    def __init__(
        self, settings: Settings, fence: Fence, subscriptions: Table, contexts: Any
    ) -> None:
        self._settings, self._fence = settings, fence
        self._subscriptions, self._contexts = subscriptions, contexts
        self._newest: tuple[float, str] | None = None

    @property
    def _indexes(self) -> str:
        """The path or address of the folder of indexes."""
        state = self._settings.state
        return (
            str(state.index("indexes")) if isinstance(state, Folder) else state.address("indexes")
        )

    def process(self, events: DataFrame, batch: int) -> None:
        """One micro-batch: `foreachBatch`'s function."""
        from pyspark.sql import functions as f

        self._fence.check()
        s = self._settings
        if is_done(s.out, batch):
            return
        version = self._version(events, batch)
        reached("changes")
        found, kept = self._match(events, version)
        try:
            with Attempt(s.out, batch, self._fence) as attempt:
                attempt.write(found.matches.withColumn(VERSION, f.lit(version)), "matches")
                reached("matched")
                errors = found.errors.toArrow().combine_chunks()
                if errors.num_rows:
                    table = events.sparkSession.createDataFrame(errors, ERROR_FIELDS)
                    attempt.write(table.coalesce(1), "errors")
                reached("written")
                attempt.commit()
        finally:
            for each in kept:
                each.unpersist()
        reached("committed")
        self._prune()

    def _match(self, events: DataFrame, version: str) -> tuple[Any, list[Any]]:
        """Matches and errors of a batch, and what Spark keeps until they are written."""
        s = self._settings
        if s.state.exists(f"indexes/{version}/{MANIFEST}"):
            kept: Any = events.persist()
            by = open_shards(events.sparkSession, home_of(self._indexes, version))
            sharded = match_found(kept, by, s.event_id, s.shape).persist()
            return sharded, [sharded, kept]
        snapshot = self._index(version)
        found = match(events, snapshot, event_id=s.event_id, shape=s.shape, ship=False).persist()
        return found, [found]

    def _version(self, events: DataFrame, batch: int) -> str:
        """The version of a batch: the recorded one, or that of now, which is recorded."""
        record = f"versions/{batch:010}.json"
        there = self._settings.state.read(record)
        if there is not None:
            return str(json.loads(there)[VERSION])
        if self._newest is None or time.monotonic() - self._newest[0] >= self._settings.every:
            self._newest = (time.monotonic(), self._build(events))
        version = self._newest[1]
        self._fence.check()
        content = json.dumps({VERSION: version, "recorded": time.time()})
        try:
            self._settings.state.create(record, content.encode())
        except FileExistsError:
            raise StorageError(
                f"expected no version of batch {batch} in {str(self._settings.state)!r}, found "
                "one: another driver runs this stream; stop one of the two"
            ) from None
        return version

    def _build(self, events: DataFrame) -> str:
        s, spark = self._settings, events.sparkSession
        table, values = _read(self._subscriptions, spark), _read(self._contexts, spark)
        if s.is_sharded:
            made = find_shards(
                with_id(events, s.event_id), table, self._indexes, s.shards,
                s.max_bytes or MOST_BYTES, False, s.event_id, s.shape, s.index, s.config,
                s.schema, values, None, None,
            )  # fmt: skip
            name = made.home.partition("?")[0].rpartition("/")[2]
            self._tell_refused(name, made.refused.to_pylist())
            return name
        found = find_shape(events.schema, s.shape, (s.event_id,))
        built = build_index(
            table, s.index, s.config, s.schema, self._indexes, values,
            column_types=column_types(events.schema, s.shape, s.event_id, table),
            names=names_of_events(events.schema, found),
        )  # fmt: skip
        self._tell_refused(built.name, built.refused.to_pylist())
        return built.name

    def _tell_refused(self, version: str, rows: list[dict[str, Any]]) -> None:
        """Subscriptions that a version refused: state/refused/VERSION.json, a row a line."""
        if rows:
            lines = "".join(f"{json.dumps(row)}\n" for row in rows)
            self._settings.state.put(f"refused/{version}.json", lines.encode())

    def _index(self, version: str) -> str:
        """The path or address of the index of a version."""
        state, name = self._settings.state, f"indexes/{version}"
        if not state.exists(name):
            raise MatchwoodError(
                f"expected the index of version {version} in {str(state)!r}, found none: "
                "restore the folder from a copy"
            )
        if isinstance(state, Folder):
            return str(state.index(f"{name}/snapshot"))
        return state.address(name)

    def _prune(self) -> None:
        """Remove indexes that none of the last batches used, and old records."""
        s = self._settings
        records = [name for name in s.state.names("versions") if not name.startswith(".")]
        last = [s.state.read(f"versions/{name}") for name in records[-_KEPT:]]
        kept = {json.loads(each)[VERSION] for each in last if each is not None}
        if self._newest is not None:
            kept.add(self._newest[1])
        if isinstance(s.state, Folder) or not s.is_sharded:  # versions share shards on a store
            for name in s.state.names("indexes"):
                if name not in kept and not name.startswith("."):
                    s.state.remove(f"indexes/{name}")
        for name in records[:-100]:
            s.state.remove(f"versions/{name}")


def _read(table: Any, spark: SparkSession) -> Any:
    return table(spark) if callable(table) else table
