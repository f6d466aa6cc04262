"""Replicas are equal whatever snapshots they began with; snapshots beside running batches."""

from __future__ import annotations

import gc
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from weakref import ref

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.errors import StorageError
from matchwood.lang.names import CONTEXT as PREFIX
from matchwood.spark.storage import Folder, open_storage
from matchwood.spark.streams import replicas as replicas_module
from matchwood.spark.streams import state as state_module
from matchwood.spark.streams import worker
from matchwood.spark.streams.changes import Decider
from matchwood.spark.streams.owner import Fence, next_epoch
from matchwood.spark.streams.replicas import Kept
from matchwood.spark.streams.snapshots import Snapshots
from matchwood.spark.streams.state import Replica, StateFolder
from spark import context_logs
from spark.logs import Record

RECORDS = pa.schema(
    [("offset", pa.int64()), ("kind", pa.string()), ("id", pa.string()), ("expr", pa.string()),
     ("attributes", pa.map_(pa.string(), pa.string())), ("context", pa.string())]
)  # fmt: skip
UNTYPED = ("price > ctx.limit", "ctx.limit = '2026-01-01'", "ctx.limit = DATE '2026-01-01'",
           "ctx.limit IS NULL AND price > 3", "price = ctx.budget OR ctx.limit < 4",
           "genre = ctx.limit")  # fmt: skip


class Stream:
    """A driver without Spark: decides batches of a log, one after the other."""

    def __init__(self, folder: Path, schema: Any = None) -> None:
        self.storage = open_storage(str(folder), "state")
        self.state = StateFolder(self.storage)
        first = Replica(mw.Matcher(schema=schema), pa.array([], pa.int64()).to_numpy(),
                        pa.array([], pa.string()), 0)  # fmt: skip
        self.state.write_snapshot(0, first.frozen())
        self.driver = Replica.load(self.state, 0, verify=True)
        self.fence = Fence(self.storage, next_epoch(self.storage))
        self.snapshots = Snapshots(self.state, self.fence, lambda point: self.reached(point))
        self.reached: Callable[[str], None] = lambda point: None

    def decide(self, records: list[Record], batch: int) -> tuple[worker.StreamJob, pa.RecordBatch]:
        """Decide a batch; returns its job and its events."""
        driver = self.driver
        rows = pa.Table.from_pylist(
            [each | {"attributes": _pairs(each["attributes"])} for each in records], RECORDS
        )
        is_event = pa.compute.equal(rows.column("kind"), "event")
        job = worker.StreamJob(self.storage, "", batch, "map", driver.last_offset, True, "string")
        decider = Decider(driver, driver.live(), "map", "string", True)
        changes = decider.decide(
            rows.filter(pa.compute.invert(is_event)), max(each["offset"] for each in records)
        )
        self.state.write_changes(batch, changes)
        driver.enter(batch, changes, is_added=True)
        driver.leave()
        return job, rows.filter(is_event).combine_chunks().to_batches()

    def snapshot(self, batch: int) -> None:
        """Write one while nothing else happens."""
        self.snapshots.begin(batch, self.driver, self.driver.frozen())
        self.snapshots.wait()
        self.snapshots.check()


def _pairs(values: dict[str, Any] | None) -> list[tuple[str, Any]] | None:
    return None if values is None else list(values.items())


def matched(kept: Kept, job: worker.StreamJob, events: list[pa.RecordBatch]) -> list[Any]:
    """What a worker with that replica gives for a batch."""
    worker.replicas[job.state.path] = kept
    try:
        return [row for rows in worker.match_events(job, iter(events)) for row in rows.to_pylist()]
    finally:
        del worker.replicas[job.state.path]


def types(replica: Replica) -> dict[str, str]:
    """The types of values of contexts, which changes are read with."""
    schema = replica.matcher.schema
    return {name: kind for name, kind in schema.items() if name.startswith(PREFIX)}


def untyped_log(seed: int, n: int) -> list[Record]:
    """The log of the other tests, with expressions that give a name now one type, now another."""
    random = Random(seed)
    log = context_logs.made_log(seed, n)
    for record in log:
        if record["kind"] == "subscribe" and random.random() < 0.5:
            record |= {"expr": random.choice(UNTYPED), "context": random.choice(("ann", "bob"))}
        if record["kind"] == "context" and random.random() < 0.4:
            text = random.choice((None, "2026-01-01", "7", "x"))
            record["attributes"] = {"limit": text}
    return log


