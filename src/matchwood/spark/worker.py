"""What Python workers run: open a snapshot once, then encode, match and emit batch by batch.

A worker lives longer than a task, so opened snapshots stay in this module; on one machine their
pages are shared.  Every function here is importable: Spark sends its name, not its code.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.encode.arrow.values import python_values
from matchwood.encode.events import EncodedEvents, EventBatch
from matchwood.engine.answers.choices import ALL
from matchwood.engine.answers.choices import Choice as EngineChoice
from matchwood.engine.input.fields import read_columns
from matchwood.engine.input.loading import field_columns
from matchwood.engine.matcher import Matcher
from matchwood.engine.matches import Found
from matchwood.engine.snapshots.versions import generation_of, is_version, load_version
from matchwood.errors import EventError, MatchwoodError, StorageError
from matchwood.spark.choices import EVERYTHING, Choice, add_problems
from matchwood.spark.computed_columns import NO_COLUMNS, Columns
from matchwood.spark.errors import ERROR_TYPE, error_row, failed_row
from matchwood.spark.fingerprints import MARKS
from matchwood.spark.memory import peak, spare_modules
from matchwood.spark.shapes import named, read_events
from matchwood.spark.stores import is_address, local_copy
from matchwood.spark.unknown_names import Names, parse_known

MATCHES_AT_ONCE = 2_000_000
"""Matches that a worker holds at a time, about; events are matched in parts of such a size."""

OUT = ["event_id", "subscription_ids", "error"]

FIRST_PART = 256
"""Events of the first part, before anything is known of how much they match."""


class Pace:
    """How many events are matched at once: few at first, then as many as the matches allow."""

    def __init__(self) -> None:
        self.step = FIRST_PART

    def note(self, n_events: int, n_matches: int) -> None:
        """Take account of a part that was matched."""
        each = max(n_matches / n_events, 0.25)
        self.step = max(1, min(int(MATCHES_AT_ONCE / each), 4 * self.step))


_KEPT = 4
_opened: dict[tuple[str, str], tuple[Matcher, pa.Array]] = {}


@dataclass(frozen=True)
class Location:
    """Where workers find an index: a path they can read, the address of a store that every host
    copies it from (`stores`), or folders shipped with the job.
    """

    path: str
    shipped: str | None = None
    segments: tuple[tuple[str, str], ...] = ()
    """Segments by name, and what they are shipped as."""
    dropped: tuple[str, ...] = ()
    """What was shipped and is not needed any more."""

    def folder(self) -> Path:
        if self.shipped is None:
            return local_copy(self.path) if is_address(self.path) else Path(self.path)
        return _shipped(self.shipped)

    def open(self, others: Sequence[Matcher] = ()) -> Matcher:
        """The matcher.  The driver has verified the files; a missing or short one is noticed.

        others  matchers that are open: segments that they have are shared with them
        """
        folder = self.folder()
        if not is_version(folder):
            return Matcher.load(folder, mmap=True, verify=False)
        for name in self.dropped:
            shutil.rmtree(_shipped(name), ignore_errors=True)
        shipped = {name: _shipped(archive) for name, archive in self.segments}
        where = shipped.__getitem__ if shipped else None
        return load_version(folder, verify=False, where=where, others=others)


def _shipped(name: str) -> Path:
    from pyspark import SparkFiles

    return Path(SparkFiles.get(name))


@dataclass(frozen=True)
class MatchJob:
    """What a task needs to know."""

    snapshot: Location
    shape: str
    event_id: str
    id_type: str
    """`long` or `string`: of the subscriptions' ids."""
    encode_only: bool = False
    """Look for bad events, match nothing."""
    profile: str | None = None
    """A folder for a file of times per task."""
    names: tuple[str, ...] = ()
    """The events' columns, where they have other names on the way (`shapes.plain_names`)."""
    choice: Choice = EVERYTHING
    keep: tuple[str, ...] = ()
    """Columns of events that go out with the lists."""
    computed: Columns = NO_COLUMNS
    """Computed attributes that Spark has computed."""


