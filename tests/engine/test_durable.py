"""Durable matchers: what was acknowledged is there again, whatever happened in between."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchwood as mw
from engine.durable_run import GROUP, Model, change, expected
from engine.invariants import check
from inside import database_of, log_of
from matchwood.engine.durable import folder as durable

KILLS = 200 if os.environ.get("MATCHWOOD_PROFILE") == "long" else 8
TESTS = Path(__file__).parents[1]


def held(m: mw.Matcher) -> tuple[Any, ...]:
    rows = m.to_arrow().to_pylist()
    model = {row["id"]: (row["expr"], row["priority"], row["context"]) for row in rows}
    contexts = {id_: m.context(id_) for id_ in m.context_ids()}
    return list(model.items()), {id_: each for id_, each in contexts.items() if each}


def named_files(folder: Path) -> set[str]:
    """What checkpoint.json names."""
    file = folder / "checkpoint.json"
    found = json.loads(file.read_text())["segments"] if file.exists() else []
    marks = {f"{name}.npy" for each in found for name in each["gone"]}
    return {each["name"] for each in found} | marks


def kept_files(folder: Path) -> set[str]:
    """What there is of segments."""
    return {each.name for each in (folder / "segments").glob("*")}


def everything(m: mw.Matcher) -> list[Any]:
    events = [{"x": x, "y": y} for x in range(5) for y in range(3)]
    return [m.to_arrow().to_pylist(), m.match_many(events).to_pylist(), dict(m.schema)]


def filled(folder: Path) -> mw.Matcher:
    m = mw.Matcher.open(folder)
    m.add("s1", "x  > 1", priority=4, attributes={"age": 3}, expires=4e9, payload=[1, "a"])
    m.add(7, "x < ctx.c", context="ann")
    m.set_context("ann", {"c": 3, "w": "b"})
    m.add_many([("a", "y = 1"), ("b", "y =")])
    m.replace("a", "y = 2", priority=2)
    m.add("gone", "x = 1")
    m.remove("gone")
    return m


def test_what_was_closed_is_there_again(tmp_path: Path) -> None:
    with filled(tmp_path / "f") as m:
        before = everything(m)
    for _ in range(2):
        with mw.Matcher.open(tmp_path / "f") as m:
            assert everything(m) == before
            assert m.context("ann") == {"c": 3, "w": "b"}
            check(m)
            m.checkpoint()
    assert sorted(each.name for each in (tmp_path / "f").iterdir()) == [
        "checkpoint.json",
        "lock",
        "log.sqlite",
        "segments",
    ]


def test_the_tail_of_the_log_is_carried_out_on_the_snapshot(tmp_path: Path) -> None:
    with filled(tmp_path / "f") as m:
        m.checkpoint()
        m.replace("s1", "x = 3", attributes=None)
        m.remove(7)
        m.add(7, "x = 3")
        m.add("7", "x = 3", priority=9)
        m.set_context("ann", {"c": None})
        before = everything(m)
        assert m.match({"x": 3}) == ["s1", 7, "7"]
    with mw.Matcher.open(tmp_path / "f") as m:
        assert everything(m) == before
        assert m.context("ann") == {"w": "b"}
        check(m)


@pytest.mark.parametrize("n", [3, 90])
def test_the_log_has_what_batches_leave(tmp_path: Path, n: int) -> None:
    """Ids that go and come back, 7 beside "7", single changes beside chunks."""
    rng = Random(n)
    ids: list[Any] = [*range(2 * n), *map(str, range(2 * n))]
    with mw.Matcher.open(tmp_path, sync=False) as m:
        for _ in range(12):
            known = set(m)
            with m.batch() as batch:
                for _ in range(n):
                    id_ = rng.choice(ids)
                    if id_ not in known:
                        batch.add(id_, f"x > {rng.randrange(9)}", priority=rng.randrange(3))
                        known.add(id_)
                    elif rng.random() < 0.6:
                        batch.remove(id_)
                        known.remove(id_)
                    else:
                        batch.replace(id_, f"x = {rng.randrange(9)}", payload=rng.randrange(9))
                if rng.random() < 0.3:
                    new = [id_ for id_ in ids if id_ not in known][:5]
                    batch.add_many([(id_, "y = 1") for id_ in new])
            with mw.Matcher.open(tmp_path, read_only=True) as reader:
                assert everything(reader) == everything(m)


def test_one_writer_and_any_readers(tmp_path: Path) -> None:
    m = filled(tmp_path / "f")
    with pytest.raises(mw.StorageError, match=f"open for writing by process {os.getpid()}"):
        mw.Matcher.open(tmp_path / "f")
    with pytest.raises(mw.StorageError, match=r"no log\.sqlite"):
        mw.Matcher.open(tmp_path / "none", read_only=True)
    readers = [mw.Matcher.open(tmp_path / "f", read_only=True) for _ in range(2)]
    for reader in readers:
        assert everything(reader) == everything(m)
        for refused in (lambda r=reader: r.add("new", "x = 1"), lambda r=reader: r.remove("s1"),
                        lambda r=reader: r.set_context("ann", {"c": 1})):  # fmt: skip
            with pytest.raises(mw.StorageError, match="read_only"):
                refused()
        assert reader.match({"x": 2}) == ["s1", 7]
    for round_ in range(4):
        m.add(f"r{round_}", "x = 2")
        m.replace("s1", f"x > {round_}")
        m.remove("a") if round_ == 1 else None
        m.set_context("ann", {"c": round_})
        if round_ == 2:
            for n in range(2):  # what is gone is forgotten with the second snapshot
                m.remove(f"r{n}")
                m.checkpoint()
        assert readers[0].refresh() > 0
        assert readers[0].refresh() == 0
        assert everything(readers[0]) == everything(m)
        check(readers[0])
    readers[1].refresh()
    assert everything(readers[1]) == everything(m)
    m.close()
    with pytest.raises(mw.StorageError, match="closed"):
        m.add("late", "x = 1")
    assert m.match({"x": 2})
    with mw.Matcher.open(tmp_path / "f") as again:
        assert everything(again) == everything(m)


def test_a_matcher_that_is_dropped_lets_go_of_its_folder(tmp_path: Path) -> None:
    m = filled(tmp_path / "f")
    before = everything(m)
    del m
    with mw.Matcher.open(tmp_path / "f") as m:
        assert everything(m) == before


@pytest.mark.slow
def test_options_stay_and_others_build_anew(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "f", "be_tree", schema={"x": "int"}, max_cap=5) as m:
        m.add(1, "x > 1")
        m.checkpoint()
    with mw.Matcher.open(tmp_path / "f") as m:
        assert m.stats()["indexes"][0]["index"] == "be_tree"
        assert m.stats()["indexes"][0]["max_cap"] == 5
        assert m.schema["x"] == "int"
    with mw.Matcher.open(tmp_path / "f", "scan") as m:
        assert m.stats()["indexes"][0]["index"] == "scan"
        assert m.match({"x": 2}) == [1]
    with mw.Matcher.open(tmp_path / "f") as m:
        assert m.stats()["indexes"][0]["index"] == "scan"


# -- faults ------------------------------------------------------------------------------------


def test_a_change_that_cannot_be_written_is_undone(tmp_path: Path) -> None:
    m = filled(tmp_path / "f")
    before = everything(m)
    db = database_of(m)
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    rows = [(f"n{i}", f"x = {i} AND text = '{'y' * 500}'") for i in range(200)]
    for fail in (
        lambda: m.add_many(rows),
        lambda: m.add("big", f"text = '{'z' * 40_000}'"),
    ):
        with pytest.raises(mw.StorageError, match="full"):
            fail()
        assert everything(m) == before
        check(m)
    db.execute("PRAGMA max_page_count = 1000000")
    assert m.add_many(rows).count == 200
    before = everything(m)
    m.close()
    with mw.Matcher.open(tmp_path / "f") as m:
        assert everything(m) == before


@pytest.mark.parametrize("is_written", [True, False])
def test_an_interruption_while_writing_leaves_memory_and_log_alike(
    tmp_path: Path, is_written: bool, monkeypatch
) -> None:
    m = filled(tmp_path / "f")
    write = log_of(m).write

    def interrupted(*args: Any, **options: Any) -> None:
        if is_written:
            write(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(log_of(m), "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        m.add("new", "x = 1")
    monkeypatch.undo()
    m.add("later", "x = 1")
    assert ("new" in m) == is_written
    before = everything(m)
    m.close()
    with mw.Matcher.open(tmp_path / "f") as m:
        assert everything(m) == before


@pytest.mark.slow
@pytest.mark.parametrize("has_contexts", [False, True])
@pytest.mark.parametrize("damage", ["byte", "short", "manifest", "missing", "newer"])
def test_a_damaged_snapshot_is_built_again_with_a_warning(
    tmp_path: Path, damage: str, has_contexts: bool
) -> None:
    """has_contexts: whether it is the segment of subscriptions with contexts."""
    with filled(tmp_path / "f") as m:
        m.checkpoint()
        m.add("late", "x = 2")
        before = everything(m)
    files = (tmp_path / "f" / "segments").glob("s-*/g-*/expression_code.npy")
    linked = (tmp_path / "f" / "segments").glob("s-*/g-*/context_keys.npy")
    homes = {each.parent for each in linked}
    (file,) = [each for each in files if (each.parent in homes) == has_contexts]
    manifest = tmp_path / "f" / "checkpoint.json"
    if damage == "byte":
        file.write_bytes(file.read_bytes()[:-1] + b"\x07")
    elif damage == "short":
        file.write_bytes(file.read_bytes()[:40])
    elif damage == "missing":
        file.unlink()
    elif damage == "manifest":
        manifest.write_text("{")
    else:
        manifest.write_text(manifest.read_text().replace('"version": ', '"version": 9'))
    with pytest.warns(RuntimeWarning, match="built again from the log"):
        m = mw.Matcher.open(tmp_path / "f")
    assert everything(m) == before
    m.checkpoint()
    m.close()
    with mw.Matcher.open(tmp_path / "f") as m:
        assert everything(m) == before


def test_a_newer_log_and_a_torn_one_are_errors(tmp_path: Path) -> None:
    filled(tmp_path / "f").close()
    shutil.copytree(tmp_path / "f", tmp_path / "torn")
    db = sqlite3.connect(tmp_path / "f" / "log.sqlite")
    db.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    db.commit()
    db.close()
    for read_only in (True, False):
        with pytest.raises(mw.FormatError, match="upgrade Matchwood"):
            mw.Matcher.open(tmp_path / "f", read_only=read_only)
    file = tmp_path / "torn" / "log.sqlite"
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(mw.StorageError, match="restore"):
        mw.Matcher.open(tmp_path / "torn")
    file.write_bytes(b"")  # the lock was given back: it can be opened anew
    mw.Matcher.open(tmp_path / "torn").close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_may_match_and_not_change_nor_hold_the_folder(tmp_path: Path) -> None:
    m = filled(tmp_path / "f")
    reader, writer = os.pipe()
    wait, end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(end)
            answer = str(m.match({"x": 2}))
            try:
                m.add("child", "x = 2")
            except mw.StorageError:
                answer += " refused"
            os.write(writer, answer.encode())
            os.read(wait, 1)  # until the parent closes it, or ends
        finally:
            os._exit(0)
    assert os.read(reader, 1000) == b"['s1', 7] refused"
    m.close()
    mw.Matcher.open(tmp_path / "f").close()  # the child lives, and holds nothing
    os.close(end)
    os.waitpid(pid, 0)
    for each in (reader, writer, wait):
        os.close(each)


def test_copies_of_a_durable_matcher_live_in_memory(tmp_path: Path) -> None:
    import copy

    with filled(tmp_path / "f") as m:
        other = copy.copy(m)
        other.add("mine", "x = 2")
        assert "mine" not in m
        with pytest.raises(mw.StorageError, match=r"Matcher\.open"):
            other.checkpoint()
        other.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["contexts", "segments", "group"])
def test_killed_at_any_moment_nothing_acknowledged_is_lost(tmp_path: Path, kind: str) -> None:
    random, folder = Random(5), tmp_path / "f"
    model: Model = {}
    contexts: dict[str, Any] = {}
    done = -1
    path = os.pathsep.join([str(TESTS), str(Path(mw.__file__).parents[1])])
    with subprocess.Popen(
        [sys.executable, "-m", "engine.durable_run", str(folder), kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=TESTS,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:  # fmt: skip
        for _ in range(KILLS):
            last = _killed_run(process, done + 1, random.uniform(0.0, 0.4))
            for i in range(done + 1, last + 1):
                expected(model, contexts, i, kind)
            done = last
            with mw.Matcher.open(folder) as m:
                for _ in range(GROUP if kind == "group" else 1):
                    if held(m) != (list(model.items()), contexts):
                        done += 1  # what was in flight
                        expected(model, contexts, done, kind)
                assert held(m) == (list(model.items()), contexts)
                check(m)
                assert m.verify([{"x": x, "y": 1} for x in range(9)])
            left = {each.name for each in folder.iterdir()}
            assert left <= {"lock", "log.sqlite", "checkpoint.json", "segments"}, left
            assert kept_files(folder) == named_files(folder)
            del m
            gc.collect()  # a matcher's parts refer to each other: its mapped files go with it
        process.stdin.close()
    assert done > 20


def _killed_run(process: Any, first: int, seconds: float) -> int:
    """Let a process change the folder for some time, kill it; returns the last acknowledged."""
    process.stdin.write(b"%d\n" % first)
    process.stdin.flush()
    word, pid = process.stdout.readline().split()
    assert word == b"open"
    time.sleep(seconds)
    os.kill(int(pid), signal.SIGKILL)
    lines = list(iter(process.stdout.readline, b"end\n"))
    return int(lines[-1]) if lines else first - 1


def test_a_checkpoint_is_made_at_closing_when_much_has_changed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(durable, "CHECKPOINT_FROM", 10)
    with mw.Matcher.open(tmp_path / "f") as m:
        m.add(1, "x = 1")
    assert not (tmp_path / "f" / "checkpoint.json").exists()
    with mw.Matcher.open(tmp_path / "f", sync=False) as m:
        m.add_many([(i, f"x = {i}") for i in range(2, 30)])
    assert (tmp_path / "f" / "checkpoint.json").exists()


@pytest.mark.parametrize("kind", ["contexts", "segments"])
def test_the_changes_of_the_kill_test_mean_what_they_say(tmp_path: Path, kind: str) -> None:
    model: Model = {}
    contexts: dict[str, Any] = {}
    with mw.Matcher.open(tmp_path / "f", sync=False) as m:
        for i in range(40):
            change(m, i, kind)
            expected(model, contexts, i, kind)
        assert held(m) == (list(model.items()), contexts)
