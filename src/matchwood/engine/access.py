"""Access: one change at a time; searches run meanwhile, or, where the view is guarded, between.

Every search has a `Reader`: a scratch, the view that it uses, and a lock that is held while the
search runs.  A change takes the main lock.  A view of segments is never changed, so nothing more is
needed: searches take no lock that a change holds, and the writer looks at the readers' views to
tell what is still in use (`head`).  A change of a guarded view (`view`) also takes the lock of
every reader: it begins when all searches that were under way are over.

    search              the lock of one free reader
    search, guarded     [main lock, passed through if a change waits] -> the lock of a free reader
    change              main lock
    change, guarded     main lock -> the locks of all readers

The context part of a view (`context_part`) has a lock of its own, which is taken last:

    search, contexts    the lock of one free reader -> the lock of contexts, for that part alone
    change, contexts    main lock -> the lock of contexts, from its first step in that part on

There is no counter of readers: an exception can arrive between any two lines, and a counter that it
has left behind would block all later changes.  Locks are only ever held by `with`.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np

from matchwood.engine import forks
from matchwood.errors import MatchwoodError
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.deferred import may_compile
from matchwood.kernel.verify_kernels import COUNTERS

if TYPE_CHECKING:
    from matchwood.engine.segments.single_live import LiveBinding
    from matchwood.engine.segments.view import View

BREATH = 1e-6
"""Seconds that a change pauses for searches; the operating system makes some 50 µs of it."""

BREATHE_EVERY = 0.0004
"""Seconds of a change between two pauses."""

SHORT_INTERVAL = 0.001
"""A switch interval up to which changes leave it to the interpreter to let searches run."""

MOST_READERS = 32
"""Searches that run at the same time; more wait for one of them."""


class Reader:
    """What one search uses: a scratch, the work that was counted, and a lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.scratch = Scratch()
        self.work = np.zeros(len(COUNTERS), np.int64)
        self.view: View | None = None
        """The view that the search under way uses."""
        self.bound = 0
        """The number of the `SingleView` that was bound last with the scratch."""
        self.n_events = 0
        """Events since the matcher last absorbed what was learned from them."""
        self.live: LiveBinding | None = None
        """What is bound to a store that changes in place."""


