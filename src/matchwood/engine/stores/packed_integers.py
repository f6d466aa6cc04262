"""Integers by slot of a frozen segment, in as few bytes as they need.

    Runs      values that repeat or count upwards over long stretches: ids 0, 1, 2, ..., numbers in
              the order of addition, times of addition
    Narrow    values that lie close together: the lowest of them, and differences of 1, 2 or 4 bytes
    Starts    where things of given sizes begin that lie side by side: every 64th is kept
    an array  everything else

Each answers `[slot]`, `[slots]` and `[first:last]` with int64, as the array would.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.kernel.arrays import positions

_RUN = 24
"""Bytes of a run."""
_STRIDE = 64
"""Things between two starts that are kept."""
_KINDS: tuple[type[Any], ...] = (np.uint8, np.uint16, np.uint32)


class Runs:
    """Stretches of equal or consecutive values.

    first  int64[R]   the slot that each run begins with, ascending, 0 first
    value  int64[R]   the value there
    step   int64[R]   0 or 1: what is added with each slot
    """

    __slots__ = ("_n", "first", "step", "value")

    def __init__(self, first: np.ndarray, value: np.ndarray, step: np.ndarray, n: int) -> None:
        self.first, self.value, self.step, self._n = first, value, step, n

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        return _RUN * len(self.first)

    @property
    def are_positions(self) -> bool:
        """Whether the values are 0, 1, 2, ..."""
        return len(self.first) == 1 and self.value[0] == 0 and bool(self.step[0] == 1)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self[np.arange(*at.indices(self._n))]
        if len(self.first) == 1:
            return self.value[0] + np.asarray(at, np.int64) * self.step[0]
        run = np.searchsorted(self.first, at, side="right") - 1
        return self.value[run] + (at - self.first[run]) * self.step[run]


class Narrow:
    """Differences from the lowest value."""

    __slots__ = ("differences", "lowest")

    def __init__(self, differences: np.ndarray, lowest: int) -> None:
        self.differences, self.lowest = differences, np.int64(lowest)

    def __len__(self) -> int:
        return len(self.differences)

    @property
    def nbytes(self) -> int:
        return int(self.differences.nbytes)

    def __getitem__(self, at: Any) -> Any:
        return self.differences[at].astype(np.int64) + self.lowest


class Starts:
    """Where things begin that lie side by side; a size below 0 counts as 0."""

    __slots__ = ("_sizes", "_some")

    def __init__(self, sizes: np.ndarray | Runs | Narrow) -> None:
        lengths = np.maximum(sizes[:], 0)
        self._sizes, self._some = sizes, (np.cumsum(lengths) - lengths)[::_STRIDE].copy()

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def nbytes(self) -> int:
        """Without the sizes."""
        return int(self._some.nbytes)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            at = np.arange(len(self))[at]
        if np.ndim(at):
            if not len(at):
                return np.empty(0, np.int64)
            first, last = int(np.min(at)) // _STRIDE, int(np.max(at)) + 1  # no others are added up
            lengths = np.maximum(self._sizes[first * _STRIDE : last], 0)
            starts = np.cumsum(lengths) - lengths + self._some[first]
            return starts[np.asarray(at) - first * _STRIDE]
        first = at // _STRIDE
        return self._some[first] + np.maximum(self._sizes[first * _STRIDE : at], 0).sum()


Packed = np.ndarray | Runs | Narrow


def listed(values: Packed, slots: np.ndarray) -> list[Any]:
    """The values of slots as a list."""
    found: list[Any] = values[positions(slots)].tolist()
    return found


def packed(values: np.ndarray) -> Packed:
    """The smallest form of some integers; never a view of a larger array."""
    n = len(values)
    values = values.astype(np.int64)
    if not n:
        return values
    lowest, highest = int(values.min()), int(values.max())
    kind = next((k for k in _KINDS if highest - lowest <= np.iinfo(k).max), None)
    narrow = values.nbytes if kind is None else n * np.dtype(kind).itemsize
    runs = _runs(values, narrow // _RUN)
    if runs is not None:
        return runs
    if kind is None:
        return values
    return Narrow((values - lowest).astype(kind), lowest)


def _runs(values: np.ndarray, most: int) -> Runs | None:
    """The values as runs; None if there are more than `most`, and more than one."""
    n = len(values)
    steps = values[1:] - values[:-1]  # wraps around where it must: then it is neither 0 nor 1
    is_plain = (steps == 0) | (steps == 1)
    is_cut = ~is_plain
    is_cut[1:] |= is_plain[:-1] & (steps[1:] != steps[:-1])
    first = np.concatenate([[0], np.flatnonzero(is_cut) + 1])
    if len(first) > max(1, most):
        return None
    last = np.concatenate([first[1:], [n]])
    step = np.zeros(len(first), np.int64)
    is_long = last - first > 1
    step[is_long] = steps[first[is_long]]
    return Runs(first, values[first], step, n)
