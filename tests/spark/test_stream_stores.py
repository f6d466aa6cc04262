"""Streams whose state and output are on an object store: nothing lost, nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import matchwood as mw
from matchwood.spark import match_live, match_stream
from matchwood.spark.storage import Store, open_storage
from matchwood.spark.stores import inside
from matchwood.spark.streams import commit as stream_commit
from matchwood.spark.streams import live as live_module
from matchwood.spark.streams import match_stream as stream_module
from matchwood.spark.streams import owner as owner
from spark.logs import Crash, made_log, read_log, sequential, wait_for_snapshot, write_log

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOW = {"availableNow": True}


class Stored:
    """Folders of a stream on a store, beside Spark's checkpoint in a local folder."""

    def __init__(self, bucket: str, work: Path) -> None:
        self.work = work
        self.out, self.state = (
            open_storage(inside(bucket, f"{work.name}/{name}"), name) for name in ("out", "state")
        )
        self.checkpoint = f"file://{work}/checkpoint"

    def rows(self, kind: str) -> list[dict[str, Any]]:
        assert isinstance(self.out, Store)
        store, path = self.out._opened
        return [
            row
            for batch in self.out.names(kind)
            for row in pq.read_table(f"{path}/{kind}/{batch}", filesystem=store).to_pylist()
        ]

    def committed(self) -> dict[str, list[str]]:
        rows = self.rows("matches")
        found = {row["event_id"]: sorted(row["subscription_ids"]) for row in rows}
        assert len(found) == len(rows), "an event came twice"
        return found

    def stream(self, spark, **options) -> Any:
        log = read_log(spark, self.work / "log")
        return match_stream(
            log, self.out.path, self.state.path, trigger=options.pop("trigger", NOW),
            snapshot_every=2, checkpoint=self.checkpoint, **options,
        )  # fmt: skip


def crash_once(monkeypatch, module, point: str) -> None:
    def crash(where: str) -> None:
        if where == point:
            raise Crash(point)

    monkeypatch.setattr(module, "reached", crash)


def test_a_log_on_a_store_comes_out_once_whatever_crashes(
    spark, bucket: str, tmp_path: Path, monkeypatch
) -> None:
    # before: out and state on a store were refused
    stored, log = Stored(bucket, tmp_path), made_log(11, 100)
    write_log(tmp_path / "log", log, 20)
    for point in ("changes", "written", "snapshot"):
        crash_once(monkeypatch, stream_module, point)
        with pytest.raises(StreamingQueryException, match=f"Crash: {point}"):
            stored.stream(spark).awaitTermination()
        monkeypatch.undo()

    def no_copies(*_: object) -> None:
        raise Crash("decided and not copied")

    monkeypatch.setattr(stream_commit, "_copy", no_copies)
    with pytest.raises(StreamingQueryException, match="decided and not copied"):
        stored.stream(spark).awaitTermination()
    monkeypatch.undo()
    stored.stream(spark).awaitTermination()
    wait_for_snapshot(stored.state.path)
    expected, refused = sequential(log)
    assert stored.committed() == expected
    assert len(stored.rows("errors")) == refused
    assert [name for name in stored.out.names("") if name.startswith(".writing")] == []
    assert len(stored.state.names("snapshots")) == 2
    with pytest.raises(mw.StorageError, match="expected output of the stream that has this state"):
        match_stream(read_log(spark, tmp_path / "log"), stored.out.path, str(tmp_path / "other"))


def test_two_drivers_of_a_state_on_a_store_lose_nothing(
    spark, bucket: str, tmp_path: Path, monkeypatch
) -> None:
    stored, log = Stored(bucket, tmp_path), made_log(12, 60)
    write_log(tmp_path / "log", log, 20)
    for point in ("decided", "written"):

        def overtaken(where: str, point: str = point) -> None:
            if where == point:
                owner.next_epoch(stored.state)  # as a driver that was told to take over does

        monkeypatch.setattr(stream_module, "reached", overtaken)
        with pytest.raises(StreamingQueryException, match="expected to be the only driver"):
            stored.stream(spark, take_over=True).awaitTermination()
        monkeypatch.undo()
        assert stored.rows("matches") == []
    theirs = json.dumps({"attempt": "theirs", "files": {}}).encode()

    def committed_by_them(where: str) -> None:
        if where == "written":
            stored.out.create("_commits/0000000000", theirs)

    monkeypatch.setattr(stream_module, "reached", committed_by_them)
    with pytest.raises(StreamingQueryException, match="another driver has committed this batch"):
        stored.stream(spark, take_over=True).awaitTermination()
    monkeypatch.undo()
    assert stored.out.read("_commits/0000000000") == theirs
    stored.out.remove("_commits/0000000000")
    first = stored.stream(spark, trigger={"processingTime": "1 second"})
    try:
        with pytest.raises(mw.StorageError, match="expected no other driver of the stream"):
            stored.stream(spark)
        first.processAllAvailable()
    finally:
        first.stop()
    expected, refused = sequential(log)
    assert stored.committed() == expected
    assert len(stored.rows("errors")) == refused


@pytest.mark.parametrize(
    ("options", "names"), [({}, "xyz"), ({"shards": 3}, "x")], ids=["one index", "shards"]
)
def test_rules_beside_events_on_a_store_have_one_version_a_batch(
    spark, bucket: str, tmp_path: Path, monkeypatch, options: dict[str, int], names: str
) -> None:
    stored, texts = Stored(bucket, tmp_path), {f"r{n}": f"a = {n}" for n in range(6)}
    (tmp_path / "events").mkdir()
    (tmp_path / "rules").mkdir()

    def run(n: int, **rules: str) -> None:
        lines = [json.dumps({"id": id_, "expr": text}) for id_, text in rules.items()]
        (tmp_path / "rules" / "all.json").write_text("\n".join(lines))
        event = tmp_path / "events" / f"{n}.json"
        if not event.exists():
            event.write_text(json.dumps({"event_id": n, "a": 1}))
        reader = spark.readStream.schema("event_id BIGINT, a BIGINT")
        match_live(
            reader.json(str(tmp_path / "events")),
            lambda session: session.read.schema("id STRING, expr STRING").json(
                str(tmp_path / "rules")
            ),
            stored.out.path, stored.state.path, trigger=NOW, checkpoint=stored.checkpoint,
            **options,
        ).awaitTermination()  # fmt: skip

    texts["bad"] = "prise < 3"
    run(0, **texts)
    crash_once(monkeypatch, live_module, "written")
    with pytest.raises(StreamingQueryException, match="Crash: written"):
        run(1, **texts, more="a > 0")
    monkeypatch.undo()
    run(1, none="a = 7")  # the attempt that crashed has recorded the version before
    for n, rules in enumerate([*({name: "a = 1"} for name in names), texts], start=2):
        run(n, **rules)
    rows = {row["event_id"]: row for row in stored.rows("matches")}
    found = [sorted(rows[n]["subscription_ids"]) for n in range(3 + len(names))]
    assert found == [["r1"], ["more", "r1"], *([name] for name in names), ["r1"]]
    versions = {row["version"] for row in rows.values()}
    assert len(versions) == 2 + len(names), "the first rules are back"
    refused = stored.state.read(f"refused/{rows[0]['version']}.json")
    assert b"'prise'" in (refused or b"")
