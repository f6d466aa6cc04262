"""What workers do for a micro-batch: bring their replica to the batch, then encode, match and emit.

How replicas stay in workers is in `streams/replicas`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchwood.errors import EventError
from matchwood.spark.errors import ATTRIBUTE
from matchwood.spark.shapes import read_events
from matchwood.spark.storage import Storage
from matchwood.spark.streams.parts import ERRORS, MATCHES, Part, Parts, reported
from matchwood.spark.streams.replicas import Kept
from matchwood.spark.worker import Pace, Times, cut, out_batch, refuse_nameless

replicas: dict[str, Kept] = {}
"""What this worker keeps, by the path or address of a state."""


@dataclass(frozen=True)
class StreamJob:
    """One micro-batch."""

    state: Storage
    stream: str
    batch: int
    shape: str
    last_offset: int
    """The highest offset of all earlier batches."""
    refuses_late: bool
    id_type: str
    profile: str | None = None


def kept(job: StreamJob) -> Kept:
    """What this worker keeps for the tasks of a stream."""
    found = replicas.get(job.state.path)
    if found is None or found.stream != job.stream:
        found = replicas[job.state.path] = Kept(job.state, job.stream)
    return found


def write_events(
    job: StreamJob, parts: Parts, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Match events and write what comes out; rows of `parts.FILES`: `mapInArrow`'s function."""
    with Part(parts) as matches, Part(parts) as errors:
        for rows in match_events(job, batches):
            error = rows.column("error")
            found = rows.drop_columns(["error"])
            if error.null_count < len(error):
                errors.write(pa.RecordBatch.from_struct_array(error.drop_null()))
                is_failed = pc.equal(pc.struct_field(error, "of"), ATTRIBUTE)
                found = found.filter(pc.or_(error.is_null(), pc.fill_null(is_failed, False)))
            matches.write(found)
    files = {MATCHES: matches, ERRORS: errors}
    yield reported([(kind, part.name) for kind, part in files.items() if part.has_rows])


def matches_schema(id_type: str) -> pa.Schema:
    """The columns of matches."""
    id_ = pa.int64() if id_type == "bigint" else pa.string()
    return pa.schema(
        [("event_id", id_), ("offset", pa.int64()), ("subscription_ids", pa.list_(id_))]
    )


def match_events(job: StreamJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows (event_id, offset, subscription_ids, error), one per event."""
    times, pace = Times(), Pace()
    mine = kept(job)
    replica = mine.at(job.batch)
    times.lap("open")
    matcher = replica.matcher
    kind = pa.int64() if job.id_type == "bigint" else pa.string()
    for batch in batches:
        times.lap("wait")
        if len(replica.contexts):  # values change between events: these come in their order
            batch = batch.sort_by("offset")
        offsets = batch.column("offset").to_numpy(zero_copy_only=False)
        event_ids = batch.column("id")
        events = matcher.encode(read_events(batch, job.shape))
        versions = matcher.arrow_ids(events).fill_null(-1).to_numpy()
        if job.refuses_late:
            for row in np.flatnonzero(offsets <= job.last_offset).tolist():
                events.errors[row] = EventError(late(int(offsets[row]), job.last_offset))
        refuse_nameless(events.errors, event_ids, "id")
        n, at = events.batch.n_events, 0
        while at < n:
            until = min(at + pace.step, n)
            changes = replica.contexts.changes(offsets[at:until])
            times.lap("encode")
            found = matcher.find(cut(events, at, until), changes)
            times.lap("match")
            sizes = np.diff(found.offsets)
            matched = versions[found.slots]
            held = replica.held(matched, np.repeat(offsets[at:until], sizes))
            event = np.repeat(np.arange(until - at), sizes)[held]
            ends = np.searchsorted(event, np.arange(until - at + 1)).astype(np.int32)
            ids = replica.public(matched[held]).cast(kind)
            lists = pa.ListArray.from_arrays(pa.array(ends), ids)
            out = _out(out_batch(event_ids.slice(at, until - at), lists, found), offsets[at:until])
            times.lap("emit")
            yield out
            times.lap("write")
            pace.note(until - at, len(found.slots))
            at = until
    mine.rest()
    if job.profile is not None:
        times.save(Path(job.profile, "workers"))


def _out(rows: pa.RecordBatch, offsets: np.ndarray) -> pa.RecordBatch:
    return rows.add_column(1, "offset", pa.array(offsets, pa.int64()))


def late(offset: int, last: int) -> str:
    return (
        f"expected an offset above {last}, the highest of the batches before, found {offset}: "
        "the record is late"
    )
