"""Static frame: an index that is built in bulk from the expression table, and again after changes.

Inserting and deleting change the set of slots that are held, and nothing else; the structure is
discarded.  The first `settle`, `stats` or `draw` after that builds it from what the table says
then; a search never does.  Adding expressions one by one therefore costs one build, and a structure
that does not agree with the table is never searched, because there is none.

An index derives from `StaticFrame` and says

    name, language, Config   as with `IndexFrame`
    _build(slots)            the structure that holds these slots, ascending; there may be none
    _stepper(events, scratch)   the step of a search; reads `self._built`
    _new_arrays()            what a search writes to, in a scratch: `_arrays_in` has them
    _structure()  draw()     likewise
    _must_build_now(slots)   whether a build that has these new slots, too, could fail

Errors belong to `insert`.  What depends on an expression alone is told by `refusals`; where the
whole may be too much, `_must_build_now` says so, and then `insert` builds at once.

The table is the snapshot: a layout is the set of slots.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.frame import IndexFrame
from matchwood.index.core.scratch import Scratch, new_version
from matchwood.kernel.arrays import doubled, grown

Structure = TypeVar("Structure")

_SMALL = 16


class StaticFrame(IndexFrame, Generic[Structure]):
    """The verbs, and the set of slots held; see the module's docstring."""

    _kept: Structure | None

    @classmethod
    def build(cls, table: ExpressionTable, slots: np.ndarray, **config: Any) -> Self:
        index = super().build(table, slots, **config)
        if len(slots):
            index.settle()
        return index

    def settle(self) -> None:
        """Build the structure, if there is none."""
        if self._kept is None:
            self._kept = self._build(self._held())
            self._version = new_version()

    @property
    def _built(self) -> Structure:
        """The structure of what is held now; `settle` comes first."""
        assert self._kept is not None
        return self._kept

    def _new_arrays(self) -> Any:
        """The arrays that a search writes to, for the structure as it is now."""
        return None

    def _arrays_in(self, scratch: Scratch) -> Any:
        """Those arrays in a scratch, made anew when the structure is another one."""
        part = scratch.of(self)
        if part.version != self._version:
            part.arrays = self._new_arrays()
            part.version = self._version
        return part.arrays

    @abstractmethod
    def _build(self, slots: np.ndarray) -> Structure: ...

    def _must_build_now(self, slots: np.ndarray) -> bool:
        """Whether a build that has these new slots, too, could fail."""
        return False

    def stats(self) -> dict[str, Any]:
        self.settle()
        found = super().stats()
        return {**found, "bytes": found["bytes"] + self._is_held.nbytes}

    # ── the set ─────────────────────────────────────────────────────────────────────────────────

    def _clear(self) -> None:
        self._is_held = np.zeros(_SMALL, np.bool_)
        self._kept = None

    def _held(self) -> np.ndarray:
        """The slots that are held, ascending."""
        return np.flatnonzero(self._is_held).astype(np.int32)

    def _add(self, slots: np.ndarray) -> None:
        self._is_held = grown(self._is_held, doubled(len(self._is_held), int(slots.max()) + 1))
        self._is_held[slots] = True
        self._kept = None
        if self._must_build_now(slots):
            try:
                self.settle()
            except BaseException:
                self._is_held[slots] = False
                raise

    def delete(self, slots: np.ndarray) -> None:
        known = slots[slots < len(self._is_held)]
        super().delete(known[self._is_held[known]])  # what was refused was never here

    def _remove(self, slots: np.ndarray) -> None:
        self._is_held[slots] = False
        self._kept = None

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"held": self._held()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        held = layout["held"]
        self._is_held = np.zeros(doubled(_SMALL, int(held.max(initial=0)) + 1), np.bool_)
        self._is_held[held] = True

    def _thaw(self) -> None:
        """Nothing: no array of a snapshot is kept."""