class Access:
    """The locks of one matcher; see the module's docstring."""

    def __init__(self) -> None:
        self.reset()
        forks.watch(self)

    def reset(self) -> None:
        """Replace all locks by new, unlocked ones: called in a child process, after a fork."""
        self.main = threading.RLock()
        self.contexts = threading.RLock()
        self._listing = threading.Lock()  # held while the list of readers is made anew
        self._is_wanted = False  # a hint alone: if it is wrong, a search goes the longer way
        self._readers: list[weakref.ref[Reader]] = []
        self._free: list[Reader] = []
        self.give_back: Callable[[Reader], None] = self._free.append
        """After `take`."""
        self._held: list[threading.RLock] = []
        self._owner = Reader()
        self._next_breath = 0.0
        self.notes_users = may_compile()
        self._users: set[int] = set()  # threads that have searched or changed the matcher

    @contextmanager
    def shared(self, is_guarded: bool = True) -> Iterator[Reader]:
        """For a search; if the view is guarded no change runs meanwhile."""
        self.note_user()
        if self._is_reading:  # a search inside of one, which keeps changes away from both
            reader, is_own = Reader(), False
            if not is_guarded:
                with self._listing:
                    self._readers = [weakref.ref(each) for each in (*self.readers(), reader)]
        else:
            if is_guarded and self._is_wanted:
                with self.main:  # lets the change that waits go first
                    pass
            reader, is_own = self._reader(is_guarded)
        with reader.lock:
            try:
                yield reader
            finally:
                reader.view = None
                if is_own and not reader.scratch.is_busy:  # else what an exception left is dropped
                    self._free.append(reader)

    def take(self) -> Reader | None:
        """A reader for a search that runs no code of others, in a view that is not guarded.

        Such a search needs no lock: it changes nothing that is shared, and nothing asks inside of
        it.  The caller sets and resets `view`, and gives the reader back unless something was
        raised.  None: there is no free one.
        """
        if self.notes_users:
            self.note_user()
        try:
            return self._free.pop()
        except IndexError:
            return None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """For a change: no other change runs meanwhile."""
        self.note_user()
        if not _is_held(self.main) and self._is_reading:
            raise MatchwoodError(
                "expected events that leave the matcher alone, found ones that change it while "
                "they are read: change it before or after the search"
            )
        with self.main:
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For a change of a guarded view, while `writing`: no search runs meanwhile."""
        self._is_wanted = True
        try:
            with _all_held(self.readers()):
                yield
        finally:
            self._is_wanted = False

    def take_contexts(self, until: ExitStack) -> None:
        """Take the lock of contexts until a block ends; not while the thread has it."""
        until.callback(self._give_contexts)  # before it is taken: an exception may be raised then
        self.contexts.acquire()

    def _give_contexts(self) -> None:
        if _is_held(self.contexts):
            self.contexts.release()

    @property
    def is_inside(self) -> bool:
        """Whether the calling thread is inside of a change or of a search."""
        # if all readers are free no thread has one, and there is nothing to look for
        may_read = len(self._free) < len(self._readers)
        return _is_held(self.main) or (may_read and self._is_reading)

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread has exclusive access."""
        return _is_held(self.main)

    @property
    def is_served(self) -> bool:
        """Whether another thread that runs has used the matcher; known where kernels compile."""
        others = self._users.copy() - {threading.get_ident()}
        return bool(others) and any(each.ident in others for each in threading.enumerate())

    def note_user(self) -> None:
        if self.notes_users:
            self._users.add(threading.get_ident())

    @property
    def is_idle(self) -> bool:
        """Whether no search and no change seems to run, so that a change need not wait."""
        return not self._is_wanted and len(self._free) >= len(self.readers())

    @property
    def owner(self) -> Reader:
        """The reader of searches that need exclusive access."""
        if self._owner.scratch.is_busy:  # left by an exception, or in use further up
            self._owner = Reader()
        return self._owner

    def readers(self) -> list[Reader]:
        """All readers of searches that share the matcher."""
        found = [each() for each in self._readers]
        return [reader for reader in found if reader is not None]

    def views(self) -> list[View | None]:
        """The views that searches under way use."""
        return [reader.view for reader in self.readers()]

    def breathe(self) -> None:
        """For a change, between steps: let searches under way have the interpreter briefly.

        Without it they wait up to `sys.getswitchinterval` each time they come back from a kernel.
        A pause of no time at all would not do: the writer would be back before a search wakes up.
        Cheap to call: it pauses at most once in `BREATHE_EVERY` seconds, and never where the
        process has chosen a switch interval that is short enough.
        """
        if time.monotonic() < self._next_breath or sys.getswitchinterval() <= SHORT_INTERVAL:
            return
        if any(reader.view is not None for reader in self.readers()):
            time.sleep(BREATH)
        self._next_breath = time.monotonic() + BREATHE_EVERY

    def hold(self, patience: float) -> bool:
        """Take every lock, for a fork; False, and it has none, if one took more than `patience`."""
        for lock in self._locks():
            if not lock.acquire(timeout=patience):
                self.release()
                return False
            self._held.append(lock)
        return True

    def _locks(self) -> Iterator[threading.RLock]:
        """All locks, in the order in which they are taken; readers once no change runs."""
        yield self.main
        for reader in self.readers():
            yield reader.lock
        yield self.contexts

    def release(self) -> None:
        """Give back what `hold` took, in the process that has forked."""
        while self._held:
            self._held.pop().release()

    @property
    def _is_reading(self) -> bool:
        """Whether the calling thread is inside of a search."""
        return any(_is_held(reader.lock) for reader in self.readers())

    def _reader(self, is_guarded: bool) -> tuple[Reader, bool]:
        """A reader, and whether it is the caller's alone until its lock is given back."""
        try:
            return self._free.pop(), True
        except IndexError:
            pass
        if is_guarded:
            with self.main:  # a change that runs has not locked a reader that is new
                return self._new_reader()
        return self._new_reader()

    def _new_reader(self) -> tuple[Reader, bool]:
        with self._listing:
            live = self.readers()
            if len(live) >= MOST_READERS:
                return live[threading.get_ident() % MOST_READERS], False
            reader = Reader()
            self._readers = [weakref.ref(each) for each in (*live, reader)]
            return reader, True


@contextmanager
def _all_held(readers: list[Reader]) -> Iterator[None]:
    if not readers:
        yield
        return
    with readers[0].lock, _all_held(readers[1:]):
        yield


def _is_held(lock: threading.RLock) -> bool:
    """Whether the calling thread holds a lock already.

    No flag of our own can tell this: an exception may arrive before the flag is set or reset.
    """
    return bool(lock._is_owned())  # type: ignore[attr-defined]  # what threading.Condition asks
