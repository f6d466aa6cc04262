"""Ordered dictionary: constants in use get keys that keep their order; all between two share one.

Idea.    Only the order of an event's value among the constants of the subscriptions matters.  So a
         constant gets a *label*, an int64 with wide gaps to its neighbours, and a value between two
         constants gets the key `label + 1` of the lower one.

             constants        'ale'              'gin'              'rum'
             labels       -2^32                  0                  2^32
             x > 'ale'           [-2^32 + 1 ..................................
             x < 'gin'    ..................... -1]
             event 'beer'        -2^32 + 1

New ones. A new constant takes a label inside its gap.  No existing key moves, so nothing that was
         encoded before has to change: the two predicates above stay right when 'cider' arrives.
         Runs in rising or falling order take small steps, other constants the middle; bulk loads
         spread evenly.  Only when a gap is used up are all labels spread again (`relabel`), and the
         owner rewrites the keys of that one attribute.
Why.     An int64 cannot hold strings, nor all int64s and all doubles together; it can hold their
         order relative to the constants.  Numbers compare as Python compares them: exactly.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sortedcontainers import SortedList

from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

STEP = 2**32
"""Distance between labels at the ends and after relabelling: 2^31 constants before it shrinks."""

FEW = 8_192
"""Constants up to which they are in a plain list: moving the rest of it for each new one is faster
than finding a place in the parts of a `SortedList`.  Their labels are kept as an array, too."""

COPIED_FOR_ONE = 256
"""Constants that are copied to a plain list for each new one, where bisecting is faster."""

RUN_SHIFT = 12
"""From the third constant of a rising or falling run on, one takes 1/4096 of its gap, not half."""

Made = TypeVar("Made")

LOWEST_LABEL, HIGHEST_LABEL = -(2**63) + 2, 2**63 - 3


class Relabelling(NamedTuple):
    """Labels before and after, both ascending: position i was `old[i]` and is `new[i]`."""

    old: np.ndarray
    new: np.ndarray


def are_ends(labels: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which labels are an interval's end, or right beside one."""
    ends = np.unique(ends)
    edges = np.concatenate([ends, ends[ends < MAX_KEY] + 1, ends[ends > MIN_KEY] - 1])
    return np.isin(labels, edges)


class _Listed(list[Any]):
    """Few constants, ascending."""

    def bisect_right(self, value: Any) -> int:
        return bisect_right(self, value)


def measure(value: Any) -> int | None:
    """A string's bytes in UTF-8, or an int itself if all doubles beside it are ints; else None."""
    if type(value) is str:
        return len(value) if value.isascii() else len(value.encode())
    return value if type(value) is int and -(2**53) < value < 2**53 else None


