"""Isolated: work in a forked process, step by step, with a time cap and a memory cap.

    child = Child(steps, megabytes)      steps: a function that gives a generator
    child.step(seconds)                  its next value, or Refused
    child.close()

The child shares what the parent has loaded (fork copies nothing until it is written).  Whatever
happens in it, the parent only learns that this row has no number and why.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from matchwood.bench.answers import WrongAnswers
from matchwood.bench.papers.workers import end_with_parent, forked
from matchwood.errors import ExpansionError, MatchwoodError

TIME, MEMORY, EXPANSION, NOT_TAKEN, ENDED = (
    "time cap",
    "memory cap",
    "expansion",
    "refused",
    "ended",
)
"""Why a row has no number."""

_PAGE = resource.getpagesize()


class Refused(Exception):
    """A row without a number: `label` says in a word why, `reason` in a sentence."""

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"{label}: {reason}")
        self.label, self.reason = label, reason


class Child:
    """One process, which does a step whenever it is asked for one."""

    def __init__(self, steps: Callable[[], Iterator[Any]], megabytes: int) -> None:
        if not hasattr(os, "fork"):
            raise MatchwoodError("expected a system with fork to cap time and memory, found none")
        self._here, there = Pipe()
        self._megabytes = megabytes
        # the child calls neither Arrow nor anything that waits for its threads
        self._pid = forked()
        if self._pid == 0:
            self._here.close()
            _serve(steps, there, megabytes)
        there.close()

    def step(self, seconds: float) -> Any:
        """The next value of the generator; raises Refused, or WrongAnswers."""
        try:
            self._here.send(True)
            if not self._here.poll(max(0.0, seconds)):
                self.close()
                raise Refused(TIME, f"no answer within {seconds:.0f} s")
            kind, value = self._here.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise Refused(ENDED, "the process ended, most likely for want of memory") from None
        if kind == "value":
            return value
        self.close()
        if kind == "wrong":
            raise WrongAnswers(value)
        label, reason = value
        if label == MEMORY:
            reason = f"more than {self._megabytes:,} MB"
        raise Refused(label, reason)

    def close(self) -> None:
        """End the process, if it still runs."""
        if self._pid:
            try:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
            self._pid = 0
        self._here.close()


def _serve(steps: Callable[[], Iterator[Any]], there: Connection, megabytes: int) -> NoReturn:
    """The child's whole life; it never returns into the parent's code."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        end_with_parent()
        gc.disable()
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * _PAGE
        cap = used + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
    except (OSError, ValueError):
        pass  # no cap on this system; the time cap is the parent's
    try:
        work = steps()
        while there.recv():
            there.send(_answer(work))
    except (EOFError, OSError, KeyboardInterrupt):
        pass
    finally:
        os._exit(0)


def _answer(work: Iterator[Any]) -> tuple[str, Any]:
    try:
        return "value", next(work)
    except MemoryError:
        return "refused", (MEMORY, "")
    except WrongAnswers as error:
        return "wrong", str(error)
    except ExpansionError as error:
        return "refused", (EXPANSION, str(error))
    except MatchwoodError as error:
        return "refused", (NOT_TAKEN, str(error))
    except Exception as error:  # noqa: BLE001 - a fault of one row must not end the run
        return "refused", (ENDED, f"{type(error).__name__}: {error}")
