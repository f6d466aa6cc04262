"""Log: every acknowledged change of a durable matcher, in one SQLite file.

Idea.    The file holds what is registered now, and with each row the number (`seq`) of the change
         that wrote it last.  So it does not grow with the number of changes, building everything
         again reads each subscription once, and what happened since a number is two queries.
Safety.  WAL mode; each change is one SQLite transaction.  With `sync` it is on the disk
         (synchronous=FULL) before the call returns; without, the operating system has it: nothing
         is lost when the process dies, the last changes may be when the machine does.

    subscriptions  position (the number in the order of addition, the same as in memory), id, text
                   as written, context, fields as `fields` keeps them, seq
    gone           id, seq: removed since the checkpoint before the last
    contexts       id, values as JSON (null: none left), seq
    meta           format, index, config, schema, column_types, types, seq, checkpoint, gone_from
"""

from __future__ import annotations

import json
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

_ROWS_AT_ONCE = 64
_KEPT_STATEMENTS = 4 * _ROWS_AT_ONCE
"""One for each table and number of rows."""

_FORGET = "DELETE FROM subscriptions WHERE id IN (", "?", ")"
_REMEMBER = "INSERT OR REPLACE INTO gone VALUES ", "(?, ?)", ""
_PUT = (
    f"INSERT INTO subscriptions ({_COLUMNS}, seq) VALUES ",  # noqa: S608
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    (
        " ON CONFLICT (id) DO UPDATE SET text=excluded.text, context=excluded.context, "
        "priority=excluded.priority, expires=excluded.expires, seq=excluded.seq, "
        "attributes=excluded.attributes, payload=excluded.payload, added=excluded.added"
    ),
)
_PUT_CONTEXT = "INSERT OR REPLACE INTO contexts VALUES ", "(?, ?, ?)", ""
"""Statements for some rows: what comes before them, a row, what comes after."""


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
        with self._said():
            self._db = sqlite3.connect(
                f"{self._file.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None,
                check_same_thread=False, timeout=30, cached_statements=_KEPT_STATEMENTS,
            )  # fmt: skip
            if not read_only:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
                self._check_format()
                self._db.executescript(f"BEGIN;{_TABLES}COMMIT;")
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
        """What happened since a change; None if that is too long ago to be told."""
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
    ) -> None:
        """One change, with the number `meta["seq"]`; StorageError if it is not written.

        gone  ids that were removed, perhaps before they were added again
        """
        seq = meta["seq"]
        with self._said(), self._transaction("BEGIN IMMEDIATE"):
            removed = list(gone)
            self._write_rows(_FORGET, [(id_,) for id_ in removed])
            self._write_rows(_REMEMBER, [(id_, seq) for id_ in removed])
            self._write_rows(_PUT, [(*row, seq) for row in rows])
            self._write_rows(_PUT_CONTEXT, [(id_, values, seq) for id_, values in contexts])
            self._write_meta(meta)

    def _write_rows(self, statement: tuple[str, str, str], rows: list[tuple[Any, ...]]) -> None:
        """Carry out a statement for rows, many at once.

        Each statement gives the interpreter's lock up, and gets it again when searches let it.
        """
        before, row, after = statement
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[first : first + _ROWS_AT_ONCE]
            query = f"{before}{', '.join([row] * len(some))}{after}"
            self._db.execute(query, tuple(chain(*some)))

    def note(self, **meta: Any) -> None:
        """Write what is no change."""
        with self._said(), self._transaction("BEGIN IMMEDIATE"):
            self._write_meta(meta)

    def forget(self, until: int, most: int) -> bool:
        """Forget at most so many of what was gone at a change; returns whether there may be more.

        First `gone_from` has to say that what came before cannot be told any more.
        """
        n = 0
        with self._said(), self._transaction("BEGIN IMMEDIATE"):
            for table, more in (("gone", ""), ("contexts", "AND vals IS NULL")):
                query = (
                    f"DELETE FROM {table} WHERE rowid IN "  # noqa: S608
                    f"(SELECT rowid FROM {table} WHERE seq <= ? {more} LIMIT ?)"
                )
                n = max(n, self._db.execute(query, (until, most)).rowcount)
        return n >= most

    def _write_meta(self, meta: Mapping[str, Any]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [(key, json.dumps(value)) for key, value in meta.items()],
        )

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
