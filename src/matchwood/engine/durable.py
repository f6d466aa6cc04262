"""Durable matchers: a folder with a log of what is registered, and a snapshot derived from it.

    folder/
    ├── lock           held by the one writer (folder_lock.py)
    ├── log.sqlite     every acknowledged change (log.py), and SQLite's files beside it
    └── snapshot/      as Matcher.save writes it, with the number of the last change it holds

A change is written to the log before its call returns; if that fails the change is undone and
StorageError raised.  Opening maps the snapshot and carries out what the log has beyond it.  A
snapshot that is missing, damaged or of other options is built again from the log.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from matchwood.encode.schema import Schema
from matchwood.engine.folder_lock import FolderLock
from matchwood.engine.generations import remove_dead
from matchwood.engine.log import FORMAT, Log
from matchwood.engine.replay import add_rows, replay, rows_of, set_values, types_of, values_of
from matchwood.engine.savepoint import Change
from matchwood.engine.snapshot import load, read_beside, save
from matchwood.engine.store import Store
from matchwood.errors import FormatError, MatchwoodError, StorageError

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher
    from matchwood.engine.view import View

SNAPSHOT = "snapshot"
REPLACED_AT_MOST = 10_000
"""Subscriptions that are replaced one by one; of more than these, and a quarter of all, everything
is built again in bulk."""

CHECKPOINT_FROM = 1_000
"""Changed subscriptions from which `close` writes a snapshot; fewer are replayed faster."""


class Durable:
    """The folder of one matcher."""

    def __init__(self, folder: Path, read_only: bool, sync: bool) -> None:
        self.folder, self.is_read_only = folder, read_only
        self._lock: FolderLock | None = None
        if not read_only:
            _make(folder)
            self._lock = FolderLock(folder)
        try:
            self.log = Log(folder, read_only, sync)
            if not read_only:
                remove_dead(folder / SNAPSHOT)
        except BaseException:
            self._release()
            raise
        self.seq = self.n_tail = 0
        self.types: dict[str, Any] = {}
        self.is_closed = False
        self.is_unsure = False
        """Whether the log may hold a change that memory does not: writing it was interrupted."""
        self.written: tuple[int, dict[str, Any], int] | None = None
        """What `seq` and `types` are, and by how much `n_tail` grows, once memory has it too."""
        self.pid = os.getpid()

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

    def commit(self, view: View, changed: Mapping[Any, bool], contexts: Mapping[Any, None]) -> None:
        """Write what changed, as a view has it.

        Memory has it as well only when the caller is done: until then the log may be ahead, and the
        caller sets `is_unsure` back.
        """
        if not changed and not contexts:
            return
        self.is_unsure = True
        gone = [id_ for id_, was_removed in changed.items() if was_removed]
        rows = rows_of(view, [id_ for id_ in changed if id_ in view])
        values = [(id_, values_of(view, id_)) for id_ in contexts]
        meta: dict[str, Any] = {"seq": self.seq + 1}
        types = types_of(view)
        if types != self.types:
            meta["types"] = types
        self.log.write(meta, gone, rows, values)
        self.written = self.seq + 1, types, len(changed) + len(contexts)

    def settle(self) -> None:
        """Memory has what was written last."""
        if self.is_unsure and self.written is not None:
            self.seq, self.types, n = self.written
            self.n_tail += n
        self.written = None
        self.is_unsure = False

    # -- snapshots ---------------------------------------------------------------------------

    def write_snapshot(self, store: Store) -> None:
        before = self.log.meta().get("checkpoint", 0)
        save(store, self.folder / SNAPSHOT, {"log": np.array([self.seq], np.int64)})
        meta = {"seq": self.seq, "checkpoint": self.seq, "gone_from": before}
        self.log.write(meta, forget_gone=before)
        self.n_tail = 0

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            if self.pid == os.getpid():
                self.log.close()
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {str(folder)!r}: {error}") from error


def options_of(
    meta: Mapping[str, Any], index: str | None, schema: Any, column_types: Any, config: Any
) -> dict[str, Any]:
    """The options of a folder: those given now, else those it was made with."""
    declared = schema if isinstance(schema, Schema) or schema is None else Schema(schema)
    is_given = index is not None and index != meta.get("index")
    return {
        "index": index or meta.get("index", "auto"),
        "config": dict(config) if config or is_given else meta.get("config", {}),
        "schema": meta.get("schema", {}) if declared is None else dict(declared),
        "column_types": meta.get("column_types", {})
        if column_types is None
        else dict(column_types),
    }


def opened(
    matcher: Matcher,
    folder: str | os.PathLike[str],
    read_only: bool,
    sync: bool,
    given: tuple[Any, ...],
) -> Durable:
    """Fill a matcher with what a folder holds."""
    durable = Durable(Path(folder), read_only, sync)
    try:
        meta = durable.log.meta()
        options = options_of(meta, *given)
        is_same = all(meta.get(name) == value for name, value in options.items())
        if not meta and read_only:
            raise StorageError(
                f"expected a folder that was written to, found {str(folder)!r} empty"
            )
        durable.types = meta.get("types", {"attributes": {}, "own": {}})
        if not is_same or not _from_snapshot(matcher, durable, options):
            _from_log(matcher, durable, options)
        if not read_only and not is_same:
            if meta:  # the snapshot is of other options
                shutil.rmtree(durable.folder / SNAPSHOT, ignore_errors=True)
            durable.log.write({"format": FORMAT, "seq": durable.seq, **options})
        return durable
    except BaseException:
        durable.close()
        raise


def _from_snapshot(matcher: Matcher, durable: Durable, options: dict[str, Any]) -> bool:
    """Take over the snapshot and bring it up to date; False if it has to be built from the log."""
    folder = durable.folder / SNAPSHOT
    if not (folder / "manifest.json").exists():
        return False
    try:
        state = read_beside(folder, verify=True)["log"]
        store = load(folder, mmap=True, verify=True)
        store.attributes.column_types = dict(options["column_types"])
        durable.seq = int(state[0])
        matcher._hold(store)
        return follow(matcher, durable) is not None
    except (FormatError, StorageError, KeyError, IndexError) as error:
        warnings.warn(
            f"the snapshot in {durable.folder.name!r} cannot be used and is built again from the "
            f"log, which has everything: {error}",
            RuntimeWarning,
            stacklevel=5,
        )
        return False


def follow(matcher: Matcher, durable: Durable) -> int | None:
    """Carry out what the log has beyond `durable.seq`; None if only building anew can."""
    tail = durable.log.tail(durable.seq)
    if tail is None:
        return None
    view = matcher._view
    if sum(row.id in view for row in tail.rows) > max(REPLACED_AT_MOST, len(view) // 4):
        return None
    meta = durable.log.meta()
    own = meta.get("types", {}).get("own", {})
    n = len(tail.gone) + len(tail.rows) + len(tail.contexts)
    bound = bool(tail.contexts) or any(row.context is not None for row in tail.rows)
    try:
        if n:
            with matcher._changing(bound=bound, is_logged=False) as target:
                replay(target, tail, own)
    except MatchwoodError:
        return None  # the order of changes matters, and only the last state is known
    durable.seq = tail.seq
    durable.types = meta.get("types", durable.types)
    durable.n_tail += n
    return n


def _from_log(matcher: Matcher, durable: Durable, options: dict[str, Any]) -> None:
    """Fill a matcher with all rows of the log."""
    from matchwood.engine.matcher import Matcher

    meta = durable.log.meta()
    types = meta.get("types", {"attributes": {}, "own": {}})
    fresh = Matcher(
        options["index"], schema=options["schema"], column_types=options["column_types"],
        **options["config"],
    )  # fmt: skip
    rows, contexts = durable.log.rows(), durable.log.all_contexts()
    bound = bool(contexts) or any(row.context is not None for row in rows)
    with fresh._changing(bound=bound) as target:
        if isinstance(target, Store):  # types that contexts taught, or a user who relies on them
            for name, kind in types["attributes"].items():
                target.attributes.get(name, kind)
        add_rows(target, rows, types["own"])
        set_values(target, contexts)
    matcher._take(fresh)
    durable.seq = meta.get("seq", 0)
    durable.types = types
    durable.n_tail = len(matcher)


class Durability:
    """The methods of a matcher that has a folder."""

    _view: View
    _durable: Durable | None
    _exclusive: Callable[[], AbstractContextManager[None]]
    _as_one: Callable[..., AbstractContextManager[Store]]

    def checkpoint(self) -> None:
        """Write the snapshot of an open folder, so that opening it replays nothing."""
        with self._as_one(is_compact=True) as store:
            self._folder().write_snapshot(store)

    def refresh(self) -> int:
        """Take over what the folder's writer has changed since; returns how much that was."""
        with self._exclusive():
            durable = self._folder()
            n = follow(self, durable)  # type: ignore[arg-type]
            if n is None:
                options = options_of(durable.log.meta(), None, None, None, {})
                _from_log(self, durable, options)  # type: ignore[arg-type]
                n = len(self._view)
            durable.written, durable.is_unsure = None, False
            return n

    def close(self) -> None:
        """Give the folder free; a matcher in memory has nothing to close."""
        durable = self._durable
        if durable is None or durable.is_closed:
            return
        with self._exclusive():
            try:
                is_mine = not durable.is_read_only and durable.pid == os.getpid()
                if is_mine and durable.n_tail >= CHECKPOINT_FROM and not durable.is_unsure:
                    with self._as_one(is_compact=True) as store:
                        durable.write_snapshot(store)
            finally:
                durable.close()

    @contextmanager
    def _logged(self, durable: Durable) -> Iterator[None]:
        """A change inside the lock: applied, then written to the log, else undone."""
        self._follow_log(durable)
        store = self._view.head
        with Change(store):
            store.subscriptions.changed, store.changed_contexts = {}, {}
            yield
            changed, contexts = store.subscriptions.changed, store.changed_contexts
            store.subscriptions.changed = store.changed_contexts = None
            try:
                durable.commit(self._view, changed, contexts)
            except BaseException:
                store.is_whole = False
                raise
        durable.settle()

    def _follow_log(self, durable: Durable) -> None:
        """Before a change: refuse one that cannot be logged; take over what memory may not have."""
        durable.check()
        if durable.is_unsure:
            self.refresh()

    def _folder(self) -> Durable:
        durable = self._durable
        if durable is None or durable.is_closed:
            raise StorageError("expected a matcher with an open folder: make one with Matcher.open")
        return durable

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        durable = getattr(self, "_durable", None)
        if durable is not None:
            with suppress(Exception):  # at the end of the interpreter anything may be gone
                durable.close()