class OrderedDictionary:
    """The constants of one attribute, ascending, with their labels."""

    def __init__(self, step: int = STEP) -> None:
        self.values: _Listed | SortedList = _Listed()
        self.label_of: dict[Any, int] = {}
        self._step = step
        self._last: Any = None  # the last new constant, and on which side of the one before it
        self._direction = 0
        self._relabelling: Relabelling | None = None
        self._kept: Any = None
        self._labels: array[int] | None = None
        """Those of few constants, from when they are first asked for."""
        self._measures: array[int] | None = None
        """What `measure` gives for each, as `_labels`."""
        self._are_measured = True
        """Whether `measure` is not known to give None for one."""
        self._looked_at: tuple[frozenset[Any], int] = frozenset(), 0
        """What `adjacent` found, and in how many of label_of, whose last ones are the newest."""

    def __len__(self) -> int:
        return len(self.label_of)

    def add(self, values: Iterable[Any]) -> None:
        """Make sure that every value has a label."""
        fresh = [value for value in values if value not in self.label_of]
        if not fresh:
            return
        self._kept = None
        fresh = sorted(set(fresh))
        # Looking at items of a plain list is ten times faster; copying is fast, too.
        is_copied = len(self.values) <= COPIED_FOR_ONE * len(fresh)
        known = list(self.values) if is_copied and not self._are_few else self.values
        runs = _runs(fresh, known)
        if all(self._insert(run, known, at) for run, at in runs):
            self._put(fresh, runs)
        else:
            self._relabel(fresh)
            self._take_values(sorted([*self.values, *fresh]))
        self._last = fresh[-1]

    @property
    def _are_few(self) -> bool:
        return isinstance(self.values, _Listed)

    def _put(self, fresh: list[Any], runs: list[tuple[list[Any], int]]) -> None:
        """Take new constants, which have labels, before positions of known ones."""
        values = self.values
        if not isinstance(values, _Listed):
            values.update(fresh)
            self._number()
            return
        if len(values) + len(fresh) > FEW:
            self._take_values(sorted([*values, *fresh]))
            return
        labels, measures = self._labels, self._measures
        for run, at in reversed(runs):  # positions before it stay
            values[at:at] = run
            if labels is not None:
                labels[at:at] = array("q", [self.label_of[value] for value in run])
            if measures is not None:
                found = [measure(value) for value in run]
                if None in found:
                    measures = self._measures = None
                    self._are_measured = False
                else:
                    measures[at:at] = array("q", found)  # type: ignore[arg-type]

    def _take_values(self, values: list[Any]) -> None:
        """Have these constants, ascending."""
        self.values = _Listed(values) if len(values) <= FEW else SortedList(values)
        self._labels = self._measures = None
        self._are_measured = self._are_few
        self._number()

    def key(self, value: Any) -> int:
        """The key of an event's value: its label, or the key of the gap it falls into."""
        label = self.label_of.get(value)
        return self.gap(value) if label is None else label

    def gap(self, value: Any) -> int:
        """The key of all values between the same two constants as this one."""
        at = self.values.bisect_right(value)
        if at:
            return self.label_of[self.values[at - 1]] + 1
        return self.label_of[self.values[0]] - 1 if self.values else 0

    def labels(self) -> np.ndarray:
        """All labels, ascending."""
        known = self._labels
        if known is None:
            found = map(self.label_of.__getitem__, self.values)
            if not self._are_few:
                return np.fromiter(found, np.int64, len(self.label_of))
            known = self._labels = array("q", found)
        return np.frombuffer(bytearray(known), np.int64)

    def measures(self) -> np.ndarray | None:
        """What `measure` gives for each constant, where these are few and it gives all a number."""
        if not self._are_measured:
            return None
        known = self._measures
        if known is None:
            found = list(map(measure, self.values))
            if None in found:
                self._are_measured = False
                return None
            known = self._measures = array("q", found)  # type: ignore[arg-type]
        return np.frombuffer(bytearray(known), np.int64)

    def kept(self, make: Callable[[OrderedDictionary], Made]) -> Made:
        """What `make`, always the same, makes of the constants; again only when they change."""
        if self._kept is None:
            self._kept = make(self)
        made: Made = self._kept
        return made

    def adjacent(self, after: Callable[[Any], Any], before: Callable[[Any], Any]) -> frozenset[Any]:
        """The constants whose next value is a constant, too; only new ones are looked at.

        `after` and `before` give the next value of a constant on either side, or None.
        """
        known, n = self._looked_at
        if n < len(self.label_of):  # several threads may find the same at the same time
            more = set()
            for value in islice(reversed(self.label_of), len(self.label_of) - n):
                if after(value) in self.label_of:
                    more.add(value)
                if before(value) in self.label_of:
                    more.add(before(value))
            known |= more
            self._looked_at = known, len(self.label_of)
        return known

    def value_of(self, label: int) -> Any:
        """The constant that has a label, or None."""
        low, high = 0, len(self.values)
        while low < high:
            middle = (low + high) // 2
            if self.label_of[self.values[middle]] < label:
                low = middle + 1
            else:
                high = middle
        found = self.values[low] if low < len(self.values) else None
        return found if found is not None and self.label_of[found] == label else None

    def keep(self, ends: np.ndarray) -> None:
        """Forget the constants whose label is not an interval's end, nor right beside one."""
        labels = self.labels()
        used = are_ends(labels, ends)
        if not used.all():
            values = [value for value, keep in zip(self.values, used.tolist(), strict=True) if keep]
            self.restore(values, labels[used].tolist())

    def take_relabelling(self) -> Relabelling | None:
        """What the last `add` moved, once: the owner rewrites keys that it stored."""
        moved, self._relabelling = self._relabelling, None
        return moved

    def restore(self, values: list[Any], labels: list[int]) -> None:
        """Take over constants and labels of a snapshot."""
        label_of = dict(zip(values, labels, strict=True))
        self.label_of, self._last, self._kept = label_of, None, None
        self._looked_at = frozenset(), 0
        self._take_values(sorted(values))

    def take(self, label_of: dict[Any, int]) -> None:
        """Labels as they were before a change that is undone."""
        self.restore(list(label_of), list(label_of.values()))
        self._relabelling = None

    def _number(self) -> None:
        """Have the list number its parts now: it does so when a position is first asked for, and
        events of several threads ask at the same time.
        """
        if self.values and not self._are_few:
            self.values.index(self.values[-1])

    def _insert(self, run: list[Any], known: Sequence[Any], at: int) -> bool:
        """Labels for new constants before position `at` of known ones; False without room."""
        n = len(run)
        below = self.label_of[known[at - 1]] if at > 0 else None
        above = self.label_of[known[at]] if at < len(known) else None
        if below is not None and above is not None:
            direction = 0
            if n == 1 and self._last is not None:
                direction = (known[at - 1] == self._last) - (known[at] == self._last)
            start, step = self._inside(below, above, n, direction)
        elif below is not None:
            start, step = below + self._step, self._step
        elif above is not None:
            start, step = above - n * self._step, self._step
        else:
            start, step = -(n // 2) * self._step, self._step
        if step < 2 or start < LOWEST_LABEL or start + (n - 1) * step > HIGHEST_LABEL:
            return False
        for i, value in enumerate(run):
            self.label_of[value] = start + i * step
        return True

    def _inside(self, below: int, above: int, n: int, direction: int) -> tuple[int, int]:
        """First label and step for n constants inside a gap; a step below 2 means no room.

        direction  1 or -1 for one right above, or below, the last new one; else 0
        """
        gap = above - below
        step = gap // (n + 1)
        direction = direction if step >= 2 else 0
        in_a_run, self._direction = direction != 0 and direction == self._direction, direction
        if in_a_run:
            small = max(2, gap >> RUN_SHIFT)
            return (below + small if direction > 0 else above - small), step
        return below + step, step

    def _relabel(self, fresh: list[Any]) -> None:
        """Spread all labels evenly again, new constants among them."""
        old_values = list(self.values)
        old = np.array([self.label_of[value] for value in old_values], np.int64)
        values = sorted([*old_values, *fresh])
        step = min(self._step, (HIGHEST_LABEL - LOWEST_LABEL) // (len(values) + 1))
        start = -(len(values) // 2) * step
        self.label_of = {value: start + i * step for i, value in enumerate(values)}
        new = np.array([self.label_of[value] for value in old_values], np.int64)
        self._relabelling = Relabelling(old, new)
        self._looked_at = frozenset(), 0


def _runs(fresh: list[Any], known: Sequence[Any]) -> list[tuple[list[Any], int]]:
    """New constants grouped by the gap between known ones that they fall into."""
    runs: list[tuple[list[Any], int]] = []
    i = at = 0
    while i < len(fresh):
        at = bisect_left(known, fresh[i], at)
        j = bisect_left(fresh, known[at], i) if at < len(known) else len(fresh)
        runs.append((fresh[i:j], at))
        i = j
    return runs
