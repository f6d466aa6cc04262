"""match_stream: one ordered log of subscriptions that come and go and of events; matches out.

    offset  kind         id   expr          attributes
    0       subscribe    7    price < 20                        a new one, or another expression
    1       event        e1                 {price: 5}          -> e1 [7]
    2       unsubscribe  7
    3       event        e2                 {price: 5}          -> e2 []
    4       subscribe    8    price < ctx.budget                of the context u1
    5       context      u1                 {budget: 9}         values of u1 from here on
    6       event        e3                 {price: 5}          -> e3 [8]

    batch b:  records ──► changes, decided in order (driver) ──► state/changes/b     written first
                 └──────► events, matched in any order (workers) ──► out/matches/batch=b     renamed

A batch is done when out/matches/batch=b is there.  A crash before that means: Spark gives the same
records again, decided changes are read instead of decided, and the output is written anew.  A batch
that is done is never replaced, and a second driver is refused (`streams/owner`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.errors import (
    EventError,
    FormatError,
    MatchwoodError,
    StorageError,
)
from matchwood.spark.errors import ERROR_TYPE
from matchwood.spark.executors import parallelism
from matchwood.spark.shapes import find_shape
from matchwood.spark.storage import Storage, open_storage
from matchwood.spark.streams.changes import Decider
from matchwood.spark.streams.commit import Attempt, is_done, remove_old_attempts
from matchwood.spark.streams.contexts import (
    ADD,
    CONTEXT_OF,
    IS_EVENT,
    RECORD,
    read_records,
)
from matchwood.spark.streams.owner import Fence, release, released_after, take
from matchwood.spark.streams.parts import ERRORS, FILES, MATCHES
from matchwood.spark.streams.snapshots import Snapshots
from matchwood.spark.streams.start import begin, first_replica
from matchwood.spark.streams.state import END, Changes, FrozenReplica, Replica, StateFolder
from matchwood.spark.streams.worker import StreamJob, matches_schema, write_events
from matchwood.spark.unknown_names import names_of_events
from matchwood.spark.worker import Times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

LATE = ("refuse", "now")
BLOCK = 512
"""Offsets side by side that one task takes: few enough that tasks of a batch of a second have about
as many events each."""


@dataclass(frozen=True)
class Settings:
    """What a stream is started with."""

    out: Storage
    state: Storage
    shape: str
    id_type: str
    late: str
    snapshot_every: int
    profile: str | None
    names: frozenset[str] | None = None
    """Attributes that events have, if the log's columns tell."""


