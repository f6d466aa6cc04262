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
Once.    As in `match_stream`: one driver at a time, own folders for attempts, a rename commits.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchwood.encode.schema import Schema
from matchwood.errors import FormatError, MatchwoodError
from matchwood.spark.batch import column_types, match, with_id
from matchwood.spark.errors import ERROR_FIELDS
from matchwood.spark.folders import address, local_folder
from matchwood.spark.indexes import build_index
from matchwood.spark.shapes import find_shape
from matchwood.spark.stream import reached
from matchwood.spark.stream_commit import commit, is_done, new_attempt, remove_old_attempts
from matchwood.spark.stream_owner import Fence, release, released_after, take
from matchwood.spark.stream_start import claim
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

    out: str
    state: str
    event_id: str
    shape: str
    every: float
    index: str
    config: Mapping[str, Any] | None
    schema: Schema | Mapping[str, Any] | None


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
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Match a stream of events, each micro-batch with one version of the subscriptions.

    events         a streaming DataFrame of events, as `match` takes them
    subscriptions  a table as for `match`, or a function that gives one for a session, which is
                   called for each micro-batch: `lambda spark: spark.read.parquet(path)`
    contexts       values of contexts, or such a function
    out            gets matches/batch=N (event_id, subscription_ids, version) and errors/batch=N
    state          the folder of versions, their indexes and Spark's checkpoint, which all workers
                   can read
    every          seconds that a version is used before the table is looked at again
    trigger        as for writeStream.trigger
    The rest is as for `match`.
    """
    with_id(events, event_id)
    find_shape(events.schema, shape, (event_id,))
    settings = Settings(
        str(local_folder(out, "out")), str(local_folder(state, "state")), event_id, shape, every,
        index, config, schema,
    )  # fmt: skip
    fence = take(settings.state)
    try:
        _begin(settings)
        live = Live(settings, fence, subscriptions, contexts)
        writer = events.writeStream.foreachBatch(live.process)
        writer = writer.option("checkpointLocation", address(Path(settings.state, "checkpoint")))
        query = (writer.trigger(**trigger) if trigger else writer).start()
    except BaseException:
        release(settings.state)
        raise
    released_after(settings.state, query)
    return query


def _begin(settings: Settings) -> None:
    """Make the state of a new stream, or see that state and output belong together."""
    note = Path(settings.state, "live.json")
    if Path(settings.state, "log.json").exists():
        raise FormatError(
            f"expected the state of match_live in {settings.state!r}, found that of match_stream: "
            "choose another folder"
        )
    if not note.exists():
        claim(Path(settings.out), "")
        aside = note.with_name(".live.json")
        aside.write_text(json.dumps({"stream": uuid.uuid4().hex}))
        aside.replace(note)
    claim(Path(settings.out), json.loads(note.read_text())["stream"])
    remove_old_attempts(settings.out)


class Live:
    """The driver's side of one stream."""

    def __init__(
        self, settings: Settings, fence: Fence, subscriptions: Table, contexts: Any
    ) -> None:
        self._settings, self._fence = settings, fence
        self._subscriptions, self._contexts = subscriptions, contexts
        self._newest: tuple[float, str] | None = None

    def process(self, events: DataFrame, batch: int) -> None:
        """One micro-batch: `foreachBatch`'s function."""
        from pyspark.sql import functions as f

        self._fence.check()
        s = self._settings
        if is_done(s.out, batch):
            return
        version = self._version(events, batch)
        reached("changes")
        found = match(
            events, str(self._index(version)), event_id=s.event_id, shape=s.shape, ship=False
        ).persist()
        attempt = new_attempt(s.out, batch, self._fence)
        try:
            matches = found.matches.withColumn(VERSION, f.lit(version))
            matches.write.parquet(address(attempt / "matches"))
            reached("matched")
            errors = found.errors.toArrow().combine_chunks()
            if errors.num_rows:
                table = events.sparkSession.createDataFrame(errors, ERROR_FIELDS)
                table.coalesce(1).write.parquet(address(attempt / "errors"))
            reached("written")
            commit(s.out, batch, attempt, self._fence)
        finally:
            found.unpersist()
            shutil.rmtree(attempt, ignore_errors=True)
        reached("committed")
        self._prune(batch)

    def _version(self, events: DataFrame, batch: int) -> str:
        """The version of a batch: the recorded one, or that of now, which is recorded."""
        record = self._record(batch)
        if record.exists():
            return str(json.loads(record.read_text())[VERSION])
        if self._newest is None or time.monotonic() - self._newest[0] >= self._settings.every:
            self._newest = (time.monotonic(), self._build(events))
        version = self._newest[1]
        record.parent.mkdir(parents=True, exist_ok=True)
        aside = record.with_name(f".{uuid.uuid4().hex}")
        aside.write_text(json.dumps({VERSION: version, "recorded": time.time()}))
        self._fence.check()
        aside.rename(record)
        return version

    def _build(self, events: DataFrame) -> str:
        s, spark = self._settings, events.sparkSession
        table, values = _read(self._subscriptions, spark), _read(self._contexts, spark)
        found = find_shape(events.schema, s.shape, (s.event_id,))
        built = build_index(
            table, s.index, s.config, s.schema, str(Path(s.state, "indexes")), values,
            column_types=column_types(events.schema, s.shape, s.event_id, table),
            names=names_of_events(events.schema, found),
        )  # fmt: skip
        if built.refused.num_rows:
            self._tell_refused(built.name, built.refused.to_pylist())
        return built.name

    def _tell_refused(self, version: str, rows: list[dict[str, Any]]) -> None:
        """Subscriptions that a version refused: state/refused/VERSION.json, a row a line."""
        file = Path(self._settings.state, "refused", f"{version}.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def _index(self, version: str) -> Path:
        folder = Path(self._settings.state, "indexes", version, "snapshot")
        if not folder.exists():
            raise MatchwoodError(
                f"expected the index of version {version} in {self._settings.state!r}, found none: "
                "restore the folder from a copy"
            )
        return folder

    def _record(self, batch: int) -> Path:
        return Path(self._settings.state, "versions", f"{batch:010}.json")

    def _prune(self, batch: int) -> None:
        """Remove indexes that none of the last batches used, and old records."""
        records = sorted(Path(self._settings.state, "versions").glob("*.json"))
        kept = {json.loads(each.read_text())[VERSION] for each in records[-_KEPT:]}
        if self._newest is not None:
            kept.add(self._newest[1])
        for folder in Path(self._settings.state, "indexes").iterdir():
            if folder.name not in kept and not folder.name.startswith("."):
                shutil.rmtree(folder, ignore_errors=True)
        for record in records[:-100]:
            record.unlink(missing_ok=True)


def _read(table: Any, spark: SparkSession) -> Any:
    return table(spark) if callable(table) else table
