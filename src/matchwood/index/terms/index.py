"""Owner of the terms; see the page of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import CONJUNCTION
from matchwood.index.blocks.index import BlockIndex
from matchwood.index.core.frame import BoundStep, Saved, Step
from matchwood.index.core.protocol import ANY, Hits
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import KeptFrame
from matchwood.index.core.with_rest import with_hits_of
from matchwood.index.terms.build import build_structure, empty_structure
from matchwood.index.terms.check import arrays_of, check_structure, structure_of
from matchwood.index.terms.conjunctions import for_blocks
from matchwood.index.terms.draw import draw_terms
from matchwood.index.terms.match import MINE, MOST_PENDING, N_WORK, VIEW, Memory, match_terms
from matchwood.index.terms.words import Structure
from matchwood.kernel.arrays import doubled, prefixed, without_prefix
from matchwood.kernel.verify_kernels import NODES

_SMALL, _BLOCKS = 256, "blocks_"
_NOTHING = empty_structure()


class TermIndex(KeptFrame[Structure]):
    """Builds the terms, and searches them; many conjunctions are in blocks (`conjunctions`)."""

    name: ClassVar[str] = "terms"
    language: ClassVar[str] = ANY
    LAYOUT_VERSION: ClassVar[int] = 2  # conjunctions in blocks
    reads_table: ClassVar[bool] = False
    LAYOUT = VIEW
    SEARCH = MINE

    _blocks: BlockIndex | None = None

    def _build(self, slots: np.ndarray) -> Structure:
        is_apart = for_blocks(self._table, slots)
        apart, rest = slots[is_apart], slots[~is_apart]
        self._blocks = BlockIndex.build(self._table, apart) if len(apart) else None
        return build_structure(self._table, rest)

    def _clear(self) -> None:
        super()._clear()
        self._blocks = None

    @property
    def _are_all_in_blocks(self) -> bool:
        return self._blocks is not None and len(self._blocks) == len(self)

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        if self._blocks is not None and self._are_all_in_blocks:
            return self._blocks.search(events, scratch)
        return with_hits_of(self._blocks, events, scratch, super().search(events, scratch))

    def _new_arrays(self) -> Memory:
        n_leaves = len(self._built.tree.leaf)
        return Memory(
            truth=np.zeros((n_leaves >> 6) + 1, np.int64),
            given=np.zeros((self._n_slots >> 6) + 1, np.int64),
            found=np.empty(_SMALL, np.int64),
            pending=np.empty(MOST_PENDING, np.int64),
            work=np.zeros(N_WORK, np.int64),
        )

    def _view(self) -> Structure:
        return self._kept or _NOTHING

    def _stepper(self, events: EventBatch, scratch: Scratch) -> Step:
        return self._again_with_room(self._attempt(events, scratch), scratch)

    def _attempt(self, events: EventBatch, scratch: Scratch) -> BoundStep:
        """The step through the terms, which ends with a number below 0 where nodes have no room."""
        self._arrays_in(scratch)
        part = scratch.of(self)
        return self._bound_step(match_terms, events, scratch, lambda: part.arrays)

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep | None:
        """As `IndexFrame.alone`; None where some are in blocks and some are not."""
        if self._blocks is None:
            return self._attempt(events, scratch)
        return self._blocks.alone(events, scratch) if self._are_all_in_blocks else None

    def make_room(self, scratch: Scratch) -> None:
        if self._blocks is not None and self._are_all_in_blocks:
            self._blocks.make_room(scratch)
            return
        part = scratch.of(self)
        x = part.arrays
        more = np.empty(doubled(len(x.found), int(x.work[NODES])), np.int64)
        part.arrays = x._replace(found=more)

    def _structure(self) -> dict[str, Any]:
        codes, tree, terms = self._built
        blocks = {} if self._blocks is None else self._blocks.stats()
        return {
            "in_blocks": blocks.get("conjunctions", 0),
            "leaves": len(tree.leaf),
            "nodes": int(np.count_nonzero(np.diff(tree.start))),
            "terms": len(terms.sure) + len(terms.slot),
            "sure": len(terms.sure),
            "groups": len(terms.group) - 1,
            "steps": len(terms.step),
            "bytes": sum([array.nbytes for array in (*codes, *tree, *terms)])
            + blocks.get("bytes", 0),
        }

    def draw(self) -> str:
        self.settle()
        drawn = draw_terms(self.name, len(self), self._built)
        return drawn if self._blocks is None else f"{drawn}\n{self._blocks.draw()}"

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    _saved = staticmethod(arrays_of)
    _restored = staticmethod(structure_of)

    def _arrays(self) -> dict[str, np.ndarray]:
        found = super()._arrays()
        layout = {} if self._blocks is None else self._blocks.layout()
        return {**found, **prefixed(layout, _BLOCKS)}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        super()._take(layout)
        apart = without_prefix(layout, _BLOCKS)
        self._blocks = BlockIndex.restore(self._table, apart) if apart else None

    @classmethod
    def _check_built(cls, saved: Saved) -> None:
        table, slots, layout, _ = saved
        apart, rest = without_prefix(layout, _BLOCKS), slots
        if apart:
            is_apart = table.layout.kind[slots] == CONJUNCTION
            is_apart &= np.isin(slots, apart.get("held", ()))
            BlockIndex.check(table, slots[is_apart], apart)
            rest = slots[~is_apart]
        check_structure(table, rest, layout)
