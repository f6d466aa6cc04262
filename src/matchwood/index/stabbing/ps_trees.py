"""PS-Trees of all attributes: the predicates that events satisfy, found in predicate spaces.

Idea.    Every attribute that predicates are on has a `PSTree`.  A value falls into one space, whose
         list is exactly what it satisfies: one lookup and one copy.
Source.  A-Tree, section 5, names the PS-Tree among the structures for its predicate phase; PS-Tree,
         section 4.
Differs. A set of several intervals is entered once for each: they are disjoint, so a value finds
         it once.  An interval-valued entry is compared with all intervals of its attribute.
Cost.    A batch asks each attribute once, with all of its values: some microseconds an attribute,
         so few events at a time are slow.  4 bytes for every space that an interval covers, 21 an
         interval; `stabbing` takes 4 for each of the few nodes it is on.  Entering and leaving
         O(spaces covered).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.stabbing.ps_tree import PSTree
from matchwood.kernel.arrays import doubled, grown, slices
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

_SMALL = 16


class _Intervals:
    """The intervals of one attribute by their id, and the tree over them; an id is used once."""

    def __init__(self, pred: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
        self.pred, self.lo, self.hi = pred.astype(np.int32), lo, hi
        self.is_held = np.ones(len(pred), bool)
        self.n = self.n_held = len(pred)
        self.tree = PSTree.of_intervals(lo, hi)

    @property
    def nbytes(self) -> int:
        arrays = sum(each.nbytes for each in (self.pred, self.lo, self.hi, self.is_held))
        return arrays + self.tree.nbytes

    def held(self) -> np.ndarray:
        return np.flatnonzero(self.is_held[: self.n])

    def add(self, pred: int, lo: int, hi: int) -> None:
        size, i = doubled(max(len(self.pred), _SMALL), self.n + 1), self.n
        self.pred, self.is_held = grown(self.pred, size), grown(self.is_held, size)
        self.lo, self.hi = grown(self.lo, size), grown(self.hi, size)
        self.pred[i], self.lo[i], self.hi[i], self.is_held[i] = pred, lo, hi, True
        self.tree.insert(i, [_open(lo, hi)])
        self.n += 1
        self.n_held += 1

    def remove(self, pred: int) -> None:
        """All intervals of a predicate."""
        for i in np.flatnonzero((self.pred[: self.n] == pred) & self.is_held[: self.n]).tolist():
            self.tree.delete(i, [_open(int(self.lo[i]), int(self.hi[i]))])
            self.is_held[i] = False
            self.n_held -= 1

    def closed_up(self) -> _Intervals:
        """The same intervals, when most ids are no longer in use under new ones."""
        if self.n < 2 * self.n_held + _SMALL:
            return self
        held = self.held()
        return _Intervals(self.pred[held], self.lo[held], self.hi[held])

    def meeting(self, lo: int, hi: int) -> np.ndarray:
        """Predicates that have a key of lo..hi."""
        meets = (self.lo[: self.n] <= hi) & (lo <= self.hi[: self.n]) & self.is_held[: self.n]
        return self.pred[np.flatnonzero(meets)]


def _open(lo: int, hi: int) -> tuple[int | None, int | None]:
    return None if lo == MIN_KEY else lo, None if hi == MAX_KEY else hi


class PSTrees:
    """Owns the trees."""

    def __init__(self) -> None:
        self._by_attr: dict[int, _Intervals] = {}
        self._n_held = 0

    def __len__(self) -> int:
        return self._n_held

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._by_attr.values())

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def build(self, table: ExpressionTable, uses: np.ndarray) -> None:
        """Hold the predicates that are used (by id), and no others."""
        p, preds = table.predicates.layout, np.flatnonzero(uses)
        pred, lo, hi = _intervals(p, preds)
        self._n_held = len(preds)
        self._by_attr = {
            attr: _Intervals(pred[at], lo[at], hi[at]) for attr, at in _grouped(p.attr[pred])
        }

    def hold_all(self, table: ExpressionTable, preds: np.ndarray) -> None:
        """Hold predicates that are not held yet."""
        p = table.predicates.layout
        for pred in preds.tolist():
            attr = int(p.attr[pred])
            if attr not in self._by_attr:
                self._by_attr[attr] = _Intervals(*(np.empty(0, np.int64) for _ in range(3)))
            for lo, hi in table.predicates.intervals(pred):
                self._by_attr[attr].add(pred, lo, hi)
        self._n_held += len(preds)

    def drop_all(self, table: ExpressionTable, preds: np.ndarray) -> None:
        p = table.predicates.layout
        for pred in preds.tolist():
            attr = int(p.attr[pred])
            self._by_attr[attr].remove(pred)
            if self._by_attr[attr].n_held == 0:
                del self._by_attr[attr]
            else:
                self._by_attr[attr] = self._by_attr[attr].closed_up()
        self._n_held -= len(preds)

    def settle(self, table: ExpressionTable) -> None:
        """Nothing waits here."""

    def thaw(self) -> None:
        """Nothing here comes from a memory map: a snapshot leaves the trees out."""

    def saved(self) -> dict[str, np.ndarray]:
        return {}

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    def find(self, events: EventBatch, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The predicates that events first .. last - 1 satisfy: offsets and ids."""
        begin, end = int(events.start[first]), int(events.start[last])
        attr, lo, hi = (each[begin:end] for each in (events.attr, events.lo, events.hi))
        size = np.zeros(end - begin, np.int64)
        pieces = []
        for which, entries in _grouped(attr):
            if which in self._by_attr:
                x = self._by_attr[which]
                points = entries[lo[entries] == hi[entries]]
                offsets, ids = x.tree.stab(lo[points])
                size[points] = np.diff(offsets)
                pieces.append((points, x.pred[ids]))
                for entry in entries[lo[entries] != hi[entries]].tolist():
                    found = _meeting(x, events, begin + entry)
                    size[entry] = len(found)
                    pieces.append((np.array([entry]), found))
        start = np.concatenate([[0], np.cumsum(size)])
        out = np.empty(int(start[-1]), np.int32)
        for entries, ids in pieces:
            out[slices(start[entries], size[entries])] = ids
        return start[events.start[first : last + 1] - begin], out

    def stats(self) -> dict[str, Any]:
        spaces = sum(len(each.tree) for each in self._by_attr.values())
        return {"predicates": len(self), "spaces": spaces}


