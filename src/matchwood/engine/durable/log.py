"""Log: every acknowledged change of a durable matcher, in one SQLite file.

Idea.    The file holds what is registered now, and with each row the number (`seq`) of the change
         that wrote it last.  So it does not grow with the number of changes, building everything
         again reads each subscription once, and what happened since a number is two queries.
Safety.  WAL mode; each change is one SQLite transaction.  With `sync` it is on the disk
         (synchronous=FULL) before the call returns; without, the operating system has it: nothing
         is lost when the process dies, the last changes may be when the machine does.  A change
         that searches wait for is written with synchronous=NORMAL, and `sync` brings it to the disk
         when they wait no more: it ends with the same call to the operating system.

    subscriptions  position (the number in the order of addition, the same as in memory), id, text
                   as written, context, fields as `fields` keeps them, seq
    gone           id, seq: removed since the checkpoint before the last
    contexts       id, values as JSON (null: none left), seq
    meta           format, index, config, schema, column_types, types, seq, checkpoint, gone_from
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.errors import FormatError, StorageError

NAME = "log.sqlite"
FORMAT = 1
"""Raised whenever an older version could misread what this one writes."""

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subscriptions (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id NOT NULL UNIQUE, text TEXT NOT NULL, context,
    priority INTEGER NOT NULL, expires INTEGER NOT NULL, attributes TEXT, payload TEXT,
    added INTEGER NOT NULL, seq INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS subscriptions_seq ON subscriptions (seq);
CREATE TABLE IF NOT EXISTS gone (id NOT NULL UNIQUE, seq INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS gone_seq ON gone (seq);
CREATE TABLE IF NOT EXISTS contexts (id NOT NULL UNIQUE, vals TEXT, seq INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS contexts_seq ON contexts (seq);
"""
_COLUMNS = "id, text, context, priority, expires, attributes, payload, added, position"

_FORGET, _PUT, _PUT_CONTEXT, _PUT_META = range(4)
"""Kinds of rows of a change: a removal, a subscription, a context, a pair of meta."""

_CHANGE = """
CREATE TEMP VIEW change AS SELECT
    NULL AS kind, NULL AS id, NULL AS text, NULL AS context, NULL AS priority, NULL AS expires,
    NULL AS attributes, NULL AS payload, NULL AS added, NULL AS position, NULL AS seq;
CREATE TEMP TRIGGER forget INSTEAD OF INSERT ON change WHEN NEW.kind = 0 BEGIN
    DELETE FROM subscriptions WHERE id = NEW.id;
    INSERT OR REPLACE INTO gone VALUES (NEW.id, NEW.seq);
END;
CREATE TEMP TRIGGER put INSTEAD OF INSERT ON change WHEN NEW.kind = 1 BEGIN
    INSERT INTO subscriptions
        (id, text, context, priority, expires, attributes, payload, added, position, seq)
    VALUES (NEW.id, NEW.text, NEW.context, NEW.priority, NEW.expires, NEW.attributes, NEW.payload,
        NEW.added, NEW.position, NEW.seq)
    ON CONFLICT (id) DO UPDATE SET text=excluded.text, context=excluded.context,
        priority=excluded.priority, expires=excluded.expires, seq=excluded.seq,
        attributes=excluded.attributes, payload=excluded.payload, added=excluded.added;
END;
CREATE TEMP TRIGGER put_context INSTEAD OF INSERT ON change WHEN NEW.kind = 2 BEGIN
    INSERT OR REPLACE INTO contexts VALUES (NEW.id, NEW.text, NEW.seq);
END;
CREATE TEMP TRIGGER put_meta INSTEAD OF INSERT ON change WHEN NEW.kind = 3 BEGIN
    INSERT OR REPLACE INTO meta VALUES (NEW.id, NEW.text);
END;
"""
"""A change is rows of a view, whose triggers write to the tables: so one statement carries out a
whole change.  Each statement gives the interpreter's lock up several times, and gets it again when
searches let it."""

_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NOTHING = (None,) * 7
"""The columns between text and seq of a row that is no subscription."""

_ROWS_AT_ONCE = 128
_KEPT_STATEMENTS = 2 * _ROWS_AT_ONCE
"""One for each number of rows, and all others."""


class Row(NamedTuple):
    """A subscription as the log has it."""

    id: Any
    text: str
    context: Any
    priority: int
    expires: int
    attributes: str | None
    payload: str | None
    added: int
    position: int


class Tail(NamedTuple):
    """What happened since a change."""

    seq: int
    gone: list[Any]
    """Ids that were removed, some of them before they were added again."""
    rows: list[Row]
    """What was added or replaced, in the order of addition."""
    contexts: list[tuple[Any, str | None]]


