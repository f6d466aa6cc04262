"""Survey: derived expressions of BEGen, row by row, each different from all before it.

Idea.    A row is drawn from (seed, row, attempt).  The survey finds each row's attempt: the first
         that is long enough and new.  Duplicates are rare, but to know one needs all rows before
         it; so the survey walks the rows once, up to the highest that was asked for, and keeps
         three small numbers a row.  Any chunk is then written at once.
Cost.    For a million rows of the defaults some 0.7 s to survey, and as much again to write
         (docs/workloads.md has the command); 12 bytes a row and 16 to 32 for its signature.

Layout   found    int32[rows, 3]  attempt, predicates, values
         seen     uint64[2^k]     signatures of all rows, open addressing, at most half full
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import numpy as np

from matchwood.errors import MatchwoodError
from matchwood.kernel.arrays import doubled, offsets_of
from matchwood.workload.begen_bases import Bases
from matchwood.workload.begen_kernels import MAX_LIST, rehash, survey, write

BLOCK = 1 << 16
"""Rows surveyed and written at a time."""

_UNUSED = np.iinfo(np.int64).min

MOST_ATTEMPTS = 10_000
"""After so many attempts there are no new expressions to be found."""


class Rules(NamedTuple):
    """How an expression is derived from its base."""

    key: np.uint64
    cardinality: int
    keep: float
    """Pr_pred."""
    fewest: int
    equality: float
    """1 - Pr_trans."""
    operators: np.ndarray
    """What the transformed predicates become, each equally often."""
    narrow: float
    wide: float
    """Widths of ranges are even between these."""


class Predicates(NamedTuple):
    """Predicates of some rows, one after the other; predicate i has the next n_values[i] values."""

    attr: np.ndarray
    op: np.ndarray
    n_values: np.ndarray
    values: np.ndarray


class Survey:
    """Derived expressions by row."""

    def __init__(
        self,
        rules: Rules,
        most_predicates: int,
        bases_of: Callable[[np.ndarray], tuple[Bases, np.ndarray]],
    ) -> None:
        self._rules = rules
        self._bases_of = bases_of
        self._scratch = _room(most_predicates, most_predicates * MAX_LIST)
        self._seen = np.zeros(1024, np.uint64)
        self._found = np.zeros((0, 3), np.int32)
        self._n = 0
        self._lock = Lock()

    def rows(self, first: int, last: int) -> tuple[np.ndarray, Predicates]:
        """The number of predicates of each row, and the predicates."""
        self._reach(last)
        attempt, n, n_values = self._found[first:last].T.astype(np.int64, order="C")
        row_start = offsets_of(n)
        value_start = offsets_of(n_values)
        out = _room(int(row_start[-1]), int(value_start[-1]))
        for at in range(0, last - first, BLOCK):
            part = slice(at, min(at + BLOCK, last - first))
            bases, base_of = self._bases_of(np.arange(first + part.start, first + part.stop))
            write(
                self._rules,
                bases,
                base_of,
                first + at,
                attempt[part],
                row_start[part],
                value_start[part],
                out,
            )
        return n, out

    def _reach(self, last: int) -> None:
        with self._lock:
            while self._n < last:
                self._extend(min(last, self._n + BLOCK))

    def _extend(self, until: int) -> None:
        first = self._n
        if len(self._found) < until:
            longer = np.zeros((doubled(len(self._found), until), 3), np.int32)
            longer[:first] = self._found[:first]
            self._found = longer
        if len(self._seen) < 2 * until:
            seen = np.zeros(doubled(len(self._seen), 2 * until), np.uint64)
            rehash(self._seen, seen)
            self._seen = seen
        bases, base_of = self._bases_of(np.arange(first, until))
        found = self._found[first:until]
        done = survey(
            self._rules, bases, base_of, first, self._scratch, self._seen, found, MOST_ATTEMPTS
        )
        self._n += done
        if self._n < until:
            raise MatchwoodError(
                f"expected {until:,} different subscriptions, found no new one after "
                f"{self._n:,}: raise event_size or cardinality, or lower equality or "
                "match_probability"
            )


def derive_all(rules: Rules, bases: Bases, first: int) -> Predicates:
    """An expression from each base, as rows first, first + 1, ..., whether new or not.

    Every predicate has room for the longest list; `values` is closed up afterwards.
    """
    sizes = np.diff(bases.start)
    room = _room(len(bases.attr), len(bases.attr) * MAX_LIST)
    n = len(sizes)
    attempt = np.zeros(n, np.int64)
    starts = bases.start[:-1]
    room.values.fill(_UNUSED)
    write(rules, bases, np.arange(n), first, attempt, starts, starts * MAX_LIST, room)
    return room._replace(values=room.values[room.values != _UNUSED])


def _room(n_predicates: int, n_values: int) -> Predicates:
    return Predicates(
        np.empty(n_predicates, np.int32),
        np.empty(n_predicates, np.int8),
        np.empty(n_predicates, np.int8),
        np.empty(n_values, np.int64),
    )
