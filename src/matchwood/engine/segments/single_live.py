"""One event through a store that changes in place, in one compiled call (`single`).

That is the context part of a view, or the store of a guarded view that has contexts.  Its indexes
follow values that change and learn from events, so its owner has it for itself: with the lock of
contexts, or with the main lock.

What is bound to the store holds until it changes (`Store.n_changes`); new values of contexts leave
it bound, unless an index has other arrays since (`SinglePart.is_current`).  What searches leave for
the indexes to learn is absorbed some events at a time, and always before the next change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.events import EncodedEvents, encode_event
from matchwood.engine.segments.single import SingleView, bound_store, bound_view
from matchwood.engine.stores.finding import absorb_found, find
from matchwood.engine.stores.savepoint import Change, ValuesSavepoint
from matchwood.kernel.arrays import positions

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.matches import Id
    from matchwood.engine.segments.view import View
    from matchwood.engine.stores.store import Store
    from matchwood.engine.stores.subscriptions import Subscriptions

WORTH_IT = 4
"""Searches since the last change before the store is bound, which takes as long as some of them."""

ABSORB_EVERY = 8
"""Events of which an index learns at once; AGILE takes a sample of one in so many."""


class LiveBinding:
    """What is bound to a store as it is, with the memory of one reader; kept by the reader."""

    def __init__(self, store: Store, scratch_number: int) -> None:
        self._store, self._n_changes, self._number = store, store.n_changes, scratch_number
        self._n_asked = 1
        self.view: SingleView | None = None
        """None: not bound yet, or it cannot be."""

    def holds(self, store: Store, scratch_number: int) -> bool:
        """Whether the store is what it was bound to."""
        view = self.view
        return (
            self._n_changes == store.n_changes
            and self._store is store
            and self._number == scratch_number
            and (view is None or (view.parts[0].is_current and not view.is_spent))
        )

    def bind(self, store: Store, reader: Reader) -> None:
        """Bind it, if that is worth it and can be done."""
        self._n_asked += 1
        if self._n_asked <= WORTH_IT or not store.routing.is_settled:
            return
        part = bound_store(store, reader)
        if part is None or not (part.is_usable and part.is_current):
            self._n_asked = 0  # tried again later
        else:
            self.view = SingleView([part])


class LiveHits:
    """What holds for one event: copies, which nothing changes when the lock was given back."""

    def __init__(self, subscriptions: Subscriptions, slots: np.ndarray) -> None:
        self._ids, self._order = subscriptions.ids_of(slots), subscriptions.order[positions(slots)]

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> np.ndarray:
        return self._ids

    @property
    def order(self) -> np.ndarray:
        """Numbers in the order of addition."""
        return self._order


def live_slots(store: Store, reader: Reader, event: Any, most: int = 0) -> np.ndarray | None:
    """The slots that hold for an event, in the order of addition; until the next search.

    event  a dict, or the bytes of a JSON document
    most   so many are enough; 0: all
    None: it goes the general way, as it does some times after each change, which settles indexes.
    EventError for what is wrong with the event.

    What compiled code does not read, as numbers beside values of contexts, is encoded in the usual
    way, and searched for in the same call.
    """
    if store.pending is not None or store.is_between_events:
        return None
    scratch, live = reader.scratch, reader.live
    if live is None or not live.holds(store, scratch.number):
        reader.live = LiveBinding(store, scratch.number)
        return None
    if live.view is None:
        live.bind(store, reader)
    view = live.view
    if view is None or view.is_due:
        return None
    scratch.begin()  # what an exception leaves busy is not used again
    counts = view.found(event, scratch, most)
    scratch.end()
    if counts is None:
        if type(event) is not dict:
            return None
        entries = encode_event(store.attributes, event)
        scratch.begin()
        counts = view.found_in(entries, scratch, most)
        scratch.end()
        if counts is None:
            with Change(store, ValuesSavepoint):
                return find(store, EncodedEvents(entries, {}), reader).slots
    reader.n_events += 1
    if reader.n_events >= ABSORB_EVERY:
        absorb_found(store, reader)
    return view.parts[0].out[: counts[0]]


def is_ready(view: View, reader: Reader) -> bool:
    """Whether all parts that nothing changes can be searched for one event after the other.

    Asked without the lock of contexts, since the first time it may take long.
    """
    return view.follows_contexts and (not view.unlocked or bound_view(view, reader) is not None)


def live_hits(live: tuple[Store, Reader] | None, event: Any, most: int = 0) -> LiveHits | None:
    """What holds in the store of the context part; None: as `live_slots`."""
    slots = None if live is None else live_slots(*live, event, most)
    return None if live is None or slots is None else LiveHits(live[0].subscriptions, slots)


def live_ids(store: Store, reader: Reader, event: Any) -> list[Id] | None:
    """The ids of what holds for an event, where nothing else is held; None: as `live_slots`."""
    slots = live_slots(store, reader, event)
    return None if slots is None else store.subscriptions.id_list(slots)


def live_count(store: Store, reader: Reader, event: Any, most: int = 0) -> int | None:
    """How many hold; if `most` are enough perhaps no more."""
    slots = live_slots(store, reader, event, most)
    return None if slots is None else len(slots)
