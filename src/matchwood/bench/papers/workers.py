"""Workers: parts of a run side by side, each in a process of its own.

    for number, rows in side_by_side(n, jobs, work): ...

`work(number)` is called in a worker, for numbers in order, each by the first worker that is free.
One job does everything in this process.  Times are CPU times of one thread, so that workers disturb
each other only where cores share a cache or the way to memory; `bench compare` of a run with one
job and of one with two shows how much that is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from matchwood.errors import MatchwoodError

_PARENT_DEATH_SIGNAL = 1


def side_by_side(
    numbers: Sequence[int], jobs: int, work: Callable[[int], Any]
) -> Iterator[tuple[int, Any]]:
    """What `work` gives for each number, as soon as it is there.

    An exception in a worker is a MatchwoodError here, and what other workers are at is lost.
    """
    if jobs == 1 or len(numbers) < 2:
        for number in numbers:
            yield number, work(number)
        return
    if not hasattr(os, "fork"):
        raise MatchwoodError("expected a system with fork for several jobs, found none: use 1")
    left = iter(numbers)
    workers = {
        (worker := _Worker(work)).here: worker for _ in range(min(jobs, len(numbers)))
    }  # fmt: skip
    try:
        busy = [each for each in workers.values() if each.ask(next(left, None))]
        while busy:
            for ready in wait([each.here for each in busy]):
                worker = workers[ready]  # type: ignore[index]
                yield worker.answer()
                if not worker.ask(next(left, None)):
                    busy.remove(worker)
    finally:
        for each in workers.values():
            each.close()


def forked() -> int:
    """As os.fork, without the warning that there are threads, which Arrow has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


class _Worker:
    """A process that does one number after the other."""

    def __init__(self, work: Callable[[int], Any]) -> None:
        self.here, there = Pipe()
        self._number = 0
        sys.stdout.flush()
        self._pid = forked()  # the child starts threads of its own where it needs them
        if self._pid == 0:
            self.here.close()
            _serve(work, there)
        there.close()

    def ask(self, number: int | None) -> bool:
        """Give the worker a number to do; False when there is none left."""
        if number is None:
            return False
        self._number = number
        self.here.send(number)
        return True

    def answer(self) -> tuple[int, Any]:
        try:
            is_value, found = self.here.recv()
        except (EOFError, ConnectionResetError):
            raise MatchwoodError(
                "expected an answer of a worker, found that it ended, most likely for want of "
                "memory: run again to go on, with fewer --jobs"
            ) from None
        if not is_value:
            raise MatchwoodError(f"a worker of the run failed: {found}")
        return self._number, found

    def close(self) -> None:
        """End the process; what it has started ends with it."""
        try:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        self.here.close()


def end_with_parent() -> None:
    """Let the system kill this process when the one that forked it ends; Linux only."""
    set_option = getattr(ctypes.CDLL(None), "prctl", None)
    if set_option is not None:
        set_option(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _serve(work: Callable[[int], Any], there: Connection) -> NoReturn:
    """The worker's whole life; it never returns into the parent's code."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        end_with_parent()
        while True:
            number = there.recv()
            try:
                answer = True, work(number)
            except Exception as error:  # noqa: BLE001 - it is raised in the parent
                answer = False, f"{type(error).__name__}: {error}"
            there.send(answer)
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)
