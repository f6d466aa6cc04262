"""Interrupts that are not lost.

Python drops what is raised inside a callback of C code, such as llvmlite's while a kernel is
loaded, or in a finalizer: it prints "Exception ignored" and goes on.  So the handler notes an
interrupt, and commands ask between their steps and before they wait.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

_arrived = threading.Event()


def watch() -> None:
    """Note interrupts from now on; where another handler than Python's is in place, it stays."""
    _arrived.clear()
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        sys.unraisablehook = _quietly
        signal.signal(signal.SIGINT, _note)


def check() -> None:
    """Raise KeyboardInterrupt if an interrupt has arrived, whatever became of it."""
    if _arrived.is_set():
        raise KeyboardInterrupt


def _note(number: int, frame: Any) -> None:
    _arrived.set()
    signal.default_int_handler(number, frame)


def _quietly(dropped: Any) -> None:
    """Say nothing of a dropped interrupt: it will be raised again."""
    if dropped.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(dropped)
