"""The driver of a stream is killed (SIGKILL, Python and JVM at once), again and again.

Each kill costs a start of Spark, so one of each kind is tried by default and many with
MATCHWOOD_PROFILE=long; crashes at every point, without a kill, are in test_stream.py and
test_live.py.  What is killed has a session of its own; the shared one takes over and ends the work.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

import matchwood as mw
from spark import context_logs
from spark.logs import committed, dead_letters, made_log, sequential, write_cuts, write_log
from spark.stream_driver import started

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AIMED = (
    "changes", "snapshot written", "written", "matched", "snapshot", "decided", "committed",
    "cleaned",
)  # fmt: skip
KILLS = 24 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 1


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


@pytest.mark.long
def test_kills_lose_nothing_and_repeat_nothing(spark, tmp_path: Path) -> None:
    log = made_log(5, 40 * (KILLS + 4))
    write_log(tmp_path / "log", log, 40)
    kill_again_and_again(spark, tmp_path, *sequential(log), AIMED, KILLS)


def test_kills_lose_no_value_of_a_context_and_repeat_none(spark, tmp_path: Path) -> None:
    log = context_logs.made_log(6, 40 * (KILLS + 3))
    (tmp_path / "contexts").touch()
    write_cuts(tmp_path / "log", log, range(35, len(log), 35))
    expected, refused = context_logs.sequential(log)
    aimed = ("matched", "changes", *AIMED)
    kill_again_and_again(spark, tmp_path, expected, refused, aimed, KILLS)


def rules(turn: int) -> dict[int, str]:
    """The table of rules after so many changes."""
    fixed = {n: f"a = {n % 7} OR b > {40 + n % 9}" for n in range(300)}
    return fixed | {5: f"a = {turn % 7}", 1000 + turn: "b >= 0"}


@pytest.mark.parametrize("shards", [None, 4])
def test_kills_of_a_stream_beside_rules_leave_one_version_for_each_batch(
    spark, tmp_path: Path, shards: int | None
) -> None:
    """Shards give the matches of an event in an order of their own."""
    ordered = list if shards is None else sorted
    if shards is not None:
        (tmp_path / "shards").write_text(str(shards))
    (tmp_path / "events").mkdir()
    (tmp_path / "rules").mkdir()
    events = {n: {"event_id": n, "a": n % 7, "b": n % 50} for n in range(3 * (KILLS + 3))}
    for first in range(0, len(events), 3):
        lines = [json.dumps(events[n]) for n in range(first, first + 3)]
        (tmp_path / "events" / f"{first:04}.json").write_text("\n".join(lines))

    def change(turn: int) -> None:
        rows = [json.dumps({"id": id_, "expr": text}) for id_, text in rules(turn).items()]
        (tmp_path / "rules" / "all.json").write_text("\n".join(rows))

    kill_and_finish(spark, tmp_path, ("matched", "changes", "written", "committed"), KILLS, change)
    answers = []
    for turn in range(KILLS + 1):
        matcher = mw.Matcher()
        matcher.add_many(list(rules(turn).items()))
        found = matcher.match_many(list(events.values()))
        answers.append(dict(zip(events, map(ordered, found), strict=True)))
    seen: set[int] = set()
    for folder in (tmp_path / "out" / "matches").glob("batch=*"):
        rows = pq.read_table(folder, partitioning=None).to_pylist()
        assert len({row["version"] for row in rows}) == 1
        assert not seen & {row["event_id"] for row in rows}, "an event came twice"
        seen |= {row["event_id"] for row in rows}
        lists = {row["event_id"]: ordered(row["subscription_ids"]) for row in rows}
        assert any(lists.items() <= answer.items() for answer in answers)
    assert seen == events.keys()
    assert dead_letters(tmp_path / "out") == []


def kill_again_and_again(
    spark,
    work: Path,
    expected: dict[str, list[str]],
    refused: int,
    aimed: Sequence[str],
    kills: int,
) -> None:
    def check(kill: int) -> None:
        if kill:
            assert committed(work / "out").items() <= expected.items()

    kill_and_finish(spark, work, aimed, kills, check)
    assert committed(work / "out") == expected
    assert len(dead_letters(work / "out")) == refused


def kill_and_finish(
    spark, work: Path, aimed: Sequence[str], kills: int, between: Callable[[int], None]
) -> None:
    """Kill a driver so many times, then let this process take over and come to the end.

    between  called before each start, with how often it was killed
    """
    random = Random(5)
    n_killed = 0
    for kill in range(kills):
        between(kill)
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
    assert n_killed == kills
    between(kills)
    started(spark, work).awaitTermination()
