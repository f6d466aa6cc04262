"""Changes that the log gets in groups: seen at once, in the log some time later, in their order."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

import matchwood as mw
from engine.segments_world import WAIT, agree, text
from engine.test_checkpoints import changed, same
from inside import group_thread_of, log_of
from matchwood.engine.durable import group_commit
from matchwood.engine.segments import background, tiers

LONG = 1_000.0
"""Seconds that no test waits for."""


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(tiers, "HEAD_MOST", 4)
    monkeypatch.setattr(background, "IS_ON", False)


def logged(folder: Path) -> list[int | str]:
    """What the log has."""
    with mw.Matcher.open(folder, read_only=True) as m:
        return m.ids()


def until(folder: Path, ids: list[int | str]) -> None:
    """Wait until the log has these."""
    end = time.monotonic() + WAIT
    while logged(folder) != ids:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_change_is_seen_at_once_and_in_the_log_after_flush(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "f", commit_every=LONG) as m:
        m.add("a", "x = 1")
        assert m.match({"x": 1}) == ["a"]
        assert logged(tmp_path / "f") == []
        m.flush()
        assert logged(tmp_path / "f") == ["a"]
        m.flush()
        m.add("b", "x = 1")
        m.remove("a")
        assert logged(tmp_path / "f") == ["a"]
    assert logged(tmp_path / "f") == ["b"], "close writes what waits"


def test_a_change_is_in_the_log_after_the_time_though_nothing_else_happens(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "f", commit_every=0.02) as m:
        for i in range(3):
            m.add(i, "x = 1")
            until(tmp_path / "f", list(range(i + 1)))


def test_a_writer_that_never_rests_writes_groups_itself(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(group_commit, "MOST", 3)
    monkeypatch.setattr(group_commit.GroupCommit, "wake", lambda self, matcher: None)
    with mw.Matcher.open(tmp_path / "f", commit_every=LONG) as m:
        for i in range(8):
            m.add(i, "x = 1")
        assert logged(tmp_path / "f") == list(range(6))


@pytest.mark.slow
def test_groups_of_random_changes_are_what_is_opened(tmp_path: Path) -> None:
    for seed in range(2):
        rng, model, folder = Random(seed), {}, tmp_path / str(seed)
        for _ in range(3):
            with mw.Matcher.open(folder, sync=False, commit_every=LONG) as m:
                agree(m, model)
                for _ in range(3):
                    changed(m, model, rng, rng.randrange(8))
                    rng.choice([m.flush, m.checkpoint, m.refresh, bool])()
                agree(m, model)
            same(folder, model)


def test_contexts_are_written_in_groups(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "f", commit_every=LONG) as m:
        m.add("a", "x < ctx.c", context="ann")
        m.set_context("ann", {"c": 1})
        m.set_context("ann", {"c": 5})
        reader = mw.Matcher.open(tmp_path / "f", read_only=True)
        assert len(reader) == 0
        m.flush()
        reader.refresh()
        assert reader.context("ann") == {"c": 5}
        assert reader.match({"x": 4}) == ["a"]


@pytest.mark.slow
def test_what_waits_is_written_when_the_matcher_goes(tmp_path: Path) -> None:
    m = mw.Matcher.open(tmp_path / "f", commit_every=LONG)
    m.add("a", "x = 1")
    del m
    gc.collect()
    assert logged(tmp_path / "f") == ["a"]
    code = (
        "import matchwood as mw\n"
        f"m = mw.Matcher.open({str(tmp_path / 'f')!r}, commit_every={LONG})\n"
        "m.add('b', 'x = 1')\n"
        "keep = [m]; keep.append(keep)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=WAIT)
    assert logged(tmp_path / "f") == ["a", "b"], "at the end of the process, too"


def test_a_group_that_cannot_be_written_stays_and_refuses_changes(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(group_commit, "MOST", 2)
    folder, model = tmp_path / "f", {}
    m = mw.Matcher.open(folder, commit_every=LONG)
    write = log_of(m).write

    def full(*args, **options):
        raise mw.StorageError("database or disk is full")

    for is_written in (False, True):  # an error may hide that it was written

        def fail(*args, is_written=is_written, **options):
            if is_written:
                write(*args, **options)
            full()

        log_of(m).write = fail
        for i in range(2):
            id_ = f"{is_written}{i}"
            m.add(id_, text(i))
            model[id_] = text(i)
        for refused in (m.flush, lambda: m.add("c", "x = 1"), lambda: m.add_many([("d", "x")])):
            with pytest.raises(mw.StorageError, match="full"):
                refused()
            agree(m, model)
        log_of(m).write = write
        m.replace(f"{is_written}0", "x = 2")
        model[f"{is_written}0"] = "x = 2"
        reader = mw.Matcher.open(folder, read_only=True)
        m.remove(f"{is_written}1")
        del model[f"{is_written}1"]
        m.flush()
        reader.refresh()
        agree(reader, model)
    m.close()
    same(folder, model)


def test_a_folder_that_is_closed_without_its_last_group_is_left_alone(
    tmp_path: Path, monkeypatch
) -> None:
    m = mw.Matcher.open(tmp_path / "f", commit_every=0.05)

    def full(*args, **options):
        raise mw.StorageError("database or disk is full")

    monkeypatch.setattr(log_of(m), "write", full)
    m.add("a", "x = 1")
    thread = group_thread_of(m)
    with pytest.raises(mw.StorageError, match="full"):
        m.close()
    thread.join(WAIT)
    assert not thread.is_alive()
    assert m.match({"x": 1}) == ["a"]
    assert logged(tmp_path / "f") == []


@pytest.mark.parametrize("given", [-1, "1", None, True, float("inf"), float("nan")])
def test_seconds_are_checked(tmp_path: Path, given: object) -> None:
    with pytest.raises(mw.MatchwoodError, match="expected commit_every to be a number of seconds"):
        mw.Matcher.open(tmp_path / "f", commit_every=given)
    assert list(tmp_path.iterdir()) == []