class Log:
    """The file of one folder."""

    def __init__(self, folder: Path, read_only: bool, sync: bool) -> None:
        self._file = folder / NAME
        if read_only and not self._file.exists():
            raise StorageError(
                f"expected a folder that Matcher.open made, found no {NAME} in {folder.name!r}: "
                "open it once without read_only=True"
            )
        mode = "ro" if read_only else "rwc"
        self._may_be_late = self._is_relaxed = self._is_late = False
        with self._said():
            self._db = sqlite3.connect(
                f"{self._file.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None,
                check_same_thread=False, timeout=30, cached_statements=_KEPT_STATEMENTS,
            )  # fmt: skip
            if not read_only:
                (journal,) = self._db.execute("PRAGMA journal_mode=WAL").fetchone()
                self._may_be_late = sync and journal == "wal"  # not every file system can have it
                self._db.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
                self._check_format()
                self._db.executescript(f"BEGIN;{_TABLES}COMMIT;{_CHANGE}")
            self._check_format()

    def _check_format(self) -> None:
        found = self._db.execute("SELECT name FROM sqlite_master WHERE name = 'meta'").fetchone()
        value = None if found is None else self.meta().get("format")
        if value is not None and (type(value) is not int or value > FORMAT):
            self.close()
            raise FormatError(
                f"{self._file.name} has format {value!r}, this Matchwood reads up to {FORMAT}: "
                "upgrade Matchwood"
            )

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"cannot use {str(self._file)!r}: {error}; free space on the disk, or restore the "
                "file from a copy"
            ) from error

    # -- reading -----------------------------------------------------------------------------

    def meta(self) -> dict[str, Any]:
        with self._said():
            rows = self._db.execute("SELECT key, value FROM meta").fetchall()
        return {key: json.loads(value) for key, value in rows}

    def rows(self, until: int | None = None) -> list[Row]:
        """All subscriptions, in the order they were added.

        until  only those that were last written by this change or an earlier one
        """
        with self._said():
            where = "" if until is None else "WHERE seq <= ?"
            query = f"SELECT {_COLUMNS} FROM subscriptions {where} ORDER BY position"  # noqa: S608
            given = () if until is None else (until,)
            return [Row(*row) for row in self._db.execute(query, given)]

    def all_contexts(self) -> list[tuple[Any, str | None]]:
        """All contexts and their values."""
        with self._said():
            return self._db.execute("SELECT id, vals FROM contexts ORDER BY rowid").fetchall()

    def tail(self, seq: int) -> Tail | None:
        """The changes after number `seq`; None if some of them are no longer in the log."""
        with self._said(), self._transaction("BEGIN"):
            meta = self.meta()
            if meta.get("gone_from", 0) > seq:
                return None
            changed = f"SELECT {_COLUMNS} FROM subscriptions WHERE seq > ? ORDER BY position"  # noqa: S608
            run = self._db.execute
            return Tail(
                meta.get("seq", 0),
                [row[0] for row in run("SELECT id FROM gone WHERE seq > ?", (seq,))],
                [Row(*row) for row in run(changed, (seq,))],
                run("SELECT id, vals FROM contexts WHERE seq > ?", (seq,)).fetchall(),
            )

    # -- writing -----------------------------------------------------------------------------

    def write(
        self,
        meta: Mapping[str, Any],
        gone: Iterable[Any] = (),
        rows: Iterable[Row] = (),
        contexts: Iterable[tuple[Any, str | None]] = (),
        is_late: bool = False,
    ) -> None:
        """One change, with the number `meta["seq"]`; StorageError if it is not written.

        gone     ids that were removed, perhaps before they were added again
        is_late  leave the disk to `sync`, which the caller calls next
        """
        seq = meta["seq"]
        changed = [
            *[(_FORGET, id_, None, *_NOTHING, seq) for id_ in gone],
            *[(_PUT, *row, seq) for row in rows],
            *[(_PUT_CONTEXT, id_, values, *_NOTHING, seq) for id_, values in contexts],
            *_meta_rows(meta),
        ]
        with self._said():
            self._relax(is_late)
            self._is_late |= is_late and self._may_be_late
            if len(changed) <= _ROWS_AT_ONCE:
                self._write_rows(changed)  # a transaction of its own
                return
            with self._transaction("BEGIN IMMEDIATE"):
                for first in range(0, len(changed), _ROWS_AT_ONCE):
                    self._write_rows(changed[first : first + _ROWS_AT_ONCE])

    def _relax(self, is_late: bool) -> None:
        """Leave syncing to `sync` (`is_late`), or sync every transaction, from here on."""
        if not self._may_be_late or is_late == self._is_relaxed:
            return
        if is_late:
            self._is_relaxed = True  # before: an exception may be raised between any two lines
            self._db.execute("PRAGMA synchronous=NORMAL")
        else:
            self._db.execute("PRAGMA synchronous=FULL")
            self._is_relaxed = False

    def sync(self) -> None:
        """Bring to the disk what was written late; StorageError if that fails."""
        if not self._is_late:
            return
        self._is_late = False
        try:
            file = os.open(f"{self._file}-wal", os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise StorageError(
                f"cannot bring {str(self._file)!r} to the disk: {error}; the change has happened, "
                "and may be lost if the machine fails"
            ) from error

    def _write_rows(self, rows: list[tuple[Any, ...]]) -> None:
        """Write rows of a change, all or none."""
        query = f"INSERT INTO change VALUES {', '.join([_ROW] * len(rows))}"  # noqa: S608
        self._db.execute(query, tuple(chain.from_iterable(rows)))

    def note(self, **meta: Any) -> None:
        """Write pairs of `meta` that belong to no change."""
        with self._said():
            self._relax(is_late=False)
            self._write_rows(_meta_rows(meta))

    def forget(self, until: int, most: int) -> bool:
        """Delete up to `most` records of removals until change `until`; True if more may be left.

        `gone_from` must have been raised first, so that `tail` refuses older numbers.
        """
        n = 0
        self._relax(is_late=False)
        with self._said(), self._transaction("BEGIN IMMEDIATE"):
            for table, more in (("gone", ""), ("contexts", "AND vals IS NULL")):
                query = (
                    f"DELETE FROM {table} WHERE rowid IN "  # noqa: S608
                    f"(SELECT rowid FROM {table} WHERE seq <= ? {more} LIMIT ?)"
                )
                n = max(n, self._db.execute(query, (until, most)).rowcount)
        return n >= most

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._db.execute(begin)
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._db.close()


def _meta_rows(meta: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Pairs of meta as rows of a change."""
    return [(_PUT_META, key, json.dumps(value), *_NOTHING, None) for key, value in meta.items()]
