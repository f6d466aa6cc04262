"""Background merges: a thread that merges segments while searches and changes go on.

It starts when a change has left segments to merge (`tiers.chosen`) and ends when there are none, so
nothing runs while a matcher is idle.  It knows its matcher by a weak reference.  A merge reads
segments, which are immutable, and builds a new store in small steps with a pause after each, so
that searches get the interpreter; then it takes the writer's lock, marks what was removed in the
meantime, and publishes.  If the segments are no longer in the view, the merge is dropped.  After a
merge that failed, for example with MemoryError, a later change tries again.

A forked child has no such thread: its next change starts one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from matchwood.encode.dicts.plan import make_plans
from matchwood.engine.segments import tiers
from matchwood.engine.segments.merge import STEP, merged
from matchwood.engine.segments.view import Part, View
from matchwood.kernel.marks import marked

if TYPE_CHECKING:
    from matchwood.engine.holding import Holding

PAUSE = 0.0005
"""Seconds that a merge sleeps after each step."""

SKIPPED_MOST = 1_024
"""Changes, at most, from a merge that failed to the next attempt."""

IS_ON = True
"""Whether changes start merges; tests that look at single segments turn it off."""


class _DroppedError(Exception):
    """The matcher is gone, or the process ends."""


class Merger:
    """Whether a thread merges the segments of one matcher."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self.error: BaseException | None = None
        """What ended the last merge, if it failed; `stats` tells it until one succeeds."""
        self._n_failed = 0
        """Merges that failed one after the other."""
        self._n_skipped = 0
        """Changes since then that have not started another."""

    def wake(self, matcher: Holding) -> None:
        """Start the thread if there is work and none runs; called while `writing`."""
        if not IS_ON or not _work(matcher._view):
            return
        thread = self._thread
        if self._pid == os.getpid() and thread is not None and thread.is_alive():
            return
        if self._is_too_early():
            return
        self._pid = os.getpid()
        self._thread = threading.Thread(
            target=self._run, args=(ref(matcher),), name="matchwood-merge", daemon=True
        )
        with suppress(RuntimeError):  # no thread can be had: the next change tries again
            self._thread.start()

    def _is_too_early(self) -> bool:
        """Whether to let a change pass after a merge that failed: 0, 1, 3, 7, ... of them."""
        most = min(2 ** max(0, self._n_failed - 1), SKIPPED_MOST) - 1
        self._n_skipped += 1
        if self._n_skipped <= most:
            return True
        self._n_skipped = 0
        return False

    def wait(self) -> None:
        """Wait until the thread has no more work."""
        thread = self._thread
        if thread is not None and self._pid == os.getpid() and thread.ident is not None:
            thread.join()

    def _run(self, owner: ref[Holding]) -> None:
        try:
            while merge_once(owner, self):
                pass
        except _DroppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - a merge never harms what is published
            self.error = error
            self._n_failed += 1


def _work(view: View) -> list[Part]:
    """The segments that are merged next."""
    segments = view.segments
    live = [len(part) for part in segments]
    return [segments[at] for at in tiers.chosen(live, [part.n_gone for part in segments])]


def merge_once(owner: ref[Holding], merger: Merger) -> bool:
    """Merge some segments; False if there is nothing more to do."""
    matcher = owner()
    if matcher is None:
        return False
    view = matcher._view
    parts = _work(view)
    if not parts:
        with matcher._access.writing():
            if not _work(matcher._view):
                merger._thread = None  # the next change starts another
                return False
        return True
    del matcher

    def pause() -> None:
        if owner() is None or not threading.main_thread().is_alive():
            raise _DroppedError
        time.sleep(PAUSE)

    fresh = merged_aside(parts, pause)
    merger.error, merger._n_failed = None, 0
    matcher = owner()
    if matcher is None:
        return False
    matcher._swap(parts, fresh)
    return True


def merged_aside(parts: list[Part], pause: Callable[[], None] | None) -> Part:
    """A segment in place of some parts, with what the next change or search would make of it.

    pause  called after every small step, if there is one; may raise to give up
    """
    store = merged(parts, pause, None if pause is None else STEP)
    store.subscriptions.lookup  # noqa: B018 - made here, not by the next change
    if any(part.singles for part in parts):
        make_plans(store.attributes)  # not by searches
    return Part(store)


def replaced(view: View, old: list[Part], fresh: Part) -> View | None:
    """The view with some segments replaced by one, without what was removed from them meanwhile.

    A segment that is no longer there has become empty, or all of it is elsewhere (`compact`).
    """
    if view.is_guarded:
        return None
    now = {id(part.store): part for part in view.segments}
    gone: list[int] = []
    for part in old:
        current = now.pop(id(part.store), None)
        gone += _slots_in(fresh, part, part.slots() if current is None else _new(part, current))
    if gone:
        fresh = fresh.without(np.array(gone, np.int32))
    kept = [part for part in view.segments if id(part.store) in now]
    parts = [*kept, *([fresh] if len(fresh) else []), view.stored[-1]]
    return view.with_parts(parts)


def _new(part: Part, current: Part) -> np.ndarray:
    """Slots that were removed since the merge began."""
    if current.n_gone == part.n_gone:
        return np.empty(0, np.int32)
    marks = current.gone & ~part.gone if part.n_gone else current.gone
    return marked(marks)


def _slots_in(fresh: Part, part: Part, slots: np.ndarray) -> list[int]:
    """Where subscriptions of an old segment are in the merged one."""
    names = part.store.subscriptions.ids_of(slots).tolist()
    return list(map(fresh.store.subscriptions.find, names))
