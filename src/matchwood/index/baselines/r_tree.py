"""R-tree: rectangles in nested bounding boxes, from the libraries that people use for it.

Idea.    The two ranges of an expression are a rectangle; an R-tree of all rectangles is asked which
         of them a point lies in.
Source.  The baseline of the VCR paper (section 3.3).  `rtree`, the Python package over
         libspatialindex, loaded in bulk (STR) or, as in the paper, rectangle by rectangle
         (`loading = "insert"`), and asked for a whole batch at a time; or `shapely`, whose STRtree
         answers faster.
Differs. Coordinates are keys as doubles.  Rounding them keeps their order, so no rectangle is
         missed; where keys do not fit 53 bits, and where there are further predicates, candidates
         are tested exactly.  What has no predicate on both attributes is held by a BE-Tree inside.
         Built again after changes (R-trees insert and delete in place).
Cost.    Match O(nodes whose boxes hold the point): nearly all of them where rectangles overlap a
         lot.  Memory is the libraries' own and cannot be asked for: BYTES an entry is what the
         process allocates (docs/benchmarks.md).

Layout   (S slots, B rectangles; the tree itself is the library's)
         placed     int64[B]   the slots in the tree
         is_tested  bool[S]    whether a candidate of the tree is tested
         attributes            x and y, NONE when there are no two
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError
from matchwood.index.be_tree.index import BETree
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.hit_kernels import give_out
from matchwood.index.core.protocol import Hits
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import StaticFrame
from matchwood.index.core.with_rest import with_hits_of
from matchwood.index.vcr.plan import NONE, choose_attributes, predicates_on
from matchwood.kernel.arrays import offsets_of
from matchwood.kernel.verify_kernels import COUNTERS

RTREE, SHAPELY = "rtree", "shapely"
BULK, INSERT = "bulk", "insert"
BYTES = {RTREE: 52, SHAPELY: 431}
"""Bytes an entry, by library: what a process has allocated more after building."""

_reading = Lock()
"""For queries of libspatialindex, which write to the pools of its tree."""

_WHOLE = 2**53 - 1
"""Up to here keys are doubles, and no other key is rounded to them."""


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """Settings.

    attributes  the two attributes, x and y; a Matcher takes their names
    library     "rtree", or "shapely", which answers faster
    loading     "bulk": packed; "insert" ("rtree" alone): one by one, boxes then overlap more
    """

    attribute_settings: ClassVar[tuple[str, ...]] = ("attributes",)

    attributes: Any = "auto"
    library: str = RTREE
    loading: str = BULK

    def __post_init__(self) -> None:
        given = self.attributes
        if given != "auto":
            is_pair = isinstance(given, (list, tuple)) and len(given) == 2
            are_ids = is_pair and all(type(each) is int and each >= 0 for each in given)
            self._expect(
                "attributes", are_ids and given[0] != given[1], 'two attributes, or "auto",'
            )
        self._expect("library", self.library in BYTES, f"{RTREE} or {SHAPELY}")
        known = (BULK, INSERT) if self.library == RTREE else (BULK,)
        self._expect("loading", self.loading in known, " or ".join(known))


class Boxes(NamedTuple):
    """What is built; see the module's docstring."""

    attributes: tuple[int, int]
    tree: Any
    placed: np.ndarray
    is_tested: np.ndarray
    rest: BETree | None


