"""Checkpoints write the segments that are new, and what they wrote is what is opened."""

from __future__ import annotations

import gc
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import matchwood as mw
from engine.invariants import check
from engine.segments_world import WAIT, Model, agree, text
from engine.test_durable import kept_files, named_files
from inside import checkpoints_of, view_of
from matchwood.engine.durable import checkpoint, segment_files
from matchwood.engine.durable import folder as durable
from matchwood.engine.segments import background, tiers


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    """Many small segments, which stay unless a test turns merges on."""
    monkeypatch.setattr(tiers, "HEAD_MOST", 4)
    monkeypatch.setattr(background, "IS_ON", False)


def same(folder: Path, model: Model) -> None:
    """What is opened, by a reader too, holds what the model holds."""
    for read_only in (True, False):
        with mw.Matcher.open(folder, read_only=read_only, sync=False) as m:
            agree(m, model)
            numbered(m, folder)


def numbered(m: mw.Matcher, folder: Path) -> None:
    """Subscriptions have the same number in the order of addition in memory and in the log."""
    with sqlite3.connect(folder / "log.sqlite") as db:
        known = dict(db.execute("SELECT id, position FROM subscriptions").fetchall())
    for id_ in m.ids():
        part, slot = view_of(m).locate(id_)
        assert part.store.subscriptions.order[slot] == known[id_]
    assert view_of(m).n_added > max(known.values(), default=-1)


def changed(m: mw.Matcher, model: Model, rng: Random, n: int) -> None:
    """Random changes of all kinds."""
    for _ in range(n):
        kind, some = rng.randrange(6), rng.sample(list(model), min(len(model), 2))
        if kind <= 1:
            rows = {f"r{rng.random()}": text(rng.randrange(50)) for _ in range(rng.randrange(1, 7))}
            assert not m.add_many(list(rows.items())).errors
            model |= rows
        elif kind == 2:
            id_ = rng.randrange(10**9)
            m.add(id_, text(id_))
            model[id_] = text(id_)
        elif kind == 3:
            for id_ in some:
                m.remove(id_)
                del model[id_]
        elif kind == 4:
            for id_ in some:
                model[id_] = text(rng.randrange(50))
                m.replace(id_, model[id_])
        elif some:  # the same id at another place
            m.remove(some[0])
            del model[some[0]]
            model[some[0]] = text(rng.randrange(50))
            m.add(some[0], model[some[0]])


@pytest.mark.slow
def test_what_a_checkpoint_wrote_and_what_the_log_has_beyond_is_what_is_opened(tmp_path: Path):
    for seed in range(2):
        rng, model, folder = Random(seed), {}, tmp_path / str(seed)
        for _ in range(4):
            with mw.Matcher.open(folder, sync=False) as m:
                agree(m, model)
                changed(m, model, rng, rng.randrange(12))
                m.checkpoint()
                assert kept_files(folder) == named_files(folder)
                agree(m, model)
                changed(m, model, rng, rng.randrange(6))
                check(m)
            same(folder, model)


def test_a_segment_is_written_once(tmp_path: Path) -> None:
    folder, model = tmp_path / "f", {i: text(i) for i in range(40)}
    with mw.Matcher.open(folder, sync=False) as m:
        m.add_many(list(model.items()))
        m.checkpoint()
        first = kept_files(folder)
        times = {each: each.stat().st_mtime_ns for each in (folder / "segments").rglob("*.npy")}
        assert len(first) == 1
        m.add("new", "x = 1")
        m.remove(3)
        m.checkpoint()
        assert first < kept_files(folder)
        assert len(kept_files(folder)) == 3, "one more segment, and the marks of the first"
        m.remove(4)
        m.checkpoint()
        m.checkpoint()
        assert len(kept_files(folder)) == 3
    with mw.Matcher.open(folder, sync=False) as m:
        m.checkpoint()
    assert all(each.stat().st_mtime_ns == time for each, time in times.items())
    del model[3], model[4]
    same(folder, {**model, "new": "x = 1"})


