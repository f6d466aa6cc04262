"""Two drivers of a stream on a store: the second is refused while the first lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import matchwood as mw
from matchwood.spark.storage import Store, open_storage
from matchwood.spark.stores import inside
from matchwood.spark.streams import heartbeat, owner
from spark.logs import made_log, sequential, write_log
from spark.stream_driver import EVERY as DRIVER_EVERY
from spark.stream_driver import started
from spark.test_stream_kills import end, start, wait_for
from spark.test_stream_stores import Stored

pytestmark = pytest.mark.spark

EVERY = 0.5
DRIVER = """
import sys
from matchwood.errors import StorageError
from matchwood.spark.storage import open_storage
from matchwood.spark.streams import heartbeat, owner
heartbeat.EVERY = float(sys.argv[2])
state = open_storage(sys.argv[1], "state")
try:
    fence = owner.take(state)
    print("epoch", fence.epoch, flush=True)
    for line in sys.stdin:
        fence.check()
        print("checked", flush=True)
except StorageError as error:
    print("refused", error, flush=True)
"""


@pytest.fixture
def state(bucket: str, tmp_path: Path, monkeypatch) -> Store:
    monkeypatch.setattr(heartbeat, "EVERY", EVERY)
    found = open_storage(inside(bucket, f"{tmp_path.name}/state"), "state")
    assert isinstance(found, Store)
    return found


@contextmanager
def driver(state: Store) -> Iterator[subprocess.Popen[str]]:
    """Another process that drives the state until its input ends; `check` makes it check."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, state.path, str(EVERY)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def check(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    process.stdin.write("check\n")
    process.stdin.flush()
    return line(process)


def test_a_second_driver_is_refused_while_the_first_lives(state: Store) -> None:
    # before: it took over, and the first one stopped with an error
    with driver(state) as first:
        assert line(first) == "epoch 1\n"
        with pytest.raises(mw.StorageError, match=rf"process {first.pid} on .*; take_over=True"):
            owner.take(state)
        assert check(first) == "checked\n"
        first.kill()
        first.wait()
        assert owner.take(state).epoch == 2, "no beat comes any more"
        owner.release(state)


def test_a_driver_that_has_ended_is_not_waited_for(state: Store, monkeypatch) -> None:
    owner.take(state)
    owner.release(state)
    with driver(state) as second:
        assert line(second) == "epoch 2\n"
        second.communicate()  # the end of its input, and of its process
    # the name in that module alone: threads of Py4J sleep, too
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: pytest.fail("waited"))
    monkeypatch.setattr(heartbeat, "time", clock)
    assert owner.take(state).epoch == 3
    owner.release(state)


def test_take_over_fences_a_living_driver_out(state: Store) -> None:
    with driver(state) as first:
        assert line(first) == "epoch 1\n"
        assert owner.take(state, take_over=True).epoch == 2
        assert "expected to be the only driver" in check(first)
    owner.release(state)


def test_a_driver_that_was_stopped_and_goes_on_is_fenced_out(state: Store) -> None:
    with driver(state) as first:
        assert line(first) == "epoch 1\n"
        os.kill(first.pid, signal.SIGSTOP)
        assert owner.take(state).epoch == 2
        os.kill(first.pid, signal.SIGCONT)
        assert "expected to be the only driver" in check(first)
        with pytest.raises(mw.StorageError, match="expected no other driver of the stream"):
            owner.take(state)
    owner.release(state)


def test_of_drivers_that_start_after_a_dead_one_one_goes_on(state: Store) -> None:
    with driver(state) as dead:
        assert line(dead) == "epoch 1\n"
    with driver(state) as one, driver(state) as two, driver(state) as three:
        told = sorted(line(each) for each in (one, two, three))
        assert told[0] == "epoch 2\n"
        assert [each[:7] for each in told[1:]] == ["refused"] * 2


def test_folders_of_file_systems_without_locks_have_heartbeats(tmp_path: Path, monkeypatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(owner.fcntl, "flock", no_locks)
    monkeypatch.setattr(heartbeat, "EVERY", EVERY)
    folder = open_storage(str(tmp_path), "state")
    owner.take(folder)
    assert heartbeat.is_alive(folder, 1)
    owner.release(folder)
    assert not heartbeat.is_alive(folder, 1)


@pytest.mark.slow
def test_a_killed_stream_on_a_store_is_taken_over_and_loses_nothing(
    spark, bucket: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(heartbeat, "EVERY", DRIVER_EVERY)
    log = made_log(13, 120)
    write_log(tmp_path / "log", log, 40)
    stored = Stored(bucket, tmp_path)
    (tmp_path / "store").write_text(inside(bucket, tmp_path.name))
    killed = start(tmp_path, "written", "3")  # ends itself before the commit of its third batch
    try:
        wait_for(killed, tmp_path / "started", 120)
        with pytest.raises(mw.StorageError, match="expected no other driver of the stream"):
            owner.take(stored.state)
        killed.wait(120)
    finally:
        end(killed)
    assert killed.returncode == -signal.SIGKILL
    assert len(stored.out.names("matches")) == 2
    started(spark, tmp_path).awaitTermination()
    expected, refused = sequential(log)
    assert stored.committed() == expected
    assert len(stored.rows("errors")) == refused
