"""OpIndex: expressions by their rarest attribute, their predicates by operator, and counting.

Idea.    The rarest attribute of an expression is its pivot; an event concerns only expressions
         whose pivot it has.  Among these, the predicates on an attribute are lists by operator,
         sorted by constant: what a value satisfies is found by halving, and counted.
Source.  Zhang, Chan and Tan, PVLDB 7(8), 2014, as the PS-Tree paper compares itself with it:
         sorted once after many insertions, or after each (section 7.2.1).
Differs. Operators of key sets: = and IN are entries of the list for =, one for each key; <, <=, >,
         >=, BETWEEN are one or two entries of the lists for lower and upper ends; <>, NOT IN and
         the like are tested one by one.  Events of sets are verified, not counted.  Deleting
         sorts anew as inserting does, without what has left.
Cost.    Match O(pivots * attributes + satisfied entries).  Sorting O(n log n) for all entries after
         every change (`sorting = "always"`) or before the next event ("batch").  Memory 12 bytes an
         entry, 56 a pair of pivot and attribute, 12 an expression.

Layout   (B pairs of pivot and attribute, M entries, S slots, A attributes)
         pair_*       see pair_map_kernels: (pivot, attribute) -> block
         start        int64[4B+1]  entries of block b: EQ, GE, LE, OTHER from 4b on
         key          int64[M]     constants, ascending in a list; OTHER: predicate ids
         slot         int32[M]     the expression of an entry
         pivot        int32[S]     pivot attribute, NONE
         need         int32[S]     entries that an event has to satisfy
         group_start  int64[A+1]   slice of group_slot of every pivot
         group_slot   int32[]      expressions by pivot
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.counting_kernels import count_uses
from matchwood.index.baselines.op_index_kernels import (
    N_OPS,
    Counts,
    OpLists,
    match_lists,
    put_blocks,
    write_entries,
)
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame, Step
from matchwood.kernel.arrays import doubled, grown, named, taken, writable
from matchwood.kernel.pair_map_kernels import PairMap, new_pair_map

BATCH, ALWAYS = "batch", "always"
NONE = -1
_SMALL = 64


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    sorting   when lists are sorted: "batch", before the next event, or "always", after every call
              that inserts or deletes
    """

    sorting: str = BATCH

    def __post_init__(self) -> None:
        self._expect("sorting", self.sorting in (BATCH, ALWAYS), f"{BATCH!r} or {ALWAYS!r}")


class OpIndex(IndexFrame):
    """Owns the lists, and sorts them."""

    name: ClassVar[str] = "op_index"
    Config = Config

    def _clear(self) -> None:
        self._pairs = new_pair_map()
        self._lists = OpLists(
            start=np.zeros(1, np.int64),
            key=np.empty(0, np.int64),
            slot=np.empty(0, np.int32),
            pivot=np.full(_SMALL, NONE, np.int32),
            need=np.zeros(_SMALL, np.int32),
            group_start=np.zeros(1, np.int64),
            group_slot=np.empty(0, np.int32),
        )
        self._counts = Counts(
            np.zeros(_SMALL, np.int32), np.zeros(_SMALL, np.int64), np.zeros(1, np.int64)
        )
        self._held = np.zeros(_SMALL, np.bool_)
        self._is_sorted = True

    def _fill(self, slots: np.ndarray) -> None:
        self._add(slots)
        self._sort()

    def _add(self, slots: np.ndarray) -> None:
        n = doubled(len(self._held), int(slots.max()) + 1)
        self._held = grown(self._held, n)
        self._held[slots] = True
        self._changed()

    def _remove(self, slots: np.ndarray) -> None:
        self._held[slots] = False
        self._changed()

    def _changed(self) -> None:
        self._is_sorted = False
        if self.config.sorting == ALWAYS:
            self._sort()

    def _sort(self) -> None:
        """Make all lists of what is held."""
        if self._is_sorted:
            return
        table = self._table
        p = table.predicates.layout
        slots = np.flatnonzero(self._held).astype(np.int32)
        uses = np.zeros(len(p.attr), np.int32)
        count_uses(table.layout, slots, uses)
        used = np.flatnonzero(uses)
        by_attr = np.bincount(p.attr[used], uses[used], minlength=table.n_attributes)
        pivot, need = np.full(len(self._held), NONE, np.int32), np.zeros(len(self._held), np.int32)
        arguments = (table.layout, p, slots, by_attr, pivot, need)
        n = write_entries(*arguments, np.empty((0, 4), np.int64))
        entries = np.empty((n, 4), np.int64)
        write_entries(*arguments, entries)
        order = np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))
        pairs, op = entries[order, 0], entries[order, 1]
        blocks, block = np.unique(pairs, return_inverse=True)
        self._pairs = new_pair_map(doubled(16, 2 * len(blocks)))
        put_blocks(self._pairs, blocks)
        start = np.searchsorted(N_OPS * block + op, np.arange(N_OPS * len(blocks) + 1))
        by_pivot = slots[np.argsort(pivot[slots], kind="stable")]
        groups = np.searchsorted(pivot[by_pivot], np.arange(table.n_attributes + 1))
        self._lists = OpLists(
            start=start.astype(np.int64),
            key=entries[order, 2],
            slot=entries[order, 3].astype(np.int32),
            pivot=pivot,
            need=need,
            group_start=groups.astype(np.int64),
            group_slot=by_pivot,
        )
        self._is_sorted = True

    def _stepper(self, events: EventBatch) -> Step:
        self._sort()
        board, table = self._board, self._table
        is_plain = events.lo is events.hi or bool((events.lo == events.hi).all())
        if len(self._counts.count) < len(self._lists.need):
            n = len(self._lists.need)
            self._counts = Counts(
                np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(1, np.int64)
            )

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            done: int = match_lists(
                self._lists, self._pairs, self._counts, table.layout, table.predicates.layout,
                is_plain, events, first, stamp, board.event, board.entry, offsets, out, counters,
            )  # fmt: skip
            return done

        return step

    def _structure(self) -> dict[str, Any]:
        self._sort()
        own = sum([array.nbytes for part in (self._lists, self._pairs) for array in part])
        return {
            "pivots": int((np.diff(self._lists.group_start) > 0).sum()),
            "blocks": (len(self._lists.start) - 1) // N_OPS,
            "entries": len(self._lists.key),
            "bytes": own + self._held.nbytes,
        }

    def draw(self) -> str:
        self._sort()
        x = self._lists
        sizes = np.diff(x.group_start)
        lines = [f"op_index: {self._n_live} conjunctions, {int((sizes > 0).sum())} pivots"]
        lines += [
            f"├── pivot attribute {group}: {sizes[group]} conjunctions"
            for group in np.argsort(-sizes, kind="stable")[:10].tolist()
            if sizes[group]
        ]
        return "\n".join([*lines, f"└── {len(x.key)} entries in {len(x.start) // N_OPS} blocks"])

    def _arrays(self) -> dict[str, np.ndarray]:
        self._sort()
        return {**named(self._lists), **named(self._pairs, "pair_"), "held": self._held}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._lists = taken(OpLists, layout)
        self._pairs = taken(PairMap, layout, "pair_")
        self._held = layout["held"].copy()

    def _thaw(self) -> None:
        self._lists, self._pairs = writable(self._lists), writable(self._pairs)
