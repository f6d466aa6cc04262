"""Checkpoint: write what a durable matcher holds to files, while it is searched and changed.

    1. freeze the head, as a segment; note the number of the last change      (no other change)
    2. write the segments that have no files                                  (nothing waits)
    3. replace checkpoint.json                                                (nothing waits)
    4. tell the log, which forgets what was removed before the checkpoint before  (no other change)

A head that was frozen is first merged into a planned segment, which takes its place in the view.
If it ends anywhere in between, the checkpoint before is the one that is opened, and what it left is
removed later.

A guarded view (`view`) has one store that changes in place: it is written as a whole, and nothing
else happens meanwhile.  So its checkpoints are only made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from matchwood.engine.merge import STEP, merged
from matchwood.engine.planned import Planned
from matchwood.engine.segment_files import publish, remove_unnamed, write_segment
from matchwood.engine.view import Part

if TYPE_CHECKING:
    from matchwood.engine.access import Access
    from matchwood.engine.durable import Durable
    from matchwood.engine.holding import Holding

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
            seq, n_tail = durable.seq, durable.n_tail
            if matcher._view.is_guarded:
                _write_guarded(matcher, durable)
                parts = None
            else:
                view = matcher._frozen()
                parts = view.parts[:-1]
        del matcher
        if parts is not None:
            written = [_written(owner, durable, part, pause) for part in parts]
            publish(durable.folder, written, seq, view.n_added)
        _tell_log(access, durable, seq, n_tail, pause)
        if not durable.is_closed:
            remove_unnamed(durable.folder)


def _write_guarded(matcher: Holding, durable: Durable) -> None:
    with matcher._as_one(is_compact=True) as store:
        store.file = write_segment(durable.folder, store, None, durable.is_synced)
        publish(durable.folder, [Part(store)], durable.seq, store.subscriptions.n_added)


def _written(owner: Owner, durable: Durable, part: Part, pause: Callable[[], None] | None) -> Part:
    """A part whose store has files: itself, or what takes the place of a head that was frozen."""
    if pause is not None:
        pause()
    if part.store.file is not None:
        return part
    if not isinstance(part.store.routing, Planned):
        fresh = Part(merged([part], pause, None if pause is None else STEP))
        fresh.store.subscriptions.lookup  # noqa: B018 - made here, not by the next change
        matcher = owner()
        if matcher is not None:
            matcher._swap([part], fresh)
        part = fresh
    part.store.file = write_segment(durable.folder, part.store, pause, durable.is_synced)
    return part


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
