"""Skew2D: rectangles that overlap a lot, and points that fall where the rectangles are.

Idea.    People share interests: alpha of all rectangles begin in a region that is beta of the
         plane, in its middle.  Points follow the same rule, so most of them lie where most
         rectangles do, and match thousands.
Source.  VCR Indexing for Fast Event Matching, section 3.1; the presets are its figures.
Rules.   The bottom-left corner (a, b) is a grid point of the region with probability alpha, else
         one outside of it; all grid points alike.  The width is even on 1 .. width_x, the height on
         1 .. width_y.  A subscription is `x BETWEEN a AND a + w AND y BETWEEN b AND b + h`.
         Points 0 <= x < range_x, 0 <= y < range_y.
Chosen   where the paper is silent: 60,000 is 300 x 200 and 3,000,000 is 2,000 x 1,500; the region
         has the shape of the plane; the other 1 - alpha lie outside of the region, so that its
         share is alpha and no more; a rectangle ends at the border of the plane at the latest.
Real.    `whole = False` adds a fraction to corners, widths and points: coordinates of a map.
Matches. Inside the region, away from its border, a point meets about
         n * alpha * (width_x + 3) / 2 * (width_y + 3) / 2 / (beta * range_x * range_y) rectangles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchwood.encode.schema import Schema
from matchwood.workload.draws import Draws
from matchwood.workload.interface import Workload
from matchwood.workload.tables import coded, entry_table, predicate_table

_MODERATE = {"range_x": 300, "range_y": 200}
_LARGE = {"range_x": 2_000, "range_y": 1_500}
_UNIFORM = {"alpha": 1.0, "beta": 1.0}
_SIZES = tuple({"n_subscriptions": n} for n in (32_000, 64_000, 128_000, 256_000))

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"n_subscriptions": 10_000, "n_events": 200},
    "small": {"n_subscriptions": 100_000, "n_events": 1_000},
    "figure-6a": {**_MODERATE, "n_subscriptions": 64_000, "width_x": 20, "width_y": 20},
    "figure-6b": {**_MODERATE, "n_subscriptions": 64_000, "width_x": 40, "width_y": 40},
    "figure-7": {**_MODERATE, "n_subscriptions": 256_000},
    "figure-7-uniform": {**_MODERATE, **_UNIFORM, "n_subscriptions": 256_000},
    "figure-8": {**_LARGE, "n_subscriptions": 256_000, "beta": 0.01},
    "figure-9": {**_LARGE, "n_subscriptions": 256_000},
}
"""The workloads behind the figures; 6 varies the index and not the workload."""

SWEEPS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "figure-7": _SIZES,
    "figure-7-uniform": _SIZES,
    "figure-8": _SIZES,
    "figure-9": _SIZES,
}
"""Points of each figure."""


@dataclass(frozen=True, kw_only=True)
class Skew2D(Workload):
    """Overlapping rectangles and points in a plane (VCR paper).

    range_x, range_y   grid points of the plane (R_x, R_y)
    alpha              share of rectangles, and of points, that lie in the region
    beta               share of the plane that the region covers; both 1: no skew
    width_x, width_y   widest and highest rectangle (W_x, W_y)
    whole              whole numbers; False: real ones
    """

    name: ClassVar[str] = "skew2d"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    sweeps: ClassVar[Mapping[str, tuple[Mapping[str, Any], ...]]] = SWEEPS

    n_subscriptions: int = 32_000
    n_events: int = 100_000
    range_x: int = 300
    range_y: int = 200
    alpha: float = 0.9
    beta: float = 0.1
    width_x: int = 40
    width_y: int = 20
    whole: bool = True

    def __post_init__(self) -> None:
        self._expect(self.range_x >= 1 and self.range_y >= 1, "ranges from 1")
        self._expect(self.range_x * self.range_y <= 2**31, "at most 2^31 grid points")
        self._expect(1 <= self.width_x < 2**31 and 1 <= self.width_y < 2**31, "widths from 1")
        self._expect(0 <= self.alpha <= 1, "a share of rectangles as alpha, from 0 to 1")
        self._expect(0 < self.beta <= 1, "a share of the plane as beta, above 0 and up to 1")

    @property
    def region(self) -> tuple[int, int, int, int]:
        """Left, bottom, width and height of the region where most of everything lies."""
        side = math.sqrt(self.beta)
        width = max(1, round(side * self.range_x))
        height = min(self.range_y, max(1, round(self.beta * self.range_x * self.range_y / width)))
        return (self.range_x - width) // 2, (self.range_y - height) // 2, width, height

    def schema(self) -> Schema:
        return Schema(dict.fromkeys(("x", "y"), "int" if self.whole else "float"))

    def subscriptions(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        draws = Draws(self.seed, "skew2d/subscriptions", rows)
        corner = self._places(draws)
        most = np.array([self.width_x, self.width_y])
        size = (1 + draws.below("size", most[None, :], 2)).astype(corner.dtype)
        if not self.whole:
            size -= draws.unit("part of size", 2)
        end = np.minimum(corner + size, [self.range_x, self.range_y]).astype(corner.dtype)
        n = len(rows)
        return predicate_table(
            np.repeat(rows, 2),
            coded(np.tile([0, 1], n), ["x", "y"]),
            coded(np.zeros(2 * n, np.int32), ["BETWEEN"]),
            np.full(2 * n, 2),
            pa.array(np.stack([corner, end], axis=2).ravel()),
        )

    def events(self, first: int, last: int) -> pa.Table:
        rows = np.arange(first, last)
        point = self._places(Draws(self.seed, "skew2d/events", rows))
        names = coded(np.tile([0, 1], len(rows)), ["x", "y"])
        return entry_table(np.repeat(rows, 2), names, pa.array(point.ravel()))

    def _places(self, draws: Draws) -> np.ndarray:
        """[rows, 2]: x and y, by the rule of alpha and beta."""
        left, bottom, width, height = self.region
        outside = self.range_x * self.range_y - width * height
        inside = draws.unit("side")[:, 0] < self.alpha
        if outside == 0:
            inside[:] = True
        number = draws.below("place", np.where(inside, width * height, outside)[:, None])[:, 0]
        x, y = left + number % width, bottom + number // width
        away_x, away_y = self._outside(number)
        point = np.stack([np.where(inside, x, away_x), np.where(inside, y, away_y)], axis=1)
        return point if self.whole else point + draws.unit("part", 2)

    def _outside(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Grid points outside of the region by number: rows of the plane that skip it."""
        left, bottom, width, height = self.region
        n_left = self.range_x - width
        below, between = bottom * self.range_x, height * n_left
        passed = np.clip(number - below, 0, max(between - 1, 0))
        row, column = passed // max(n_left, 1), passed % max(n_left, 1)
        skipped = np.where(
            number < below,
            number,
            np.where(
                number < below + between,
                (bottom + row) * self.range_x + column + np.where(column < left, 0, width),
                number + width * height,
            ),
        )
        return skipped % self.range_x, skipped // self.range_x