def opened(location: Location) -> tuple[Matcher, pa.Array]:
    """The matcher of a snapshot and its ids by slot, opened by the first task that asks."""
    spare_modules(_opened.clear)
    folder = location.folder()
    key = (str(folder), generation(folder))
    if key not in _opened:
        matcher = location.open([each for each, _ in _opened.values()])
        while len(_opened) >= _KEPT:
            del _opened[next(iter(_opened))]
        _opened[key] = (matcher, matcher.arrow_ids())
    return _opened[key]


def generation(folder: Path) -> str:
    """What an index contains, as a name.  StorageError if there is none."""
    try:
        return generation_of(folder)
    except StorageError as error:
        raise StorageError(
            f"worker: expected the snapshot at {str(folder)!r}, found none: put it where every "
            "worker can read it, or let match() ship it (ship=True)"
        ) from error


def match_batches(job: MatchJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows (event_id, subscription_ids, error), one per event: `mapInArrow`'s function."""
    times, pace = Times(), Pace()
    matcher, ids = opened(job.snapshot)
    ids = ids.cast(pa.int64() if job.id_type == "long" else pa.string())
    times.lap("open")
    for batch in batches:
        times.lap("wait")
        batch = named(batch, job.names)
        event_ids = batch.column(job.event_id)
        kept = [batch.column(name) for name in job.keep]
        batch, filters = job.choice.filters_of(batch)
        is_given = job.computed.attributes
        read = job.computed.read(batch) if is_given else read_events(batch, job.shape)
        events = matcher.encode(read)
        add_problems(events.errors, filters)
        refuse_nameless(events.errors, event_ids)
        times.lap("encode")
        if job.encode_only:
            yield bad_batch(event_ids, events, ids.type)
        else:
            choice = partial(job.choice.part, filters)
            parts = match_parts(matcher, ids, event_ids, events, times, choice, pace)
            yield from _with_columns(parts, kept)
    if job.profile is not None:
        times.save(Path(job.profile))


def _with_columns(
    parts: Iterator[pa.RecordBatch], kept: Sequence[pa.Array]
) -> Iterator[pa.RecordBatch]:
    """Parts of a batch with the rows of some columns beside them."""
    at = 0
    for part in parts:
        for n, column in enumerate(kept):
            part = part.append_column(f"kept_{n}", column.slice(at, part.num_rows))
        at += part.num_rows
        yield part


def refuse_nameless(errors: dict[int, EventError], ids: pa.Array, name: str = "event_id") -> None:
    """Events without an id are bad, unless something worse is wrong with them."""
    for row in np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False)).tolist():
        errors.setdefault(
            row, EventError(f"expected the column {name} to name an event, found null")
        )


def match_parts(
    matcher: Matcher,
    ids: pa.Array,
    event_ids: pa.Array,
    events: EncodedEvents,
    times: Times,
    choice: Callable[[int], EngineChoice] = lambda first: ALL,
    pace: Pace | None = None,
) -> Iterator[pa.RecordBatch]:
    """Match a batch in parts that hold a bounded number of matches.

    choice  gives what the engine is asked for the events from a number on
    pace    what earlier batches of the same index have shown
    """
    n, at, pace = events.batch.n_events, 0, pace or Pace()
    while at < n:
        until = min(at + pace.step, n)
        part = cut(events, at, until)
        times.lap("encode")
        found = matcher.find(part, (), choice(at))
        pace.note(until - at, len(found.slots))
        times.lap("match")
        lists = pa.ListArray.from_arrays(
            pa.array(found.offsets.astype(np.int32)), ids.take(pa.array(found.slots))
        )
        out = out_batch(event_ids.slice(at, until - at), lists, found)
        times.lap("emit")
        yield out
        times.lap("write")
        at = until


def cut(events: EncodedEvents, first: int, last: int) -> EncodedEvents:
    """Events first .. last - 1 of encoded ones, which have values and no sets."""
    batch = events.batch
    inside = slice(int(batch.start[first]), int(batch.start[last]))
    part = EventBatch(
        batch.start[first : last + 1] - batch.start[first],
        batch.attr[inside], batch.lo[inside], batch.hi[inside],
    )  # fmt: skip
    errors = {row - first: error for row, error in events.errors.items() if first <= row < last}
    failed = {row - first: each for row, each in events.warnings.items() if first <= row < last}
    others = tuple([cut(each, first, last) for each in events.others])
    return events._replace(batch=part, errors=errors, warnings=failed, others=others)


