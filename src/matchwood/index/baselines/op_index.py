"""OpIndex: expressions by their rarest attribute, their predicates by operator, and counting.

Idea.    The rarest attribute of an expression is its pivot; an event concerns only expressions
         whose pivot it has.  Among these, the predicates on an attribute are lists by operator,
         sorted by constant: what a value satisfies is found by halving, and counted.
Source.  Zhang, Chan and Tan, PVLDB 7(8), 2014, as the PS-Tree paper compares itself with it:
         sorted once after many insertions, or after each (section 7.2.1).
Differs. Operators of key sets: = and IN are entries of the list for =, one for each key; <, <=, >,
         >=, BETWEEN are one or two entries of the lists for lower and upper ends; <>, NOT IN and
         the like are tested one by one.  Events of sets are verified, not counted.  Built
         again after changes, which is what sorting once after many insertions means there;
         deleting does the same, without what has left.
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

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.baselines.op_index_kernels import (
    N_OPS,
    Counts,
    OpLists,
    match_lists,
    write_entries,
)
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import StaticFrame
from matchwood.index.core.use_kernels import uses_of
from matchwood.kernel.arrays import bytes_of
from matchwood.kernel.pair_map_kernels import PairMap, new_pair_map, put_pairs

BATCH, ALWAYS = "batch", "always"
NONE = -1


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    sorting   when lists are sorted: "batch", before the next event, or "always", after every call
              that inserts or deletes
    """

    sorting: str = BATCH

    def __post_init__(self) -> None:
        self._expect_one("sorting", BATCH, ALWAYS)


class Sorted(NamedTuple):
    """What is built; see the module's docstring."""

    lists: OpLists
    pairs: PairMap


class OpIndex(StaticFrame[Sorted]):
    """Owns the lists, and sorts them."""

    name: ClassVar[str] = "op_index"
    Config = Config

    def _must_build_now(self, slots: np.ndarray) -> bool:
        return bool(self.config.sorting == ALWAYS)

    def _remove(self, slots: np.ndarray) -> None:
        super()._remove(slots)
        if self.config.sorting == ALWAYS:
            self.settle()

    def _build(self, slots: np.ndarray) -> Sorted:
        table = self._table
        p = table.predicates.layout
        uses = uses_of(table, slots)
        used = np.flatnonzero(uses)
        by_attr = np.bincount(p.attr[used], uses[used], minlength=table.n_attributes)
        n_slots = int(slots.max(initial=-1)) + 1
        pivot, need = np.full(n_slots, NONE, np.int32), np.zeros(n_slots, np.int32)
        arguments = (table.layout, p, slots, by_attr, pivot, need)
        n = write_entries(*arguments, np.empty((0, 4), np.int64))
        entries = np.empty((n, 4), np.int64)
        write_entries(*arguments, entries)
        order = np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))
        blocks, block = np.unique(entries[order, 0], return_inverse=True)
        pairs = new_pair_map(len(blocks))
        put_pairs(pairs, blocks, np.arange(len(blocks)))
        lists = N_OPS * block + entries[order, 1]
        by_pivot = slots[np.argsort(pivot[slots], kind="stable")]
        groups = np.searchsorted(pivot[by_pivot], np.arange(table.n_attributes + 1))
        made = OpLists(
            start=np.searchsorted(lists, np.arange(N_OPS * len(blocks) + 1)).astype(np.int64),
            key=entries[order, 2],
            slot=entries[order, 3].astype(np.int32),
            pivot=pivot,
            need=need,
            group_start=groups.astype(np.int64),
            group_slot=by_pivot,
        )
        return Sorted(made, pairs)

    def _new_arrays(self) -> Counts:
        n_slots = len(self._built.lists.pivot)
        return Counts(
            np.zeros(n_slots, np.int32), np.zeros(n_slots, np.int64), np.zeros(1, np.int64)
        )

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        table, x, counts = self._table, self._built, self._arrays_in(scratch)
        return scratch.step(
            match_lists, events, x.lists, x.pairs, counts,
            table.layout, table.predicates.layout, events.are_values,
        )  # fmt: skip

    def _structure(self) -> dict[str, Any]:
        x = self._built
        return {
            "pivots": int((np.diff(x.lists.group_start) > 0).sum()),
            "blocks": (len(x.lists.start) - 1) // N_OPS,
            "entries": len(x.lists.key),
            "bytes": bytes_of(x.lists, x.pairs),
        }

    def draw(self) -> str:
        self.settle()
        x = self._built.lists
        sizes = np.diff(x.group_start)
        lines = [f"op_index: {self._n_live} conjunctions, {int((sizes > 0).sum())} pivots"]
        lines += [
            f"├── pivot attribute {group}: {sizes[group]} conjunctions"
            for group in np.argsort(-sizes, kind="stable")[:10].tolist()
            if sizes[group]
        ]
        return "\n".join([*lines, f"└── {len(x.key)} entries in {len(x.start) // N_OPS} blocks"])
