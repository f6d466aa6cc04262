"""Expression table: every expression as integers, in a slot of its own.

Idea.    After merging, an expression is a conjunction of predicates, a tree of them, TRUE or FALSE.
         Its code is a slice of one long array; a slot remembers where.
Cost.    13 bytes a slot and 4 per token of code; freed code is reclaimed when it is half of all.

Layout   (S slots)
         kind   uint8[S]   UNUSED, CONJUNCTION, TREE, ALWAYS or NEVER
         start  int64[S]   where its code begins
         size   int32[S]   how long it is
         code   int32[]    CONJUNCTION: predicate ids by attribute
                           TREE: prefix code (see forms.merge_kernels), leaves are predicate ids
         count  int64[2]   N_CODE used, WASTED among them

Uses.    `uses` counts by attribute how often expressions mention it, so that one that is mentioned
         no more can be dropped.  Attributes that merging has left out (`a < 1 AND a > 2`) count,
         too: all texts that are kept then agree about the type of `a`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.dictionary import Relabelling
from matchwood.encode.expression_kernels import (
    CODE_FULL,
    CONJUNCTION,
    DONE,
    N_CODE,
    PREDICATES_FULL,
    TREE,
    UNUSED,
    WASTED,
    WORKSPACE_FULL,
    ExpressionLayout,
    Tested,
    compact_code,
    count_uses,
    encode_batch,
    merged_away,
    release_batch,
)
from matchwood.encode.merge_kernels import NODE, POOL, Leaves, new_workspace
from matchwood.encode.packed_table import PackedTable
from matchwood.encode.predicate_kernels import HIGH
from matchwood.encode.predicates import PredicateTable
from matchwood.kernel.arrays import doubled, grown, slices

_WORKSPACE = 256
_LARGE = 10_000
"""Expressions in a batch from which the predicate table makes room ahead."""


class ExpressionTable:
    """Owns the expression layout and the predicate table that its code points into."""

    def __init__(
        self, layout: ExpressionLayout | None = None, predicates: PredicateTable | None = None
    ) -> None:
        self._packed: PackedTable | None = None
        self._layout: ExpressionLayout | None = layout if layout is not None else _empty(64)
        self._predicates: PredicateTable | None = (
            predicates if predicates is not None else PredicateTable()
        )
        self.epoch = 0
        """Raised whenever keys or predicate ids of stored expressions changed: rebuild indexes."""
        self.n_attributes = int(self.predicates.layout.attr.max(initial=-1)) + 1
        """One more than the highest attribute id in use."""
        self.n_encoded = 0
        """How often expressions were encoded: new predicates come no other way."""
        self._workspace = new_workspace(_WORKSPACE)
        self._uses: np.ndarray | None = None  # counted when it is first needed
        self._merged: dict[int, list[int]] = {}  # by slot: attributes that merging left out
        self._mark, self._stamp = np.zeros(64, np.int64), 1

    @property
    def layout(self) -> ExpressionLayout:
        layout = self._layout
        return layout if layout is not None else self._unpacked()[0]

    @layout.setter
    def layout(self, layout: ExpressionLayout) -> None:
        self._layout = layout

    @property
    def predicates(self) -> PredicateTable:
        predicates = self._predicates
        return predicates if predicates is not None else self._unpacked()[1]

    @property
    def n_predicates(self) -> int:
        return len(self.predicates) if self._packed is None else self._packed.n_predicates

    def kinds(self) -> np.ndarray:
        """The kind of every slot."""
        return self.layout.kind if self._packed is None else self._packed.kinds()

    @property
    def nbytes(self) -> int:
        size = 0 if self._packed is None else self._packed.nbytes
        if self._layout is not None:
            size += sum(array.nbytes for array in self._layout)
        return size + (0 if self._predicates is None else self._predicates.nbytes)

    # -- packed ------------------------------------------------------------------------------

    def pack(self) -> None:
        """Compress what is here; from now on it is only read, and unpacked when it is asked for.

        Call `shut` when a verb that has asked for it is over.
        """
        self._packed = PackedTable(self.layout, self.predicates)
        self._uses, self._mark = None, np.zeros(64, np.int64)
        self.shut()

    def shut(self) -> None:
        """Give up arrays that can be unpacked again; others may still use them meanwhile."""
        if self._packed is not None:
            self._layout = self._predicates = None

    def _unpacked(self) -> tuple[ExpressionLayout, PredicateTable]:
        assert self._packed is not None
        found = self._packed.unpacked()  # several threads may do this at the same time
        self._layout, self._predicates = found
        return found

    # -- changing ----------------------------------------------------------------------------

    def encode(
        self, leaves: Leaves, expr_start: np.ndarray, expr_code: np.ndarray, slots: np.ndarray
    ) -> None:
        """Merge, intern and store expressions, expression i in `slots[i]`."""
        self.n_encoded += 1
        self._make_slots(int(slots.max(initial=-1)) + 1)
        self.n_attributes = max(self.n_attributes, int(leaves.attr.max(initial=-1)) + 1)
        if len(slots) > _LARGE:  # growing step by step would hash every predicate again and again
            self.predicates.make_room(len(leaves.attr) // 2, 0)
        done, status = 0, WORKSPACE_FULL
        while status != DONE:
            done, status = encode_batch(
                leaves, expr_start, expr_code, slots, done,
                self._workspace, self.predicates.layout, self.layout,
            )  # fmt: skip
            if status != DONE:
                self._grow(status, len(slots) - done)
        if len(self._workspace.node_kind) > 64 * _WORKSPACE:
            self._workspace = new_workspace(_WORKSPACE)
        if self._uses is not None:
            self._count(slots, 1)
        self._note_merged(leaves, expr_start, expr_code, slots)

    @property
    def uses(self) -> np.ndarray:
        """How often expressions mention each attribute, by attribute id."""
        if self._uses is None:
            self._uses = np.zeros(doubled(64, self.n_attributes), np.int64)
            self._count(np.flatnonzero(self.layout.kind != UNUSED).astype(np.int32), 1)
            for attrs in self._merged.values():
                self._uses[attrs] += 1
        return self._uses

    def _count(self, slots: np.ndarray, by: int) -> None:
        self._uses = grown(self.uses, doubled(len(self.uses), self.n_attributes))
        x = self.layout
        count_uses(x.start, x.size, x.code, self.predicates.layout.attr, slots, self._uses, by)

    def _note_merged(
        self, leaves: Leaves, expr_start: np.ndarray, expr_code: np.ndarray, slots: np.ndarray
    ) -> None:
        """Remember the attributes of expressions that merging left out."""
        x = self.layout
        self._mark = grown(self._mark, doubled(len(self._mark), self.n_attributes))
        out = np.empty((len(expr_code), 2), np.int32)
        given = Tested(expr_start, expr_code, leaves.attr)
        held = Tested(x.start, x.code, self.predicates.layout.attr)
        n = merged_away(given, held, x.size, slots, self._mark, self._stamp, out)
        self._stamp += len(slots)
        for slot, attr in out[:n].tolist():
            self._merged.setdefault(slot, []).append(attr)
            if self._uses is not None:
                self._uses[attr] += 1

    def merged(self) -> tuple[np.ndarray, np.ndarray]:
        """Slots and attributes that merging left out of them, for a snapshot."""
        pairs = [(slot, attr) for slot, attrs in self._merged.items() for attr in attrs]
        slot, attr = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
        return slot, attr

    @property
    def left_out(self) -> Mapping[int, list[int]]:
        """By slot: the attributes that merging left out of its expression."""
        return self._merged

    def take_merged(self, slots: np.ndarray, attrs: np.ndarray) -> None:
        """What `merged` gave, back from a snapshot."""
        for slot, attr in zip(slots.tolist(), attrs.tolist(), strict=True):
            self._merged.setdefault(slot, []).append(attr)

    def release(self, slots: np.ndarray) -> None:
        """Empty slots and give back what they used."""
        self.predicates.make_findable()
        self._count(slots, -1)
        if self._merged:
            for slot in slots.tolist():
                for attr in self._merged.pop(slot, ()):
                    self.uses[attr] -= 1
        release_batch(slots, self.predicates.layout, self.layout)
        if self.layout.count[WASTED] * 2 > self.layout.count[N_CODE]:
            self._compact_code()

    def rekey(self, attr: int, moved: Relabelling) -> None:
        """Follow an attribute whose dictionary was relabelled."""
        self.predicates.rekey(attr, moved)
        self.epoch += 1

    def compact(self, slots: np.ndarray) -> None:
        """Shrink to the given slots, in that order: slot `slots[i]` becomes slot i."""
        old = self.layout
        self.layout = _empty(doubled(64, len(slots)))
        for name in ("kind", "start", "size"):
            getattr(self.layout, name)[: len(slots)] = getattr(old, name)[slots]
        self.layout = self.layout._replace(code=old.code, count=old.count)
        self._compact_code()
        new = dict(zip(slots.tolist(), range(len(slots)), strict=True)) if self._merged else {}
        self._merged = {new[slot]: attrs for slot, attrs in self._merged.items() if slot in new}
        renumbered = self.predicates.compacted()
        mentioned = [attr for attrs in self._merged.values() for attr in attrs]
        tested = int(self.predicates.layout.attr.max(initial=-1))
        self.n_attributes = max([tested, *mentioned]) + 1
        self._uses, self._mark = None, np.zeros(doubled(64, self.n_attributes), np.int64)
        code = self.layout.code[: self.layout.count[N_CODE]]
        leaf = code >= 0
        code[leaf] = renumbered[code[leaf]]
        self.epoch += 1

    def sizes(self) -> dict[str, int]:
        """What ids in a layout are compared with: S slots, A attributes, P predicates."""
        n_predicates = int(self.predicates.layout.count[HIGH])
        return {"S": len(self.layout.kind), "A": self.n_attributes, "P": n_predicates}

    def needed_by(self, slots: np.ndarray) -> dict[str, int]:
        """How long arrays by attribute (A) and by predicate (P) must be for these slots alone.

        The table may have more, which other indexes hold.
        """
        code = self.codes_of(slots)
        return self.needed_for(code[code >= 0])

    def needed_for(self, preds: np.ndarray) -> dict[str, int]:
        """The same for predicates."""
        attrs = self.predicates.layout.attr[preds]
        return {"A": int(attrs.max(initial=-1)) + 1, "P": int(preds.max(initial=-1)) + 1}

    def slots_of(self, kind: int) -> np.ndarray:
        """All slots that hold expressions of a kind, ascending."""
        return np.flatnonzero(self.layout.kind == kind).astype(np.int32)

    def code_of(self, slot: int) -> np.ndarray:
        start = self.layout.start[slot]
        return self.layout.code[start : start + self.layout.size[slot]]

    def codes_of(self, slots: np.ndarray) -> np.ndarray:
        """The codes of several slots, one behind the other."""
        x = self.layout
        return x.code[slices(x.start[slots], x.size[slots])]

    def attributes_of(self, slots: np.ndarray) -> list[int]:
        """The ids of all attributes that the expressions in slots mention."""
        code = self.codes_of(slots)
        tested = self.predicates.layout.attr[code[code >= 0]]
        attributes = set((tested if len(tested) < 64 else np.unique(tested)).tolist())
        if self._merged:
            attributes.update(*[self._merged.get(slot, ()) for slot in slots.tolist()])
        return sorted(attributes)

    def _make_slots(self, needed: int) -> None:
        x = self.layout
        size = doubled(len(x.kind), needed)
        self.layout = x._replace(
            kind=grown(x.kind, size, UNUSED),
            start=grown(x.start, size),
            size=grown(x.size, size),
        )

    def _grow(self, status: int, remaining: int) -> None:
        if status == WORKSPACE_FULL:
            self._workspace = new_workspace(2 * len(self._workspace.node_kind))
        elif status == PREDICATES_FULL:
            used = self._workspace.used
            self.predicates.make_room(int(used[NODE]) + min(remaining, 2**20), int(used[POOL]))
        elif status == CODE_FULL:
            x = self.layout
            needed = int(x.count[N_CODE] + self._workspace.used[NODE])
            self.layout = x._replace(code=grown(x.code, doubled(len(x.code), needed)))

    def _compact_code(self) -> None:
        used = np.concatenate([self.slots_of(CONJUNCTION), self.slots_of(TREE)])
        total = int(self.layout.size[used].sum())
        fresh = np.zeros(doubled(256, total), np.int32)
        self.layout.count[N_CODE] = compact_code(self.layout, used, fresh)
        self.layout.count[WASTED] = 0
        self.layout = self.layout._replace(code=fresh)


def _empty(size: int) -> ExpressionLayout:
    return ExpressionLayout(
        kind=np.zeros(size, np.uint8),
        start=np.zeros(size, np.int64),
        size=np.zeros(size, np.int32),
        code=np.zeros(256, np.int32),
        count=np.zeros(2, np.int64),
    )
