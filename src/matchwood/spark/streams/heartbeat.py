"""Whether the driver of a stream lives, where its state has no locks.

    state/beats/0000000004    {"beat": 17, "every": 5.0}    put by the driver of epoch 4, again and
                                                            again, with the next number
                              {"ended": true}               put when its query has ended

Alive.   A driver that starts reads the record of the newest epoch until it changes: then that
         driver lives.  If it has not changed for `MISSED` periods the driver counts as dead.
Clocks.  The time that passes is measured by the reader's own monotonic clock; no time of one
         machine is compared with that of another.
Safety.  A driver that was stopped for long and goes on is not kept from writing by its record but
         by its epoch (`streams/owner`); the record only decides which one is refused at the start.
"""

from __future__ import annotations

import atexit
import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from matchwood.errors import StorageError
from matchwood.spark.storage import Storage

EVERY = 5.0
"""Seconds between two beats."""
MISSED = 6
"""Beats that must be missing before a driver counts as dead.  A call that keeps Python's lock for
long, or a store that is slow, delays some."""
_ENDED: dict[str, object] = {"ended": True}


class Heartbeat:
    """Puts the record of an epoch until `stop`, which marks it as ended."""

    def __init__(self, state: Storage, epoch: int, every: float) -> None:
        self._state, self._name, self._every = state, record_of(epoch), every
        self._put({"beat": 0, "every": every})
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="matchwood-stream-heartbeat", daemon=True
        )
        self._thread.start()
        # registered here and not when the module is loaded: functions registered last are called
        # first, and pyarrow, loaded by now, registers the end of its connections
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the record, so that the next driver does not wait.  Does nothing the second time."""
        atexit.unregister(self.stop)
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._thread.join()
        with suppress(StorageError, OSError):  # the next driver waits until the record is old
            self._put(_ENDED)

    def _run(self) -> None:
        beat = 0
        while not self._stopped.wait(self._every):
            beat += 1
            with suppress(StorageError, OSError):  # the next beat may succeed
                self._put({"beat": beat, "every": self._every})

    def _put(self, record: Mapping[str, object]) -> None:
        self._state.put(self._name, json.dumps(record).encode())


def is_alive(state: Storage, epoch: int) -> bool:
    """Whether the driver of an epoch lives: True at its next beat, False if it has ended or
    `MISSED` beats do not come.
    """
    first = state.read(record_of(epoch))
    every = EVERY
    with suppress(ValueError, TypeError, KeyError):
        record = json.loads(first or b"{}")
        if record == _ENDED:
            return False
        every = float(record["every"])
    end = time.monotonic() + MISSED * every
    while time.monotonic() < end:
        time.sleep(min(1.0, every / 4))
        now = state.read(record_of(epoch))
        if now != first:
            return now is not None and json.loads(now) != _ENDED
    return False


def record_of(epoch: int) -> str:
    """The name of the record of an epoch."""
    return f"beats/{epoch:010}"
