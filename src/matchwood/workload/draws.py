"""Draws: random columns whose every value depends on (seed, table, column, row) and nothing else.

A row's values come from hashing its number, not from the state that the row before it left behind.
So any chunk, in any order, on any machine, gives the same rows, and a row that is derived from
another one can ask for that row's values directly (docs/decisions/0003-rows-from-hashes.md).

    key         of (seed, table, column), by BLAKE2
    row         mix(key + row * ODD)
    value i     mix(row + (i + 1) * ODD)          mix is the finaliser of splitmix64
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

_ODD = 0x9E3779B97F4A7C15
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFT = (np.uint64(30), np.uint64(27), np.uint64(31))
_HALF = np.uint64(32)
_WORD = 2**64


class Draws:
    """Random columns for some rows of one table.

    >>> two = Draws(7, "events", np.array([3, 4])).below("price", 100, width=2)
    >>> one = Draws(7, "events", np.array([4])).below("price", 100, width=2)
    >>> bool((two[1] == one[0]).all())
    True
    """

    def __init__(self, seed: int, table: str, rows: np.ndarray) -> None:
        self._name = f"{seed}/{table}"
        self._rows = rows.astype(np.uint64)

    def bits(self, column: str, width: int = 1) -> np.ndarray:
        """uint64[rows, width], all 64 bits random."""
        digest = blake2b(f"{self._name}/{column}".encode(), digest_size=8).digest()
        key = np.uint64(int.from_bytes(digest, "little"))
        rows = _mix(self._rows * np.uint64(_ODD) + key)
        steps = [(i + 1) * _ODD % _WORD for i in range(width)]
        return _mix(rows[:, None] + np.array(steps, np.uint64)[None, :])

    def unit(self, column: str, width: int = 1) -> np.ndarray:
        """float64[rows, width], uniform in [0, 1)."""
        return (self.bits(column, width) >> np.uint64(11)) * 2.0**-53

    def below(self, column: str, n: int | np.ndarray, width: int = 1) -> np.ndarray:
        """int64[rows, width], uniform in 0 .. n - 1, for n up to 2^31; n may differ per value.

        Multiply and shift: a value's chance is off by at most n / 2^32 of itself.
        """
        bound = np.asarray(n).astype(np.uint64)
        found: np.ndarray = ((self.bits(column, width) >> _HALF) * bound >> _HALF).astype(np.int64)
        return found

    def distinct(self, column: str, n: int, count: np.ndarray) -> np.ndarray:
        """int64[rows, max(count)]: count different ones of 0 .. n - 1 in each row, then -1.

        Floyd's sampling, all rows at once: every subset is equally likely, no draw is repeated, and
        the number of draws does not depend on their outcome.
        """
        width = int(count.max(initial=0))
        last = n - count[:, None] + np.arange(width)[None, :]
        inside = last < n
        drawn = self.below(column, np.where(inside, last + 1, 1), width)
        chosen = np.full(drawn.shape, -1, np.int64)
        for i in range(width):
            is_repeated = (chosen[:, :i] == drawn[:, i : i + 1]).any(axis=1)
            chosen[:, i] = np.where(is_repeated, last[:, i], drawn[:, i])
            chosen[~inside[:, i], i] = -1
        return chosen


def _mix(x: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser on an array that the caller no longer needs."""
    x ^= x >> _SHIFT[0]
    x *= _MIX[0]
    x ^= x >> _SHIFT[1]
    x *= _MIX[1]
    x ^= x >> _SHIFT[2]
    return x
