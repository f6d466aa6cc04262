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

Errors belong to `insert`.  `refusals` finds those that depend on one expression alone; where
all together may be too much, `_must_build_now` is True, and `insert` builds at once.

The table is the snapshot: a layout is the set of slots, except in a `KeptFrame`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.core.frame import IndexFrame, Saved, Step, check_slots
from matchwood.index.core.scratch import Scratch, new_version
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.marks import are_marked, bits_of, marked

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
        return {**found, "bytes": found["bytes"] + self._marks.nbytes}

    # ── the set ─────────────────────────────────────────────────────────────────────────────────

    def _clear(self) -> None:
        self._marks = np.zeros(_SMALL, np.uint8)  # a bit for each slot
        self._kept = None

    @property
    def _n_slots(self) -> int:
        """Slots that have a mark; those held are among them."""
        return 8 * len(self._marks)

    def _held(self) -> np.ndarray:
        """The slots that are held, ascending."""
        return marked(self._marks)

    def _mark(self, slots: np.ndarray) -> None:
        needed = int(slots.max(initial=0)) // 8 + 1
        self._marks = grown(self._marks, doubled(len(self._marks), needed))
        np.bitwise_or.at(self._marks, slots >> 3, bits_of(slots))

    def _unmark(self, slots: np.ndarray) -> None:
        np.bitwise_and.at(self._marks, slots >> 3, ~bits_of(slots))

    def _add(self, slots: np.ndarray) -> None:
        self._mark(slots)
        self._kept = None
        if self._must_build_now(slots):
            try:
                self.settle()
            except BaseException:
                self._unmark(slots)
                raise

    def delete(self, slots: np.ndarray) -> None:
        known = slots[slots < self._n_slots]
        super().delete(known[are_marked(self._marks, known)])  # what was refused was never here

    def _remove(self, slots: np.ndarray) -> None:
        self._unmark(slots)
        self._kept = None

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"held": self._held()}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        self._mark(layout["held"])

    def _thaw(self) -> None:
        """Nothing: no array of a snapshot is kept."""


class KeptFrame(StaticFrame[Structure]):
    """A static frame whose structure is large enough that a snapshot keeps it.

    An index derives from it and also says

        _saved(built)  _restored(layout)   the arrays of a structure, and back
        _check_built(saved)                what these arrays must be
        make_room(scratch)                 for an event that ends its step with a number below 0
    """

    is_kept: ClassVar[bool] = True
    _saved: ClassVar[Callable[..., dict[str, np.ndarray]]]
    _restored: ClassVar[Callable[..., Any]]

    def _again_with_room(self, attempt: Step, scratch: Scratch) -> Step:
        """The step that makes room where `attempt` ends with ~event, and goes on from there."""

        def step(
            first: int, stamp: int, offsets: np.ndarray, out: np.ndarray, counters: np.ndarray
        ) -> int:
            while True:
                done = attempt(first, stamp, offsets, out, counters)
                if done >= 0:
                    return done
                first = ~done
                self.make_room(scratch)

        return step

    def _arrays(self) -> dict[str, np.ndarray]:
        self.settle()
        return {**super()._arrays(), **self._saved(self._built)}

    def _take(self, layout: Mapping[str, np.ndarray]) -> None:
        super()._take(layout)
        self._kept = self._restored(layout)

    @classmethod
    def _check(cls, saved: Saved) -> None:
        check_slots("held", saved)
        cls._check_built(saved)

    @classmethod
    @abstractmethod
    def _check_built(cls, saved: Saved) -> None: ...
