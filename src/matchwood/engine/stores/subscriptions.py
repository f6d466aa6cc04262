"""Subscriptions: ids, texts and the order they were added in, one slot each.

Slots are handed out from a free list, so an index can use them as dense expression ids; `order`
tells which came first.  While all ids are ints they live in one array; a Python object per id is
only made once a string appears.  The map from id to slot is made when the first change asks for it:
a process that only matches never pays for it, and one that only reads gets a smaller `IdLookup`.
`freeze` gives those of a segment their smallest form.

Ids, order and texts are facts (see `savepoint`): a slot counts as soon as its `order` is written,
in one step, after its id and text.  The map, the free slots and the counts follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.input.fields import NO_FIELDS, FieldColumns
from matchwood.engine.matches import Id as Id
from matchwood.engine.matches import ids_to_arrow
from matchwood.engine.stores.id_lookup import IdLookup, lookup_of_ints, lookup_of_names
from matchwood.engine.stores.ids import check_id, missing
from matchwood.engine.stores.packed_integers import Runs, listed, packed
from matchwood.engine.stores.subscription_columns import SubscriptionColumns
from matchwood.engine.stores.texts import TextArena
from matchwood.kernel.arrays import doubled, grown, positions
from matchwood.kernel.journal import Journal

if TYPE_CHECKING:
    import pyarrow as pa


class Subscriptions:
    """Ids by slot and slots by id."""

    def __init__(self) -> None:
        self._ids: Any = np.zeros(64, np.int64)  # object once a string appears; Packed when frozen
        self._names: TextArena | None = None  # string ids of a snapshot, not yet Python objects
        self._is_frozen = False
        self.order: Any = np.full(64, -1, np.int64)  # -1: the slot is free; Packed when frozen
        self.journal = Journal()
        self.texts = TextArena(self.journal)
        self.columns = SubscriptionColumns(self.journal)
        self.changed: dict[Id, bool] | None = None
        """Ids that changed, and whether they were removed on the way, where a log asks for them."""
        self.n_strings = 0  # ids that are strings
        self.in_order = True  # slots ascend as `order` does: true until a slot is reused
        self._n_slots = 0
        self.n_added = 0
        """The next number in the order of addition."""
        self._free: list[int] = []
        self._slot_of: dict[Id, int] | None = {}
        self._lookup: IdLookup | None = None  # instead of the map, while nothing changes
        self._slots_themselves: Runs | None = None  # `_ids`, if each id is the number of its slot

    def __len__(self) -> int:
        return self._n_slots - len(self._free)

    def __contains__(self, id_: object) -> bool:
        return self.get(id_) is not None

    @property
    def n_slots(self) -> int:
        """Slots in use and free ones below the highest in use."""
        return self._n_slots

    @property
    def is_compact(self) -> bool:
        """Whether slots have no gaps and ascend as the subscriptions were added."""
        return self.in_order and not self._free

    @property
    def ids(self) -> np.ndarray:
        """Ids by slot."""
        names = self._names
        if names is not None:  # several threads may do this at the same time
            ids = self._ids[:].astype(object)
            for slot, name in enumerate(names.all(self._n_slots)):
                if name is not None:
                    ids[slot] = name
            self._ids = ids
            self._names = None
        return self._ids[:]

    def ids_of(self, slots: np.ndarray) -> np.ndarray:
        """The ids of slots; of a fresh snapshot only those asked for become Python objects."""
        names = self._names
        if names is None:
            return self._ids[positions(slots)]
        if len(slots) * 4 > self._n_slots:
            return self.ids[slots]
        distinct, inverse = np.unique(slots, return_inverse=True)
        ids = self._ids[distinct].astype(object)
        for i, slot in enumerate(distinct.tolist()):
            name = names.get(slot)
            if name is not None:
                ids[i] = name
        return ids[inverse]

    @property
    def frozen_ids(self) -> Any:
        """Ids by slot if nothing changes them any more, else None; an array or Packed."""
        return self._ids if self._is_frozen else None

    def id_list(self, slots: np.ndarray) -> list[Id]:
        """The ids of slots as a list."""
        ids = self._ids
        if self._names is not None:
            return self.ids_of(slots).tolist()
        return slots.tolist() if ids is self._slots_themselves else listed(ids, slots)

    def order_bounds(self) -> tuple[int, int]:
        """Numbers between which all of them are in the order of addition; (0, -1) if none is."""
        if not len(self):
            return 0, -1
        n = self._n_slots
        if self.is_compact:
            return int(self.order[0]), int(self.order[n - 1])
        order = self.order[:n]
        return int(order[order >= 0].min()), int(order.max())

    @property
    def id_kind(self) -> str:
        """What all ids are: `int`, `str`, or `mixed`."""
        if not self.n_strings:
            return "int"
        return "str" if self.n_strings == len(self) else "mixed"

    def to_arrow(self) -> pa.Array:
        """Ids by slot, null where a slot is free (see `matches.ids_to_arrow`)."""
        if self._names is not None:
            names = self._names.to_arrow(self._n_slots)
            if names is not None:
                return names
        free = self.order[: self._n_slots] < 0
        return ids_to_arrow(self.ids[: self._n_slots], self.id_kind, free if free.any() else None)

    @property
    def slot_of(self) -> dict[Id, int]:
        """The map of slots by id, for changes."""
        if self._slot_of is None:
            used = self.slots()
            self._slot_of = dict(zip(self.ids[used].tolist(), used.tolist(), strict=True))
            self._lookup = None
        return self._slot_of

    def get(self, id_: Any) -> int | None:
        """The slot of an id, or None."""
        if self._slot_of is None and not self._free:
            return self.lookup.get(id_)
        return self.slot_of.get(id_)

    def has_any(self, ids: Sequence[Any]) -> bool:
        """Whether one of some ids is here; TypeError where one cannot be an id."""
        if self._slot_of is None and not self._free:
            return bool(ids) and self.lookup.has_any(ids)
        return not self.slot_of.keys().isdisjoint(ids)

    @property
    def lookup(self) -> IdLookup:
        """What finds slots by id while there is no map; slots have no gaps."""
        found = self._lookup
        if found is None:  # several threads may do this at the same time
            n, ids = self._n_slots, self._ids
            if self.n_strings:
                ids = self.ids
                found = lookup_of_names(ids[:n].tolist(), ids.__getitem__)
            elif isinstance(ids, np.ndarray):  # of objects, if there were strings before
                found = lookup_of_ints(ids[:n].astype(np.int64, copy=False))
            else:
                found = lookup_of_ints(ids)
            self._lookup = found
        return found

    @property
    def nbytes(self) -> int:
        """Arrays, texts and an estimate for Python's own objects."""
        size = self._ids.nbytes + self.order.nbytes + self.texts.nbytes + self.columns.nbytes
        size += 0 if self._names is None else self._names.nbytes
        size += 0 if self._lookup is None else self._lookup.nbytes
        if self._names is None:
            size += 60 * self.n_strings
        if self._slot_of is not None:
            size += 100 * len(self)
        return size

    def slots(self) -> np.ndarray:
        """Slots in use, in the order their subscriptions were added."""
        if self.is_compact:
            return np.arange(self._n_slots, dtype=np.int32)
        used = np.flatnonzero(self.order[: self._n_slots] >= 0).astype(np.int32)
        return used if self.in_order else used[np.argsort(self.order[used], kind="stable")]

    def find(self, id_: Id) -> int:
        """The slot of an id; SubscriptionError when there is none."""
        id_ = check_id(id_)
        slot = self.get(id_)
        if slot is None:
            raise missing(id_)
        return slot

    def add(
        self,
        ids: list[Id],
        texts: Iterable[str | None],
        fields: FieldColumns = NO_FIELDS,
        order: np.ndarray | None = None,
    ) -> np.ndarray:
        """Slots for new ids, which must be checked and free.

        order  their numbers in the order of addition; None: after all that were given out so far
        """
        slot_of = self.slot_of  # before slots are taken: it may be made from them
        slots = np.array(self._take_slots(len(ids)), np.int32)
        self._make_room(int(slots.max(initial=-1)) + 1)
        if self.ids.dtype != object and set(map(type, ids)) != {int}:
            self._ids = self.ids.astype(object)
        if self.ids.dtype == object:
            for slot, id_ in zip(slots.tolist(), ids, strict=True):
                self._ids[slot] = id_
        else:
            self._ids[positions(slots)] = ids
        self.texts.put(slots, texts)
        self.columns.put(slots, fields, is_new=True)
        self.note(ids)
        self.n_strings += _n_strings(ids)
        if order is None:
            order = np.arange(self.n_added, self.n_added + len(ids))
        elif len(order):
            self.in_order &= bool(order[0] >= self.n_added and (np.diff(order) > 0).all())
        self.n_added = max(self.n_added, int(order.max(initial=-1)) + 1)
        slot_of.update(zip(ids, slots.tolist(), strict=True))
        self.journal.write(self.order, slots, order)
        return slots

    def remove(self, slots: np.ndarray) -> None:
        ids = self.ids[slots].tolist()
        for id_ in ids:
            del self.slot_of[id_]
        self.note(ids, removed=True)
        self.n_strings -= _n_strings(ids)
        if self.ids.dtype == object:
            self.journal.write(self._ids, slots, None)
        self.journal.write(self.order, slots, -1)
        self.texts.drop(slots)
        self.columns.drop(slots)
        self._free += slots.tolist()

    def note(self, ids: Iterable[Id], removed: bool = False) -> None:
        """Remember that subscriptions changed, for a log."""
        if self.changed is not None:
            for id_ in ids:
                self.changed[id_] = removed or self.changed.get(id_, False)

    def freeze(self) -> None:
        """Take the smallest form; from now on they are only read.  Slots have no gaps."""
        n = self._n_slots
        ids = self.ids[:n]
        self._ids = ids.copy() if self.n_strings else packed(ids)
        self._is_frozen = True
        if isinstance(self._ids, Runs) and self._ids.are_positions:
            self._slots_themselves = self._ids
        if self.in_order:  # else kernels sort by it
            self.order = packed(self.order[:n])
        self.texts.freeze(n)
        self.columns.freeze(n)
        self._slot_of = None

    def derive(self) -> None:
        """Make again what follows from ids and order, after a change was undone."""
        used = self.order[: self._n_slots] >= 0
        self._free = np.flatnonzero(~used).tolist()
        self._slot_of = self._lookup = None

    def compact(self) -> np.ndarray:
        """Renumber slots in order without gaps; returns the old slot of each new one.

        Numbers in the order of addition stay: other parts of a view have numbers between them.
        """
        old = self.slots()
        self._is_frozen = False
        self._ids = grown(self.ids[old], doubled(64, len(old)))
        self.order = grown(self.order[old], doubled(64, len(old)), -1)
        self.texts.compact(old)
        self.columns.compact(old)
        self._n_slots = len(old)
        self._free = []
        self._slot_of = self._lookup = None
        self.in_order = True
        return old

    def take_order(self, order: np.ndarray) -> None:
        """Have these numbers in the order of addition, ascending by slot; slots have no gaps."""
        self.order = order
        self.n_added = int(order[-1]) + 1 if len(order) else 0

    def renumber(self, ids: np.ndarray | None = None) -> pa.Array:
        """Have these ids, or slots as ids; returns the ids so far; call after `compact`."""
        before = self.to_arrow()
        fresh = np.arange(len(self._ids), dtype=np.int64)
        if ids is not None:
            fresh[: len(ids)] = ids
        self._ids = fresh
        self._names = self._slot_of = self._lookup = None
        self.n_strings = 0
        return before

    def layout(self) -> dict[str, np.ndarray]:
        """Arrays for a snapshot; call after `compact`."""
        n = self._n_slots
        layout = {"order": np.arange(n), **self.texts.layout(n), **self.columns.layout(n)}
        if self.ids.dtype != object:
            return {**layout, "id_int": self.ids[:n]}
        ids = self.ids[:n].tolist()
        names = TextArena()
        names.put(np.arange(n), [id_ if isinstance(id_, str) else None for id_ in ids])
        layout["id_int"] = np.array([0 if isinstance(id_, str) else id_ for id_ in ids], np.int64)
        return {**layout, **{f"id_{key}": value for key, value in names.layout(n).items()}}

    @classmethod
    def restore(cls, layout: Mapping[str, np.ndarray]) -> Subscriptions:
        self = cls()
        self.order, self._ids = layout["order"], layout["id_int"]
        self._n_slots = self.n_added = len(self.order)
        self.texts = TextArena.restore(layout, "", self.journal)
        self.columns = SubscriptionColumns.restore(layout, self._n_slots, self.journal)
        self._slot_of = None
        if "id_text_start" in layout:
            self._names = TextArena.restore(layout, "id_")
            self.n_strings = int((layout["id_text_size"] >= 0).sum())
        return self

    def _take_slots(self, n: int) -> list[int]:
        reused = [self._free.pop() for _ in range(min(n, len(self._free)))]
        self.in_order &= not reused
        fresh = range(self._n_slots, self._n_slots + n - len(reused))
        self._n_slots += len(fresh)
        return reused + list(fresh)

    def _make_room(self, needed: int) -> None:
        size = doubled(len(self.order) or 1, needed)
        self.order = grown(self.order, size, -1)
        if size > len(self.ids):
            fresh = np.zeros(size, self.ids.dtype)
            fresh[: len(self.ids)] = self.ids
            self._ids = fresh


def _n_strings(ids: list[Id]) -> int:
    kinds = list(map(type, ids))
    return kinds.count(str)
