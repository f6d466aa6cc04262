"""The methods of a matcher that has a folder (`durable`)."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from matchwood.engine.durable.checkpoint import Checkpoints, write_checkpoint
from matchwood.engine.durable.folder import Durable
from matchwood.engine.durable.opening import follow, from_log, options_of
from matchwood.engine.durable.refused import RefusedSubscription, shown, warn_of
from matchwood.engine.metrics import measured
from matchwood.engine.stores.ids import check_id
from matchwood.engine.stores.savepoint import Change
from matchwood.errors import MatchwoodError, StorageError, SubscriptionError

if TYPE_CHECKING:
    from matchwood.engine.access import Access
    from matchwood.engine.segments.view import Part, View


class Durability:
    """The methods of a matcher that has a folder."""

    _view: View
    _durable: Durable | None
    _access: Access
    _checkpoints: Checkpoints
    _exclusive: Callable[[], AbstractContextManager[None]]

    @measured
    def checkpoint(self) -> None:
        """Write the segments of an open folder, so that opening it replays nothing.

        Only segments that are new are written, and all subscriptions with contexts.  Searches and
        changes of other threads go on meanwhile, unless the index was chosen by name.
        """
        self._check_between_changes()
        write_checkpoint(lambda: self)  # type: ignore[arg-type,return-value]

    def flush(self) -> None:
        """Write changes that wait for the log (`commit_every`); StorageError if that fails.

        When it has returned, all changes before it are in the log.
        """
        with self._access.writing():
            durable = self._folder()
            if durable.group is not None:
                durable.check()
                durable.flush(self._view)

    def refresh(self) -> int:
        """Take over what the folder's writer has changed since; returns how much that was."""
        with self._exclusive():
            durable = self._folder()
            durable.flush(self._view)
            before = durable.refused
            n = follow(self, durable)  # type: ignore[arg-type]
            if n is None:
                options = options_of(durable.log.meta(), None, None, None, {})
                from_log(self, durable, options)  # type: ignore[arg-type]
                n = len(self._view)
            durable.written, durable.is_unsure = None, False
            warn_of(durable.folder.name, before, durable.refused, stacklevel=2)
            return n

    def refused(self) -> list[RefusedSubscription]:
        """What the folder's log has and this version refuses: each subscription with its error.

        These are set aside: they match nothing, `len`, `in`, `ids()` and iteration know nothing of
        them, and `m[id]` raises.  Their ids are taken all the same: `replace` gives one another
        expression, with its place, its context and its fields, and `remove` forgets it.
        """
        durable = self._durable
        return [] if durable is None else [shown(each) for each in durable.refused.values()]

    def _locate(self, view: View, id_: Any) -> tuple[Part, int]:
        """As `View.locate`; the error of an id that is set aside says so."""
        try:
            return view.locate(id_)
        except SubscriptionError:
            durable = self._durable
            known = durable is not None and durable.refused.get(check_id(id_))
            if not known:
                raise
            raise SubscriptionError(
                f"expected the id of a subscription that is held, found {id_!r}, which is set "
                f"aside, because it is refused: {known.error}\n"
                "use replace() to give it another expression, or remove()"
            ) from None

    def close(self) -> None:
        """Release the folder; does nothing for a matcher in memory."""
        durable = self._durable
        if durable is None or durable.is_closed:
            return
        if durable.is_read_only or durable.pid != os.getpid():
            durable.close()
            return
        self._check_between_changes()
        with durable.checkpointing:
            try:
                self.flush()
                if durable.wants_checkpoint and not durable.is_unsure:
                    self.checkpoint()
            finally:
                with self._exclusive():
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
        if durable.group is not None and durable.group.is_due:
            durable.flush(self._view)

    def _after_change(self) -> None:
        """Start what writes to the folder in the background; while writing."""
        durable = self._durable
        if durable is None:
            return
        if durable.group is not None:
            _grouped.add(self)
            durable.group.wake(self)  # type: ignore[arg-type]
        self._checkpoints.wake(self, durable)  # type: ignore[arg-type]

    def _check_between_changes(self) -> None:
        """Refuse what may wait for a checkpoint, which may wait for the change under way."""
        if self._access.is_mine:
            raise MatchwoodError(
                "expected a call between changes, found one in the middle of a change: checkpoint "
                "or close the folder when it is over"
            )

    def _folder(self) -> Durable:
        durable = self._durable
        if durable is None or durable.is_closed:
            raise StorageError("expected a matcher with an open folder: make one with Matcher.open")
        return durable

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        durable = getattr(self, "_durable", None)
        if durable is None:
            return
        for end in (lambda: _flush(self), durable.close):
            try:  # noqa: SIM105 - at the end of the interpreter anything may be gone, `suppress` too
                end()
            except Exception:  # noqa: BLE001, S110
                pass


_grouped: WeakSet[Durability] = WeakSet()
"""Matchers that may have changes which wait for the log."""


def _flush(matcher: Durability) -> None:
    durable = matcher._durable
    if durable is not None and not durable.is_closed and durable.pid == os.getpid():
        matcher.flush()


@atexit.register
def _flush_all() -> None:
    for each in list(_grouped):
        with suppress(MatchwoodError):
            _flush(each)
