"""Stopwatch: seconds by phase, compiling apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from matchwood.kernel.jit import compile_seconds


class Stopwatch:
    """Adds up the seconds of each phase; what was spent compiling inside one counts apart."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.compiling = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        compiled = compile_seconds()
        began = time.perf_counter()
        try:
            yield
        finally:
            wall = time.perf_counter() - began
            compiled = compile_seconds() - compiled
            self.compiling += compiled
            self.seconds[name] = self.seconds.get(name, 0.0) + wall - compiled
