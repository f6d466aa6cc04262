"""Two drivers on the state of one stream: the second is refused, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import matchwood as mw
from matchwood.spark import match_stream
from matchwood.spark.storage import open_storage
from matchwood.spark.streams import match_stream as stream_module
from matchwood.spark.streams import owner as owner
from spark.logs import committed, dead_letters, made_log, read_log, sequential, write_log

pytestmark = pytest.mark.spark

ELSEWHERE = """
import sys
from matchwood.errors import StorageError
from matchwood.spark.storage import open_storage
from matchwood.spark.streams.owner import take
try:
    print("epoch", take(open_storage(sys.argv[1], "state")).epoch)
except StorageError as error:
    print("refused", error)
"""


def start(spark, work: Path, **trigger):
    log = read_log(spark, work / "log")
    return match_stream(
        log, str(work / "out"), str(work / "state"), trigger=trigger or {"availableNow": True},
        snapshot_every=3,
    )  # fmt: skip


def from_another_process(state: Path) -> str:
    asked = [sys.executable, "-c", ELSEWHERE, str(state)]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def test_a_second_driver_is_refused_while_the_first_one_runs(spark, tmp_path: Path) -> None:
    # before: both ran, and 227 of 2,253 events were lost without an error
    log = made_log(7, 60)
    write_log(tmp_path / "log", log, 20)
    first = start(spark, tmp_path, processingTime="1 second")
    try:
        with pytest.raises(mw.StorageError, match="expected no other driver of the stream"):
            start(spark, tmp_path)
        assert from_another_process(tmp_path / "state").startswith("refused expected no other")
        first.processAllAvailable()
    finally:
        first.stop()
    start(spark, tmp_path).awaitTermination()  # the first has ended: now it may
    expected, refused = sequential(log)
    assert committed(tmp_path / "out") == expected
    assert len(dead_letters(tmp_path / "out")) == refused


@pytest.mark.parametrize("point", ["decided", "written"])
def test_a_driver_stops_when_a_later_one_has_started(
    spark, tmp_path: Path, monkeypatch, point: str
) -> None:
    log = made_log(8, 60)
    write_log(tmp_path / "log", log, 20)
    expected, refused = sequential(log)
    state = open_storage(str(tmp_path / "state"), "state")

    def overtaken(where: str) -> None:
        if where == point:
            owner.next_epoch(state)  # on a machine that the lock does not reach

    monkeypatch.setattr(stream_module, "reached", overtaken)
    with pytest.raises(StreamingQueryException, match="expected to be the only driver"):
        start(spark, tmp_path).awaitTermination()
    monkeypatch.undo()
    assert committed(tmp_path / "out") == {}
    start(spark, tmp_path).awaitTermination()
    assert committed(tmp_path / "out") == expected
    assert len(dead_letters(tmp_path / "out")) == refused


def test_a_committed_batch_is_never_replaced(spark, tmp_path: Path, monkeypatch) -> None:
    write_log(tmp_path / "log", made_log(9, 40), 20)
    theirs = tmp_path / "out" / "matches" / "batch=1" / "theirs"

    def overtaken(where: str) -> None:
        if where == "written" and (tmp_path / "out" / "matches" / "batch=0").exists():
            theirs.parent.mkdir(parents=True)
            theirs.touch()

    monkeypatch.setattr(stream_module, "reached", overtaken)
    with pytest.raises(StreamingQueryException, match="another driver has committed this batch"):
        start(spark, tmp_path).awaitTermination()
    assert [each.name for each in theirs.parent.iterdir()] == ["theirs"]


def test_a_state_is_free_again_when_its_driver_has_died(tmp_path: Path) -> None:
    assert from_another_process(tmp_path).startswith("epoch 1")
    assert from_another_process(tmp_path).startswith("epoch 2")
    state = open_storage(str(tmp_path), "state")
    fence = owner.take(state)
    try:
        fence.check()
        assert "process" in from_another_process(tmp_path)
    finally:
        owner.release(state)
    assert from_another_process(tmp_path).startswith("epoch 4")
    with pytest.raises(mw.StorageError, match=r"\(epoch 3\), found epoch 4, process \d+ on"):
        fence.check()


def test_a_log_with_new_columns_that_may_be_null_goes_on(spark, tmp_path: Path) -> None:
    log = made_log(10, 40)
    write_log(tmp_path / "log", log[:20], 20)
    start(spark, tmp_path).awaitTermination()
    write_log(tmp_path / "log", log, 20)
    wider = read_log(spark, tmp_path / "log").selectExpr("*", "CAST(NULL AS STRING) AS context")
    out, state = str(tmp_path / "out"), str(tmp_path / "state")
    match_stream(wider, out, state, trigger={"availableNow": True}).awaitTermination()
    assert committed(tmp_path / "out") == sequential(log)[0]
