"""Owner of the blocks; see the page of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import IndexBuildError, MatchwoodError
from matchwood.index.blocks.build import Structure, build_structure, empty_structure
from matchwood.index.blocks.by_groups import by_groups, is_for_groups
from matchwood.index.blocks.check import arrays_of, check_structure, structure_of
from matchwood.index.blocks.draw import draw_blocks, members_in
from matchwood.index.blocks.match import (
    MINE,
    MOST_PENDING,
    VIEW,
    Memory,
    Mine,
    View,
    match_blocks,
)
from matchwood.index.blocks.match_best import Ranks, best_of_blocks, match_best
from matchwood.index.blocks.match_sets import match_sets
from matchwood.index.blocks.pack import MOST_COLUMNS
from matchwood.index.blocks.words import MOST_ATTRIBUTES, MOST_MEMBERS
from matchwood.index.core.frame import BoundStep, Saved, Step
from matchwood.index.core.scratch import Hits, Scratch
from matchwood.index.core.static import KeptFrame
from matchwood.index.pst.frame import DivisionConfig
from matchwood.kernel.arrays import doubled
from matchwood.kernel.verify_kernels import COUNTERS, NODES

_SMALL = 64
_NOTHING = empty_structure()
_NO_TABLE = ExpressionTable()


@dataclass(frozen=True, kw_only=True)
class Config(DivisionConfig):
    """What can be set, in addition to how attributes are divided.

    exact         words of an exact column for a word of cells that it replaces; more columns are
                  faster and take more memory
    undecided     share of a block's predicates above which up to four times `exact` is paid, so
                  that few members have predicates beside their columns
    sieve         the same as `exact` of a coarse column
    least         share of a block's members that a coarse column needs
    columns       share of the predicates that exact columns must decide, else the block has rows
    ungated       members up to which a space is not divided by a second predicate
    gated         members of a block of rows in a space that is; fewer are excluded more often, and
                  have more gates to read
    grouped       words of all blocks from which large batches of sparse events are searched block
                  by block; fewer stay in a cache
    """

    max_records: int = 8
    exact: float = 4.0
    undecided: float = 0.02
    sieve: float = 0.5
    least: float = 0.02
    columns: float = 0.5
    ungated: int = 96
    gated: int = 48
    grouped: int = 2**19

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expect_number("exact", 0.0, 1e6)
        self._expect_number("undecided", 0.0, 1.0)
        self._expect_number("sieve", 0.0, 1e6)
        self._expect_number("least", 0.0, 1.0)
        self._expect_number("columns", 0.0, 1.0)
        self._expect_integer("ungated", 1, MOST_MEMBERS)
        self._expect_integer("gated", 1, MOST_MEMBERS)
        self._expect_integer("grouped", 0)

    def division(self) -> dict[str, int]:
        """Settings of the spaces, as `pst_bloom` takes them."""
        return {each.name: getattr(self, each.name) for each in fields(DivisionConfig)}


class BlockIndex(KeptFrame[Structure]):
    """Builds the blocks, and searches them."""

    name: ClassVar[str] = "blocks"
    LAYOUT_VERSION: ClassVar[int] = 3  # gates of members, of all codes
    reads_table: ClassVar[bool] = False
    LAYOUT = VIEW
    SEARCH = MINE
    Config = Config

    def _build(self, slots: np.ndarray) -> Structure:
        return build_structure(self._table, slots, self.config)

    def _new_arrays(self) -> Memory:
        return _new_memory(len(self._built[0].n))

    def _view(self) -> View:
        """What events of values need: no table."""
        return View(*(self._kept or _NOTHING), _NO_TABLE.layout, _NO_TABLE.predicates.layout)

    def _view_with_table(self) -> View:
        table = self._table
        return View(*(self._kept or _NOTHING), table.layout, table.predicates.layout)

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        part = scratch.of(self)
        memory = self._arrays_in(scratch)
        if events.are_values:
            values, kernel = events._replace(more=events.more[:0]), match_blocks
            if is_for_groups(self._built, events, self.config.grouped):
                kernel = by_groups(self._built, events)
            return self._whole_step(kernel, values, scratch)
        if len(memory.seen) < self._n_slots:
            part.arrays = memory._replace(seen=np.zeros(self._n_slots, np.int64))
        return self._whole_step(match_sets, events, scratch, self._view_with_table())

    def _whole_step(
        self,
        kernel: Callable[..., int],
        events: EventBatch,
        scratch: Scratch,
        view: View | None = None,
    ) -> Step:
        """The step that makes room where an event has too many blocks."""
        return self._again_with_room(
            self._attempt(kernel, events, scratch, view or self._view()), scratch
        )

    def search_best(
        self,
        events: EventBatch,
        scratch: Scratch,
        ranks: tuple[np.ndarray, np.ndarray, np.ndarray],
        most: int,
    ) -> Hits:
        """Some matches of each event that have those of the `most` best ranks among them.

        ranks  as `match_best.Ranks`.  Events of sets get all matches
        """
        if not events.are_values:
            return self.search(events, scratch)
        scratch.begin()
        self._arrays_in(scratch)
        better, heap = Ranks(*ranks), np.empty(most, np.int32)

        def kernel(bound: Any, mine: Any, query: Any, first: int, _stamp: int) -> int:
            return match_best(bound, mine, query, better, heap, first)

        step = self._whole_step(kernel, events._replace(more=events.more[:0]), scratch)
        hits = scratch.run(events, self._table.n_attributes, step)
        scratch.end()
        return hits

    def best_ranks(self, rank: np.ndarray) -> np.ndarray:
        """The best rank of each block; rank is int32 by slot."""
        assert self._binding is not None
        view, best = self._view(), np.empty(len(self._built.blocks.gate), np.int32)
        best_of_blocks(self._binding.of(view), rank, best)
        return best

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep:
        self._arrays_in(scratch)
        return self._attempt(match_blocks, events, scratch, self._view())

    def make_room(self, scratch: Scratch) -> None:
        part = scratch.of(self)
        x = part.arrays
        more = np.empty(doubled(len(x.block), int(x.work[NODES])), np.int64)
        part.arrays = x._replace(block=more)

    def _attempt(
        self, kernel: Callable[..., int], events: EventBatch, scratch: Scratch, view: View
    ) -> BoundStep:
        """The step that ends with a number below 0 where an event has too many blocks."""
        part = scratch.of(self)
        return self._bound_step(
            kernel, events, scratch, lambda: Mine(part.arrays, scratch.board), view=view
        )

    def _structure(self) -> dict[str, Any]:
        codes, places, blocks = self._built
        n_members, n_rows = members_in(blocks)
        parts = (*codes, *places, *blocks._replace(half=blocks.half[:0]))
        return {
            "spaces": len(places.first_code),
            "blocks": len(blocks.at) - 1,
            "records": n_members,
            "in_rows": n_rows,
            "twins": len(blocks.twin),
            "bytes": sum([array.nbytes for array in parts]),
        }

    def draw(self) -> str:
        self.settle()
        return draw_blocks(self.name, len(self), self._built)

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        table = self._table
        if table.n_attributes <= MOST_ATTRIBUTES:
            return {}
        return {
            int(slot): IndexBuildError(
                f"blocks: expected attributes with ids below {MOST_ATTRIBUTES:,}, found a higher "
                "one: use another index, as pst_bloom"
            )
            for slot in slots
            if max(table.attributes_of(slots[slots == slot]), default=0) >= MOST_ATTRIBUTES
        }

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    _saved = staticmethod(arrays_of)
    _restored = staticmethod(structure_of)

    @classmethod
    def _check_built(cls, saved: Saved) -> None:
        check_structure(saved.table, saved.slots, saved.layout)


def _new_memory(n_attributes: int) -> Memory:
    return Memory(
        code=np.zeros(n_attributes, np.int32),
        fold_code=np.zeros(n_attributes, np.uint8),
        found=np.empty(2 * n_attributes, np.int64),
        block=np.empty(max(_SMALL, 2 * n_attributes), np.int64),
        row=np.empty(MOST_COLUMNS + 1, np.int64),
        pending=np.empty(MOST_PENDING + MOST_MEMBERS + 2, np.int64),
        work=np.zeros(len(COUNTERS), np.int64),
        seen=np.zeros(0, np.int64),
        clock=np.zeros(1, np.int64),
    )
