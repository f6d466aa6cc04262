"""What is compiled while a block runs, and how long each function took.

>>> with recorded() as compiled:
...     pass
>>> compiled
[]
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from numba.core import event as numba_event

from matchwood.kernel.jit import is_ours

LOWERING = "native_lowering"
"""Numba's pass that makes LLVM's code and has LLVM optimise it; all other passes are in front."""


class Compiled(NamedTuple):
    """One function, compiled for one signature; seconds without those of the functions it calls."""

    module: str
    function: str
    signature: str
    front_end: float
    llvm: float

    @property
    def seconds(self) -> float:
        return self.front_end + self.llvm


@contextmanager
def recorded() -> Iterator[list[Compiled]]:
    """Collect what is compiled until the block ends, in any thread: Numba compiles one by one."""
    found: list[Compiled] = []
    compiling, passing = _Compiling(found), _Passing()
    passing.compiling = compiling
    numba_event.register("numba:compile", compiling)
    numba_event.register("numba:run_pass", passing)
    try:
        yield found
    finally:
        numba_event.unregister("numba:compile", compiling)
        numba_event.unregister("numba:run_pass", passing)


class _Frame:
    """A function that is being compiled; the functions it calls are compiled inside of it."""

    def __init__(self) -> None:
        self.began = time.thread_time()
        self.nested = 0.0
        self.llvm = 0.0
        self.lowering: list[tuple[float, float]] = []  # when it began, and `nested` at that time


class _Compiling(numba_event.Listener):  # type: ignore[misc]
    def __init__(self, found: list[Compiled]) -> None:
        self.found = found
        self.frames: list[_Frame] = []

    def on_start(self, event: Any) -> None:
        if is_ours(event):
            self.frames.append(_Frame())

    def on_end(self, event: Any) -> None:
        if not is_ours(event) or not self.frames:
            return
        frame = self.frames.pop()
        whole = time.thread_time() - frame.began
        if self.frames:
            self.frames[-1].nested += whole
        function = event.data["dispatcher"].py_func
        args = ", ".join(map(str, event.data["args"]))
        front_end = whole - frame.nested - frame.llvm
        self.found.append(
            Compiled(function.__module__, function.__qualname__, args, front_end, frame.llvm)
        )


class _Passing(numba_event.Listener):  # type: ignore[misc]
    compiling: _Compiling

    def on_start(self, event: Any) -> None:
        frames = self.compiling.frames
        if frames and str(event.data["name"]).startswith(LOWERING):
            frames[-1].lowering.append((time.thread_time(), frames[-1].nested))

    def on_end(self, event: Any) -> None:
        frames = self.compiling.frames
        if not frames or not str(event.data["name"]).startswith(LOWERING):
            return
        frame = frames[-1]
        if not frame.lowering:
            return
        began, nested = frame.lowering.pop()
        if not frame.lowering:  # the outermost: Numba's own functions are lowered inside ours
            frame.llvm += time.thread_time() - began - (frame.nested - nested)
