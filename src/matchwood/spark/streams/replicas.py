"""Replicas in workers: each stays from batch to batch and goes on by the changes alone.

    task of batch 7         task of batch 8            between tasks, now and then
    changes 7 ──► replica   changes 8 ──► the same     snapshot ──► another replica, for later tasks

A new worker maps the newest snapshot and carries out the changes since; so does one that is far
behind.  A snapshot alone is no reason: a replica goes on past it.

Shared.  What a replica has taken since it mapped its snapshot is in its worker's own memory; a
         snapshot's files are shared by all workers of a machine.  So once a good part of a replica
         is its own, a thread maps the newest snapshot between tasks, brings it to the last batch,
         and a later task goes on with it.
Garbage. A full collection of garbage would visit all of a replica, 0.1 s each time.  What was
         loaded is left out (`gc.freeze`), and a replica that was replaced is collected between
         tasks.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from matchwood.errors import MatchwoodError, StorageError
from matchwood.spark.storage import Storage
from matchwood.spark.streams.state import Replica, StateFolder

FAR = 8
"""Batches that a replica may lie before the newest snapshot: carrying out the changes of more takes
longer than mapping it."""


class Kept:
    """The replica of one stream in this worker, for one task at a time."""

    def __init__(self, state: Storage, stream: str) -> None:
        self._folder = StateFolder(state)
        self.stream = stream
        """The name of the stream: another one may have taken the place of its state."""
        self._replica: Replica | None = None
        self._fresh: Replica | None = None
        """One that the thread has mapped, to go on with."""
        self._is_replaced = False
        """Whether a replica was given up that is not collected yet."""
        self._thread: threading.Thread | None = None

    def at(self, batch: int) -> Replica:
        """The replica, in a batch."""
        replica, self._replica = self._replica, None  # back once it is what it should be
        if self._fresh is not None and self._fresh.next_batch <= batch:
            self._is_replaced = replica is not None
            replica, self._fresh = self._fresh, None
        base = self._folder.base_of(batch)
        if replica is not None and base - FAR <= replica.next_batch <= batch:
            with suppress(StorageError):  # changes from so far back may be gone by now
                return self._entered(replica, batch)
        if replica is not None:
            replica = None
            _collect()
        replica = Replica.load(self._folder, base, verify=False)
        gc.freeze()
        return self._entered(replica, batch)

    def _entered(self, replica: Replica, batch: int) -> Replica:
        if replica.in_batch != batch:
            replica.bring(self._folder, batch)
            replica.enter(batch, self._folder.read_changes(batch))
        self._replica = replica
        return replica

    def rest(self) -> None:
        """After a task: let a thread do what no task should wait for, if there is something."""
        if self._thread is not None and self._thread.is_alive():
            return
        work = self._next_work()
        if work is not None:
            self._thread = threading.Thread(target=work, name="matchwood-replica", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until the thread has done what it does."""
        if self._thread is not None:
            self._thread.join()

    def _next_work(self) -> Callable[[], None] | None:
        replica = self._replica
        if self._is_replaced:
            self._is_replaced = False
            return _renew_frozen
        if replica is None or self._fresh is not None or replica.is_mostly_mapped:
            return None
        base, batch = self._folder.base_of(replica.next_batch), replica.next_batch
        return partial(self._map, base, batch) if base > replica.base else None

    def _map(self, base: int, batch: int) -> None:
        with suppress(MatchwoodError, OSError):  # the replica that is there goes on
            fresh = Replica.load(self._folder, base, verify=False)
            fresh.bring(self._folder, batch)
            self._fresh = fresh


def _collect() -> None:
    """Free replicas that were given up."""
    gc.unfreeze()
    gc.collect()


def _renew_frozen() -> None:
    """The same, and leave what stays out of later collections."""
    _collect()
    gc.freeze()
