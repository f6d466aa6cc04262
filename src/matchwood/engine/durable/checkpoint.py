"""Checkpoint: write what a durable matcher holds to files, while it is searched and changed.

    1. freeze the head, as a segment; note the number of the last change      (no other change)
    2. write the segments that have no files                                  (nothing waits)
    3. replace checkpoint.json                                                (nothing waits)
    4. tell the log, which forgets what was removed before the checkpoint before  (no other change)

A head that was frozen is first merged into a planned segment, which takes its place in the view.
If it ends anywhere in between, the checkpoint before is the one that is opened, and what it left is
removed later.

After many changes a thread does this in the background (`Checkpoints`), so that opening never has
much to carry out and the log never has many removals to tell.

The store of subscriptions with contexts is copied at step 1 and written anew each time.

A guarded view (`view`) has one store that changes in place: it is written as a whole, and nothing
else happens meanwhile.  So its checkpoints are only made when they are asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import ref

from matchwood.engine.durable.segment_files import (
    copied,
    publish,
    remove_unnamed,
    write_collected,
    write_segment,
)
from matchwood.engine.segments.background import merged_aside
from matchwood.engine.segments.planned import Planned
from matchwood.engine.segments.view import Part

if TYPE_CHECKING:
    from matchwood.engine.access import Access
    from matchwood.engine.durable.folder import Durable
    from matchwood.engine.holding import Holding

EVERY = 20_000
"""Changed subscriptions from which a checkpoint is written in the background."""

PAUSE = 0.0005
"""Seconds that it sleeps after each step."""

Owner = Callable[[], "Holding | None"]


def write_checkpoint(owner: Owner, pause: Callable[[], None] | None = None) -> None:
    """Write the files of a matcher's folder; StorageError if that fails.

    owner  gives the matcher, or None when it is gone; no reference to it is kept meanwhile
    pause  called after every small step; may raise to give up
    """
    matcher = owner()
    if matcher is None:
        return
    durable, access = matcher._folder(), matcher._access
    durable.check()
    with durable.checkpointing:
        with access.writing():
            matcher._check_loading()
            matcher._follow_log(durable)
            durable.flush(matcher._view)
            seq, n_tail = durable.seq, durable.n_tail
            durable.keep_refused()
            if matcher._view.is_guarded:
                _write_guarded(matcher, durable, seq)
                parts = None
            else:
                with matcher._compact_contexts() as store:
                    linked = None if store is None else copied(store)
                view = matcher._frozen()
                parts = view.segments
        del matcher
        if parts is not None:
            written = [_written(owner, durable, part, pause) for part in parts]
            name = None
            if linked is not None:
                name = write_collected(durable.folder, linked, pause, durable.is_synced)
            publish(durable.folder, written, seq, view.n_added, name)
        _tell_log(access, durable, seq, n_tail, pause)
        if not durable.is_closed:
            remove_unnamed(durable.folder)


def _write_guarded(matcher: Holding, durable: Durable, seq: int) -> None:
    with matcher._as_stores(is_compact=True) as (store, _):
        store.file = write_segment(durable.folder, store, None, durable.is_synced)
        publish(durable.folder, [Part(store)], seq, store.subscriptions.n_added)


def _written(owner: Owner, durable: Durable, part: Part, pause: Callable[[], None] | None) -> Part:
    """A part whose store has files: itself, or what takes the place of a head that was frozen."""
    if pause is not None:
        pause()
    if part.store.file is not None:
        return part
    if not isinstance(part.store.routing, Planned):
        fresh = merged_aside([part], pause)
        _swap(owner, part, fresh)
        part = fresh
    part.store.file = write_segment(durable.folder, part.store, pause, durable.is_synced)
    return part


def _swap(owner: Owner, part: Part, fresh: Part) -> None:
    matcher = owner()
    if matcher is not None:
        matcher._swap([part], fresh)


def _tell_log(
    access: Access, durable: Durable, seq: int, n_tail: int, pause: Callable[[], None] | None
) -> None:
    with access.writing():
        if durable.is_closed:
            return
        before = durable.log.meta().get("checkpoint", 0)
        durable.log.note(checkpoint=seq, gone_from=before)
        durable.n_tail -= n_tail
        durable.is_damaged = False
    is_more = before > 0
    while is_more:
        if pause is not None:
            pause()
        with access.writing():
            is_more = durable.forget(before)


class _DroppedError(Exception):
    """The folder is closed, the matcher is gone, or the process ends."""


class Checkpoints:
    """The thread that writes the checkpoints of one folder; it ends when one is written."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._from: int | None = None
        """After a checkpoint that failed: from how many changed subscriptions to try again."""
        self.error: BaseException | None = None
        """Why the last one failed; `stats` says it."""

    def wake(self, matcher: Holding, durable: Durable) -> None:
        """Start the thread if enough has changed and none runs; called while `writing`."""
        if durable.n_tail < (self._from or EVERY) or matcher._view.is_guarded:
            return
        thread = self._thread
        if thread is not None and thread.is_alive():
            return
        self._thread = threading.Thread(
            target=self._run, args=(ref(matcher), durable), name="matchwood-checkpoint", daemon=True
        )
        with suppress(RuntimeError):  # no thread can be had: the next change tries again
            self._thread.start()

    def wait(self) -> None:
        """Wait until the thread has ended."""
        thread = self._thread
        if thread is not None and thread.ident is not None:
            thread.join()

    def _run(self, owner: ref[Holding], durable: Durable) -> None:
        def pause() -> None:
            if durable.is_closed or owner() is None or not threading.main_thread().is_alive():
                raise _DroppedError
            time.sleep(PAUSE)

        try:
            write_checkpoint(owner, pause)
            self._from = self.error = None
        except _DroppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - the checkpoint before is still there
            if not durable.is_closed:
                self.error = error
                self._from = durable.n_tail + EVERY
