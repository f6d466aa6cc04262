"""Entries of many events by attribute, and those that computed attributes became."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from matchwood.encode.interval_events import KeySets
from matchwood.encode.known import Made


class Entries(NamedTuple):
    """One attribute's part of a batch: which events have it, and their keys."""

    attr: int
    rows: np.ndarray
    keys: np.ndarray
    hi: np.ndarray | None = None  # where an entry's last key is not its first


def made_entries(made: Sequence[Made], codes: np.ndarray | None = None) -> Iterator[Entries]:
    """What rows became, by attribute.

    codes  which of `made` each row became; None: row i became `made[i]`
    """
    owner, attr, lo, hi = _columns(made)
    order = np.argsort(attr, kind="stable")
    ends = np.flatnonzero(np.diff(attr[order])) + 1
    for part in np.split(order, ends) if len(order) else ():
        of_part = Entries(
            int(attr[part[0]]), owner[part], lo[part], None if hi is None else hi[part]
        )
        yield of_part if codes is None else of_rows(of_part, codes, len(made))


def of_rows(entries: Entries, codes: np.ndarray, n: int) -> Entries:
    """The entries of all rows, given those of n things and which of them each row is."""
    where = np.full(n, -1, np.int64)
    where[entries.rows] = np.arange(len(entries.rows))
    at = where[codes]
    rows = np.flatnonzero(at >= 0)
    at = at[rows]
    hi = None if entries.hi is None else entries.hi[at]
    return Entries(entries.attr, rows, entries.keys[at], hi)


def _columns(
    made: Sequence[Made],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Number, attribute and keys of all entries; no last keys where they are the first."""
    numbers = np.arange(len(made))
    if all(isinstance(each, bytes) for each in made):
        pairs = np.frombuffer(b"".join(made), np.int64).reshape(-1, 2)  # type: ignore[arg-type]
        sizes = np.fromiter(map(len, made), np.int64, len(made)) // 16
        return np.repeat(numbers, sizes), pairs[:, 0], pairs[:, 1], None
    listed = [
        np.frombuffer(each, np.int64).reshape(-1, 2).tolist() if isinstance(each, bytes) else each
        for each in made
    ]
    flat = [
        (attr, *(key.intervals[0] if isinstance(key, KeySets) else (key, key)))
        for each in listed
        for attr, key in each
    ]
    attr, lo, hi = np.array(flat, np.int64).reshape(-1, 3).T
    owner = np.repeat(numbers, [len(each) for each in listed])
    return owner, attr, lo, None if (lo == hi).all() else hi