def match_stream(
    log: DataFrame,
    out: str,
    state: str,
    *,
    subscriptions: DataFrame | str | None = None,
    contexts: Any = None,
    shape: str = "auto",
    index: str = "auto",
    config: Mapping[str, Any] | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    late: str = "refuse",
    snapshot_every: int = 50,
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | None = None,
    take_over: bool = False,
    profile: str | None = None,
) -> StreamingQuery:
    """Match the events of a log, each with the subscriptions that the log had before it.

    log             a streaming DataFrame: offset (bigint, the order), kind, id (bigint or string),
                    expr, the attributes of events and the values of contexts as a struct, map,
                    arrays or json; perhaps context (of the type of id), which subscriptions have
    out             gets matches/batch=N (event_id, offset, subscription_ids) and errors/batch=N
    state           the folder of the stream's state, Spark's checkpoint included: one that all
                    workers share, or an address on a store (`places`), as out may be.  Starting
                    again with it goes on where it stopped
    subscriptions, contexts   those at the start: tables as for `match`, or a snapshot; read once
    index, config, schema     as for Matcher, at the first start
    late            what a record is whose offset is not above those of earlier batches:
                    "refuse" (an error row) or "now" (as if it came with the batch)
    snapshot_every  batches between snapshots of the state
    trigger         as for writeStream.trigger; every record that is there, then on, unless given
    checkpoint      where Spark keeps which records belong to which batch, if not in state: an
                    address that its own file systems know
    take_over       on a store: start also while another driver seems to live, which then stops
                    with an error.  Otherwise a start waits until the other has not been seen for
                    half a minute, and is refused if it is
    profile         a folder for the times of every task and of the driver (`worker.read_times`)
    """
    kinds = dict(log.dtypes)
    missing = [name for name in RECORD if name not in kinds]
    if missing or kinds["offset"] != "bigint" or kinds["id"] not in ("bigint", "string"):
        raise EventError(
            "expected a log with offset (bigint), kind (string), id (bigint or string), expr and "
            f"attributes, found {log.schema.simpleString()}"
        )
    if kinds.get(CONTEXT_OF, kinds["id"]) != kinds["id"]:
        raise EventError(
            f"expected the column context to be {kinds['id']}, as id is, which names contexts, "
            f"too; found {kinds[CONTEXT_OF]}: cast it"
        )
    if late not in LATE:
        raise MatchwoodError(f"expected late to be one of {', '.join(LATE)}, found {late!r}")
    if snapshot_every < 1:
        raise MatchwoodError(f"expected snapshot_every from 1, found {snapshot_every}")
    found = find_shape(log.schema, shape, (*RECORD, CONTEXT_OF))
    if found == "wide":
        raise EventError("expected the column attributes beside the log's own, found none")
    settings = Settings(
        open_storage(out, "out"), open_storage(state, "state"), found, kinds["id"], late,
        snapshot_every, profile, _names(log, found, schema),
    )  # fmt: skip
    first = partial(
        first_replica, subscriptions, contexts, index, config, schema, kinds["id"], settings.names
    )
    fence = take(settings.state, take_over)
    try:
        name = begin(log, settings.state, settings.out, found, first)
        remove_old_attempts(settings.out)
        stream = Stream(settings, name, fence)
        kept = checkpoint or settings.state.spark("checkpoint")
        query = started(log, stream.process, kept, trigger)
    except BaseException:
        release(settings.state)
        raise
    released_after(settings.state, query, stream.snapshots.close)
    return query


def started(
    stream: DataFrame,
    process: Callable[[DataFrame, int], None],
    checkpoint: str,
    trigger: Mapping[str, Any] | None,
) -> StreamingQuery:
    """A query that gives its micro-batches to a function."""
    writer = stream.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint)
    return (writer.trigger(**trigger) if trigger else writer).start()


def reached(point: str) -> None:
    """Called between two steps of a batch; tests that kill the driver replace it."""


def _names(log: DataFrame, shape: str, schema: Any) -> frozenset[str] | None:
    """Names that subscriptions of the log may use: fields of a struct, and those of `schema`."""
    names = names_of_events(log.schema, shape)
    return None if names is None else names | frozenset(schema or ())


