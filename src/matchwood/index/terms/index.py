"""Owner of the terms; see the page of this folder."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.frame import BoundStep, Saved, Step
from matchwood.index.core.protocol import ANY
from matchwood.index.core.scratch import Scratch
from matchwood.index.core.static import KeptFrame
from matchwood.index.terms.build import build_structure, empty_structure
from matchwood.index.terms.check import arrays_of, check_structure, structure_of
from matchwood.index.terms.draw import draw_terms
from matchwood.index.terms.match import MINE, MOST_PENDING, N_WORK, VIEW, Memory, match_terms
from matchwood.index.terms.words import Structure
from matchwood.kernel.arrays import doubled
from matchwood.kernel.verify_kernels import NODES

_SMALL = 256
_NOTHING = empty_structure()


class TermIndex(KeptFrame[Structure]):
    """Builds the terms, and searches them."""

    name: ClassVar[str] = "terms"
    language: ClassVar[str] = ANY
    LAYOUT_VERSION: ClassVar[int] = 1  # a piece for each node
    reads_table: ClassVar[bool] = False
    LAYOUT = VIEW
    SEARCH = MINE

    def _build(self, slots: np.ndarray) -> Structure:
        return build_structure(self._table, slots)

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
        return self._again_with_room(self.alone(events, scratch), scratch)

    def alone(self, events: EventBatch, scratch: Scratch) -> BoundStep:
        """As `IndexFrame.alone`; the step ends with a number below 0 where nodes have no room."""
        self._arrays_in(scratch)
        part = scratch.of(self)
        return self._bound_step(match_terms, events, scratch, lambda: part.arrays)

    def make_room(self, scratch: Scratch) -> None:
        part = scratch.of(self)
        x = part.arrays
        more = np.empty(doubled(len(x.found), int(x.work[NODES])), np.int64)
        part.arrays = x._replace(found=more)

    def _structure(self) -> dict[str, Any]:
        codes, tree, terms = self._built
        return {
            "leaves": len(tree.leaf),
            "nodes": int(np.count_nonzero(np.diff(tree.start))),
            "terms": len(terms.sure) + len(terms.slot),
            "sure": len(terms.sure),
            "groups": len(terms.group) - 1,
            "steps": len(terms.step),
            "bytes": sum([array.nbytes for array in (*codes, *tree, *terms)]),
        }

    def draw(self) -> str:
        self.settle()
        return draw_terms(self.name, len(self), self._built)

    # ── snapshots ───────────────────────────────────────────────────────────────────────────────

    _saved = staticmethod(arrays_of)
    _restored = staticmethod(structure_of)

    @classmethod
    def _check_built(cls, saved: Saved) -> None:
        check_structure(saved.table, saved.slots, saved.layout)
