"""Routing: which index holds which expressions.

    always true      kept here, matches every event
    never true       kept nowhere
    conjunctions     the index the user chose
    anything else    the same index if it speaks any expression, else the general one
    with a context   an index that follows changing values, whatever was chosen for the others

`auto` scans a small set.  It moves conjunctions to PSTBloom when they become many, and everything
else to an A-Tree when that becomes much.

Indexes are built again from the expression table when its keys or predicate ids moved (`epoch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Self

import numpy as np

from matchwood.encode.attributes import Attribute, Attributes
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, TREE, UNUSED
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.moments import Moment, match_between
from matchwood.errors import FormatError, MatchwoodError
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.protocol import ANY, Hits, Index, is_checked
from matchwood.index.core.registry import find_index

AUTO = "auto"
CONJUNCTIVE_INDEX = "pst_bloom"
TREE_INDEX = "a_tree"
GENERAL_INDEX = "scan"
"""What `auto` chooses for many conjunctions, for many other expressions, and for few."""

AUTO_FROM = 2_000
"""Conjunctions from which `auto` builds an index for them.  Scanning fewer takes some 20 µs, and a
first match then need not wait for more kernels to be compiled."""

TREES_FROM = 2_000
"""Other expressions from which they get an index.  Scanning fewer takes some 100 µs; an A-Tree is
faster from a few hundred on, but has the most kernels to compile."""

CONTEXT_INDEX = "agile"
CONTEXT_INDEXES = ("agile", "no_index", "eager", "partial", "gbu")
"""What holds subscriptions with a context, and all indexes that can."""


def _classes(
    index: str, n_conjunctions: int, n_trees: int, has_context: bool
) -> tuple[type[Index], ...]:
    general = TREE_INDEX if n_trees >= TREES_FROM else GENERAL_INDEX
    if index == AUTO:
        index = CONJUNCTIVE_INDEX if n_conjunctions >= AUTO_FROM else general
    chosen = find_index(index)
    classes = (chosen,) if chosen.language == ANY else (chosen, find_index(general))
    if has_context and index not in CONTEXT_INDEXES:
        return (*classes, find_index(CONTEXT_INDEX))
    return classes


def attribute_settings(index: str) -> set[str]:
    """The settings of an index that name attributes."""
    kind = getattr(None if index == AUTO else find_index(index), "Config", IndexConfig)
    return set(kind.attribute_settings)


def _check_names(index: str, names: list[str], has_context: bool) -> None:
    """Refuse indexes that no number of expressions leads to."""
    sizes = product((0, AUTO_FROM), (0, TREES_FROM), {False, has_context})
    if names not in [[each.name for each in _classes(index, *size)] for size in sizes]:
        raise FormatError(f"expected the indexes of {index!r}, found {', '.join(names)[:80]!r}")


def with_ids(index: str, config: Mapping[str, Any], attributes: Attributes) -> dict[str, Any]:
    """Settings as an index takes them: attributes by id, where users name them."""
    found = dict(config)
    for setting in found.keys() & attribute_settings(index):
        value = found[setting]
        if isinstance(value, (list, tuple)):
            found[setting] = [
                _numbers_of(attributes, each).id if isinstance(each, str) else each
                for each in value
            ]
    attributes.n_pinned = len(attributes)  # those that a setting names stay as declared ones do
    return found


def _numbers_of(attributes: Attributes, name: str) -> Attribute:
    """The attribute that an index has ranges of: an open one has them of its numbers."""
    attribute = attributes.get(name, attributes.column_types.get(name))
    return attribute if attribute.type is not None else attributes.of_kind(attribute, "number")


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
        layouts: Sequence[tuple[str, dict[str, np.ndarray] | None]],
        verify: bool,
    ) -> Self:
        """Take over the indexes of a snapshot, each by its name; those without arrays are built.

        verify  have each index check its arrays before it takes them
        """
        _check_names(index, [name for name, _ in layouts], table.context is not None)
        self = cls.__new__(cls)
        self._table, self.name, self.config = table, index, dict(config)
        self._n_conjunctions = len(table.slots_of(CONJUNCTION))
        self._n_trees = len(table.slots_of(TREE))
        self._classes = tuple(find_index(name) for name, _ in layouts)
        self._always_array = table.slots_of(ALWAYS)
        self._always = set(self._always_array.tolist())
        self.epoch = table.epoch
        used = np.flatnonzero(table.layout.kind != UNUSED).astype(np.int32)
        self.indexes = []
        for i, part in enumerate(self._parts(used)):
            self.indexes.append(self._restored(i, part, layouts[i][1], verify))
        return self

    def _restored(
        self, which: int, slots: np.ndarray, layout: dict[str, np.ndarray] | None, verify: bool
    ) -> Index:
        cls, config = self._classes[which], self.config if which == 0 else {}
        if layout is None or not is_checked(cls):
            return cls.build(self._table, slots, **config)
        if verify:
            cls.check(self._table, slots, layout, **config)
        return cls.restore(self._table, layout, **config)

    def _wanted(self, n_conjunctions: int, n_trees: int) -> tuple[type[Index], ...]:
        return _classes(self.name, n_conjunctions, n_trees, self._table.context is not None)

    def rebuild(self) -> None:
        """Build every index anew from the expression table."""
        nothing = np.empty(0, np.int32)
        self._classes = self._wanted(
            len(self._table.slots_of(CONJUNCTION)), len(self._table.slots_of(TREE))
        )
        self._n_conjunctions = self._n_trees = 0
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

    def refusals(self, slots: np.ndarray) -> dict[int, MatchwoodError]:
        """Those of new slots that an index refuses, and why; changes no index.  Asked first."""
        self._open_context_index()
        refused: dict[int, MatchwoodError] = {}
        for index, part in zip(self.indexes, self._parts(slots), strict=True):
            if len(part):
                refused |= index.refusals(part)
        return refused

    def insert(self, slots: np.ndarray) -> None:
        kinds = self._table.layout.kind[slots]
        self._open_context_index()
        before = self._wanted(self._n_conjunctions, self._n_trees)
        after = self._wanted(
            self._n_conjunctions + int((kinds == CONJUNCTION).sum()),
            self._n_trees + int((kinds == TREE).sum()),
        )
        # a set that has shrunk keeps the larger one's indexes
        has_grown = before != after != self._classes
        if has_grown or self.epoch != self._table.epoch:
            self.rebuild()  # takes the new slots with it
        else:
            self._insert(slots)

    def _open_context_index(self) -> None:
        """An index for contexts once there are any, beside the others as they are."""
        is_missing = self._table.context is not None and self.context_index is None
        if is_missing and self.name not in CONTEXT_INDEXES:
            self._classes = (*self._classes, find_index(CONTEXT_INDEX))
            self.indexes.append(self._build(len(self._classes) - 1, np.empty(0, np.int32)))

    @property
    def context_index(self) -> Any:
        """The index that holds subscriptions with a context, if there is one."""
        last = self.indexes[-1]
        return last if last.name in CONTEXT_INDEXES else None

    def delete(self, slots: np.ndarray) -> None:
        """Forget slots; the table still holds them."""
        for index, part in zip(self.indexes, self._parts(slots), strict=True):
            if len(part):
                index.delete(part)
        kinds = self._table.layout.kind[slots]
        self._n_conjunctions -= int((kinds == CONJUNCTION).sum())
        self._n_trees -= int((kinds == TREE).sum())
        gone = slots[kinds == ALWAYS]
        if len(gone):
            self._always.difference_update(gone.tolist())
            self._always_array = None

    def match_batch(self, events: EventBatch, moments: Sequence[Moment] = ()) -> list[Hits]:
        """The hits of each index; `always` is left to the caller."""
        bound = self.context_index if moments else None
        hits = [
            index.match_batch(events) for index in self.indexes if len(index) and index is not bound
        ]
        if bound is not None:
            hits.append(match_between(bound, events, moments))
        elif moments:  # nobody is linked to a context, and its values change all the same
            for moment in moments:
                moment.change()
        return hits

    def _insert(self, slots: np.ndarray) -> None:
        for i, part in enumerate(self._parts(slots)):
            if len(part) and len(self.indexes[i]):
                self.indexes[i].insert(part)
            elif len(part):  # the first batch: an index may build better than it grows
                self.indexes[i] = self._build(i, part)
        kinds = self._table.layout.kind[slots]
        self._n_conjunctions += int((kinds == CONJUNCTION).sum())
        self._n_trees += int((kinds == TREE).sum())
        always = slots[kinds == ALWAYS]
        if len(always):
            self._always.update(always.tolist())
            self._always_array = None

    def _parts(self, slots: np.ndarray) -> list[np.ndarray]:
        n = len(self._classes)
        if self._has_context_index:
            linked = self._table.context.is_linked(slots)
            kinds = self._table.layout.kind[slots]
            bound = slots[linked & ((kinds == CONJUNCTION) | (kinds == TREE))]
            return [*self._plain_parts(slots[~linked], n - 1), bound]
        return self._plain_parts(slots, n)

    def _plain_parts(self, slots: np.ndarray, n: int) -> list[np.ndarray]:
        kinds = self._table.layout.kind[slots]
        if n == 1:
            return [slots[(kinds == CONJUNCTION) | (kinds == TREE)]]
        return [slots[kinds == CONJUNCTION], slots[kinds == TREE]]

    @property
    def _has_context_index(self) -> bool:
        """Whether the last index is one for subscriptions with a context alone."""
        return len(self._classes) > 1 and self._classes[-1].name == CONTEXT_INDEX

    def _build(self, which: int, slots: np.ndarray) -> Index:
        cls, config = self._classes[which], self.config if which == 0 else {}
        return cls.build(self._table, slots, **config)