class Stream:
    """The driver's side: decides changes, has events matched, commits batches."""

    def __init__(self, settings: Settings, name: str, fence: Fence) -> None:
        self._settings, self._name, self._fence = settings, name, fence
        self._folder = StateFolder(settings.state)
        self._replica: Replica | None = None
        self._live: dict[Any, int] = {}
        self.snapshots = Snapshots(self._folder, fence, lambda point: reached(point))

    def process(self, records: DataFrame, batch: int) -> None:
        """One micro-batch: `foreachBatch`'s function."""
        self._fence.check()
        self.snapshots.check()
        if is_done(
            self._settings.out, batch
        ):  # all of it was done before a crash; only Spark's own note was missing
            return
        times = Times()
        _plan_quickly(records)
        records = _spread(records).persist()
        try:
            replica = self._replica_before(batch)
            times.lap("open")
            last_offset = replica.last_offset
            if self._folder.has_changes(batch):
                changes = self._folder.read_changes(batch)
                replica.enter(batch, changes)
            else:
                table, last = read_records(records, self._settings.shape)
                times.lap("read")
                changes = self._decider(replica).decide(table, last)
                reached("decided")
                times.lap("decide")
                self._fence.check()
                self._folder.write_changes(batch, changes)
                replica.enter(batch, changes, is_added=True)
            times.lap("changes")
            reached("changes")
            with ThreadPoolExecutor(1) as pool:  # its end is waited for, also after an error
                state = pool.submit(self._end, replica, batch, changes)
                self._match(records, batch, changes, last_offset)
            times.lap("match")
            frozen = state.result()
        except BaseException:
            self._replica = None  # it may be half-way: the next attempt starts from the folder
            raise
        finally:
            records.unpersist()
        if frozen is not None:
            self.snapshots.begin(batch + 1, replica, frozen)
            times.lap("snapshot")
        if self._settings.profile is not None:
            times.save(Path(self._settings.profile, "driver"))

    def _replica_before(self, batch: int) -> Replica:
        replica = self._replica
        if replica is None or replica.next_batch > batch:
            replica = self._load(batch)
            replica.bring(self._folder, batch)
            self._live = replica.live()
        elif replica.next_batch < batch:
            replica.bring(self._folder, batch)
            self._live = replica.live()
        self._replica = replica
        return replica

    def _load(self, batch: int) -> Replica:
        """From the newest snapshot; from the one before it when that is damaged."""
        base = self._folder.base_of(batch)
        try:
            return Replica.load(self._folder, base, verify=True)
        except (FormatError, StorageError):
            older = [each for each in self._folder.snapshots() if each < base]
            if not older:
                raise
            self._folder.drop_snapshot(base)
            return self._load(batch)

    def _decider(self, replica: Replica) -> Decider:
        s = self._settings
        return Decider(replica, self._live, s.shape, s.id_type, s.late == "refuse", s.names)

    def _end(self, replica: Replica, batch: int, changes: Changes) -> FrozenReplica | None:
        """End a batch for the driver's own replica, while workers match; returns what the snapshot
        is written of if it is time for one.
        """
        replica.leave()
        self._update_live(changes)
        return None if (batch + 1) % self._settings.snapshot_every else replica.frozen()

    def _update_live(self, changes: Changes) -> None:
        for row in changes.rows.to_pylist():
            if row["op"] == ADD:
                self._live[row["id"]] = row["version"]
            elif row["op"] == END and self._live.get(row["id"]) == row["version"]:
                del self._live[row["id"]]

    # -- events ------------------------------------------------------------------------------

    def _match(self, records: DataFrame, batch: int, changes: Changes, last_offset: int) -> None:
        s = self._settings
        job = StreamJob(
            s.state, self._name, batch, s.shape, last_offset, s.late == "refuse", s.id_type,
            profile=s.profile,
        )  # fmt: skip
        with Attempt(s.out, batch, self._fence) as attempt:
            parts = attempt.parts
            tasks = records.where(IS_EVENT).mapInArrow(partial(write_events, job, parts), FILES)
            files = [(row.kind, row.file) for row in tasks.collect()]
            reached("matched")
            if not any(kind == MATCHES for kind, _ in files):  # a file shows the columns
                files.append((MATCHES, parts.put(matches_schema(s.id_type).empty_table())))
            if changes.errors:
                refused = pa.array(changes.errors, ERROR_TYPE)
                files.append((ERRORS, parts.put(pa.Table.from_struct_array(refused))))
            for kind, file in files:
                attempt.take(kind, [file])
            reached("written")
            attempt.commit()
        reached("committed")


def _plan_quickly(records: DataFrame) -> None:
    """Settings for the jobs of a micro-batch, in the session that its query has for itself.

    Its partitions are given (`_spread`), so there is nothing to adapt to; and records are kept for
    two jobs, so compressing them takes longer than it saves.  Of 0.68 s of CPU that the JVM took
    for a second of the suite's stream these are 0.11 (`docs/decisions/0013`).
    """
    session = records.sparkSession
    if hasattr(session, "_jsparkSession"):  # on Connect settings may be those of the user's session
        session.conf.set("spark.sql.adaptive.enabled", False)
        session.conf.set("spark.sql.inMemoryColumnarStorage.compressed", False)


def _spread(records: DataFrame) -> DataFrame:
    """Records over all cores: a topic of one partition, or one small file, would be one task.

    In blocks that belong together by offset, because values of contexts change between events and
    those that see the same values are searched at once.
    """
    from pyspark.sql import functions as f

    n = parallelism(records.sparkSession)
    block = f.expr(f"CAST(pmod(coalesce(offset, 0) DIV {BLOCK}, {n}) AS INT)")
    return records.repartitionById(n, block)
