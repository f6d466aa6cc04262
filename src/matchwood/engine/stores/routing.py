"""Routing: which index holds which expressions.

    always true      kept here, matches every event
    never true       kept nowhere
    conjunctions     the index the user chose
    anything else    the same index if it takes any expression, else the general one
    with a context   an index that follows changing values, whatever was chosen for the others

`auto` scans a small set.  It moves conjunctions to PSTBloom when they become many, and everything
else to an A-Tree when that becomes much.

Indexes are built again from the expression table when its keys or predicate ids moved (`epoch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from matchwood.context import CONTEXT_INDEXES
from matchwood.encode.attribute import Attribute
from matchwood.encode.attributes import Attributes
from matchwood.encode.events import EventBatch
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, TREE, UNUSED
from matchwood.encode.expressions import ExpressionTable
from matchwood.engine.stores.context_changes import ContextChange, search_between
from matchwood.errors import FormatError, MatchwoodError
from matchwood.index.core.config import IndexConfig
from matchwood.index.core.frame import IndexFrame
from matchwood.index.core.protocol import ANY, Hits, Index, is_checked, is_current
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.arrays import positions

if TYPE_CHECKING:
    from matchwood.context.cif import Cif
    from matchwood.context.store import ContextStore
    from matchwood.engine.segments.ranking import Ranking

AUTO = "auto"
CONJUNCTIVE_INDEX = "pst_bloom"
TREE_INDEX = "a_tree"
GENERAL_INDEX = "scan"
"""What `auto` chooses for many conjunctions, for many other expressions, and for few."""

AUTO_FROM = 600
"""Conjunctions from which `auto` builds an index for them: from here on it is faster than scanning
them (`python benchmarks/auto_crossing.py`)."""

TREES_FROM = 250
"""Other expressions from which they get an index, for the same reason."""

CONTEXT_INDEX = "agile"
"""What holds subscriptions with a context, unless the index that was chosen can."""

CONJUNCTIONS, TREES, CONTEXTUAL = "conjunctions", "trees", "contextual"
"""The roles: which expressions an index holds.  One index may have several."""

ByRole = dict[str, "type[Index]"]


def _classes(index: str, n_conjunctions: int, n_trees: int, has_context: bool) -> ByRole:
    """The index of each role; without contexts there is none for them."""
    general = TREE_INDEX if n_trees >= TREES_FROM else GENERAL_INDEX
    if index == AUTO:
        index = CONJUNCTIVE_INDEX if n_conjunctions >= AUTO_FROM else general
    chosen = find_index(index, (AUTO,))
    classes = {
        CONJUNCTIONS: chosen,
        TREES: chosen if chosen.language == ANY else find_index(general),
    }
    if index in CONTEXT_INDEXES:
        classes[CONTEXTUAL] = chosen
    elif has_context:
        classes[CONTEXTUAL] = find_index(CONTEXT_INDEX)
    return classes


def _names(classes: ByRole) -> list[str]:
    """The indexes in the order of their roles, each once: so a snapshot lists them."""
    return list(dict.fromkeys(each.name for each in classes.values()))


def attribute_settings(index: str) -> set[str]:
    """The settings of an index that name attributes."""
    kind = getattr(None if index == AUTO else find_index(index, (AUTO,)), "Config", IndexConfig)
    return set(kind.attribute_settings)


def _of_names(index: str, names: list[str], has_context: bool) -> ByRole:
    """The classes of a snapshot: those of some number of expressions, or a FormatError."""
    for size in product((0, AUTO_FROM), (0, TREES_FROM), {False, has_context}):
        classes = _classes(index, *size)
        if _names(classes) == names:
            return classes
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

    contexts: ContextStore | None = None
    """The values that subscriptions refer to; None while none has a context."""
    is_settled: bool = False
    """Whether searches find all that they need: `settle` was called after the last change."""
    is_static: ClassVar[bool] = False
    """Whether no index learns from events, so that equal ones may be searched once."""
    ranking: Ranking | None = None
    """Of a segment that was asked for the best of what holds."""

    def __init__(self, table: ExpressionTable, index: str, config: Mapping[str, Any]) -> None:
        self._table = table
        self.name = index
        self.config = dict(config)
        if index == AUTO:
            IndexConfig.checked(AUTO, config)
        self.rebuild()

    @classmethod
    def restore(
        cls,
        table: ExpressionTable,
        index: str,
        config: Mapping[str, Any],
        layouts: Sequence[tuple[str, dict[str, np.ndarray] | None]],
        contexts: ContextStore | None,
        verify: bool,
    ) -> Self:
        """Take over the indexes of a snapshot, each by its name; those without arrays are built.

        verify  have each index check its arrays before it takes them
        """
        self = cls.__new__(cls)
        self.contexts = contexts
        self._table, self.name, self.config = table, index, dict(config)
        self._n_conjunctions = len(table.slots_of(CONJUNCTION))
        self._n_trees = len(table.slots_of(TREE))
        self._classes = _of_names(index, [name for name, _ in layouts], contexts is not None)
        self._always_array = table.slots_of(ALWAYS)
        self._always = set(self._always_array.tolist())
        self.epoch = table.epoch
        used = np.flatnonzero(table.layout.kind != UNUSED).astype(np.int32)
        self._by_role = {}
        arrays = dict(layouts)
        for role, kind in self._classes.items():
            found = self._found(kind)
            if found is None:
                held = used[self._is_held(used, kind)]
                found = self._restored(role, held, arrays[kind.name], verify)
            self._by_role[role] = found
        self.follow(contexts)
        return self

    def _restored(
        self, role: str, slots: np.ndarray, layout: dict[str, np.ndarray] | None, verify: bool
    ) -> Index:
        cls, config = self._classes[role], self._config_of(role)
        if layout is None or not is_checked(cls) or not is_current(cls, layout):
            return cls.build(self._table, slots, **config)
        if verify:
            cls.check(self._table, slots, layout, **config)
        return cls.restore(self._table, layout, **config)

    @property
    def indexes(self) -> list[Index]:
        """All indexes in the order of their roles, each once."""
        return list({id(index): index for index in self._by_role.values()}.values())

    def rows(self) -> list[dict[str, Any]]:
        """A row for each index: how many subscriptions it holds, and why; see `Matcher.plan`."""
        chosen = "chosen by name" if self.name != AUTO else "can be changed in place"
        linked = self.context_index if self.name == AUTO else None
        return [
            {
                "index": index.name,
                "subscriptions": len(index),
                "reason": chosen if index is not linked else "follows contexts",
            }
            for index in self.indexes
            if len(index)
        ]

    def planned(self) -> list[dict[str, Any]]:
        """The same before anything is built."""
        return self.rows()

    def follow(self, contexts: ContextStore | None) -> None:
        """Set the store of the context values that subscriptions refer to."""
        self.contexts = contexts
        index = self.context_index
        if index is not None:
            index.contexts = contexts

    def _wanted(self, n_conjunctions: int, n_trees: int) -> ByRole:
        return _classes(self.name, n_conjunctions, n_trees, self.contexts is not None)

    def give_up(self) -> None:
        """Drop the indexes; no search or change may follow."""
        self.is_settled = False
        self._by_role.clear()

    def rebuild(self) -> None:
        """Build every index anew from the expression table."""
        self.is_settled = False
        nothing = np.empty(0, np.int32)
        self._classes = self._wanted(
            len(self._table.slots_of(CONJUNCTION)), len(self._table.slots_of(TREE))
        )
        self._n_conjunctions = self._n_trees = 0
        self._by_role: dict[str, Index] = {}
        for role, kind in self._classes.items():
            found = self._found(kind)
            self._by_role[role] = self._build(role, nothing) if found is None else found
        self.follow(self.contexts)
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
        for index, part in self._parts(slots):
            if len(part):
                refused |= index.refusals(part)
        return refused

    def insert(self, slots: np.ndarray) -> None:
        self.is_settled = False
        kinds = self._table.layout.kind[positions(slots)]
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
        """An index for contexts once there are any; the others stay as they are."""
        self.is_settled = False
        if self.contexts is not None and CONTEXTUAL not in self._by_role:
            self._classes = {**self._classes, CONTEXTUAL: find_index(CONTEXT_INDEX)}
            self._by_role[CONTEXTUAL] = self._build(CONTEXTUAL, np.empty(0, np.int32))
            self.follow(self.contexts)

    @property
    def context_index(self) -> Cif | None:
        """The index that holds subscriptions with a context, if there is one."""
        return cast("Cif | None", self._by_role.get(CONTEXTUAL))

    def delete(self, slots: np.ndarray) -> None:
        """Forget slots; the table still holds them."""
        self.is_settled = False
        for index, part in self._parts(slots):
            if len(part):
                index.delete(part)
        kinds = self._table.layout.kind[positions(slots)]
        self._n_conjunctions -= int((kinds == CONJUNCTION).sum())
        self._n_trees -= int((kinds == TREE).sum())
        gone = slots[kinds == ALWAYS]
        if len(gone):
            self._always.difference_update(gone.tolist())
            self._always_array = None

    def settle(self) -> None:
        """Build what searches need; for an owner that has the indexes for itself."""
        for index in self.indexes:
            if len(index):
                index.settle()
        self.is_settled = True

    def bind(self) -> None:
        """Bind the arrays of the indexes now, so that the next search need not do it."""
        for index in self.indexes:
            if len(index) and isinstance(index, IndexFrame):
                index.bind()

    def freeze(self) -> None:
        """Does nothing: these indexes change in place, so they need room to grow."""

    def absorb(self, scratch: Scratch) -> None:
        """Let all indexes learn from the searches with a scratch; for the owner, as `settle`."""
        for index in self.indexes:
            if len(index):
                index.absorb(scratch)

    def search(
        self, events: EventBatch, scratch: Scratch, changes: Sequence[ContextChange] = ()
    ) -> list[Hits]:
        """The hits of each index; `always` is left to the caller.

        `changes` write to the context index: the caller must be its only user.
        """
        bound = self.context_index if changes else None
        hits = [
            index.search(events, scratch)
            for index in self.indexes
            if len(index) and index is not bound
        ]
        if bound is not None:
            hits.append(search_between(bound, events, scratch, changes))
        elif changes:  # no subscription refers to a context; the values change all the same
            for each in changes:
                each.change()
        return hits

    def _insert(self, slots: np.ndarray) -> None:
        for index, part in self._parts(slots):
            if len(part) and len(index):
                index.insert(part)
            elif len(part):  # the first batch: an index may build better than it grows
                self._replace(index, part)
        kinds = self._table.layout.kind[positions(slots)]
        self._n_conjunctions += int((kinds == CONJUNCTION).sum())
        self._n_trees += int((kinds == TREE).sum())
        always = slots[kinds == ALWAYS]
        if len(always):
            self._always.update(always.tolist())
            self._always_array = None

    def _parts(self, slots: np.ndarray) -> list[tuple[Index, np.ndarray]]:
        """Each index, and those of the slots that it holds."""
        return [(index, slots[self._is_held(slots, type(index))]) for index in self.indexes]

    def _is_held(self, slots: np.ndarray, kind: type[Index]) -> np.ndarray:
        """Which slots belong to the roles of an index."""
        kinds = self._table.layout.kind[positions(slots)]
        linked = np.zeros(len(slots), bool)
        if self.contexts is not None and CONTEXTUAL in self._classes:
            linked = self.contexts.is_linked(slots)
        in_role = {
            CONJUNCTIONS: (kinds == CONJUNCTION) & ~linked,
            TREES: (kinds == TREE) & ~linked,
            CONTEXTUAL: ((kinds == CONJUNCTION) | (kinds == TREE)) & linked,
        }
        held = np.zeros(len(slots), bool)
        for role, each in self._classes.items():
            if each is kind:
                held |= in_role[role]
        return held

    def _found(self, kind: type[Index]) -> Index | None:
        """The index of a class, if an earlier role has it."""
        return next((each for each in self._by_role.values() if type(each) is kind), None)

    def _config_of(self, role: str) -> dict[str, Any]:
        """The settings are the chosen index's: the one of conjunctions."""
        return self.config if role == CONJUNCTIONS else {}

    def _build(self, role: str, slots: np.ndarray) -> Index:
        return self._classes[role].build(self._table, slots, **self._config_of(role))

    def _replace(self, index: Index, slots: np.ndarray) -> None:
        """Build an index anew, for all the roles that it has."""
        roles = [role for role, each in self._by_role.items() if each is index]
        fresh = self._build(roles[0], slots)
        self._by_role.update(dict.fromkeys(roles, fresh))
        self.follow(self.contexts)