def _intervals(p: PredicateLayout, preds: np.ndarray) -> tuple[np.ndarray, ...]:
    """Predicate, lo and hi of all intervals of predicates."""
    one, several = preds[p.n_intervals[preds] == 1], preds[p.n_intervals[preds] > 1]
    n = p.n_intervals[several]
    at = slices(p.interval_start[several], n)
    return (
        np.concatenate([one, np.repeat(several, n)]),
        np.concatenate([p.lo[one], p.interval_lo[at]]),
        np.concatenate([p.hi[one], p.interval_hi[at]]),
    )


def _grouped(attr: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each attribute and the positions it stands at, both ascending."""
    order = np.argsort(attr, kind="stable")
    known, n = np.unique(attr, return_counts=True)
    ends = np.cumsum(n)
    for which, begin, end in zip(known.tolist(), ends - n, ends, strict=True):
        yield which, order[begin:end]


def _meeting(x: _Intervals, events: EventBatch, entry: int) -> np.ndarray:
    """Predicates that an interval-valued entry satisfies, each once."""
    if len(events.more) == 0 or events.more[entry] < 0:
        found = x.meeting(int(events.lo[entry]), int(events.hi[entry]))
    else:
        which = int(events.more[entry])
        begin, end = int(events.more_start[which]), int(events.more_start[which + 1])
        each = zip(
            events.more_lo[begin:end].tolist(), events.more_hi[begin:end].tolist(), strict=True
        )
        found = np.concatenate([x.meeting(lo, hi) for lo, hi in each])
    return np.unique(found)
