"""Table 3 of the PS-Tree paper: stabbing the intervals of one attribute.

    python -m matchwood.bench.table_3

100,000 intervals and 100,000 keys, both even over a million keys; an interval is up to 1,000 keys
long (the paper does not say; its memory for PS-Tree is that of such intervals).  A query copies all
intervals that contain the key.  All structures must find as many, and the same sum of numbers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matchwood.index.stabbing.interval_tree import IntervalTree
from matchwood.index.stabbing.ps_tree import TRIE, PSTree
from matchwood.index.stabbing.segment_tree import SegmentTree

DOMAIN, LONGEST = 1_000_000, 1_000
_SCANNED = 200
"""Keys that a scan is timed on; its time is that for all keys."""


class Row(NamedTuple):
    """A line of the table."""

    structure: str
    query_seconds: float
    build_seconds: float
    nbytes: int
    found: tuple[int, int]


class _Scan:
    def __init__(self, lo: np.ndarray, hi: np.ndarray) -> None:
        self._lo, self._hi = lo, hi
        self.nbytes = 0

    def stab(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [np.flatnonzero((self._lo <= key) & (key <= self._hi)) for key in keys]
        return np.cumsum([0, *map(len, found)]), np.concatenate([*found, np.empty(0, np.int64)])


class _Trie(PSTree):
    """The paper's tree of elements, predicates inserted one by one."""

    @classmethod
    def of_intervals(cls, lo: np.ndarray, hi: np.ndarray) -> _Trie:
        tree = cls(TRIE)
        for id_, ends in enumerate(zip(lo.tolist(), hi.tolist(), strict=True)):
            tree.insert(id_, [ends])
        return tree


STRUCTURES: dict[str, Callable[..., Any]] = {
    "scan": _Scan,
    "interval_tree": IntervalTree,
    "segment_tree": SegmentTree,
    "ps_tree": PSTree.of_intervals,
    "ps_tree, trie": _Trie.of_intervals,
}
"""What stabs, by name; the trie is the paper's own form and not part of `measure`."""


def drawn(n: int, n_keys: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals and keys."""
    rng = np.random.default_rng(seed)
    lo = rng.integers(0, DOMAIN, n)
    return lo, lo + rng.integers(0, LONGEST, n), rng.integers(0, DOMAIN, n_keys)


def measure(n: int = 100_000, n_keys: int = 100_000, repetitions: int = 5) -> list[Row]:
    """Every structure on the same intervals and keys, the fastest of some repetitions."""
    lo, hi, keys = drawn(n, n_keys, seed=1)
    makers = {name: make for name, make in STRUCTURES.items() if "trie" not in name}
    few = keys[: min(_SCANNED, n_keys)]
    rows = []
    for name, make in makers.items():
        make(lo[:10], hi[:10]).stab(keys[:10])  # compile
        began = time.perf_counter()
        tree = make(lo, hi)
        build = time.perf_counter() - began
        times = []
        asked = few if name == "scan" else keys
        for _ in range(repetitions):
            began = time.perf_counter()
            tree.stab(asked)
            times.append((time.perf_counter() - began) * len(keys) / len(asked))
        offsets, ids = tree.stab(few)
        found = (int(offsets[-1]), int(ids.sum(dtype=np.int64)))
        rows.append(Row(name, min(times), build, tree.nbytes, found))
        if found != rows[0].found:
            raise AssertionError(f"{name}: expected {rows[0].found}, found {found}")
    return rows


def main() -> None:
    head = f"{'index':14} {'query ms':>10} {'build ms':>10} {'MB':>8}"
    lines = [
        f"{row.structure:14} {row.query_seconds * 1e3:10.2f} {row.build_seconds * 1e3:10.2f} "
        f"{row.nbytes / 1e6:8.2f}"
        for row in measure()
    ]
    sys.stdout.write("\n".join([head, *lines]) + "\n")


if __name__ == "__main__":
    main()
