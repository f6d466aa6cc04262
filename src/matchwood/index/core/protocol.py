"""What an index is.

An index answers one question: which expressions of an `ExpressionTable` hold for an encoded event?
Its owner passes it slots of the table to hold (`insert`) or to drop (`delete`); it never sees text,
types, negations, or an expression that is always or never true.

    build(table, slots, **config)   a new index that holds these slots
    refusals(slots)                 those that `insert` would refuse, and why; changes nothing
    insert(slots)  delete(slots)    in place; delete comes before the table releases the slots
    settle()                        after changes and before a search: build what is missing
    search(events, scratch)         Hits of a batch; reads the index, writes to the scratch
    absorb(scratch)                 take over what searches with this scratch have learned
    stats()                         sizes and structure, for people
    draw()                          the structure as text
    layout()  restore(...)          arrays for a snapshot, and back
    is_kept, check(...)             whether the arrays of a snapshot are what kernels rely on; an
                                    index that cannot tell is built anew when one is opened

Several threads may search at the same time, each with a `Scratch` of its own.  Every other verb
needs the index for itself.

Refusing is judged before anything is changed.  It depends on an expression alone, or on a measure
of all that are held which only ever falls when some of them leave, so that every part of what was
accepted is accepted: deleting never fails, nor does building what is left anew.  Where memory ends
(`IndexBuildError` from `insert` in spite of `refusals`) the index may be damaged: build it anew.

Every index ends in the same verification (`verify_kernels`) and counts the same work (`COUNTERS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeGuard

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import MatchwoodError
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.scratch import Hits, Scratch
from matchwood.kernel.arrays import slices

__all__ = ["ANY", "CONJUNCTIONS", "CheckedIndex", "Hits", "Index", "is_checked", "side_by_side"]

CONJUNCTIONS = "conjunctions"
ANY = "any"
"""Which expressions an index can hold."""


def side_by_side(first: Hits, second: Hits) -> Hits:
    """The hits of two indexes as one."""
    n = np.diff(first.offsets), np.diff(second.offsets)
    offsets = first.offsets + second.offsets
    slots = np.empty(len(first.slots) + len(second.slots), np.int32)
    slots[slices(offsets[:-1], n[0])] = first.slots
    slots[slices(offsets[:-1] + n[0], n[1])] = second.slots
    return Hits(offsets, slots, first.counters + second.counters)


class Index(Protocol):
    """The verbs that every index has; see the module's docstring."""

    name: ClassVar[str]
    language: ClassVar[str]
    Config: ClassVar[type[IndexConfig]]

    @classmethod
    def build(cls, table: ExpressionTable, slots: np.ndarray, **config: Any) -> Self: ...

    def __len__(self) -> int: ...

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]: ...

    def insert(self, slots: np.ndarray) -> None: ...

    def delete(self, slots: np.ndarray) -> None: ...

    def settle(self) -> None: ...

    def search(self, events: EventBatch, scratch: Scratch) -> Hits: ...

    def absorb(self, scratch: Scratch) -> None: ...

    def stats(self) -> dict[str, Any]: ...

    def draw(self) -> str: ...

    def layout(self) -> dict[str, np.ndarray]: ...

    @classmethod
    def restore(
        cls, table: ExpressionTable, layout: Mapping[str, np.ndarray], **config: Any
    ) -> Self: ...


class CheckedIndex(Index, Protocol):
    """An index whose layout a snapshot keeps, because it can tell a good one from a bad one."""

    @classmethod
    def check(
        cls,
        table: ExpressionTable,
        slots: np.ndarray,
        layout: Mapping[str, np.ndarray],
        **config: Any,
    ) -> None:
        """Raise a FormatError unless the layout holds these slots and no kernel leaves its arrays.

        The table has been checked before.
        """
        ...


def is_checked(index: type[Index]) -> TypeGuard[type[CheckedIndex]]:
    """Whether an index can check a layout, so that a snapshot keeps it."""
    return getattr(index, "is_kept", False)


def is_current(index: type[Index], layout: Mapping[str, np.ndarray]) -> bool:
    """Whether a layout has the arrays that the index has now; else it is built from the table."""
    found = layout.get("layout_version")
    version = int(found[0]) if found is not None and found.shape == (1,) else 0
    return version == getattr(index, "LAYOUT_VERSION", 0)
