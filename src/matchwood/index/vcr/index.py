"""The owner of a VCR index; see the page of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.core.frame import BoundStep
from matchwood.index.core.scratch import Part, Scratch
from matchwood.index.core.with_rest import FrameWithRest
from matchwood.index.vcr.change import KX, KY, NOT_HELD, PLACED, REST, X_ATTR, Y_ATTR, Grid
from matchwood.index.vcr.config import AUTO, HASH, OVERLAPPED, SIMPLE, TABLE, Config
from matchwood.index.vcr.lists import MOST_SLOTS, VCRLists
from matchwood.index.vcr.match import MINE, VIEW, Mine, View, match_events, new_seen
from matchwood.index.vcr.plan import EMPTY, make_plan

MOST_PLACES = 2**31
"""VCRs of a table: what would make more gets a coarser grid."""

FEW = 16
"""So many expressions may be placed on a grid that was made for none of them."""


class VCR(FrameWithRest):
    """Owns the lists of activated VCRs, and the index for the rest."""

    name: ClassVar[str] = "vcr"
    LAYOUT = VIEW
    SEARCH = MINE
    Config = Config

    def _clear(self) -> None:
        self._begin(EMPTY.grid(), HASH)
        self._planned = self._placed_then = 0

    def _begin(self, grid: Grid, lists: str) -> None:
        """An empty structure over a grid."""
        overlapped = self.config.decomposition == OVERLAPPED
        if self.config.decomposition == AUTO:
            overlapped = lists != TABLE
        config = self.config
        self._vcrs = VCRLists(grid, lists, config.places, overlapped, config.most_vcrs)
        self._rest = None

    # ── changing ────────────────────────────────────────────────────────────────────────────────

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Slots that have no room in an item of a list."""
        return {
            int(slot): IndexBuildError(
                f"vcr: expected at most {MOST_SLOTS:,} subscriptions, found more: "
                "spread them over several matchers"
            )
            for slot in slots[slots >= MOST_SLOTS]
        }

    def _fill(self, slots: np.ndarray) -> None:
        self._plan(slots)
        self._vcrs.lay_out(self._table, slots)
        self._add_in_place(slots)
        self._placed_then = len(slots) - self._n_rest

    def _add(self, slots: np.ndarray) -> None:
        n_live = self._n_live + len(slots)
        if n_live >= 2 * self._planned:
            self._fill(np.concatenate([self._held(), slots]))
            return
        self._add_in_place(slots)
        if n_live - self._n_rest > 2 * self._placed_then + FEW:
            self._fill(self._held())  # the grid was made when nearly all were in the rest

    def _plan(self, slots: np.ndarray) -> None:
        """Choose what is `auto`, and begin with nothing held."""
        config = self.config
        given = [
            None if each == AUTO else each
            for each in (config.attributes, config.cells, config.sides)
        ]
        plan = make_plan(self._table, slots, *given)
        grid = (plan.coarser(MOST_PLACES) if config.lists == TABLE else plan).grid()
        lists = config.lists
        if lists == AUTO:
            lists = TABLE if plan.suits_table(len(slots)) else HASH
        self._begin(grid, lists)
        self._planned = len(slots)

    def _add_in_place(self, slots: np.ndarray) -> None:
        slots = np.sort(slots)  # ascending ids are appended to their lists
        self._vcrs.insert(self._table, slots)
        self._add_rest(slots[self._vcrs.active.home[slots] == REST])

    def _remove(self, slots: np.ndarray) -> None:
        home = self._vcrs.active.home[slots]
        self._vcrs.remove(self._table, slots[home == PLACED])
        self._remove_rest(slots[home == REST])
        self._vcrs.active.home[slots] = NOT_HELD
        if 4 * self._n_live < self._planned:
            self._fill(self._held())  # on a grid that suits those that are left

    def _held(self) -> np.ndarray:
        return np.flatnonzero(self._vcrs.active.home != NOT_HELD).astype(np.int32)

    def _thaw(self) -> None:
        self._vcrs.thaw()

    # ── matching ────────────────────────────────────────────────────────────────────────────────

    def new_part(self) -> Part:
        part = Part()
        part.arrays = new_seen(0)
        return part

    def _view(self) -> View:
        table, vcrs = self._table, self._vcrs
        return View(
            vcrs.grid, vcrs.active, vcrs.pairs, vcrs.lists, table.layout, table.predicates.layout
        )

    def _stepper(self, events: EventBatch, scratch: Scratch) -> BoundStep:
        vcrs, part = self._vcrs, scratch.of(self)
        if vcrs.overlapped and len(part.arrays.seen) < len(vcrs.active.home):
            part.arrays = new_seen(len(vcrs.active.home))
        arrays = part.arrays
        return self._bound_step(
            match_events, events, scratch, lambda: Mine(arrays, scratch.board), vcrs.overlapped
        )

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep | None:
        """As `IndexFrame.alone`; None where some are held by the index of the rest."""
        return self._stepper(events, scratch) if not self._n_rest else None

    # ── telling and keeping ─────────────────────────────────────────────────────────────────────

    def _structure(self) -> dict[str, Any]:
        vcrs, grid = self._vcrs, self._vcrs.grid
        return {
            "attributes": grid.shape[[X_ATTR, Y_ATTR]].tolist(),
            "cells": [len(grid.cut_x), len(grid.cut_y)],
            "sides": [1 << int(grid.shape[KX]), 1 << int(grid.shape[KY])],
            "decomposition": OVERLAPPED if vcrs.overlapped else SIMPLE,
            "lists": vcrs.form,
            "covering_vcrs": len(grid.distance),
            "activated_vcrs": vcrs.n_active,
            "ids_in_lists": vcrs.n_ids,
            "places": vcrs.n_places,
            "load": vcrs.load,
            "rest": self._n_rest,
            "bytes": vcrs.nbytes + self._rest_bytes,
        }

    def draw(self) -> str:
        found = self._structure()
        (x, y), (columns, rows), (lx, ly) = found["attributes"], found["cells"], found["sides"]
        plane = f"{columns} x {rows} grid points, VCRs up to {lx} x {ly}"
        active = f"{found['activated_vcrs']} activated VCRs in a {found['lists']}"
        lines = [
            f"vcr: {self._n_live} conjunctions on attributes {x} and {y}, {plane}",
            f"├── {active}, {found['ids_in_lists']} ids in their lists",
            *[f"│   ├── {vcr}: {size} ids" for vcr, size in self._vcrs.longest(5)],
            f"└── {found['rest']} others in a BE-Tree",
        ]
        return "\n".join(lines)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "plan": np.array([self._planned, self._placed_then, self._vcrs.overlapped], np.int64),
            **self._vcrs.saved(),
            **self._rest_arrays(),
        }

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._planned, self._placed_then, overlapped = layout["plan"].tolist()
        self._vcrs.take(layout)
        self._vcrs.overlapped = bool(overlapped)
        self._take_rest(layout)
