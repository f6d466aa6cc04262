"""Durable matchers: a folder with a log of what is registered, and segments derived from it.

    folder/
    ├── lock              held by the one writer (folder_lock.py)
    ├── log.sqlite        every acknowledged change (log.py), and SQLite's files beside it
    ├── checkpoint.json   which segments there are, and the last change that they hold
    └── segments/         files of segments, each written once (segment_files.py)

A change is written to the log before its call returns; if that fails the change is undone and
StorageError raised.  One with contexts is undone unless only the disk fails (`Log.sync`).  With
`commit_every` it is written later (group_commit.py).  Opening (opening.py) maps the segments and
carries out what the log has beyond them.  A segment that is missing or damaged is built again from
the log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchwood.engine.durable import log, segment_files
from matchwood.engine.durable.folder_lock import FolderLock
from matchwood.engine.durable.group_commit import GroupCommit
from matchwood.engine.durable.log import Log
from matchwood.engine.durable.refused import RefusedRow, RefusedRows
from matchwood.engine.durable.repair import WithRefused
from matchwood.engine.durable.replay import rows_of, rows_of_additions, types_of, values_of
from matchwood.engine.durable.segment_files import remove_unnamed
from matchwood.engine.snapshots import manifest
from matchwood.errors import StorageError

if TYPE_CHECKING:
    from matchwood.engine.changes import Target
    from matchwood.engine.segments.recent import Addition
    from matchwood.engine.segments.view import View

FORGOTTEN_AT_ONCE = 1_000
"""Removals that the log forgets in one transaction, for which a change may have to wait."""

CHECKPOINT_FROM = 1_000
"""Changed subscriptions from which `close` writes a checkpoint; fewer are replayed faster."""


class Durable:
    """The folder of one matcher."""

    def __init__(
        self, folder: Path, read_only: bool, sync: bool, commit_every: float = 0.0
    ) -> None:
        self.folder, self.is_read_only, self.is_synced = folder, read_only, sync
        self._lock: FolderLock | None = None
        if not read_only:
            _make(folder)
            _refuse_other(folder)
            self._lock = FolderLock(folder)
        try:
            self.log = Log(folder, read_only, sync)
            if not read_only:
                remove_unnamed(folder)
        except BaseException:
            self._release()
            raise
        self.seq = self.n_tail = 0
        self.types: dict[str, Any] = {}
        self.is_closed = False
        self.is_unsure = False
        """Whether the log may hold a change that memory does not: writing it was interrupted."""
        self.written: tuple[int, dict[str, Any], list[Any], int] | None = None
        """What `seq`, `types` and `noted` are, and by how much `n_tail` grows, once memory has it
        too."""
        self.refused: RefusedRows = {}
        """Subscriptions of the log that are set aside (`refused`)."""
        self.noted: list[Any] = []
        """Their ids, as the log has them."""
        self._left: dict[Any, RefusedRow] | None = None
        """What the change that is under way has left of them; None if there were none."""
        self.group = GroupCommit(commit_every) if commit_every and not read_only else None
        """Changes that wait for the log; None if each is written before its call returns."""
        self.pid = os.getpid()
        self.checkpointing = threading.RLock()
        """Held while a checkpoint is written; taken before the lock of changes."""
        self.is_damaged = False
        """Whether a segment was built again, so that a checkpoint is wanted."""

    # -- changes -----------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse a change that cannot be logged."""
        if self.is_read_only:
            raise StorageError(
                f"expected no change, found one of {self.folder.name!r}, which is open with "
                "read_only=True: open it without"
            )
        if self.is_closed:
            raise StorageError(f"expected an open folder, found {self.folder.name!r} closed")
        if self.pid != os.getpid():
            raise StorageError(
                f"expected the process that opened {self.folder.name!r} ({self.pid}), found a "
                "forked one: open it there with read_only=True"
            )

    def target(self, inner: Target) -> Target:
        """What a change is carried out on, which begins now."""
        if not self.refused:
            return inner
        self._left = dict(self.refused)
        return WithRefused(inner, self._left, self.types["own"])

    def commit(
        self, view: View, changed: Mapping[Any, bool], contexts: Mapping[Any, None],
        known: Mapping[Any, Addition | None] | None = None, is_late: bool = False,
    ) -> None:  # fmt: skip
        """Write what changed, as a view has it; in a group, only note it.

        known  what has become of each of `changed`, where the caller knows; None: it is gone
        is_late  leave the disk to `log.sync`

        Memory has it as well only when the caller is done: until then the log may be ahead, and the
        caller sets `is_unsure` back.
        """
        if not changed and not contexts:
            return
        if self.group is not None:
            self.group.note(changed, contexts)
            return
        self.is_unsure = True
        refused = list(self.refused if self._left is None else self._left)
        types = self._write(self.seq + 1, view, changed, contexts, refused, known, is_late)
        self.written = self.seq + 1, types, refused, len(changed) + len(contexts)

    def flush(self, view: View) -> None:
        """Write what waits, as a view has it."""
        group = self.group
        if group is None or not (group.changed or group.contexts):
            return
        self.seq += 1  # also if it fails: it may have been written all the same
        refused = list(self.refused)
        self.types = self._write(self.seq, view, group.changed, group.contexts, refused)
        self.noted = refused
        self.n_tail += len(group.changed) + len(group.contexts)
        group.clear()

    def _write(
        self, seq: int, view: View, changed: Mapping[Any, bool], contexts: Mapping[Any, None],
        refused: list[Any], known: Mapping[Any, Addition | None] | None = None,
        is_late: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        gone = [id_ for id_, was_removed in changed.items() if was_removed]
        if known is None:
            rows = rows_of(view, [id_ for id_ in changed if id_ in view])
        else:
            rows = rows_of_additions(known)
        values = [(id_, values_of(view, id_)) for id_ in contexts]
        types = types_of(view)
        meta = {"seq": seq, **({} if types == self.types else {"types": types})}
        if refused != self.noted:
            meta["refused"] = refused
        self.log.write(meta, gone, rows, values, is_late)
        return types

    def settle(self) -> None:
        """Note that memory holds all changes that were written."""
        if self.is_unsure and self.written is not None:
            self.seq, self.types, self.noted, n = self.written
            self.n_tail += n
        if self._left is not None:
            self.refused, self._left = self._left, None
        self.written = None
        self.is_unsure = False

    def note_refused(self) -> None:
        """Have the log list what is set aside."""
        refused = list(self.refused)
        if refused != self.noted:
            self.log.note(refused=refused)
            self.noted = refused

    def keep_refused(self) -> None:
        """Write rows that are set aside again, so that they are beyond a checkpoint of before."""
        if self.refused:
            self.seq += 1  # also if it fails: it may have been written all the same
            self.log.write({"seq": self.seq}, rows=[each.row for each in self.refused.values()])

    @property
    def wants_checkpoint(self) -> bool:
        """Whether opening would take longer than writing a checkpoint now."""
        return self.is_damaged or self.n_tail >= CHECKPOINT_FROM

    def forget(self, until: int) -> bool:
        """Let the log forget some removals; returns whether there may be more."""
        return not self.is_closed and self.log.forget(until, FORGOTTEN_AT_ONCE)

    def close(self) -> None:
        """Release the folder, after a running checkpoint has ended."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.pid == os.getpid():
            with self.checkpointing:
                self.log.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _refuse_other(folder: Path) -> None:
    """Refuse a folder that `Matcher.save` made, and one that has lost its log: opened as one with a
    new log it would look empty, and its segments would be removed.
    """
    if (folder / log.NAME).exists():
        return
    if (folder / segment_files.NAME).exists():
        raise StorageError(
            f"expected {log.NAME} in {folder.name!r}, found {segment_files.NAME} without it: bring "
            "the log back from a copy of the folder, or choose another folder"
        )
    if (folder / manifest.NAME).exists():
        raise StorageError(
            f"expected a folder that Matcher.open made, or a new one, found a snapshot in "
            f"{folder.name!r}: read it with Matcher.load, or choose another folder"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {str(folder)!r}: {error}") from error
