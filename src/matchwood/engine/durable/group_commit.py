"""Group commit: changes of a durable matcher that the log gets together, some time later.

With `commit_every` seconds a change is noted here by id when memory has it.  At most so many
seconds later one transaction writes what all noted ids are by then.  That happens at the beginning
of the next change, or in a thread, which starts with the first noted change and ends when there is
none.  The log thus has all changes up to some time and none after.

A group that cannot be written stays noted; until it can be, changes are refused with StorageError.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import ref

from matchwood.errors import MatchwoodError

if TYPE_CHECKING:
    from matchwood.engine.holding import Holding

MOST = 10_000
"""Noted changes from which the next one does not wait for the time to pass."""


def check_seconds(given: Any) -> float:
    """The seconds of `commit_every`; 0 for none."""
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not 0 <= given < math.inf:
        raise MatchwoodError(
            f"expected commit_every to be a number of seconds from 0, found {given!r}: leave it "
            "out to have every change in the log before its call returns"
        )
    return float(given)


class GroupCommit:
    """Changes that are in memory and not yet in the log."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.changed: dict[Any, bool] = {}
        """Ids, and whether they were removed on the way."""
        self.contexts: dict[Any, None] = {}
        self._since: float | None = None
        self._thread: threading.Thread | None = None
        self._has_failed = False

    @property
    def is_due(self) -> bool:
        """Whether changes have waited for long enough."""
        since = self._since
        is_late = since is not None and time.monotonic() >= since + self._seconds
        return is_late or len(self.changed) >= MOST

    def note(self, changed: Mapping[Any, bool], contexts: Mapping[Any, None]) -> None:
        """Note a change to be written; does no harm if the change fails afterwards."""
        for id_, was_removed in changed.items():
            self.changed[id_] = was_removed or self.changed.get(id_, False)
        self.contexts.update(contexts)
        if self._since is None:
            self._since = time.monotonic()

    def clear(self) -> None:
        """All of it is in the log."""
        self.changed, self.contexts = {}, {}
        self._since, self._has_failed = None, False

    def wake(self, matcher: Holding) -> None:
        """Start the thread if something waits and none runs; called while `writing`."""
        thread = self._thread
        if self._since is None or (thread is not None and thread.is_alive()):
            return
        self._thread = threading.Thread(
            target=self._run, args=(ref(matcher),), name="matchwood-commit", daemon=True
        )
        with suppress(RuntimeError):  # no thread can be had: the next change writes them
            self._thread.start()

    def _run(self, owner: ref[Holding]) -> None:
        while True:
            since = self._since
            due = 0.0 if since is None else since + self._seconds - time.monotonic()
            time.sleep(max(due, self._seconds if self._has_failed else 0.0))
            matcher = owner()
            if matcher is None or matcher._durable is None or matcher._durable.is_closed:
                return
            with matcher._access.writing():
                if self.is_due:
                    try:
                        matcher.flush()
                    except MatchwoodError:  # the next change says so
                        self._has_failed = True
                if self._since is None:
                    self._thread = None
                    return
            del matcher
