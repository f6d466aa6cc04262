"""Owner of the blocks; see the page of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.blocks.build import Structure, build_structure
from matchwood.index.blocks.match import Scratch, match_blocks, match_sets
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import Step
from matchwood.index.core.static import StaticFrame
from matchwood.kernel.arrays import doubled
from matchwood.kernel.verify_kernels import COUNTERS, NODES

_SMALL = 64


@dataclass(frozen=True, kw_only=True)
class Config(IndexConfig):
    """What can be set.

    space_size    members that a space should have; as of `pst_bloom`
    max_spaces    spaces of an attribute
    max_records   spaces that a subscription is listed in
    exact         words of an exact column for a word of cells that it replaces; more columns are
                  faster and take more memory
    sieve         the same of a coarse column
    least         share of a block's members that a column needs
    """

    space_size: int = 16
    max_spaces: int = 1024
    max_records: int = 24
    exact: float = 2.0
    sieve: float = 0.5
    least: float = 0.03

    def __post_init__(self) -> None:
        self._expect_integer("space_size", 0)
        self._expect_integer("max_spaces", 1, 2**24)
        self._expect_integer("max_records", 1)
        self._expect_number("exact", 0.0, 1e6)
        self._expect_number("sieve", 0.0, 1e6)
        self._expect_number("least", 0.0, 1.0)

    def division(self) -> dict[str, int]:
        """Settings of the spaces, as `pst_bloom` takes them."""
        return {
            "space_size": self.space_size,
            "max_spaces": self.max_spaces,
            "max_records": self.max_records,
        }


class BlockIndex(StaticFrame[Structure]):
    """Builds the blocks, and searches them."""

    name: ClassVar[str] = "blocks"
    Config = Config

    def _clear(self) -> None:
        super()._clear()
        self._scratch = _new_scratch(0, 0)

    def _build(self, slots: np.ndarray) -> Structure:
        return build_structure(self._table, slots, self.config)

    def _stepper(self, events: EventBatch) -> Step:
        codes, places, blocks = self._built
        board, table = self._board, self._table
        is_plain = events.lo is events.hi or bool((events.lo == events.hi).all())
        self._make_scratch(len(codes.n), 0 if is_plain else len(self._is_held))
        if is_plain:
            events = events._replace(more=events.more[:0])

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            while is_plain:
                x = self._scratch
                done: int = match_blocks(
                    codes, places, blocks, x, events, first, offsets, out, counters
                )
                if done >= 0:
                    return done
                first = ~done
                more = np.empty(doubled(len(x.block), int(x.work[NODES])), np.int64)
                self._scratch = x._replace(block=more)
            return match_sets(
                places, blocks, table.layout, table.predicates.layout, self._scratch, events, first,
                stamp, board.event, board.entry, offsets, out, counters,
            )  # fmt: skip

        return step

    def _make_scratch(self, n_attributes: int, n_slots: int) -> None:
        x = self._scratch
        if len(x.code) < n_attributes or len(x.seen) < n_slots:
            self._scratch = _new_scratch(
                doubled(len(x.code), n_attributes), doubled(len(x.seen), n_slots)
            )

    def _structure(self) -> dict[str, Any]:
        codes, places, blocks = self._built
        return {
            "spaces": len(places.first_key),
            "bytes": sum(a.nbytes for part in (codes, places, blocks) for a in part)
            - blocks.half.nbytes,
        }

    def draw(self) -> str:
        return ""


def _new_scratch(n_attributes: int, n_slots: int) -> Scratch:
    return Scratch(
        code=np.zeros(n_attributes, np.int32),
        found=np.empty(2 * n_attributes, np.int64),
        block=np.empty(max(_SMALL, 2 * n_attributes), np.int64),
        mask=np.zeros(8, np.int64),
        work=np.zeros(len(COUNTERS), np.int64),
        seen=np.zeros(n_slots, np.int64),
        clock=np.zeros(1, np.int64),
    )
