"""Standard input that an interrupt ends at once.

Python looks for signals before it enters read(2), and after a signal has interrupted the call.  One
that arrives in between would be seen with the next line of input, which may never come.  So a
reader waits for input or for a signal, whichever is first, and reads what is there.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from matchwood.cli.interrupts import check

CHUNK = 1 << 16
"""Bytes that `read` asks for at a time."""


class Input(Protocol):
    """What commands need of a stream of bytes."""

    def read(self) -> bytes:
        """All that is left."""

    def read1(self, size: int) -> bytes:
        """What is there, waiting for the first byte; nothing at the end."""


@contextmanager
def standard_input() -> Iterator[Input]:
    """The bytes of standard input."""
    file = sys.stdin.buffer
    try:
        descriptor = file.fileno()
    except OSError:  # a stream in memory
        yield file  # type: ignore[misc]
        return
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield file  # type: ignore[misc]
        return
    waked, waker = os.pipe()
    os.set_blocking(waker, False)
    before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        yield _Waiting(file, descriptor, waked)
    finally:
        signal.set_wakeup_fd(before)
        os.close(waked)
        os.close(waker)


def wait_for_any(descriptors: list[int]) -> list[int]:
    """Wait until some can be read, or are at their end.

    By poll(2), as select(2) takes no descriptors from 1024 on, and epoll(7) no files.
    """
    polled = select.poll()
    for each in descriptors:
        polled.register(each, select.POLLIN)
    return [each for each, _ in polled.poll()]


class _Waiting:
    """A file whose reader sees signals while it waits.

    waked  has something to read once a signal has arrived
    """

    def __init__(self, file: BinaryIO, descriptor: int, waked: int) -> None:
        self._file = file
        self._descriptor = descriptor
        self._waked = waked

    def read1(self, size: int) -> bytes:
        while True:
            check()
            if self._descriptor in wait_for_any([self._descriptor, self._waked]):
                return self._file.read1(size)  # type: ignore[attr-defined]
            os.read(self._waked, CHUNK)  # a signal whose handler raised nothing

    def read(self) -> bytes:
        parts = []
        while part := self.read1(CHUNK):
            parts.append(part)
        return b"".join(parts)
