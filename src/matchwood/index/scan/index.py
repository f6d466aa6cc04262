"""The owner of a `scan`; see the page of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.frame import BoundStep, IndexFrame, Saved
from matchwood.index.core.protocol import ANY
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.match import (
    FAIL,
    MINE,
    VIEW,
    Mine,
    Records,
    View,
    append_conjunctions,
    append_trees,
    close_gaps,
    scan_batch,
)
from matchwood.kernel.arrays import doubled, grown, positions
from matchwood.kernel.checks import Column, check, check_members, check_offsets, expect
from matchwood.kernel.owner import Owner

GAPS = 4
"""Live records per deleted one before the gaps are closed."""


class Scan(IndexFrame):
    """Owns two `Records`, one for conjunctions and one for trees."""

    name: ClassVar[str] = "scan"
    language: ClassVar[str] = ANY
    is_kept: ClassVar[bool] = True
    LAYOUT = VIEW
    SEARCH = MINE

    def _clear(self) -> None:
        self._conjunctions = _RecordStore(has_jumps=False)
        self._trees = _RecordStore(has_jumps=True)
        self._sizes = np.zeros(2, np.int64)

    def _count(self) -> None:
        """Write down how many there are, after a change: in place, nothing is bound again."""
        self._sizes[:] = self._conjunctions.n_records, self._trees.n_records

    def _add(self, slots: np.ndarray) -> None:
        kind = self._table.layout.kind[slots]
        self._conjunctions.append(self._table, slots[kind == CONJUNCTION])
        self._trees.append(self._table, slots[kind == TREE])
        self._count()

    def _remove(self, slots: np.ndarray) -> None:
        kind = self._table.layout.kind[slots]
        self._conjunctions.remove(slots[kind == CONJUNCTION])
        self._trees.remove(slots[kind == TREE])
        self._count()

    def _view(self) -> View:
        conjunctions, trees = self._conjunctions.records, self._trees.records
        return View(conjunctions, trees, self._table.predicates.layout, self._sizes)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> BoundStep:
        return self._bound_step(scan_batch, events, scratch, lambda: Mine(scratch.board))

    alone = _stepper

    def _structure(self) -> dict[str, Any]:
        return {
            "conjunctions": self._conjunctions.n_live,
            "trees": self._trees.n_live,
            "bytes": self._conjunctions.nbytes + self._trees.nbytes,
        }

    def draw(self) -> str:
        return f"scan\n├── {self._conjunctions.n_live} conjunctions\n└── {self._trees.n_live} trees"

    def _arrays(self) -> dict[str, np.ndarray]:
        found = {**self._conjunctions.saved("conjunction_"), **self._trees.saved("tree_")}
        self._count()  # gaps were closed
        return found

    @classmethod
    def _check(cls, saved: Saved) -> None:
        table, slots, layout, _ = saved
        kind = table.layout.kind[slots]
        _check_records(table, slots[kind == CONJUNCTION], layout, "conjunction_")
        _check_records(table, slots[kind == TREE], layout, "tree_")
        _check_jumps(layout)

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._conjunctions.take(layout, "conjunction_")
        self._trees.take(layout, "tree_")
        self._count()

    def _thaw(self) -> None:
        self._conjunctions.thaw()
        self._trees.thaw()


class _RecordStore(Owner):
    """Records that grow, lose members and close their gaps."""

    OWNED: ClassVar = {"records": ""}

    def __init__(self, has_jumps: bool) -> None:
        self._has_jumps = has_jumps
        self._clear()

    def _clear(self) -> None:
        jumps = 64 if self._has_jumps else 0
        self.records = Records(
            slot=np.empty(16, np.int32),
            start=np.zeros(17, np.int64),
            attr=np.empty(64, np.int32),
            lo=np.empty(64, np.int64),
            hi=np.empty(64, np.int64),
            ref=np.empty(64, np.int32),
            on_true=np.empty(jumps, np.int32),
            on_false=np.empty(jumps, np.int32),
        )
        self.n_records = 0
        self.n_live = 0
        self._record_of: np.ndarray | None = np.full(16, -1, np.int32)

    def append(self, table: ExpressionTable, slots: np.ndarray) -> None:
        if not len(slots):
            return
        sizes = table.layout.size[positions(slots)]
        self._make_room(len(slots), int(sizes.sum()))
        before = self.n_records
        if self._has_jumps:
            scratch = np.empty((5, int(sizes.max())), np.int32)
            self.n_records = append_trees(
                table.layout, table.predicates.layout, slots, self.records, before, scratch
            )
        else:
            self.n_records = append_conjunctions(
                table.layout, table.predicates.layout, slots, self.records, before
            )
        self.n_live += len(slots)
        if self._record_of is not None:
            size = doubled(len(self._record_of), int(slots.max()) + 1)
            self._record_of = grown(self._record_of, size, -1)
            self._record_of[positions(slots)] = np.arange(before, self.n_records, dtype=np.int32)

    def remove(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        self.records.slot[self._positions()[slots]] = -1
        self.n_live -= len(slots)
        if self.n_live == 0:
            self._clear()
        elif (self.n_records - self.n_live) * GAPS > self.n_live:
            self._close_gaps()

    def saved(self, prefix: str = "") -> dict[str, np.ndarray]:
        if self.n_records > self.n_live:
            self._close_gaps()
        return super().saved(prefix)

    def _to_save(self, name: str, arrays: Records) -> Records:
        used = int(arrays.start[self.n_records])
        sizes = {"slot": self.n_records, "start": self.n_records + 1}
        cut = {each: a[: sizes.get(each, used)] for each, a in arrays._asdict().items()}
        return Records(**cut)

    def take(self, layout: Mapping[str, np.ndarray], prefix: str = "") -> None:
        super().take(layout, prefix)
        self.n_records = self.n_live = len(self.records.slot)
        self._record_of = None  # made when something is deleted: a reader never needs it

    def _positions(self) -> np.ndarray:
        """Record by slot."""
        if self._record_of is None:
            used = self.records.slot[: self.n_records]
            self._record_of = np.full(int(used.max(initial=0)) + 1, -1, np.int32)
            live = used >= 0
            self._record_of[used[live]] = np.flatnonzero(live)
        return self._record_of

    def _close_gaps(self) -> None:
        self.n_records = close_gaps(self.records, self.n_records)
        self._record_of = None
        r = self.records
        used = int(r.start[self.n_records])
        if len(r.attr) > 64 and used * 4 < len(r.attr):
            self.records = Records(
                *[
                    array[: 2 * (self.n_records if name == "slot" else used) + 16].copy()
                    for name, array in r._asdict().items()
                ]
            )

    def _make_room(self, n_records: int, n_predicates: int) -> None:
        r = self.records
        rows = self.n_records + n_records
        entries = int(r.start[self.n_records]) + n_predicates
        grow = doubled if self.n_records else max  # a first bulk load is sized exactly
        size = grow(len(r.attr), entries)
        jumps = size if self._has_jumps else 0
        self.records = Records(
            slot=grown(r.slot, grow(len(r.slot), rows)),
            start=grown(r.start, grow(len(r.start), rows + 1)),
            attr=grown(r.attr, size),
            lo=grown(r.lo, size),
            hi=grown(r.hi, size),
            ref=grown(r.ref, size),
            on_true=grown(r.on_true, jumps),
            on_false=grown(r.on_false, jumps),
        )


_RECORDS = {
    "slot": Column("int32", "n"),
    "start": Column("int64", "n + 1"),
    "attr": Column("int32", "m", 0, "A"),
    "lo": Column("int64", "m"),
    "hi": Column("int64", "m"),
    "ref": Column("int32", "m"),
    "on_true": Column("int32", "jumps", FAIL),
    "on_false": Column("int32", "jumps", FAIL),
}


def _check_records(
    table: ExpressionTable, slots: np.ndarray, layout: Mapping[str, np.ndarray], prefix: str
) -> None:
    sizes = {**table.sizes(), "n": len(slots), "n + 1": len(slots) + 1}
    n_predicates = check(layout, _RECORDS, prefix, **sizes)["m"]
    check_members(f"{prefix}slot", layout[f"{prefix}slot"], slots, sizes["S"])
    check_offsets(f"{prefix}start", layout[f"{prefix}start"], n_predicates)
    p = table.predicates.layout
    slot, ref = layout[f"{prefix}slot"], layout[f"{prefix}ref"]
    code = table.codes_of(slot)
    pred = code[code >= 0]
    expected = np.where(p.n_intervals[pred] == 1, pred, ~pred)
    expect(np.array_equal(ref, expected), f"{prefix}ref", "the predicates of each expression")
    expect((layout[f"{prefix}attr"] == p.attr[pred]).all(), f"{prefix}attr", "their attributes")


def _check_jumps(layout: Mapping[str, np.ndarray]) -> None:
    """Every tree has a leaf, and jumps lead forward to a leaf of the same tree, or out of it."""
    start = layout["tree_start"]
    size = np.diff(start)
    expect((size > 0).all(), "tree_start", "a leaf in each tree")
    leaf = np.arange(len(layout["tree_attr"])) - np.repeat(start[:-1], size)
    size = np.repeat(size, size)
    for name in ("tree_on_true", "tree_on_false"):
        jump = layout[name]
        expect(len(jump) == len(leaf), name, "a jump from each leaf")
        expect(((jump < 0) | ((jump > leaf) & (jump < size))).all(), name, "jumps ahead")
