"""The driver of a stream is killed (SIGKILL, Python and JVM at once), again and again.

Each kill costs a start of Spark, so a few are tried by default and many with
MATCHWOOD_PROFILE=long.  Sessions of their own: the shared one must live.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from spark import context_logs
from spark.logs import committed, dead_letters, made_log, sequential, write_cuts, write_log

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AIMED = ("changes", "written", "matched", "decided", "committed", "snapshot")
KILLS = 24 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 3


def start(work: Path, *arguments: str) -> subprocess.Popen:
    src = str(Path(__file__).parents[2] / "src")
    driver = str(Path(__file__).with_name("stream_driver.py"))
    with (work / "told").open("w") as told:
        return subprocess.Popen(
            [sys.executable, driver, str(work), *arguments],
            env={**os.environ, "PYTHONPATH": src, "MATCHWOOD_QUIET": "1"},
            start_new_session=True,
            stdout=told,
            stderr=told,
        )


def end(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(process: subprocess.Popen, file: Path, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while process.poll() is None and not file.exists() and time.monotonic() < limit:
        time.sleep(0.05)


def test_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    log = made_log(5, 40 * (KILLS + 4))
    write_log(tmp_path / "log", log, 40)
    kill_again_and_again(tmp_path, *sequential(log), AIMED, KILLS)


def test_kills_lose_no_value_of_a_context_and_repeat_none(tmp_path: Path) -> None:
    n = KILLS if KILLS > 3 else 2
    log = context_logs.made_log(6, 40 * (n + 3))
    (tmp_path / "contexts").touch()
    write_cuts(tmp_path / "log", log, range(35, len(log), 35))
    expected, refused = context_logs.sequential(log)
    kill_again_and_again(tmp_path, expected, refused, ("matched", "changes", *AIMED), n)


def kill_again_and_again(
    work: Path, expected: dict[str, list[str]], refused: int, aimed: Sequence[str], kills: int
) -> None:
    random = Random(5)
    n_killed = 0
    for kill in range(kills):
        (work / "started").unlink(missing_ok=True)
        is_aimed = kill % 3 != 2
        point = aimed[kill % len(aimed)]
        process = start(work, *([point, "1"] if is_aimed else []))
        try:
            wait_for(process, work / "started", 120)
            if is_aimed:
                wait_for(process, work / "finished", 120)
            else:
                time.sleep(random.uniform(0, 6))
        finally:
            end(process)
        n_killed += process.returncode == -signal.SIGKILL
        partial = committed(work / "out")
        assert partial.items() <= expected.items()
    assert n_killed == kills
    (work / "finished").unlink(missing_ok=True)
    process = start(work)
    try:
        wait_for(process, work / "finished", 600)
    finally:
        end(process)
    assert (work / "finished").exists(), (work / "told").read_text()
    assert committed(work / "out") == expected
    assert len(dead_letters(work / "out")) == refused