@pytest.mark.slow
@pytest.mark.parametrize("is_typed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_replicas_from_any_snapshot_are_equal(
    tmp_path: Path, monkeypatch, seed: int, is_typed: bool
) -> None:
    log = context_logs.made_log(seed, 320) if is_typed else untyped_log(seed, 320)
    stream = Stream(tmp_path, context_logs.TYPES if is_typed else None)
    goes_on, follows = Kept(stream.storage, ""), Kept(stream.storage, "")
    found: dict[str, list[str]] = {}
    for batch in range(16):
        monkeypatch.setattr(state_module, "UNMAPPED_LEAST", 10_000)
        job, events = stream.decide(log[20 * batch : 20 * batch + 20], batch)
        answers = matched(goes_on, job, events)
        assert matched(Kept(stream.storage, ""), job, events) == answers
        monkeypatch.setattr(state_module, "UNMAPPED_LEAST", -1)
        monkeypatch.setattr(state_module, "UNMAPPED_MOST", 10**9)
        assert matched(follows, job, events) == answers
        follows.wait()
        found |= {
            row["event_id"]: sorted(row["subscription_ids"]) for row in answers if not row["error"]
        }
        if batch % 3 == 2:
            stream.snapshot(batch + 1)
            again = Replica.load(stream.state, batch + 1, verify=True)
            assert types(again) == types(stream.driver)
            assert again.live() == stream.driver.live()
            assert (again.next_version, again.last_offset) == (
                stream.driver.next_version, stream.driver.last_offset,
            )  # fmt: skip
    assert goes_on.at(15).base == 0
    assert follows.at(15).base > 6, "it has mapped newer snapshots between tasks"
    if is_typed:
        assert found == context_logs.sequential(log)[0]


def loads(monkeypatch) -> list[int]:
    """The snapshots that are mapped from now on."""
    mapped: list[int] = []
    load = Replica.load.__func__

    def noted(cls: type[Replica], folder: StateFolder, base: int, verify: bool) -> Replica:
        mapped.append(base)
        return load(cls, folder, base, verify)

    monkeypatch.setattr(Replica, "load", classmethod(noted))
    return mapped


def run(stream: Stream, kept: Kept, first: int, last: int, every: int = 3) -> None:
    log = context_logs.made_log(3, 20 * last)
    for batch in range(first, last):
        job, events = stream.decide(log[20 * batch : 20 * batch + 20], batch)
        matched(kept, job, events)
        if batch % every == every - 1:
            stream.snapshot(batch + 1)


def test_a_worker_maps_one_snapshot_and_goes_on_past_others(tmp_path: Path, monkeypatch) -> None:
    # before: every snapshot was mapped by every worker, in the batch after it
    stream = Stream(tmp_path, context_logs.TYPES)
    mapped = loads(monkeypatch)
    run(stream, Kept(stream.storage, ""), 0, 12)
    assert mapped == [0]


