"""Snapshots of a stream's state, written by a thread of the driver while batches go on.

    batch 49 ──► batch 50 ──► batch 51 ──► batch 52            the driver's batches
        └──frozen──► segments, contexts, versions ──rename──► snapshots/50 ──► older ones removed

Idea.    A matcher's segments never change, so the thread shares those of the state between two
         batches; what changes in place, contexts and their subscriptions, is copied for it.  That
         is done while workers match the events of the batch before (`match_stream`).
Once.    A snapshot counts when it has its name.  The changes since the one before stay until then:
         after a crash at any step the stream starts from the one before.
Order.   One at a time: if the next one is due before this one is complete, its batch waits, so that
         never more than two intervals of changes have to be carried out again.
Failure  What ends the thread is raised by the next batch, and so ends the query.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable

from matchwood.spark.streams.owner import Fence
from matchwood.spark.streams.state import FrozenReplica, Replica, StateFolder

REST = 3.0
"""Seconds that the thread rests for a second of CPU time, so that batches get the cores."""


class Snapshots:
    """Writes the snapshots of one driver."""

    def __init__(self, folder: StateFolder, fence: Fence, reached: Callable[[str], None]) -> None:
        self._folder, self._fence, self._reached = folder, fence, reached
        self._thread: threading.Thread | None = None
        self._is_awaited = threading.Event()
        self._used = 0.0
        """CPU time of the thread at its last rest."""
        self._error: BaseException | None = None

    def begin(self, batch: int, replica: Replica, state: FrozenReplica) -> None:
        """Write the state before a batch, beside what follows; waits for the snapshot before.

        state  what the replica was then
        """
        self.wait()
        self.check()
        self._is_awaited.clear()
        # no daemon: a process that ends waits for it, so that short runs leave snapshots, too
        self._thread = threading.Thread(
            target=self._run, args=(batch, replica, state), name="matchwood-stream-snapshot"
        )
        self._thread.start()

    def check(self) -> None:
        """Raise what has ended a snapshot."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait(self) -> None:
        """Wait until no snapshot is being written."""
        self._is_awaited.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """The same at the end of a query, where no batch follows that could raise an error."""
        self.wait()
        error, self._error = self._error, None
        if error is not None:
            warnings.warn(
                f"the last snapshot of the stream in {str(self._folder.storage)!r} was not "
                f"written, the next start goes on from the one before: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _run(self, batch: int, replica: Replica, state: FrozenReplica) -> None:
        self._used = time.thread_time()
        try:
            self._folder.write_snapshot(batch, state, self.rest, self._complete)
            self._reached("snapshot")
            replica.path = self._folder.index(batch)
            self._fence.check()
            self._folder.clean()
            self._reached("cleaned")
        except BaseException as error:  # noqa: BLE001 - raised by `check`
            self._error = error

    def _complete(self) -> None:
        self._fence.check()
        self._reached("snapshot written")

    def rest(self) -> None:
        """Leave the cores to batches for a while, unless this snapshot is waited for."""
        self._is_awaited.wait(REST * (time.thread_time() - self._used))
        self._used = time.thread_time()
