"""Exceptions at a chosen step: a counter walks through the lines of the package.

    with fault_at(200, KeyboardInterrupt) as fault:
        matcher.add("s", "x = 1")
    fault.happened

Every line of the package that is executed counts as a step, whatever thread or timer there is, so a
run is repeatable and a loop over steps reaches every place where a signal or a failing allocation
can arrive.  Only the line that takes and gives back a lock is no step: tracing reports it before
the lock is given back, where the interpreter itself looks for no signal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import matchwood

_PACKAGE = str(Path(matchwood.__file__).parent)


class Fault:
    """An exception that is raised once, at the step of that number."""

    def __init__(self, step: int, error: type[BaseException], within: tuple[str, ...]) -> None:
        self.left = step
        self.within = within
        self.error = error
        self.happened = False
        self.where = ""

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(self.within) else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and not self.happened and not _takes_lock(frame):
            self.left -= 1
            if self.left < 0:
                self.happened = True
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise self.error
        return self.line


def _takes_lock(frame: FrameType) -> bool:
    return "with self._lock" in getline(frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def fault_at(
    step: int, error: type[BaseException], within: tuple[str, ...] = ("",)
) -> Iterator[Fault]:
    """Raise `error` at a step of what happens inside; it is caught here.

    within  folders of the package whose lines are steps; all of them unless some are named
    """
    fault = Fault(step, error, tuple(f"{_PACKAGE}/{folder}" for folder in within))
    before = sys.gettrace()
    sys.settrace(fault.enter)
    try:
        yield fault
    except error:
        if not fault.happened:
            raise
    finally:
        sys.settrace(before)
