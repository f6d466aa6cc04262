"""Journal: what was there before it was written over, so that it can be brought back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.kernel.arrays import positions

_MISSING = object()


class Journal:
    """Old content of arrays, lists, dicts and fields since the last `clear`."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def write(self, array: np.ndarray, at: Any, content: Any) -> None:
        """`array[at] = content`, remembering what was there."""
        if isinstance(at, np.ndarray) and at.dtype == np.int32:
            at = positions(at)
        self.remember(array, at)
        array[at] = content

    def remember(self, array: np.ndarray, at: Any) -> None:
        """Call before `array[at]` is written."""
        self._undo.append((_put_back, (array, at, np.array(array[at]))))

    def remember_item(self, items: list[Any] | dict[Any, Any], at: Any) -> None:
        """Call before an item of a list or dict is written, made or deleted."""
        old = items.get(at, _MISSING) if isinstance(items, dict) else items[at]
        self._undo.append((_put_back, (items, at, old)))

    def remember_field(self, owner: Any, name: str) -> None:
        """Call before a field of an object is written."""
        self._undo.append((setattr, (owner, name, getattr(owner, name))))

    def undo(self) -> None:
        """Bring back everything, the last write first; an interrupted call can be repeated."""
        while self._undo:
            step, arguments = self._undo[-1]
            step(*arguments)
            self._undo.pop()

    def __len__(self) -> int:
        return len(self._undo)

    def clear(self) -> None:
        self._undo.clear()


def _put_back(items: Any, at: Any, old: Any) -> None:
    if old is _MISSING:
        items.pop(at, None)
    else:
        items[at] = old
