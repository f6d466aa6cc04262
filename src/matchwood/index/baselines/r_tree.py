"""R-tree: rectangles in nested bounding boxes, from the libraries that people use for it.

Idea.    The two ranges of an expression are a rectangle; an R-tree of all rectangles is asked which
         of them a point lies in.
Source.  The partner of the VCR paper (section 3.3).  `rtree`, the Python package over
         libspatialindex, loaded in bulk (STR), changed in place and asked for a whole batch at a
         time; or `shapely`, whose STRtree answers faster and cannot be changed: it is made again at
         the first match after a change.
Differs. Coordinates are keys as doubles.  Rounding them keeps their order, so no rectangle is
         missed; where keys do not fit 53 bits, and where there are further predicates, candidates
         are tested exactly.  What has no predicate on both attributes is held by a BE-Tree inside.
         When the number of expressions has doubled, the attributes are chosen again.
Cost.    Match O(nodes whose boxes hold the point): nearly all of them where rectangles overlap a
         lot.  Memory is the libraries' own and cannot be asked for: BYTES an entry is what the
         process grew by (docs/benchmarks.md).

Layout   (S slots; the tree itself is the library's and is loaded again from a snapshot)
         home       uint8[S]   NOT_HELD, EXACT, TESTED or REST
         attributes int64[2]   x and y, -1 when there are no two
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.hit_kernels import give_out
from matchwood.index.core.with_rest import FrameWithRest
from matchwood.index.vcr.plan import NONE, choose_attributes, predicates_on
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.verify_kernels import COUNTERS

NOT_HELD, EXACT, TESTED, REST = range(4)

RTREE, SHAPELY = "rtree", "shapely"
BYTES = {RTREE: 157, SHAPELY: 431}
"""Bytes an entry, by library."""

_WHOLE = 2**53 - 1
"""Up to here keys are doubles, and no other key is rounded to them."""


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """Settings.

    attributes  the two attributes, x and y; a Matcher takes their names
    library     "rtree": changes in place; "shapely": answers faster, made again after changes
    """

    attribute_settings: ClassVar[tuple[str, ...]] = ("attributes",)

    attributes: Any = "auto"
    library: str = RTREE

    def __post_init__(self) -> None:
        given = self.attributes
        if given != "auto":
            is_pair = isinstance(given, (list, tuple)) and len(given) == 2
            are_ids = is_pair and all(type(each) is int and each >= 0 for each in given)
            self._expect(
                "attributes", are_ids and given[0] != given[1], 'two attributes, or "auto",'
            )
        self._expect("library", self.library in BYTES, f"{RTREE} or {SHAPELY}")


class RTree(FrameWithRest):
    """Owns the tree of a library, and who is in it."""

    name: ClassVar[str] = "r_tree"
    Config = Config

    def _clear(self) -> None:
        self._library = _imported(self.config.library)
        self._begin((NONE, NONE))
        self._planned = 0

    def _begin(self, attributes: tuple[int, int]) -> None:
        self._attributes = attributes
        self._home = np.zeros(16, np.uint8)
        self._tree: Any = None
        self._n_placed = 0
        self._rest = None

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def _fill(self, slots: np.ndarray) -> None:
        given = self.config.attributes
        chosen = choose_attributes(self._table, slots) if given == "auto" else tuple(given)
        self._begin(chosen)
        self._planned = len(slots)
        self._add_in_place(slots)
        self._tree = self._made() if self._n_placed else None

    def _add(self, slots: np.ndarray) -> None:
        if self._n_live + len(slots) >= 2 * self._planned:
            held = np.flatnonzero(self._home != NOT_HELD).astype(np.int32)
            self._fill(np.concatenate([held, slots]))
        else:
            self._add_in_place(slots)

    def _add_in_place(self, slots: np.ndarray) -> None:
        boxes, home = self._boxes(slots)
        self._home = grown(self._home, doubled(len(self._home), int(slots.max()) + 1))
        self._home[slots] = home
        placed = home != REST
        self._n_placed += int(placed.sum())
        if self._tree is not None and self.config.library == RTREE:
            for slot, box in zip(slots[placed].tolist(), boxes[placed].tolist(), strict=True):
                self._tree.insert(slot, box)
        else:
            self._tree = None
        self._add_rest(slots[home == REST])

    def _remove(self, slots: np.ndarray) -> None:
        home = self._home[slots]
        gone = slots[home != REST]
        if self._tree is not None and self.config.library == RTREE:
            for slot, box in zip(gone.tolist(), self._boxes(gone)[0].tolist(), strict=True):
                self._tree.delete(slot, box)
        else:
            self._tree = None
        self._n_placed -= len(gone)
        if self._n_placed == 0:
            self._tree = None
        self._home[slots] = NOT_HELD
        self._remove_rest(slots[home == REST])

    def _boxes(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Left, bottom, right, top of each expression, and where it belongs."""
        p, x = self._table.predicates.layout, self._table.layout
        boxes = np.zeros((len(slots), 4))
        if NONE in self._attributes:
            return boxes, np.full(len(slots), REST, np.uint8)
        placed = np.ones(len(slots), np.bool_)
        tested = x.size[slots] > 2
        for axis, attr in enumerate(self._attributes):
            pred = predicates_on(self._table, slots, attr)
            placed &= pred >= 0
            lo, hi = p.lo[pred], p.hi[pred]
            tested |= p.n_intervals[pred] > 1
            tested |= (np.minimum(lo, hi) < -_WHOLE) | (np.maximum(lo, hi) > _WHOLE)
            boxes[:, axis], boxes[:, axis + 2] = lo, hi
        return boxes, np.where(placed, np.where(tested, TESTED, EXACT), REST).astype(np.uint8)

    def _thaw(self) -> None:
        if not self._home.flags.writeable:
            self._home = self._home.copy()

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def _stepper(self, events: EventBatch) -> Step:
        board, table = self._board, self._table
        found, starts = self._found(events)
        is_tested = self._home == TESTED
        if len(events.more):
            is_tested[:] = True  # the box of a set with gaps is more than the set
        work = np.zeros(len(COUNTERS), np.int64)

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = give_out(
                found, starts, is_tested, work, table.layout, table.predicates.layout,
                events, first, stamp, board.event, board.entry, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _found(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of all events, one event after the other, and where each begins."""
        counts = np.zeros(events.n_events, np.int64)
        asked, mins, maxs = self._questions(events)
        found = np.empty(0, np.int64)
        if len(asked) and self._n_placed:
            if self._tree is None:
                self._tree = self._made()
            if self.config.library == RTREE:
                found, n = self._tree.intersection_v(mins, maxs)
                counts[asked] = n
            else:
                box = self._library.box(mins[:, 0], mins[:, 1], maxs[:, 0], maxs[:, 1])
                which, at = self._tree.query(box)
                order = np.argsort(which, kind="stable")
                found = self._in_tree[at[order]]
                counts[asked] = np.bincount(which, minlength=len(asked))
        return found, np.concatenate([[0], np.cumsum(counts)])

    def _questions(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The events that have both attributes, and first and last coordinates of each."""
        event = np.repeat(np.arange(events.n_events), np.diff(events.start))
        entries = np.full((events.n_events, 2), -1, np.int64)
        for axis, attr in enumerate(self._attributes):
            mine = np.flatnonzero(events.attr == attr)
            entries[event[mine], axis] = mine
        asked = np.flatnonzero((entries >= 0).all(axis=1))
        at = entries[asked]
        return asked, events.lo[at].astype(np.float64), events.hi[at].astype(np.float64)

    def _made(self) -> Any:
        """A tree of everything that is placed."""
        slots = np.flatnonzero((self._home == EXACT) | (self._home == TESTED)).astype(np.int64)
        boxes, _ = self._boxes(slots)
        if self.config.library == RTREE:
            index = self._library.index
            return index.Index((slots, boxes[:, :2].copy(), boxes[:, 2:].copy()))
        self._in_tree = slots
        return self._library.STRtree(self._library.box(*boxes.T))

    # ── telling and keeping ─────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        tree = BYTES[self.config.library] * self._n_placed
        return {
            "attributes": list(self._attributes),
            "rest": self._n_rest,
            "bytes": tree + self._home.nbytes + self._rest_bytes,
        }

    def draw(self) -> str:
        return (
            f"r_tree ({self.config.library})\n├── {self._n_placed} rectangles on attributes "
            f"{self._attributes[0]} and {self._attributes[1]}\n"
            f"└── {self._n_rest} others in a BE-Tree"
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "planned": np.array([self._planned], np.int64),
            "attributes": np.array(self._attributes, np.int64),
            "home": self._home,
            **self._rest_arrays(),
        }

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._planned = int(layout["planned"][0])
        x, y = layout["attributes"].tolist()
        self._attributes, self._home = (x, y), layout["home"]
        self._n_placed = int(((self._home == EXACT) | (self._home == TESTED)).sum())
        self._take_rest(layout)


def _imported(library: str) -> Any:
    try:
        import_module(f"{library}.index" if library == RTREE else library)
    except ImportError:
        raise IndexBuildError(
            f"r_tree: expected the package {library!r}, found none: "
            "pip install 'matchwood[bench]', or choose another index"
        ) from None
    return import_module(library)
