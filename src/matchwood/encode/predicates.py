"""Predicate table: every distinct (attribute, key set) once, under one id.

Idea.    `x < 9` in a million subscriptions is one predicate.  A hash table finds it; a reference
         count says when it may go.  Nearly all sets are one interval, so that one is stored in
         place; the others keep their hull there and their intervals in an arena.
Cost.    36 bytes a predicate, 16 per interval of sets with several, 8 to 16 for the hash table.

Layout   (P ids, free ones among them)
         attr           int32[P]   attribute id, -1 for a free id
         lo, hi         int64[P]   first and last key of the set (the hull)
         n_intervals    int32[P]   1: the hull is the set
         interval_start int64[P]   otherwise: where its intervals begin
         refs           int32[P]   how many expressions use it
         interval_lo, interval_hi  int64[]   arena
         table          int32[2^k] open addressing, linear probing, at most half full, -1 empty;
                                   of a snapshot it is made at the first change (length 0: not yet)
         free           int32[P]   stack of free ids
         count          int64[5]   HIGH, FREE, N_INTERVALS, GARBAGE, SEED of the hash, random

A snapshot has all but the last three, which follow from the others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from matchwood.encode.dictionary import Relabelling
from matchwood.encode.predicate_kernels import (
    FREE,
    GARBAGE,
    HIGH,
    N_INTERVALS,
    SEED,
    PredicateLayout,
    rehash,
)
from matchwood.kernel.arrays import bytes_of, doubled, grown, slices
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

SAVED = (
    "attr",
    "lo",
    "hi",
    "n_intervals",
    "interval_start",
    "refs",
    "interval_lo",
    "interval_hi",
)
"""The arrays that a snapshot has."""


class PredicateTable:
    """Owns the layout: grows it, compacts it, rewrites keys."""

    def __init__(self, layout: PredicateLayout | None = None) -> None:
        self.layout = layout if layout is not None else _empty(64)

    def __len__(self) -> int:
        return int(self.layout.count[HIGH] - self.layout.count[FREE])

    @property
    def nbytes(self) -> int:
        return bytes_of(self.layout)

    def saved(self) -> dict[str, np.ndarray]:
        """The arrays for a snapshot."""
        p = self.layout
        ids, used = p.count[HIGH], p.count[N_INTERVALS]
        cut = {"interval_lo": used, "interval_hi": used}
        return {name: getattr(p, name)[: cut.get(name, ids)] for name in SAVED}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> PredicateTable:
        """A table from the arrays of a snapshot."""
        saved = {name: arrays[name] for name in SAVED}
        attr = saved["attr"]
        unused = np.flatnonzero(attr < 0)
        n_intervals = saved["n_intervals"]
        if len(unused):
            n_intervals[unused] = 1  # whatever is there: nothing points into the arena
        several = int(n_intervals[n_intervals > 1].sum(dtype=np.int64))
        free, arena = np.zeros(len(attr), np.int32), len(saved["interval_lo"])
        free[: len(unused)] = unused
        count = _counts()
        count[[HIGH, FREE, N_INTERVALS, GARBAGE]] = len(attr), len(unused), arena, arena - several
        return cls(PredicateLayout(**saved, table=np.empty(0, np.int32), free=free, count=count))

    def make_findable(self) -> None:
        """Make the hash table, if a snapshot came without it; call before `release`."""
        if not len(self.layout.table):
            self._rehash(doubled(128, 2 * len(self)))

    def intervals(self, pred: int) -> tuple[tuple[int, int], ...]:
        """The key set of a predicate."""
        p = self.layout
        if p.n_intervals[pred] == 1:
            return ((int(p.lo[pred]), int(p.hi[pred])),)
        start = p.interval_start[pred]
        end = start + p.n_intervals[pred]
        return tuple(
            zip(p.interval_lo[start:end].tolist(), p.interval_hi[start:end].tolist(), strict=True)
        )

    def uses(self, attr: int) -> bool:
        """Whether any predicate tests an attribute."""
        return bool((self.layout.attr[: self.layout.count[HIGH]] == attr).any())

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Attribute and key of both ends of every interval in use."""
        p = self.layout
        used = np.flatnonzero(p.attr[: p.count[HIGH]] >= 0)
        one = used[p.n_intervals[used] == 1]
        several = used[p.n_intervals[used] > 1]
        at = slices(p.interval_start[several], p.n_intervals[several])
        attr = np.concatenate([p.attr[one], np.repeat(p.attr[several], p.n_intervals[several])])
        lo = np.concatenate([p.lo[one], p.interval_lo[at]])
        hi = np.concatenate([p.hi[one], p.interval_hi[at]])
        return np.concatenate([attr, attr]), np.concatenate([lo, hi])

    def make_room(self, n_predicates: int, n_intervals: int) -> None:
        """Double what is too small for that many more."""
        p = self.layout
        if p.count[GARBAGE] * 2 > p.count[N_INTERVALS]:
            self._compact_intervals()
            p = self.layout
        ids = doubled(len(p.attr), int(p.count[HIGH]) + n_predicates)
        arena = doubled(len(p.interval_lo), int(p.count[N_INTERVALS]) + n_intervals)
        slots = doubled(len(p.table), 2 * (len(self) + n_predicates))
        self.layout = p._replace(
            attr=grown(p.attr, ids, -1),
            lo=grown(p.lo, ids),
            hi=grown(p.hi, ids),
            n_intervals=grown(p.n_intervals, ids),
            interval_start=grown(p.interval_start, ids),
            refs=grown(p.refs, ids),
            free=grown(p.free, ids),
            interval_lo=grown(p.interval_lo, arena),
            interval_hi=grown(p.interval_hi, arena),
        )
        if slots > len(p.table):
            self._rehash(slots)

    def rekey(self, attr: int, moved: Relabelling) -> None:
        """Rewrite the keys of one attribute after its dictionary was relabelled."""
        p = self.layout
        mine = np.flatnonzero(p.attr[: p.count[HIGH]] == attr)
        p.lo[mine] = moved_keys(p.lo[mine], moved, MIN_KEY, 1)
        p.hi[mine] = moved_keys(p.hi[mine], moved, MAX_KEY, -1)
        several = mine[p.n_intervals[mine] > 1]
        at = slices(p.interval_start[several], p.n_intervals[several])
        p.interval_lo[at] = moved_keys(p.interval_lo[at], moved, MIN_KEY, 1)
        p.interval_hi[at] = moved_keys(p.interval_hi[at], moved, MAX_KEY, -1)
        if len(p.table):
            self._rehash(len(p.table))

    def compacted(self) -> np.ndarray:
        """Give predicates new ids without gaps and shrink; returns new id by old id (-1: gone)."""
        p = self.layout
        used = np.flatnonzero(p.attr[: p.count[HIGH]] >= 0)
        renumbered = np.full(len(p.attr), -1, np.int32)
        renumbered[used] = np.arange(len(used), dtype=np.int32)
        fresh = _empty(doubled(64, len(used) + 1))
        for name in ("attr", "lo", "hi", "n_intervals", "interval_start", "refs"):
            getattr(fresh, name)[: len(used)] = getattr(p, name)[used]
        fresh.count[HIGH] = len(used)
        self.layout = fresh._replace(
            interval_lo=p.interval_lo,
            interval_hi=p.interval_hi,
            table=np.full(doubled(128, 2 * len(used)), -1, np.int32),
        )
        self._compact_intervals()
        rehash(self.layout)
        return renumbered

    def _rehash(self, slots: int) -> None:
        self.layout = self.layout._replace(table=np.full(slots, -1, np.int32))
        rehash(self.layout)

    def _compact_intervals(self) -> None:
        p = self.layout
        several = np.flatnonzero(
            (p.attr[: p.count[HIGH]] >= 0) & (p.n_intervals[: p.count[HIGH]] > 1)
        )
        sizes = p.n_intervals[several].astype(np.int64)
        at = slices(p.interval_start[several], sizes)
        p.interval_start[several] = np.cumsum(sizes) - sizes
        room = doubled(64, len(at))
        self.layout = p._replace(
            interval_lo=grown(p.interval_lo[at], room),
            interval_hi=grown(p.interval_hi[at], room),
        )
        p.count[N_INTERVALS] = len(at)
        p.count[GARBAGE] = 0