def out_batch(
    event_ids: pa.Array, lists: pa.Array, problems: EncodedEvents | Found | None
) -> pa.RecordBatch:
    """Events, their lists, and error rows of those that are bad or of which a computed attribute
    failed.
    """
    errors = pa.nulls(len(event_ids), ERROR_TYPE)
    if problems is not None and (problems.errors or problems.warnings):
        found = error_rows(event_ids, problems)
        errors = pa.array([found.get(row) for row in range(len(event_ids))], ERROR_TYPE)
    return pa.RecordBatch.from_arrays([event_ids, lists, errors], names=OUT)


def bad_batch(
    event_ids: pa.Array, problems: EncodedEvents | Found, item: pa.DataType
) -> pa.RecordBatch:
    """The same for events with an error row alone, without lists."""
    found = error_rows(event_ids, problems)
    names = event_ids.take(pa.array(list(found), pa.int64()))
    lists = pa.nulls(len(found), pa.list_(item))
    return pa.RecordBatch.from_arrays(
        [names, lists, pa.array(list(found.values()), ERROR_TYPE)], names=OUT
    )


def error_rows(event_ids: pa.Array, problems: EncodedEvents | Found) -> dict[int, dict[str, Any]]:
    """Error rows by event: of those that cannot be read, and of those of which a computed
    attribute failed.
    """
    rows = sorted(problems.errors.keys() | problems.warnings.keys())
    names = python_values(event_ids.take(pa.array(rows, pa.int64())))
    return {
        row: error_row("event", name, problems.errors[row])
        if row in problems.errors
        else failed_row(name, problems.warnings[row])
        for row, name in zip(rows, names, strict=True)
    }


def parse_batches(known: Names, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows (id, expr, perhaps more, MARKS) to pickled chunks of leaf rows, in their order, each
    with the id and MARKS of its rows.

    known  names that subscriptions may use; None: any
    """
    import pickle

    for batch in batches:
        marks = batch.select(["id", *MARKS])
        parsed = (marks, *parse_rows(batch.drop_columns(list(MARKS)), known))
        data = pickle.dumps(parsed, pickle.HIGHEST_PROTOCOL)
        yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["chunk"])


def parse_rows(batch: pa.RecordBatch, known: Names) -> tuple[Any, ...]:
    """Rows (id, expr, perhaps more) as ids, texts, contexts, fields, leaves, rows and refusals."""
    ids, texts = python_values(batch.column("id")), python_values(batch.column("expr"))
    has_contexts = "context" in batch.schema.names
    contexts = python_values(batch.column("context")) if has_contexts else None
    leaves, rows, refused = parse_known(texts, known)
    fields = read_columns(field_columns(pa.Table.from_batches([batch])), refused)
    return ids, texts, contexts, fields, leaves, rows, refused


LAPS = {
    "open": "opening the index",
    "wait": "JVM to Arrow",
    "encode": "encode",
    "match": "match",
    "emit": "emit",
    "write": "Arrow to JVM",
}
"""What a worker does, in order.  `match` is the kernels and a few calls around them."""


class Times:
    """Seconds by what was done, from lap to lap."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.n_opened = 0
        """Shards that had to be opened."""

    def lap(self, what: str) -> None:
        now = time.perf_counter()
        self.seconds[what] = self.seconds.get(what, 0.0) + now - self._last
        self._last = now

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        record = {"seconds": self.seconds, "peak": peak(), "opened": self.n_opened}
        (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(record))


def read_times(folder: str | Path) -> dict[str, float]:
    """The times of all tasks together."""
    total: dict[str, float] = {}
    for each in _tasks(folder):
        for what, seconds in each["seconds"].items():
            total[what] = total.get(what, 0.0) + seconds
    return total


def read_peak(folder: str | Path) -> int:
    """The most bytes that a worker had in memory, mapped files that it has read among them."""
    return max(each["peak"] for each in _tasks(folder))


def _tasks(folder: str | Path) -> list[dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in Path(folder).glob("*.json")]
    if not found:
        raise MatchwoodError(f"expected times of tasks in {str(folder)!r}, found none")
    return found
