"""The context part of a view: subscriptions with a context, in a store that changes in place.

    view ──┬── segments, head, recent additions       never changed, searched without a lock
           └── ContextPart ──► LiveStore ──► Store    AGILE, changed and searched under one lock

Values of contexts change often, and their index changes with its searches, so a copy for every
change would cost more than a lock.  All views share one `LiveStore`; a `ContextPart` is what one
view says of it: how many subscriptions it holds, so that these numbers can be read without a lock.

Rules
  1. Facts of the store (ids, texts, fields, links, values) change only while both the lock of
     changes and the lock of contexts are held (`access`).  Derived parts (tables, indexes) also
     change with a search, under the lock of contexts alone.
  2. A change of this part is published with the rest of its batch by the one assignment of the
     view, before the lock of contexts is given back.
  3. A search takes the lock of contexts, then the view, searches this part, gives the lock back,
     and then searches the other parts of that view: nothing can change these.  So it sees all of a
     batch or nothing.  If the view's part holds no subscription, a search takes no lock.
  4. Locks are taken in this order: changes, a reader's own, contexts.

An interrupted change counts as made if its view was published: the part of the view then has the
change's `token`.  Otherwise the facts are restored.  The next thread that takes the lock repairs
the store before it uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood.engine.access import Reader
from matchwood.engine.answers.choices import ALL, Choice
from matchwood.engine.segments.pieces import Piece, TakenPiece
from matchwood.engine.segments.view import Part
from matchwood.engine.stores.finding import absorb_found, find
from matchwood.engine.stores.recovery import settled
from matchwood.engine.stores.savepoint import Change, Savepoint, ValuesSavepoint, end_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matchwood.encode.events import EncodedEvents
    from matchwood.engine.access import Access
    from matchwood.engine.matches import Found
    from matchwood.engine.segments.view import View
    from matchwood.engine.stores.context_changes import ContextChange
    from matchwood.engine.stores.store import Store


class LiveStore:
    """A store that changes in place; see the module's docstring."""

    def __init__(self, store: Store) -> None:
        store.with_contexts()
        self.store = store
        self.token: object | None = None
        """Names the change that is under way, or was last; None: it was a search."""
        self._reader = Reader()

    @property
    def reader(self) -> Reader:
        """What searches use, one at a time."""
        if self._reader.scratch.is_busy:  # left by an exception
            self._reader = Reader()
        return self._reader

    def mended(self, part: ContextPart | None) -> Store:
        """The store, whole; with the lock of contexts.

        part  what the shown view says of it; None if no view has shown it
        """
        store = self.store
        if store.pending is not None and not store.is_between_events:
            if part is not None and part.token is self.token:
                store.is_whole = True  # it was published, and then interrupted
            self.store = store = settled(store)
        return store

    def unpublished(self) -> tuple[Store, Reader] | None:
        """As the function of this name."""
        if self.store.pending is not None:
            return None
        self.token = None
        return self.store, self.reader

    def absorb(self) -> None:
        """Let the indexes learn from searches; with the lock, of a store that is whole."""
        if self.reader.n_events:
            absorb_found(self.store, self.reader)

    def begin(self, part: ContextPart | None, token: object) -> Store:
        """The store for a change, which `end` ends; with both locks."""
        store = self.mended(part)
        self.token = token
        self.absorb()
        store.pending = Savepoint(store)
        return store

    def end(self, is_published: bool) -> None:
        """Keep a change, or bring back the facts; calling it again is safe."""
        store = self.store
        store.subscriptions.changed = store.changed_contexts = None
        store.is_between_events = False
        if store.pending is not None:
            end_change(store, is_published)


def unpublished(view: View, access: Access) -> tuple[Store, Reader] | None:
    """The store of what has contexts, and what searches it, for what publishes no view.

    With the main lock if the view is guarded, else with the lock of contexts.  None if there is no
    such store, or an interruption has left it half changed.
    """
    if not view.is_guarded:
        return None if view.context_part is None else view.context_part.live.unpublished()
    is_usable = view.head.contexts is not None and view.head.pending is None
    return (view.head, access.owner) if is_usable else None


class ContextPart(Part):
    """What a view shows of a live store: its numbers when the view was published."""

    __slots__ = ("_n", "_n_string_ids", "_own_types", "live", "token")

    def __init__(self, live: LiveStore, token: object | None = None) -> None:
        super().__init__(None)
        self.live = live
        self.token = object() if token is None else token
        subscriptions = live.store.subscriptions
        self._n, self._n_string_ids = len(subscriptions), subscriptions.n_strings
        columns = subscriptions.columns
        self._own_types = None if columns.attributes is None else dict(columns.types)

    @property
    def store(self) -> Store:
        return self.live.store

    def __len__(self) -> int:
        return self._n

    @property
    def n_string_ids(self) -> int:
        return self._n_string_ids

    @property
    def own_types(self) -> dict[str, str] | None:
        return self._own_types

    def find(self, events: EncodedEvents, reader: Reader, choice: Choice) -> Found:
        """As that of other parts; with the lock of contexts."""
        live = self.live
        store = live.mended(self)
        live.token = None
        with Change(store, ValuesSavepoint):
            return find(store, events, live.reader, (), choice)

    def piece(self, events: EncodedEvents, choice: Choice) -> Piece:
        """What holds for events, with all that is needed of the store; with the lock."""
        return self.copied(self.find(events, self.live.reader, choice))

    def copied(self, found: Found) -> Piece:
        """What was found, for use when the lock was given back."""
        return TakenPiece(Piece(found, self.store.subscriptions))


def found_between(
    live: LiveStore, events: EncodedEvents, changes: Sequence[ContextChange], choice: Choice = ALL
) -> Found:
    """What holds for events between which contexts change; inside a change of the store."""
    return find(live.store, events, live.reader, changes, choice)
