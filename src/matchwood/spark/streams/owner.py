"""One driver at a time for the state of a stream.

    state/driver.lock            locked while a query runs; unlocked by the kernel at its death
    state/epochs/0000000004      one file per start: host, process and time of the driver
    state/beats/0000000004       where there are no locks: put again while that driver lives

Lock.    A second driver on the same machine, or on a file system whose locks work between machines,
         is refused when it starts.
Beats.   A store has no locks.  There a driver puts a record every few seconds; a second one is
         refused while the record changes, and takes over when it has not changed for some time
         (`streams/heartbeat`) or if `take_over` is set.
Epochs.  Every start creates the file of the next epoch, which only one driver can, and the highest
         epoch is the owner.  A driver of a lower one stops with an error before it writes changes
         or commits a batch; an attempt writes to a folder of its own, and a committed batch cannot
         be replaced (`streams/commit`).  So nothing is lost or written twice where locks do not
         reach or a driver that counted as dead goes on.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from matchwood.errors import StorageError
from matchwood.spark.storage import Folder, Storage
from matchwood.spark.streams import heartbeat
from matchwood.spark.streams.heartbeat import Heartbeat

_ADVICE = "stop one of the two drivers; a stream that should run twice needs two states"


@dataclass
class _Owned:
    """A state that this process drives.

    file       the locked file, if there are locks
    heartbeat  otherwise: the record that says that this driver lives
    query      the query that runs on it; None until it has started
    end        waits for what still writes to it after the query
    """

    file: IO[str] | None = None
    heartbeat: Heartbeat | None = None
    query: Any = None
    end: Callable[[], None] = lambda: None


_owned: dict[str, _Owned] = {}
_guard = threading.Lock()
_SHOWN = 8
"""Files of epochs that are kept, to show the last drivers."""


@dataclass(frozen=True)
class Fence:
    """The right to write to a state, as long as no later driver has started."""

    state: Storage
    epoch: int

    def check(self) -> None:
        """Raise StorageError if a later driver has taken the state."""
        newest = max(_epochs(self.state), default=0)
        if newest != self.epoch:
            raise StorageError(
                f"expected to be the only driver of the stream in {str(self.state)!r} (epoch "
                f"{self.epoch}), found epoch {newest}, {_owner(self.state, newest)}: {_ADVICE}"
            )


def take(state: Storage, take_over: bool = False) -> Fence:
    """Become the driver of a state; StorageError while another one runs.  Call `release`, or
    `released_after` the query, at the end.

    take_over  do not look whether a driver lives that no lock tells of: it is fenced out
    """
    with _guard:
        _release_ended(state.path)
        try:
            if state.path in _owned:
                raise BlockingIOError
            file = _locked(state)
        except BlockingIOError:
            raise _refused(state, max(_epochs(state), default=0)) from None
        owned = _owned[state.path] = _Owned(file)
    try:
        if file is not None:
            return Fence(state, next_epoch(state))
        epoch = _epoch_after_the_dead(state, take_over)
        owned.heartbeat = Heartbeat(state, epoch, heartbeat.EVERY)
        return Fence(state, epoch)
    except BaseException:
        release(state)
        raise


def _refused(state: Storage, epoch: int, advice: str = "") -> StorageError:
    return StorageError(
        f"expected no other driver of the stream in {str(state)!r}, found one, "
        f"{_owner(state, epoch)}: {_ADVICE}{advice}"
    )


def _epoch_after_the_dead(state: Storage, take_over: bool) -> int:
    """Create the epoch after the newest one; StorageError if the driver of that one lives.

    Of two drivers that find the same one dead, one creates the next epoch; the other then looks
    whether that one lives.
    """
    while True:
        newest = max(_epochs(state), default=0)
        if newest and not take_over and heartbeat.is_alive(state, newest):
            raise _refused(state, newest, "; take_over=True takes the state from the other")
        with suppress(FileExistsError):
            return _create_epoch(state, newest + 1)


def _locked(state: Storage) -> IO[str] | None:
    """The locked file of a state, None where there are no locks (a store, some file systems);
    BlockingIOError if another process has it.
    """
    if not isinstance(state, Folder):
        return None
    Path(state.path).mkdir(parents=True, exist_ok=True)
    file = Path(state.path, "driver.lock").open("a+", encoding="utf-8")  # noqa: SIM115 - locked as long as it is open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise
        return None
    return file


def release(storage: Storage) -> None:
    """Give the state back."""
    with _guard:
        _unlock(storage.path)


def released_after(storage: Storage, query: Any, end: Callable[[], None] = lambda: None) -> None:
    """Give the state back when a query ends.

    end  waits for what still writes to the state then
    """
    state = storage.path
    with _guard:
        _owned[state].query, _owned[state].end = query, end

    def wait() -> None:
        with suppress(Exception):  # the query itself has the error
            query.awaitTermination()
        with _guard:
            if state in _owned and _owned[state].query is query:
                _unlock(state)

    threading.Thread(target=wait, name="matchwood-stream-owner", daemon=True).start()


def _release_ended(state: str) -> None:
    """Release a state of this process whose query has ended and whose thread has not yet run."""
    query = _owned[state].query if state in _owned else None
    if query is None:
        return
    is_active = False
    with suppress(Exception):  # a session that is gone has no active queries
        is_active = bool(query.isActive)
    if not is_active:
        _unlock(state)


def _unlock(state: str) -> None:
    owned = _owned.get(state)
    if owned is None:
        return
    try:
        owned.end()
    finally:
        del _owned[state]
        if owned.heartbeat is not None:
            owned.heartbeat.stop()
        if owned.file is not None:
            owned.file.close()


def is_owned(state: str) -> bool:
    """Whether this process drives a state, or still writes its last snapshot."""
    return state in _owned


def next_epoch(state: Storage) -> int:
    """Create the file of the next epoch; if another driver is faster, that of the one after."""
    while True:
        with suppress(FileExistsError):
            return _create_epoch(state, max(_epochs(state), default=0) + 1)


def _create_epoch(state: Storage, epoch: int) -> int:
    """Create the file of an epoch, and return the epoch; FileExistsError if there is one."""
    note = {"host": socket.gethostname(), "process": os.getpid(), "started": time.time()}
    state.create(_file(epoch), json.dumps(note).encode())
    for each in sorted(_epochs(state))[:-_SHOWN]:
        state.remove(_file(each))
        state.remove(heartbeat.record_of(each))
    return epoch


def _epochs(state: Storage) -> list[int]:
    return [int(name) for name in state.names("epochs") if name.isdecimal()]


def _file(epoch: int) -> str:
    return f"epochs/{epoch:010}"


def _owner(state: Storage, epoch: int) -> str:
    try:
        note = json.loads(state.read(_file(epoch)) or b"")
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(note["started"]))
        return f"process {note['process']} on {note['host']!r} since {started} UTC"
    except (OSError, ValueError, KeyError, TypeError):
        return "of a driver that left no note"
