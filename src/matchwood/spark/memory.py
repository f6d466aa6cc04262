"""The memory that a process takes, as Linux counts it; and returning free memory to the system."""

from __future__ import annotations

import ctypes
import gc
import resource
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


def _field(name: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)