class RTree(StaticFrame[Boxes]):
    """Owns the tree of a library, and the slots that are in it."""

    name: ClassVar[str] = "r_tree"
    Config = Config

    def _clear(self) -> None:
        super()._clear()
        self._library = _imported(self.config.library)

    def _build(self, slots: np.ndarray) -> Boxes:
        given = self.config.attributes
        attributes = choose_attributes(self._table, slots) if given == "auto" else tuple(given)
        boxes, is_placed, tested = self._boxes(attributes, slots)
        is_tested = np.zeros(int(slots.max(initial=-1)) + 1, np.bool_)
        is_tested[slots] = tested
        placed, boxes = slots[is_placed].astype(np.int64), boxes[is_placed]
        tree = None
        if len(placed) and self.config.loading == INSERT:
            tree = self._library.index.Index()
            for slot, box in zip(placed.tolist(), boxes.tolist(), strict=True):
                tree.insert(slot, box)
        elif len(placed) and self.config.library == RTREE:
            ends = boxes[:, :2].copy(), boxes[:, 2:].copy()
            tree = self._library.index.Index((placed, *ends))
        elif len(placed):
            tree = self._library.STRtree(self._library.box(*boxes.T))
        others = slots[~is_placed]
        rest = BETree.build(self._table, others) if len(others) else None
        return Boxes(attributes, tree, placed, is_tested, rest)

    def _boxes(
        self, attributes: tuple[int, int], slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Left, bottom, right, top of each expression; whether it has them; whether it is tested
        beyond them.
        """
        p, x = self._table.predicates.layout, self._table.layout
        boxes = np.zeros((len(slots), 4))
        if NONE in attributes:
            return boxes, np.zeros(len(slots), np.bool_), np.zeros(len(slots), np.bool_)
        placed = np.ones(len(slots), np.bool_)
        tested = x.size[slots] > 2
        for axis, attr in enumerate(attributes):
            pred = predicates_on(self._table, slots, attr)
            placed &= pred >= 0
            lo, hi = p.lo[pred], p.hi[pred]
            tested |= p.n_intervals[pred] > 1
            tested |= (np.minimum(lo, hi) < -_WHOLE) | (np.maximum(lo, hi) > _WHOLE)
            boxes[:, axis], boxes[:, axis + 2] = lo, hi
        return boxes, placed, tested

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        return with_hits_of(self._built.rest, events, scratch, super().search(events, scratch))

    def absorb(self, scratch: Scratch) -> None:
        if self._kept is not None and self._kept.rest is not None:
            self._kept.rest.absorb(scratch)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        table = self._table
        found, starts = self._found(events)
        is_tested = self._built.is_tested
        if len(events.more):  # the box of a set with gaps is more than the set
            is_tested = np.ones_like(is_tested)
        work = np.zeros(len(COUNTERS), np.int64)
        return scratch.step(
            give_out, events, found, starts, is_tested, work,
            table.layout, table.predicates.layout,
        )  # fmt: skip

    def _found(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of all events, one event after the other, and where each begins."""
        x, counts = self._built, np.zeros(events.n_events, np.int64)
        asked, mins, maxs = self._questions(events)
        found = np.empty(0, np.int64)
        if len(asked) and x.tree is not None:
            if self.config.library == RTREE:
                with _reading:
                    found, n = x.tree.intersection_v(mins, maxs)
                counts[asked] = n
            else:
                box = self._library.box(mins[:, 0], mins[:, 1], maxs[:, 0], maxs[:, 1])
                which, at = x.tree.query(box)
                order = np.argsort(which, kind="stable")
                found = x.placed[at[order]]
                counts[asked] = np.bincount(which, minlength=len(asked))
        return found, offsets_of(counts)

    def _questions(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The events that have both attributes, and first and last coordinates of each."""
        event = np.repeat(np.arange(events.n_events), np.diff(events.start))
        entries = np.full((events.n_events, 2), -1, np.int64)
        for axis, attr in enumerate(self._built.attributes):
            mine = np.flatnonzero(events.attr == attr)
            entries[event[mine], axis] = mine
        asked = np.flatnonzero((entries >= 0).all(axis=1))
        at = entries[asked]
        return asked, events.lo[at].astype(np.float64), events.hi[at].astype(np.float64)

    # ── looking at it ───────────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        x = self._built
        rest = 0 if x.rest is None else int(x.rest.stats()["bytes"])
        tree = BYTES[self.config.library] * len(x.placed)
        return {
            "attributes": list(x.attributes),
            "rest": self._n_live - len(x.placed),
            "bytes": tree + x.placed.nbytes + x.is_tested.nbytes + rest,
        }

    def draw(self) -> str:
        self.settle()
        x = self._built
        return (
            f"r_tree ({self.config.library})\n├── {len(x.placed)} rectangles on attributes "
            f"{x.attributes[0]} and {x.attributes[1]}\n"
            f"└── {self._n_live - len(x.placed)} others in a BE-Tree"
        )


def _imported(library: str) -> Any:
    try:
        import_module(f"{library}.index" if library == RTREE else library)
    except ImportError:
        raise IndexBuildError(
            f"r_tree: expected the package {library!r}, found none: "
            "pip install 'matchwood[bench]', or choose another index"
        ) from None
    return import_module(library)