def _empty(size: int) -> PredicateLayout:
    return PredicateLayout(
        attr=np.full(size, -1, np.int32),
        lo=np.zeros(size, np.int64),
        hi=np.zeros(size, np.int64),
        n_intervals=np.zeros(size, np.int32),
        interval_start=np.zeros(size, np.int64),
        refs=np.zeros(size, np.int32),
        interval_lo=np.zeros(64, np.int64),
        interval_hi=np.zeros(64, np.int64),
        table=np.full(2 * size, -1, np.int32),
        free=np.zeros(size, np.int32),
        count=_counts(),
    )


def _counts() -> np.ndarray:
    count = np.zeros(5, np.int64)
    count[SEED] = int.from_bytes(os.urandom(8), signed=True)
    return count


def moved_keys(keys: np.ndarray, moved: Relabelling, end: np.int64, inward: int) -> np.ndarray:
    """New keys of interval ends: a label, the key just inside a label, or the very end."""
    if len(moved.old) == 0:
        return keys
    last = len(moved.old) - 1
    at = np.searchsorted(moved.old, keys)
    on_label = moved.old[np.minimum(at, last)] == keys
    positions = np.searchsorted(moved.old, keys - inward)
    fresh = np.where(
        on_label, moved.new[np.minimum(at, last)], moved.new[np.minimum(positions, last)] + inward
    )
    result: np.ndarray = np.where(keys == end, end, fresh)
    return result
