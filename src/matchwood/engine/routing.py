"""Routing: which index holds which expressions.

    always true      kept here, matches every event
    never true       kept nowhere
    conjunctions     the index the user chose
    anything else    the same index if it speaks any expression, else the general one

`auto` scans a small set and moves to a BE-Tree when conjunctions become many.

Indexes are built again from the expression table when its keys or predicate ids moved (`epoch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, TREE, UNUSED
from matchwood.encode.expressions import ExpressionTable
from matchwood.index.config import IndexConfig
from matchwood.index.protocol import ANY, Hits, Index
from matchwood.index.registry import find_index

AUTO = "auto"
CONJUNCTIVE_INDEX = "be_tree"
GENERAL_INDEX = "scan"
"""What `auto` chooses for many conjunctions, and for every other expression."""

AUTO_FROM = 2_000
"""Conjunctions from which `auto` builds an index for them.  Scanning fewer takes some 20 µs, and a
first match then need not wait for more kernels to be compiled."""


def _classes(index: str, n_conjunctions: int) -> tuple[type[Index], ...]:
    if index == AUTO:
        index = CONJUNCTIVE_INDEX if n_conjunctions >= AUTO_FROM else GENERAL_INDEX
    chosen = find_index(index)
    return (chosen,) if chosen.language == ANY else (chosen, find_index(GENERAL_INDEX))


def with_ids(index: str, config: Mapping[str, Any], attributes: Attributes) -> dict[str, Any]:
    """Settings as an index takes them: attributes by id, where users name them."""
    kind = getattr(None if index == AUTO else find_index(index), "Config", IndexConfig)
    found = dict(config)
    for setting in found.keys() & set(kind.attribute_settings):
        value = found[setting]
        if isinstance(value, (list, tuple)):
            found[setting] = [
                attributes.get(each, None).id if isinstance(each, str) else each for each in value
            ]
    return found


class Routing:
    """The indexes of one matcher."""

    indexes: list[Index]

    def __init__(self, table: ExpressionTable, index: str, config: Mapping[str, Any]) -> None:
        self._table = table
        self.name = index
        self.config = dict(config)
        self.rebuild()

    @classmethod
    def restore(
        cls,
        table: ExpressionTable,
        index: str,
        config: Mapping[str, Any],
        layouts: list[dict[str, np.ndarray]],
        always: np.ndarray,
    ) -> Self:
        """Take over the indexes of a snapshot; built anew if it was saved with other ones."""
        self = cls.__new__(cls)
        self._table, self.name, self.config = table, index, dict(config)
        self._n_conjunctions = len(table.slots_of(CONJUNCTION))
        self._classes = _classes(index, self._n_conjunctions)
        self._always, self._always_array = set(always.tolist()), always
        self.epoch = table.epoch
        if len(layouts) != len(self._classes):
            self.rebuild()
            return self
        self.indexes = [
            each.restore(table, layout, **(self.config if i == 0 else {}))
            for i, (each, layout) in enumerate(zip(self._classes, layouts, strict=True))
        ]
        return self

    def rebuild(self) -> None:
        """Build every index anew from the expression table."""
        nothing = np.empty(0, np.int32)
        self._classes = _classes(self.name, len(self._table.slots_of(CONJUNCTION)))
        self._n_conjunctions = 0
        self.indexes = [self._build(i, nothing) for i in range(len(self._classes))]
        self._always: set[int] = set()
        self._always_array: np.ndarray | None = nothing
        self.epoch = self._table.epoch
        self._insert(np.flatnonzero(self._table.layout.kind != UNUSED).astype(np.int32))

    @property
    def always(self) -> np.ndarray:
        """Slots of expressions that every event satisfies."""
        if self._always_array is None:
            self._always_array = np.array(sorted(self._always), np.int32)
        return self._always_array

    def insert(self, slots: np.ndarray) -> None:
        kinds = self._table.layout.kind[slots]
        n_conjunctions = self._n_conjunctions + int((kinds == CONJUNCTION).sum())
        has_grown = len(_classes(self.name, n_conjunctions)) > len(self._classes)
        if has_grown or self.epoch != self._table.epoch:
            self.rebuild()  # takes the new slots with it
        else:
            self._insert(slots)

    def delete(self, slots: np.ndarray) -> None:
        """Forget slots; the table still holds them."""
        for index, part in zip(self.indexes, self._parts(slots), strict=True):
            if len(part):
                index.delete(part)
        kinds = self._table.layout.kind[slots]
        self._n_conjunctions -= int((kinds == CONJUNCTION).sum())
        gone = slots[kinds == ALWAYS]
        if len(gone):
            self._always.difference_update(gone.tolist())
            self._always_array = None

    def match_batch(self, events: EventBatch) -> list[Hits]:
        """The hits of each index; `always` is left to the caller."""
        return [index.match_batch(events) for index in self.indexes if len(index)]

    def _insert(self, slots: np.ndarray) -> None:
        for i, part in enumerate(self._parts(slots)):
            if len(part) and len(self.indexes[i]):
                self.indexes[i].insert(part)
            elif len(part):  # the first batch: an index may build better than it grows
                self.indexes[i] = self._build(i, part)
        kinds = self._table.layout.kind[slots]
        self._n_conjunctions += int((kinds == CONJUNCTION).sum())
        always = slots[kinds == ALWAYS]
        if len(always):
            self._always.update(always.tolist())
            self._always_array = None

    def _parts(self, slots: np.ndarray) -> list[np.ndarray]:
        kinds = self._table.layout.kind[slots]
        if len(self.indexes) == 1:
            return [slots[(kinds == CONJUNCTION) | (kinds == TREE)]]
        return [slots[kinds == CONJUNCTION], slots[kinds == TREE]]

    def _build(self, which: int, slots: np.ndarray) -> Index:
        cls, config = self._classes[which], self.config if which == 0 else {}
        return cls.build(self._table, slots, **config)
