"""The plan of a `vcr` index: which two attributes, which grid, which longest sides.

    attributes   the pair on which most expressions have a range, both ends given; a sample decides
    cuts         every end of a range is a grid line, so that no range has to be expanded; while
                 ranges are then wide on average, only every second, third ... end is one
    sides        the power of two nearest to half the average width.  Section 3.2 of the paper: the
                 optimal L grows with the width; it takes 8 for an average of 10, 16 for 20.  With
                 lists in order, and a point's lists side by side, half of that is faster
                 (`matchwood bench run --suite papers --case vcr`, Figures 6 a, b)

Ends are keys, so a grid line is a key and the plane needs no unit: whole numbers, doubles, dates
and the labels of a dictionary are cut alike, infinities and NaN are keys like others.  Grid point p
stands for all keys from cut p up to the next one; the first for all before, the last for all after.

    keys    MIN ........ 20 ....... 26 ....... 40 ........ MAX
    points  |     0      |    1     |    2     |     3      |     x BETWEEN 20 AND 39: points 1 to 2
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.vcr.change import INNER, RIGHT, TOP, Grid
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY

NONE = -1

WIDE, AIM = 24, 16
"""Ranges wider than WIDE grid points on average get a coarser grid, about AIM wide on it.  Coarser
means fewer VCRs to look at and more ids to test."""

MOST_CELLS = 2**20
"""Grid points of an axis."""

LONGEST = 6
"""Log2 of the longest side that is chosen: a point is covered by (2L + log L)^2 VCRs."""

SMALL_TABLE, TABLE_FACTOR = 2**21, 16
"""`auto` takes a table of so many VCRs, and of so many more for every expression."""

_SAMPLE, _CANDIDATES = 10_000, 24
_HALF_A_RANGE = 0.01
"""What a predicate that is no range with two ends counts when attributes are chosen."""


class Plan(NamedTuple):
    """What a grid is made from."""

    attributes: tuple[int, int]
    cut_x: np.ndarray
    cut_y: np.ndarray
    kx: int
    ky: int

    def suits_table(self, n: int) -> bool:
        """Whether a table of all VCRs is small enough for n expressions."""
        n_places = (self.kx + 1) * (self.ky + 1) * len(self.cut_x) * len(self.cut_y)
        return n_places <= SMALL_TABLE + TABLE_FACTOR * n

    def coarser(self, most: int) -> Plan:
        """The same with every second line of the finer axis left out, until so many VCRs remain."""
        x, y = self.cut_x, self.cut_y
        while (self.kx + 1) * (self.ky + 1) * len(x) * len(y) > most and max(len(x), len(y)) > 1:
            x, y = (x[::2], y) if len(x) >= len(y) else (x, y[::2])
        return self._replace(cut_x=np.ascontiguousarray(x), cut_y=np.ascontiguousarray(y))

    def grid(self) -> Grid:
        shape = np.array([*self.attributes, self.kx, self.ky], np.int64)
        return Grid(self.cut_x, self.cut_y, shape, *covering(self.kx, self.ky, len(self.cut_x)))


class Covering(NamedTuple):
    """The distance table; see the page of this folder (`__init__`) for the arrays."""

    distance: np.ndarray
    step_x: np.ndarray
    step_y: np.ndarray
    edge: np.ndarray


def covering(kx: int, ky: int, range_x: int) -> Covering:
    """The numbers of all VCRs that cover a point, from its pivot VCR's on.

    Beside each, how far its corner is from the pivot's, and where on the VCR the point is: on its
    right side, on its upper side, INNER when on none of the four.  A point that is on no side of a
    VCR is on no side of any rectangle that the VCR is a piece of.

    VCR (x, y, 2^i, 2^j) covers (a, b) when x <= a <= x + 2^i and y <= b <= y + 2^j (Equation 2);
    the pivot is at (a - Lx, b - Ly).
    """
    y, x, j, i = np.meshgrid(
        np.arange((1 << ky) + 1), np.arange((1 << kx) + 1), np.arange(ky + 1), np.arange(kx + 1),
        indexing="ij",
    )  # fmt: skip
    covers = (x + (1 << i) >= 1 << kx) & (y + (1 << j) >= 1 << ky)
    x, y, i, j = x[covers], y[covers], i[covers], j[covers]
    distance = (kx + 1) * (ky + 1) * (x + y * range_x) + j * (kx + 1) + i
    right, up = (1 << kx) - x, (1 << ky) - y  # from the corner to the point
    edge = np.where((right > 0) & (right < 1 << i) & (up > 0) & (up < 1 << j), INNER, 0)
    edge |= np.where(right == 1 << i, RIGHT, 0) | np.where(up == 1 << j, TOP, 0)
    return Covering(
        distance.astype(np.int64), x.astype(np.int32), y.astype(np.int32), edge.astype(np.uint8)
    )


_NO_CUTS = np.array([MIN_KEY])
EMPTY = Plan((NONE, NONE), _NO_CUTS, _NO_CUTS, 0, 0)
"""Where nothing can be placed."""


def make_plan(
    table: ExpressionTable,
    slots: np.ndarray,
    attributes: tuple[int, int] | None,
    cells: tuple[int, int] | None,
    sides: tuple[int, int] | None,
) -> Plan:
    """A plan for expressions; what is given is kept, what is None is chosen."""
    chosen = attributes or choose_attributes(table, slots)
    if NONE in chosen:
        return EMPTY
    ranges = [predicates_on(table, slots, attr) for attr in chosen]
    both = (ranges[0] >= 0) & (ranges[1] >= 0)
    cut, k = [], []
    for axis in (0, 1):
        preds = ranges[axis][both]
        lo = table.predicates.layout.lo[preds]
        hi = table.predicates.layout.hi[preds]
        cut.append(_cuts(lo, hi, cells[axis] if cells else None))
        k.append(_longest(cut[axis], lo, hi) if sides is None else sides[axis].bit_length() - 1)
    return Plan(chosen, cut[0], cut[1], k[0], k[1])


def choose_attributes(table: ExpressionTable, slots: np.ndarray) -> tuple[int, int]:
    """The two attributes that most expressions have ranges on; NONE where there are not two."""
    sample = slots[:: max(1, len(slots) // _SAMPLE)]
    x, p = table.layout, table.predicates.layout
    preds = table.codes_of(sample)
    row = np.repeat(np.arange(len(sample)), x.size[sample])
    is_range = (p.lo[preds] != MIN_KEY) & (p.hi[preds] != MAX_KEY) & (p.lo[preds] < p.hi[preds])
    worth = np.where(is_range, 1.0, _HALF_A_RANGE)
    total = np.bincount(p.attr[preds], worth)
    found = np.argsort(-total, kind="stable")[:_CANDIDATES]
    found = np.sort(found[total[found] > 0])
    worths = np.zeros((len(sample), len(found)))
    position = np.searchsorted(found, p.attr[preds])
    known = found[np.minimum(position, len(found) - 1)] == p.attr[preds]
    worths[row[known], position[known]] = worth[known]
    together = np.triu(worths.T @ worths, 1)
    if not together.any():
        return (NONE, NONE)
    first, second = divmod(int(np.argmax(together)), len(found))
    return int(found[first]), int(found[second])


def predicates_on(table: ExpressionTable, slots: np.ndarray, attr: int) -> np.ndarray:
    """The predicate of each expression on an attribute, -1 for none."""
    x = table.layout
    preds = table.codes_of(slots)
    mine = table.predicates.layout.attr[preds] == attr
    found = np.full(len(slots), -1, np.int64)
    found[np.repeat(np.arange(len(slots)), x.size[slots])[mine]] = preds[mine]
    return found


def _cuts(lo: np.ndarray, hi: np.ndarray, cells: int | None) -> np.ndarray:
    """The first key of every grid point, ascending, MIN_KEY first."""
    ends = np.unique(np.concatenate([lo[lo != MIN_KEY], hi[hi != MAX_KEY] + 1]))
    every = 1
    if cells is not None:
        every = -(-len(ends) // (cells - 1)) if cells > 1 else len(ends) + 1
    elif len(ends):
        width = _width(ends, lo, hi)
        every = max(round(width / AIM) if width > WIDE else 1, -(-len(ends) // (MOST_CELLS - 1)))
    kept = ends[every - 1 :: every] if every > 1 else ends
    return np.concatenate([_NO_CUTS, kept])


def _width(cut: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> float:
    """The average width of ranges with two ends, in grid points; of a sample of them."""
    every = max(1, len(lo) // _SAMPLE)
    lo, hi = lo[::every], hi[::every]
    bounded = (lo != MIN_KEY) & (hi != MAX_KEY)
    if not bounded.any():
        return 1.0
    left = np.searchsorted(cut, lo[bounded], "right")
    right = np.searchsorted(cut, hi[bounded], "right")
    return max(1.0, float((right - left).mean()))


def _longest(cut: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> int:
    return min(LONGEST, max(0, round(math.log2(_width(cut, lo, hi) / 2))))