def test_a_replica_that_was_replaced_is_given_up(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(state_module, "UNMAPPED_LEAST", 5)
    stream, log = Stream(tmp_path, context_logs.TYPES), context_logs.made_log(3, 400)
    kept, mapped = Kept(stream.storage, ""), loads(monkeypatch)
    old: list[ref[Replica]] = []
    try:
        for batch in range(20):
            matched(kept, *stream.decide(log[20 * batch : 20 * batch + 20], batch))
            kept.wait()
            if batch == 0:
                old.append(ref(kept.at(0)))
            if batch % 3 == 2:
                stream.snapshot(batch + 1)
        assert len(mapped) > 1
        assert old[0]() is None
    finally:
        gc.unfreeze()


def test_a_replica_that_is_far_behind_maps_the_newest_snapshot(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(replicas_module, "FAR", 4)
    stream, log = Stream(tmp_path, context_logs.TYPES), context_logs.made_log(3, 400)
    near, far = Kept(stream.storage, ""), Kept(stream.storage, "")
    asked = {near: (0, 3, 8, 11, 15), far: (0, 15)}
    mapped = loads(monkeypatch)
    for batch in range(16):
        job, events = stream.decide(log[20 * batch : 20 * batch + 20], batch)
        answers = [matched(each, job, events) for each in asked if batch in asked[each]]
        assert all(each == answers[0] for each in answers)
        if batch in (6, 13):
            stream.snapshot(batch + 1)
    assert mapped == [0, 0, 14]


def test_changes_that_were_removed_are_no_error(tmp_path: Path) -> None:
    stream = Stream(tmp_path, context_logs.TYPES)
    log, kept = context_logs.made_log(3, 100), Kept(stream.storage, "")
    for batch in range(5):
        job, events = stream.decide(log[20 * batch : 20 * batch + 20], batch)
        if batch in (0, 4):
            matched(kept, job, events)
        if batch in (1, 2, 3):
            stream.snapshot(batch + 1)
    assert stream.storage.names("changes") == ["0000000003.arrow", "0000000004.arrow"]


def test_another_stream_at_the_same_place_has_a_replica_of_its_own(tmp_path: Path) -> None:
    stream = Stream(tmp_path, context_logs.TYPES)
    job, _ = stream.decide(context_logs.made_log(3, 20), 0)
    first = worker.kept(job)
    other = worker.StreamJob(**{**vars(job), "stream": "another"})
    assert worker.kept(job) is first
    assert worker.kept(other) is not first
    del worker.replicas[job.state.path]


# -- snapshots beside batches ---------------------------------------------------------------------


def test_changes_stay_until_a_snapshot_is_complete(tmp_path: Path) -> None:
    stream = Stream(tmp_path, context_logs.TYPES)
    kept = Kept(stream.storage, "")
    run(stream, kept, 0, 6)
    assert stream.state.snapshots() == [3, 6]
    is_let = threading.Event()

    def held(point: str) -> None:
        if point == "snapshot written":
            assert is_let.wait(60)

    stream.reached = held
    stream.snapshots.begin(6, stream.driver, stream.driver.frozen())  # is there: nothing to do
    stream.snapshots.wait()
    log = context_logs.made_log(3, 200)
    for batch in range(6, 9):
        matched(kept, *stream.decide(log[20 * batch : 20 * batch + 20], batch))
    stream.snapshots.begin(9, stream.driver, stream.driver.frozen())
    job, events = stream.decide(log[180:200], 9)
    answers = matched(kept, job, events)  # a batch goes on while the snapshot is written
    assert stream.state.snapshots() == [3, 6]
    assert [int(name[:10]) for name in stream.storage.names("changes")] == list(range(3, 10))
    assert matched(Kept(stream.storage, ""), job, events) == answers
    is_let.set()
    stream.snapshots.wait()
    stream.snapshots.check()
    assert stream.state.snapshots() == [6, 9]
    assert [int(name[:10]) for name in stream.storage.names("changes")] == list(range(6, 10))
    assert Replica.load(stream.state, 9, verify=True).last_offset == 179


def test_a_kill_at_any_step_of_a_snapshot_leaves_what_is_needed(tmp_path: Path) -> None:
    """A copy of the folder is what a kill leaves."""
    stream = Stream(tmp_path / "state", context_logs.TYPES)
    run(stream, Kept(stream.storage, ""), 0, 6)
    log = context_logs.made_log(3, 180)
    for batch in range(6, 9):
        stream.decide(log[20 * batch : 20 * batch + 20], batch)
    expected = stream.driver.live()
    copies: list[Path] = []

    def killed(*_: object) -> None:
        copies.append(tmp_path / f"left {len(copies)}")
        shutil.copytree(tmp_path / "state", copies[-1])

    stream.reached = killed
    stream.snapshots.rest = killed
    stream.snapshot(9)
    assert len(copies) > 20
    for copy in copies:
        state = StateFolder(Folder(str(copy)))
        base = state.base_of(9)
        replica = Replica.load(state, base, verify=True)
        replica.bring(state, 9)
        assert replica.live() == expected
    assert {StateFolder(Folder(str(copy))).base_of(9) for copy in copies} == {6, 9}


def test_what_ends_a_snapshot_is_raised_by_the_next_batch(tmp_path: Path) -> None:
    stream = Stream(tmp_path, context_logs.TYPES)
    log = context_logs.made_log(3, 40)
    stream.decide(log[:20], 0)

    def full(point: str) -> None:
        raise OSError(f"no space left: {point}")

    stream.reached = full
    stream.snapshots.begin(1, stream.driver, stream.driver.frozen())
    stream.snapshots.wait()
    with pytest.raises(OSError, match="no space left: snapshot written"):
        stream.snapshots.check()
    assert stream.state.snapshots() == [0]
    assert [name for name in stream.storage.names("snapshots") if name.startswith(".")] == []
    stream.snapshots.begin(1, stream.driver, stream.driver.frozen())
    with pytest.warns(RuntimeWarning, match="the last snapshot of the stream in .* was not writ"):
        stream.snapshots.close()
    stream.reached = lambda point: None
    stream.decide(log[20:], 1)
    stream.snapshot(2)
    assert Replica.load(stream.state, 2, verify=True).live() == stream.driver.live()


def test_a_driver_that_was_overtaken_completes_no_snapshot_and_removes_nothing(
    tmp_path: Path,
) -> None:
    stream = Stream(tmp_path, context_logs.TYPES)
    run(stream, Kept(stream.storage, ""), 0, 6)
    before = {name: stream.storage.names(name) for name in ("changes", "snapshots")}
    note = json.loads((tmp_path / "epochs" / f"{stream.fence.epoch:010}").read_text())
    assert note["process"]
    log = context_logs.made_log(3, 140)
    stream.decide(log[120:140], 6)
    next_epoch(stream.storage)
    stream.snapshots.begin(7, stream.driver, stream.driver.frozen())
    stream.snapshots.wait()
    with pytest.raises(StorageError, match="expected to be the only driver"):
        stream.snapshots.check()
    assert stream.storage.names("snapshots") == before["snapshots"]
    assert stream.storage.names("changes") == [*before["changes"], "0000000006.arrow"]
