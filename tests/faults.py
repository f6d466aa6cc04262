"""Exceptions at a chosen step: a counter walks through the lines of the package.

    with fault_at(200, KeyboardInterrupt) as fault:
        matcher.add("s", "x = 1")
    fault.happened

Every line of the package that is executed counts as a step, whatever thread or timer there is, so a
run is repeatable and a loop over steps reaches every place where a signal or a failing allocation
can arrive.  Only the end of a `with` statement is no step, see `_is_end_of_with`.
"""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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
        if event == "line" and not self.happened and not _is_end_of_with(frame):
            self.left -= 1
            if self.left < 0:
                self.happened = True
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise self.error
        return self.line


def _is_end_of_with(frame: FrameType) -> bool:
    """Whether a `with` statement is about to call `__exit__`, or a `try` is about to begin.

    No signal arrives there: the interpreter looks for one after calls, not between the body and
    the call of `__exit__`, nor at the instruction that does nothing for `try:`.  A trace function
    can raise there, where no `with` around it is in force, and then a lock is never given back.
    """
    word = _statement(frame.f_code.co_filename, frame.f_lineno)
    if word != "with":
        return word == "try"
    lines = dis.findlinestarts(frame.f_code)
    first = min([offset for offset, line in lines if line == frame.f_lineno], default=0)
    return frame.f_lasti > first


@cache
def _statement(file: str, line: int) -> str:
    """`with` or `try` where such a statement begins; asked for each step, and there are millions."""
    text = linecache.getline(file, line).lstrip()
    return "with" if text.startswith("with ") else "try" if text.startswith("try:") else ""


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
