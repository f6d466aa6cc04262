"""Subscription columns: priority, expiry, own attributes, payload and time of addition, by slot.

    priority     int64[S]   0 unless given; no array while all are 0
    expires      int64[S]   microseconds since 1970, NEVER unless given; no array while all never do
    added        int64[S]   microseconds since 1970
    attributes   texts      JSON, see `fields`; none while no subscription has any
    payload      texts      JSON

They are facts (see `savepoint`): what is written in place goes through the subscriptions' journal,
and an array that grows is a new one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from matchwood.engine.input.fields import NEVER, FieldColumns, agreed_types
from matchwood.engine.stores.packed_integers import packed
from matchwood.engine.stores.texts import TextArena
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.journal import Journal

_NUMBERS = {"priority": 0, "expires": NEVER}
"""Columns of numbers that have an array only where a value differs from this default."""
_TEXTS = ("attributes", "payload")


class SubscriptionColumns:
    """The fields of subscriptions by slot."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.priority = np.empty(0, np.int64)
        self.expires = np.empty(0, np.int64)
        self.added: Any = np.zeros(64, np.int64)  # Packed when frozen
        self.attributes: TextArena | None = None
        self.payload: TextArena | None = None
        self.types: dict[str, str] = {}
        """Types that all tables of own attributes declare alike (`fields.declared_types`)."""
        self.next_expiry = NEVER
        """No subscription expires before this time (microseconds since 1970)."""

    @property
    def facts(self) -> list[Any]:
        """The objects whose attributes a savepoint copies."""
        return [self, *[each for each in (self.attributes, self.payload) if each is not None]]

    @property
    def nbytes(self) -> int:
        texts = [each.nbytes for each in (self.attributes, self.payload) if each is not None]
        return int(self.priority.nbytes + self.expires.nbytes + self.added.nbytes + sum(texts))

    def put(self, slots: np.ndarray, fields: FieldColumns, is_new: bool) -> None:
        """Write fields of slots; those that are not given stay, or are the default of new slots."""
        n = int(slots.max(initial=-1)) + 1
        if is_new:
            now = time.time_ns() // 1000
            self.added = grown(self.added, doubled(len(self.added), n))
            self._journal.write(
                self.added, slots, np.int64(now) if fields.added is None else fields.added
            )
        for name, default in _NUMBERS.items():
            given = getattr(fields, name)
            if len(getattr(self, name)) or (given is not None and (given != default).any()):
                array = grown(getattr(self, name), doubled(64, n), default)
                setattr(self, name, array)
                if given is not None or is_new:
                    self._journal.write(array, slots, default if given is None else given)
        if fields.expires is not None:
            self.next_expiry = min(self.next_expiry, int(fields.expires.min(initial=NEVER)))
        for name in _TEXTS:
            given = getattr(fields, name)
            if given is not None and (getattr(self, name) or any(v is not None for v in given)):
                self._put_texts(name, slots, given, fields.types)

    def _put_texts(self, name: str, slots: np.ndarray, texts: Any, types: Any) -> None:
        arena = getattr(self, name)
        if name == "attributes":
            self.types = (types or {}) if arena is None else agreed_types(self.types, types)
        if arena is None:
            arena = TextArena(self._journal)
            setattr(self, name, arena)
        arena.put(slots, texts)

    def drop(self, slots: np.ndarray) -> None:
        """Forget the fields of slots that are free from now on."""
        for name, default in _NUMBERS.items():
            if len(getattr(self, name)):
                self._journal.write(getattr(self, name), slots, default)
        for name in _TEXTS:
            arena = getattr(self, name)
            if arena is not None:
                arena.drop(slots[slots < arena.n_slots])

    def texts(self, name: str, slots: np.ndarray) -> list[str | None]:
        """The kept texts of a column."""
        arena: TextArena | None = getattr(self, name)
        if arena is None:
            return [None] * len(slots)
        return [arena.get(slot) if slot < arena.n_slots else None for slot in slots.tolist()]

    def priorities(self, slots: np.ndarray) -> np.ndarray:
        return self.priority[slots] if len(self.priority) else np.zeros(len(slots), np.int64)

    def expiries(self, slots: np.ndarray) -> np.ndarray:
        return self.expires[slots] if len(self.expires) else np.full(len(slots), NEVER)

    def fields(self, slots: np.ndarray) -> FieldColumns:
        """The fields of slots, as `put` takes them."""
        return FieldColumns(
            self.priority.take(slots) if len(self.priority) else None,
            self.expires.take(slots) if len(self.expires) else None,
            None if self.attributes is None else self.texts("attributes", slots),
            None if self.payload is None else self.texts("payload", slots),
            self.added[slots],
            self.types,
        )

    def compact(self, old: np.ndarray) -> None:
        """Keep the fields of slots `old`, renumbered from 0."""
        size = doubled(64, len(old))
        for name, default in _NUMBERS.items():
            array = getattr(self, name)
            if len(array):
                kept = array[old]
                is_plain = not (kept != default).any()
                setattr(self, name, kept[:0] if is_plain else grown(kept, size, default))
        self.added = grown(self.added[old], size)
        self.next_expiry = int(self.expires.min(initial=NEVER))
        for name in _TEXTS:
            arena = getattr(self, name)
            if arena is not None:
                fresh = TextArena(self._journal)
                texts = self.texts(name, old)
                fresh.put(np.arange(len(old), dtype=np.int32), texts)
                setattr(self, name, fresh if any(v is not None for v in texts) else None)
        if self.attributes is None:
            self.types = {}

    def freeze(self, n: int) -> None:
        """Take the smallest form of n slots; from now on they are only read."""
        self.added = packed(self.added[:n])
        for name in _NUMBERS:
            array = getattr(self, name)
            if len(array):
                setattr(self, name, array[:n].copy())
        for name in _TEXTS:
            arena = getattr(self, name)
            if arena is not None:
                arena.freeze(n)

    def layout(self, n: int) -> dict[str, np.ndarray]:
        """Arrays for a snapshot; slots have no gaps."""
        found = {"added": self.added[:n]}
        found |= {name: getattr(self, name)[:n] for name in _NUMBERS if len(getattr(self, name))}
        for name in _TEXTS:
            arena = getattr(self, name)
            if arena is not None:
                arena.make_room(n)
                found |= {f"{name}_{key}": value for key, value in arena.layout(n).items()}
        return found

    @classmethod
    def restore(
        cls, layout: Mapping[str, np.ndarray], n: int, journal: Journal
    ) -> SubscriptionColumns:
        """Columns of a snapshot; those before version 3 have none."""
        self = cls(journal)
        self.added = layout.get("added", np.zeros(n, np.int64))
        for name in _NUMBERS:
            setattr(self, name, layout.get(name, np.empty(0, np.int64)))
        self.next_expiry = int(self.expires.min(initial=NEVER))
        for name in _TEXTS:
            if f"{name}_text_start" in layout:
                setattr(self, name, TextArena.restore(layout, f"{name}_", journal))
        return self
