"""Recent additions: subscriptions that were read and checked, and that no store has taken yet.

A store takes many subscriptions at once for little more than one of them, because every step on
its arrays has a price of its own.  So additions wait here, as the leaf rows that they were read to,
until there are some dozens (`tiers.RECENT_MOST`); then the head takes all in one step (`draft`).
Many of one change do not wait where searches come between changes (`tiers.AT_ONCE`).

A search wants them encoded: the first one that sees them in a view makes a store of them, which
all searches share until they change.  A change makes it itself if that is worth it (`single`).
Questions about an id never make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from matchwood.encode.leaves import LeafBatch
from matchwood.engine.changes import add_chunks
from matchwood.engine.input.fields import FieldColumns, joined, joined_types
from matchwood.engine.input.given import Parsed
from matchwood.engine.input.loading import Chunk
from matchwood.engine.segments.view import Part
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id


class Addition(NamedTuple):
    """One subscription."""

    expr: Parsed
    fields: FieldColumns
    """Columns of one row, among them when it was added."""
    order: int
    """Its number in the order of addition."""


class Recent(Part):
    """Additions by id, never changed; see the module's docstring.

    like  a store with the same declared types and settings, which stays as it is while a search
          may use this
    """

    __slots__ = ("_like", "_slot_of", "additions")

    def __init__(self, additions: Mapping[Id, Addition], like: Store) -> None:
        super().__init__(None)
        self.additions = additions
        self._like = like
        self._slot_of: dict[Id, int] | None = None

    @property
    def store(self) -> Store:
        store = self._store
        if store is None:  # several threads may make one at the same time; each is as good
            store = self._store = encoded(self.additions, self._like)
        return store

    def __len__(self) -> int:
        return len(self.additions)

    @property
    def n_string_ids(self) -> int:
        return sum([type(id_) is str for id_ in self.additions])

    @property
    def own_types(self) -> dict[str, str] | None:
        return joined_types([each.fields for each in self.additions.values()])

    def slot_of(self, id_: Any) -> int | None:
        """The slot that an id has in the store; None if it is not here."""
        if id_ not in self.additions:
            return None
        if self._slot_of is None:
            self._slot_of = {each: slot for slot, each in enumerate(self.additions)}
        return self._slot_of[id_]


def expired(additions: Mapping[Id, Addition], now_micros: int) -> list[Id]:
    """The ids of those that have expired at a moment."""
    return [
        id_
        for id_, each in additions.items()
        if each.fields.expires is not None and each.fields.expires[0] <= now_micros
    ]


def encoded(additions: Mapping[Id, Addition], like: Store, is_segment: bool = False) -> Store:
    """A store of additions: slots ascend as they are given."""
    store = blank(like, is_segment)
    take(store, chunk_of(additions))
    store.settle()
    store.settled_change()
    if is_segment:
        store.freeze()
    return store


def take(store: Store, chunk: Chunk) -> None:
    """Add a chunk of additions, which were checked before."""
    for each in add_chunks(store, [chunk]).errors:
        raise each.error


class Taking:
    """A step of the head: it takes additions, those of two steps at once for little more."""

    def __init__(self, additions: Mapping[Id, Addition], batch: LeafBatch | None = None) -> None:
        self._additions = additions
        self._chunk = chunk_of(additions, batch)

    def __call__(self, store: Store) -> None:
        take(store, self._chunk)

    def __len__(self) -> int:
        return len(self._additions)

    def has_any(self, ids: Iterable[Id]) -> bool:
        return not self._additions.keys().isdisjoint(ids)

    def then(self, more: Taking) -> Taking:
        """This step and another one, of other ids, as one."""
        batch = LeafBatch()
        batch.extend(self._chunk.batch)
        batch.extend(more._chunk.batch)
        return Taking({**self._additions, **more._additions}, batch)


def chunk_of(additions: Mapping[Id, Addition], batch: LeafBatch | None = None) -> Chunk:
    """Additions as a store takes many.

    batch  their rows, where they were put together before
    """
    given = list(additions.values())
    if batch is None:
        batch = LeafBatch()
        for each in given:
            batch.extend(each.expr.batch)
    n, texts = len(given), [each.expr.text for each in given]
    fields = joined([each.fields for each in given])
    order = np.array([each.order for each in given], np.int64)
    return Chunk(0, list(additions), texts, batch, range(n), {}, n, n, None, fields, order)
