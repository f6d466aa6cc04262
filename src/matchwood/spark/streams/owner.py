"""One driver at a time for the state of a stream.

    state/driver.lock            locked while a query runs; unlocked by the kernel at its death
    state/epochs/0000000004      one file per start: host, process and time of the driver

Lock.    A second driver on the same machine, or on a file system whose locks work between machines,
         is refused when it starts.  A store has no locks: there only a second one of the same
         process is refused.
Epochs.  Where locks do not reach, every start creates the file of the next epoch, and the highest
         epoch is the owner.  A driver of a lower one stops with an error before it writes changes
         or commits a batch; an attempt writes to a folder of its own, and a committed batch cannot
         be replaced (`streams/commit`).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from matchwood.errors import StorageError
from matchwood.spark.storage import Folder, Storage

_ADVICE = "stop one of the two drivers; a stream that should run twice needs two states"
_owned: dict[str, tuple[IO[str] | None, Any]] = {}
"""By state: the locked file, if there are locks, and the query that runs on it (None until it has
started)."""
_guard = threading.Lock()


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


def take(state: Storage) -> Fence:
    """Become the driver of a state; StorageError while another one runs.  Call `release`, or
    `released_after` the query, at the end.
    """
    with _guard:
        _release_ended(state.path)
        try:
            if state.path in _owned:
                raise BlockingIOError
            _owned[state.path] = (_locked(state), None)
        except BlockingIOError:
            newest = max(_epochs(state), default=0)
            raise StorageError(
                f"expected no other driver of the stream in {str(state)!r}, found one, "
                f"{_owner(state, newest)}: {_ADVICE}"
            ) from None
    try:
        return Fence(state, next_epoch(state))
    except BaseException:
        release(state)
        raise


def _locked(state: Storage) -> IO[str] | None:
    """The locked file of a state, None on a store; BlockingIOError if another process has it."""
    if not isinstance(state, Folder):
        return None
    Path(state.path).mkdir(parents=True, exist_ok=True)
    file = Path(state.path, "driver.lock").open("a+", encoding="utf-8")  # noqa: SIM115 - locked as long as it is open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    except OSError:
        pass  # a file system without locks: epochs decide
    return file


def release(storage: Storage) -> None:
    """Give the state back."""
    with _guard:
        _unlock(storage.path)


def released_after(storage: Storage, query: Any) -> None:
    """Give the state back when a query ends."""
    state = storage.path
    with _guard:
        file, _ = _owned[state]
        _owned[state] = (file, query)

    def wait() -> None:
        with suppress(Exception):  # the query itself has the error
            query.awaitTermination()
        with _guard:
            if _owned.get(state, (None, None))[1] is query:
                _unlock(state)

    threading.Thread(target=wait, name="matchwood-stream-owner", daemon=True).start()


def _release_ended(state: str) -> None:
    """Release a state of this process whose query has ended and whose thread has not yet run."""
    query = _owned.get(state, (None, None))[1]
    if query is None:
        return
    is_active = False
    with suppress(Exception):  # a session that is gone has no active queries
        is_active = bool(query.isActive)
    if not is_active:
        _unlock(state)


def _unlock(state: str) -> None:
    file, _ = _owned.pop(state, (None, None))
    if file is not None:
        file.close()


def next_epoch(state: Storage) -> int:
    """Create the file of the next epoch; if another driver is faster, that of the one after."""
    note = {"host": socket.gethostname(), "process": os.getpid(), "started": time.time()}
    while True:
        known = sorted(_epochs(state))
        epoch = known[-1] + 1 if known else 1
        try:
            state.create(_file(epoch), json.dumps(note).encode())
        except FileExistsError:
            continue
        for each in known[:-8]:  # some are kept, to show the last drivers
            state.remove(_file(each))
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
