"""The memory that a process takes, as Linux counts it; returning free memory to the system; and
sparing garbage collection what is none.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def resident() -> int:
    """Bytes of this process that are in memory now."""
    return _field("VmRSS:") or peak()


def peak() -> int:
    """The most there were since `forget_peak`, or since the process began where that is refused."""
    return _field("VmHWM:") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Begin to look for the peak anew."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def give_back() -> None:
    """Return freed memory to the system: allocators like to keep it."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return


GROWN = 50
"""Modules that a process has loaded since the last time, for another time to be worth it."""
MOST_TIMES = 3
_spared: list[int] = []
"""How many modules there were, each time."""


def spare_modules(close: Callable[[], object] = lambda: None) -> None:
    """Take all objects that there are out of garbage collection, in a worker that has new modules.

    PySpark's workers collect after each task, and so look at everything that modules have made:
    93 ms of CPU a task where Numba is loaded, more than a small task takes itself.

    close  forgets what is open, and may be garbage later: of what is spared cycles are never freed
    """
    from pyspark import TaskContext

    n = len(sys.modules)
    is_due = n > GROWN + (_spared[-1] if _spared else 0) and len(_spared) < MOST_TIMES
    if is_due and TaskContext.get() is not None:
        close()
        gc.collect()
        gc.freeze()
        _spared.append(n)


def _field(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)
