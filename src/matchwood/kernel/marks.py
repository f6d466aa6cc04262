"""Marks: a bitmap of uint8 with a bit for each slot, the lowest bit of a byte first."""

from __future__ import annotations

import numpy as np

NO_MARKS = np.empty(0, np.uint8)
"""Where no slot is marked."""


def bits_of(slots: np.ndarray) -> np.ndarray:
    """The bit of each slot in its byte, `slots >> 3`."""
    return np.left_shift(1, slots & 7).astype(np.uint8)


def are_marked(marks: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Which of these slots are marked."""
    return (marks[slots >> 3] >> (slots & 7).astype(np.uint8) & 1).astype(bool)


def marked(marks: np.ndarray) -> np.ndarray:
    """The slots that are marked, ascending; int32."""
    return np.flatnonzero(np.unpackbits(marks, bitorder="little")).astype(np.int32)
