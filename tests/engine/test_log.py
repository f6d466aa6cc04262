"""The log of a durable matcher: a change is one transaction, and a small one is one statement."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from inside import database_in, have_database
from matchwood import Matcher
from matchwood.engine.durable.log import Log, Row
from matchwood.errors import StorageError

NORMAL, FULL = 1, 2
"""Values of SQLite's `synchronous`."""


def row(id_: Any, text: Any = "x = 1", position: int | None = None) -> Row:
    return Row(id_, text, None, 0, 2**63 - 1, None, None, 5, id_ if position is None else position)


def content(log: Log) -> tuple[Any, ...]:
    return log.meta(), log.rows(), log.all_contexts(), log.tail(0)


class Counting:
    """A connection that counts what is executed."""

    def __init__(self, db: Any) -> None:
        self._db, self.n = db, 0

    def execute(self, *given: Any) -> Any:
        self.n += 1
        return self._db.execute(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log(tmp_path, read_only=False, sync=False)
    log.write({"seq": 1, "types": {"x": "int"}}, rows=[row(id_) for id_ in range(300)])
    return log


def test_a_small_change_is_one_statement(log: Log) -> None:
    counting = Counting(database_in(log))
    have_database(log, counting)
    log.write({"seq": 2}, [3, 4], [row(4), row(5, "x = 2"), row(300)], [("k", "{}")])
    assert counting.n == 1
    meta, rows, contexts, _ = content(log)
    assert meta == {"seq": 2, "types": {"x": "int"}}
    assert [each.id for each in rows] == [*range(3), *range(4, 301)]
    assert rows[4] == row(5, "x = 2")
    assert contexts == [("k", "{}")]
    tail = log.tail(1)
    assert tail is not None
    assert tail.gone == [3, 4]
    assert [each.id for each in tail.rows] == [4, 5, 300]


@pytest.mark.parametrize("n", [10, 500])
def test_a_change_that_fails_in_the_middle_is_not_there(log: Log, n: int) -> None:
    before = content(log)
    rows = [row(id_) for id_ in range(1_000, 1_000 + n)]
    rows[n // 2] = row(rows[n // 2].id, None)
    with pytest.raises(StorageError, match="NOT NULL"):
        log.write({"seq": 2}, [1, 2], rows)
    assert content(log) == before
    log.write({"seq": 2}, [1, 2], rows[: n // 2])
    assert len(log.rows()) == 300 - 2 + n // 2


def test_ids_of_both_kinds_stay_apart(log: Log) -> None:
    log.write({"seq": 2}, [], [row("7", position=300)])
    log.write({"seq": 3}, ["7", "8"])
    assert [each.id for each in log.rows()] == list(range(300))
    log.write({"seq": 4}, [7])
    assert [each.id for each in log.rows()] == [*range(7), *range(8, 300)]
    tail = log.tail(2)
    assert tail is not None
    assert tail.gone == ["7", "8", 7]


def test_a_reader_of_the_folder_sees_what_was_written(log: Log, tmp_path: Path) -> None:
    reader = Log(tmp_path, read_only=True, sync=False)
    log.write({"seq": 2}, [0], [row(900)])
    assert content(reader) == content(log)
    reader.close()


def synchronous(log: Log) -> int:
    return int(database_in(log).execute("PRAGMA synchronous").fetchone()[0])


def test_only_late_changes_leave_the_disk_to_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    log = Log(tmp_path, read_only=False, sync=True)
    log.write({"seq": 1}, rows=[row(1)])
    log.sync()
    assert (synchronous(log), len(synced)) == (FULL, 0)  # SQLite has done it
    log.write({"seq": 2}, rows=[row(2)], is_late=True)
    log.write({"seq": 3}, rows=[row(3)], is_late=True)
    assert (synchronous(log), len(synced)) == (NORMAL, 0)
    log.sync()
    log.sync()
    assert len(synced) == 1
    for write in (
        lambda: log.write({"seq": 4}, rows=[row(4)]),
        lambda: log.note(checkpoint=1),
        lambda: log.forget(1, 10),
    ):
        log.write({"seq": 4}, rows=[row(5)], is_late=True)
        write()
        assert synchronous(log) == FULL


def test_a_folder_that_is_not_synced_stays_so(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("synced"))
    log.write({"seq": 2}, rows=[row(900)], is_late=True)
    log.sync()
    assert synchronous(log) == NORMAL


def test_a_file_system_without_wal_has_every_change_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some network file systems, where SQLite keeps its rollback journal."""
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **given: connect(f"{at}&vfs=unix-dotfile", **given)
    )
    with Matcher.open(tmp_path / "f") as m:
        m.add("s", "x < ctx.c", context="k")
        m.set_context("k", {"c": 1})
        m.add("t", "x = 0")
        assert m.match({"x": 0}) == ["s", "t"]
    log = Log(tmp_path / "f", read_only=False, sync=True)
    log.write({"seq": 9}, rows=[row(9)], is_late=True)
    assert synchronous(log) == FULL


def test_searches_with_contexts_do_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = Matcher.open(tmp_path / "f")
    m.add("s", "x < ctx.c", context="k")
    m.set_context("k", {"c": 1})
    is_writing, may_end = threading.Event(), threading.Event()

    def fsync(_: int) -> None:
        is_writing.set()
        assert may_end.wait(60)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        thread = threading.Thread(target=m.set_context, args=("k", {"c": 9}))
        thread.start()
        assert is_writing.wait(60)
        assert m.match({"x": 5}) == ["s"]
        assert thread.is_alive()  # it is not acknowledged
        may_end.set()
        thread.join()
    m.close()
    with Matcher.open(tmp_path / "f") as m:
        assert m.context("k") == {"c": 9}


def test_a_disk_that_fails_is_said_and_the_change_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError("no disk")

    m = Matcher.open(tmp_path / "f")
    m.add("s", "x < ctx.c", context="k")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(StorageError, match="the change has happened"):
            m.set_context("k", {"c": 9})
    assert m.match({"x": 5}) == ["s"]
    m.set_context("k", {"c": 3})
    assert m.match({"x": 5}) == []
    m.close()
    with Matcher.open(tmp_path / "f") as m:
        assert m.context("k") == {"c": 3}
