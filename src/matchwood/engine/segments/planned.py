"""The indexes of a store that is filled once and then only searched: a segment.

The planner says which index holds which subscriptions, once all of them are there.  Adding to such
a store builds nothing; `settle` plans and builds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE, UNUSED
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.segments.planner import PLANNED, Choice, Plan, plan
from matchwood.engine.stores.packed_integers import packed
from matchwood.engine.stores.routing import AUTO, Routing
from matchwood.errors import FormatError, MatchwoodError
from matchwood.index.core.protocol import ANY, Index, is_checked, is_current
from matchwood.index.core.registry import find_index

if TYPE_CHECKING:
    from matchwood.context.cif import Cif

NOWHERE = 255
"""In `choice_of`: a slot that no index holds."""

Layouts = Sequence[tuple[str, dict[str, np.ndarray] | None]]


class Planned(Routing):
    """As `Routing`, by a plan; without contexts."""

    is_static = True

    def __init__(self, table: ExpressionTable) -> None:
        super().__init__(table, AUTO, {})

    @classmethod
    def restored(
        cls, table: ExpressionTable, layouts: Layouts, choice_of: np.ndarray, verify: bool
    ) -> Self:
        """Take over the indexes of a snapshot; those without arrays are built.

        choice_of  for each slot, the number of the index that holds it
        """
        _check(table, [name for name, _ in layouts], choice_of)
        self = cls(table)
        slots = np.flatnonzero(table.layout.kind != UNUSED).astype(np.int32)
        kinds, numbers = table.layout.kind[slots], choice_of[slots]
        choices = [
            Choice(name, slots[numbers == number], "as planned when it was written")
            for number, (name, _) in enumerate(layouts)
        ]
        self._plan = Plan(tuple(choices), slots[kinds == ALWAYS], slots[kinds == NEVER])
        self._indexes = [
            _restored(table, each, layout, verify)
            for each, (_, layout) in zip(choices, layouts, strict=True)
        ]
        self.is_settled = True
        return self

    def rebuild(self) -> None:
        """Plan again at the next `settle`."""
        self.is_settled = False
        self._indexes: list[Index] = []
        self._plan: Plan | None = None
        self.ranking = None
        self.epoch = self._table.epoch

    give_up = rebuild

    def settle(self) -> None:
        """Plan and build, once all subscriptions are there."""
        if self.is_settled:
            return
        self._plan = self.ranking = None
        slots = np.flatnonzero(self._table.layout.kind != UNUSED).astype(np.int32)
        found = plan(self._table, slots)
        self._indexes = [each.build(self._table) for each in found.choices]
        self._plan = found
        self.epoch = self._table.epoch
        self.is_settled = True

    def freeze(self) -> None:
        """Take less memory, once all is settled: nothing will be added."""
        assert self._plan is not None
        choices = [each._replace(slots=packed(each.slots)) for each in self._plan.choices]
        self._plan = self._plan._replace(choices=tuple(choices))
        if not any(getattr(index, "reads_table", True) for index in self._indexes):
            self._table.pack()

    @property
    def indexes(self) -> list[Index]:
        return self._indexes

    @property
    def always(self) -> np.ndarray:
        return np.empty(0, np.int32) if self._plan is None else self._plan.always

    @property
    def context_index(self) -> Cif | None:
        return None

    def rows(self) -> list[dict[str, Any]]:
        """The plan for people."""
        return [] if self._plan is None else self._plan.rows()

    def planned(self) -> list[dict[str, Any]]:
        slots = np.flatnonzero(self._table.layout.kind != UNUSED).astype(np.int32)
        linked = None if self.contexts is None else self.contexts.is_linked(slots)
        return plan(self._table, slots, linked).rows()

    def choice_of(self, n_slots: int) -> np.ndarray:
        """For each slot the number of the index that holds it, for a snapshot."""
        assert self._plan is not None
        found = np.full(n_slots, NOWHERE, np.uint8)
        for number, each in enumerate(self._plan.choices):
            found[each.slots[:]] = number
        return found

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """None: the planner gives to every index what it can hold."""
        return {}

    def insert(self, slots: np.ndarray) -> None:
        self.is_settled = False

    def delete(self, slots: np.ndarray) -> None:
        self.rebuild()


def _check(table: ExpressionTable, names: list[str], choice_of: np.ndarray) -> None:
    """Raise FormatError unless every expression is where it can be."""
    kinds = table.layout.kind
    if choice_of.dtype != np.uint8 or choice_of.shape != kinds.shape or len(names) >= NOWHERE:
        raise FormatError(f"expected the index of each of {len(kinds)} slots, found something else")
    if not set(names) <= set(PLANNED):
        raise FormatError(f"expected indexes of a plan, found {', '.join(names)[:80]!r}")
    fits = (choice_of == NOWHERE) & np.isin(kinds, [ALWAYS, NEVER, UNUSED])
    for number, name in enumerate(names):
        held = [CONJUNCTION, TREE] if find_index(name).language == ANY else [CONJUNCTION]
        fits |= (choice_of == number) & np.isin(kinds, held)
    if not fits.all():
        raise FormatError(
            f"expected each expression in an index that takes it, found slot {int(fits.argmin())} "
            "elsewhere"
        )


def _restored(
    table: ExpressionTable, choice: Choice, layout: dict[str, np.ndarray] | None, verify: bool
) -> Index:
    cls = find_index(choice.name)
    if layout is None or not is_checked(cls) or not is_current(cls, layout):
        return choice.build(table)
    if verify:
        cls.check(table, choice.slots, layout)
    return cls.restore(table, layout)
