"""The lock of a durable folder: one writer; the error of a second one names the first.

`flock` ends with the process that holds it, however that ends.  A forked child shares the lock, so
it lets go of its copy at once: otherwise it would keep the folder locked after its parent.
"""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

from matchwood.errors import StorageError

if sys.platform != "win32":
    import fcntl

NAME = "lock"
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """Held from its making until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self.pid = os.getpid()
        self._handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
        if sys.platform != "win32":
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(self._handle, 200).decode(errors="replace").strip()
                self.release()
                raise StorageError(
                    f"expected the folder {folder.name!r} to be free, found it open for writing by "
                    f"{holder or 'another process'}: close it there, or open it with read_only=True"
                ) from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"process {self.pid}".encode())
        _held.add(self)

    @property
    def is_mine(self) -> bool:
        """Whether this process holds it; a forked child does not."""
        return self._handle >= 0 and self.pid == os.getpid()

    def release(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _in_child() -> None:
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