def test_files_of_merged_segments_go(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    with mw.Matcher.open(folder, sync=False) as m:
        for first in range(0, 20, 5):
            m.add_many([(i, text(i)) for i in range(first, first + 5)])
        m.checkpoint()
        assert len(kept_files(folder)) == 4
        m.compact()
        assert len(kept_files(folder)) == 4, "until the next checkpoint"
        m.checkpoint()
        assert len(kept_files(folder)) == 1
    same(folder, {i: text(i) for i in range(20)})


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["byte", "short", "missing", "order", "marks", "manifest"])
def test_only_a_damaged_segment_is_built_again(tmp_path: Path, damage: str, monkeypatch) -> None:
    folder, model = tmp_path / "f", {}
    with mw.Matcher.open(folder, sync=False) as m:
        for first in range(0, 30, 10):
            rows = {i: text(i) for i in range(first, first + 10)}
            m.add_many(list(rows.items()))
            model |= rows
        for id_ in (2, 12, 22):
            m.remove(id_)
            del model[id_]
        m.checkpoint()
        for id_ in (14, 5):
            m.replace(id_, "x = 1")
            model[id_] = "x = 1"
        m.remove(16)
        m.add(16, "x = 2")
        del model[16], model[27]
        m.remove(27)
        model[16] = "x = 2"
    second = json.loads((folder / "checkpoint.json").read_text())["segments"][1]
    where = {"byte": "g-*/expression_code.npy", "short": "g-*/expression_kind.npy",
             "missing": "g-*/predicate_lo.npy", "order": "g-*/beside/order.npy",
             "manifest": "manifest.json"}  # fmt: skip
    if damage == "marks":
        (file,) = (folder / "segments").glob(f"{second['name']}-*.npy")
    else:
        (file,) = (folder / "segments" / second["name"]).glob(where[damage])
    if damage == "short":
        file.write_bytes(file.read_bytes()[:40])
    elif damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-2] + b"\x07\x07")
    with pytest.warns(RuntimeWarning, match="a segment in 'f' cannot be used and is built again"):
        m = mw.Matcher.open(folder, sync=False)
    agree(m, model)
    numbered(m, folder)
    assert sum(part.store.file is not None for part in view_of(m).parts) == 2
    m.close()  # which writes what was built again
    same(folder, model)


def test_what_a_killed_checkpoint_left_goes_at_the_next_opening(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    with mw.Matcher.open(folder, sync=False) as m:
        m.add_many([(i, text(i)) for i in range(9)])
        m.checkpoint()
    before = kept_files(folder)
    base = folder / "segments"
    (base / "s-0123456789ab").mkdir()
    (base / "s-0123456789ab" / "x.npy").write_bytes(b"x")
    (base / "s-0123456789ab-3.npy").write_bytes(b"x")
    (base / "notes.txt").write_text("of the user's own")
    (folder / "checkpoint.json.new").write_text("{")
    (folder / "snapshot" / "g-0123456789ab").mkdir(parents=True)
    mw.Matcher.open(folder, read_only=True).close()
    assert (base / "s-0123456789ab").exists(), "a reader removes nothing"
    mw.Matcher.open(folder, sync=False).close()
    assert kept_files(folder) == before | {"notes.txt"}
    assert not (folder / "checkpoint.json.new").exists()
    assert not (folder / "snapshot").exists()


@pytest.mark.parametrize("step", ["write_segment", "publish", "merged_aside"])
def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path: Path, step: str, monkeypatch):
    folder, model = tmp_path / "f", {i: text(i) for i in range(9)}
    m = mw.Matcher.open(folder, sync=False)
    m.add_many(list(model.items()))
    m.checkpoint()
    m.add("a", "x = 1")
    model["a"] = "x = 1"

    def fail(*args, **options):
        raise mw.StorageError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, step, fail)
        with pytest.raises(mw.StorageError, match="No space"):
            m.checkpoint()
    agree(m, model)
    m.add("b", "x = 2")
    model["b"] = "x = 2"
    m.close()
    same(folder, model)
    with mw.Matcher.open(folder, sync=False) as m:
        m.checkpoint()
    assert kept_files(folder) == named_files(folder)
    same(folder, model)


