"""Journal: the old content of arrays that were written in place, so that it can be brought back."""

from __future__ import annotations

from typing import Any

import numpy as np


class Journal:
    """Old content of what was written in place since the last `clear`."""

    def __init__(self) -> None:
        self._writes: list[tuple[np.ndarray, Any, np.ndarray]] = []

    def write(self, array: np.ndarray, at: Any, content: Any) -> None:
        """`array[at] = content`, remembering what was there."""
        self.remember(array, at)
        array[at] = content

    def remember(self, array: np.ndarray, at: Any) -> None:
        """Call before another piece of code writes `array[at]`."""
        self._writes.append((array, at, np.array(array[at])))

    def undo(self) -> None:
        """Bring back everything, the last write first."""
        while self._writes:
            array, at, content = self._writes[-1]
            array[at] = content
            self._writes.pop()

    def clear(self) -> None:
        self._writes.clear()