@pytest.fixture
def stuck(monkeypatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A checkpoint stays in the middle of writing a segment, until it is let go."""
    is_there, go_on = threading.Event(), threading.Event()
    write = segment_files.write_segment

    def slow(*args):
        is_there.set()
        assert go_on.wait(WAIT)
        return write(*args)

    monkeypatch.setattr(checkpoint, "write_segment", slow)
    yield is_there, go_on
    go_on.set()


def test_searches_and_changes_go_on_while_a_checkpoint_is_written(tmp_path: Path, stuck) -> None:
    folder, model = tmp_path / "f", {i: text(i) for i in range(9)}
    m = mw.Matcher.open(folder, sync=False)
    m.add_many(list(model.items()))
    m.add("a", "x = 1")
    model["a"] = "x = 1"
    is_there, go_on = stuck
    thread = threading.Thread(target=m.checkpoint)
    thread.start()
    assert is_there.wait(WAIT)
    agree(m, model)
    changed(m, model, Random(3), 20)
    agree(m, model)
    assert not (folder / "checkpoint.json").exists()
    go_on.set()
    thread.join(WAIT)
    agree(m, model)
    assert named_files(folder)
    m.remove(next(iter(model)))
    del model[next(iter(model))]
    m.close()
    same(folder, model)


def test_a_checkpoint_in_the_middle_of_a_change_is_refused(tmp_path: Path) -> None:
    with mw.Matcher.open(tmp_path / "f") as m:
        for call in (m.checkpoint, m.close):

            def progress(done: int, total: int, call=call) -> None:
                call()

            with pytest.raises(mw.MatchwoodError, match="in the middle of a change"):
                m.add_many([(i, "x = 1") for i in range(5)], progress=progress)
        assert len(m) == 0


# -- in the background -----------------------------------------------------------------------------


@pytest.mark.slow
def test_after_many_changes_a_checkpoint_is_written_in_the_background(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 10)
    folder, model = tmp_path / "f", {}
    with mw.Matcher.open(folder, sync=False) as m:
        for i in range(30):
            m.add(i, text(i))
            model[i] = text(i)
            if i == 8:
                assert not (folder / "checkpoint.json").exists()
        checkpoints_of(m).wait()
        first = json.loads((folder / "checkpoint.json").read_text())["seq"]
        assert 10 <= first <= 30
        for i in range(0, 30, 2):
            m.remove(i)
            del model[i]
        checkpoints_of(m).wait()
        assert json.loads((folder / "checkpoint.json").read_text())["seq"] > first
        assert kept_files(folder) == named_files(folder)
        agree(m, model)
    same(folder, model)


def test_a_checkpoint_that_fails_in_the_background_is_told_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 4)

    def fail(*args):
        raise mw.StorageError("No space left on device")

    with mw.Matcher.open(tmp_path / "f", sync=False) as m:
        with monkeypatch.context() as patched:
            patched.setattr(checkpoint, "publish", fail)
            m.add_many([(i, text(i)) for i in range(5)])
            checkpoints_of(m).wait()
        assert "No space" in m.stats()["checkpoint_error"]
        m.add_many([(i, text(i)) for i in range(5, 7)])
        checkpoints_of(m).wait()
        assert "checkpoint_error" in m.stats(), "not at every change"
        m.add_many([(i, text(i)) for i in range(7, 12)])
        checkpoints_of(m).wait()
        assert "checkpoint_error" not in m.stats()
        assert named_files(tmp_path / "f")


@pytest.mark.slow
def test_a_folder_is_free_as_soon_as_its_matcher_is_gone(tmp_path: Path, monkeypatch) -> None:
    folder, model = tmp_path / "f", {i: text(i) for i in range(9)}
    m = mw.Matcher.open(folder, sync=False)
    m.add_many(list(model.items()))
    is_there, write = threading.Event(), segment_files.write_segment

    def slow(folder, store, pause, is_synced):
        def slower() -> None:
            is_there.set()
            pause()

        return write(folder, store, slower, is_synced)

    monkeypatch.setattr(checkpoint, "write_segment", slow)
    monkeypatch.setattr(checkpoint, "PAUSE", 0.2)
    monkeypatch.setattr(checkpoint, "EVERY", 10)
    m.add("a", "x = 1")
    thread = checkpoints_of(m)
    assert is_there.wait(WAIT)
    del m
    gc.collect()
    monkeypatch.undo()
    same(folder, {**model, "a": "x = 1"})
    thread.wait()
    assert thread.error is None


def test_the_log_forgets_what_was_removed_before_the_checkpoint_before(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "FORGOTTEN_AT_ONCE", 3)
    folder = tmp_path / "f"
    with mw.Matcher.open(folder, sync=False) as m:
        reader = mw.Matcher.open(folder, read_only=True)
        for turn in range(4):
            m.add_many([(10 * turn + i, text(i)) for i in range(10)])
            m.remove_many(range(10 * turn, 10 * turn + 10))
            m.add(f"stays{turn}", "x = 1")
            m.checkpoint()
            with sqlite3.connect(folder / "log.sqlite") as db:
                ((n,),) = db.execute("SELECT count(*) FROM gone").fetchall()
            assert n == 10, "those since the checkpoint before"
            reader.refresh() if turn % 2 else None
        assert reader.ids() == m.ids()
