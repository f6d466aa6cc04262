"""View: what a matcher holds, as one reader sees it.

    view ──┬── part: a frozen store, and marks of its slots that are gone     (segments)
           ├── part ...
           ├── part: the store that small changes go to in the end            (head)
           └── part: the last additions, encoded when a search asks for them  (recent)

A part is a whole `Store`: attributes, dictionaries, expressions, indexes, and the ids, texts and
fields of its subscriptions.  Parts share nothing, so a segment can be built, merged, saved and
dropped without asking another.  Numbers in the order of addition are the matcher's, so hits of
several parts are brought into one order (`join_kernels`).

A view is never changed.  A change makes another one (`draft`) and publishes it by one assignment;
a reader takes the view by one reference and sees all of a change or nothing of it.  Stores of
segments are only read; that of the head is one of two (`head`).

Subscriptions with contexts are in one more part, whose store changes in place (`context_part`).

A *guarded* view has one part whose store changes in place, while no search runs (`access`): that of
an index which was chosen by name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.events import EncodedEvents
from matchwood.encode.schema import Schema
from matchwood.engine.answers.choices import ALL, Choice
from matchwood.engine.input.fields import agreed_types
from matchwood.engine.matches import Found, Matches, ids_to_arrow
from matchwood.engine.segments.pieces import Piece, joined
from matchwood.engine.stores.finding import find
from matchwood.engine.stores.ids import check_id, missing
from matchwood.engine.stores.store import Store
from matchwood.errors import MatchwoodError
from matchwood.kernel.arrays import positions
from matchwood.kernel.marks import NO_MARKS, are_marked, bits_of
from matchwood.lang.cells import CELL

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.context.store import ContextStore
    from matchwood.engine.access import Reader
    from matchwood.engine.segments.context_part import ContextPart
    from matchwood.engine.segments.head import Spare
    from matchwood.engine.segments.recent import Recent


_FEW = 1_024
"""Slots that are marked one by one."""


class Part:
    """A store, and which of its slots are gone."""

    __slots__ = ("_store", "gone", "n_gone", "n_strings", "singles")

    def __init__(
        self,
        store: Store | None,
        gone: np.ndarray = NO_MARKS,
        n_gone: int = 0,
        n_strings: int = 0,
        singles: dict[int, Any] | None = None,
    ) -> None:
        self._store = store
        self.gone = gone
        """A bitmap of uint8 by slot; empty while nothing is gone."""
        self.n_gone = n_gone
        self.n_strings = n_strings
        """Ids that are strings among those gone."""
        self.singles: dict[int, Any] = {} if singles is None else singles
        """What `single` has bound to the store for each scratch, by its number."""

    @property
    def store(self) -> Store:
        assert self._store is not None
        return self._store

    def __len__(self) -> int:
        return len(self.store.subscriptions) - self.n_gone

    @property
    def n_string_ids(self) -> int:
        """Ids that are strings, without those gone."""
        return self.store.subscriptions.n_strings - self.n_strings

    @property
    def own_types(self) -> dict[str, str] | None:
        """Types of own attributes that all tables declare alike; None where there are none."""
        columns = self.store.subscriptions.columns
        return None if columns.attributes is None else columns.types

    def slot_of(self, id_: Any) -> int | None:
        """The slot of an id; None if it is not here, or gone."""
        slot = self.store.subscriptions.get(id_)
        if slot is None or (self.n_gone and self.gone[slot >> 3] >> (slot & 7) & 1):
            return None
        return slot

    def slots(self) -> np.ndarray:
        """Slots in use, in the order of addition."""
        slots = self.store.subscriptions.slots()
        return slots[~are_marked(self.gone, slots)] if self.n_gone else slots

    def living(self, slots: np.ndarray) -> np.ndarray:
        """Those of some slots that are not gone."""
        return slots[~are_marked(self.gone, slots)] if self.n_gone else slots

    def without(self, slots: np.ndarray) -> Part:
        """The same store with more slots gone, each once."""
        subscriptions = self.store.subscriptions
        # a bytearray is copied and changed without giving up the interpreter's lock
        n_bytes = subscriptions.n_slots // 8 + 1
        marks = bytearray(self.gone.data) if self.n_gone else bytearray(n_bytes)
        gone = np.frombuffer(marks, np.uint8)
        if len(slots) <= _FEW:
            for slot in slots.tolist():
                marks[slot >> 3] |= 1 << (slot & 7)
        else:
            at = positions(slots)
            np.bitwise_or.at(gone, at >> 3, bits_of(at))
        n_gone, n_strings = self.n_gone + len(slots), self.n_strings
        if subscriptions.n_strings:
            n_strings += sum(map(str.__instancecheck__, subscriptions.ids_of(slots)))
        return Part(self.store, gone, n_gone, n_strings, self.singles)

    def find(self, events: EncodedEvents, reader: Reader, choice: Choice) -> Found:
        return find(self.store, events, reader, (), choice, self.gone if self.n_gone else None)


class View:
    """Segments, head and recent additions; see the module's docstring."""

    __slots__ = (
        "bound", "context_part", "filters", "follows_contexts", "head", "is_guarded", "n",
        "n_added", "n_asked", "n_changes", "parts", "recent", "searched", "spare", "stored",
        "unlocked",
    )  # fmt: skip

    def __init__(
        self,
        parts: Sequence[Part],
        filters: dict[Any, Any],
        spare: Spare | None = None,
        is_guarded: bool = False,
        n_added: int = 0,
        n_changes: int = 0,
        recent: Recent | None = None,
        context_part: ContextPart | None = None,
    ) -> None:
        self.stored = tuple(parts)
        """Segments and the head."""
        self.recent = recent
        """Additions that are not in the head yet; None if there are none."""
        self.context_part = context_part
        """Subscriptions with contexts; None while nothing has spoken of one."""
        self.follows_contexts = context_part is not None and len(context_part) > 0
        """Whether a search has to look at the context part, with the lock of contexts."""
        others = [each for each in (recent, context_part) if each is not None]
        self.parts: tuple[Part, ...] = (*self.stored, *others)
        self.head = self.stored[-1].store
        self.filters = filters
        """Compiled filters over own attributes, by text (`choices`)."""
        self.spare = spare
        """The store that the next change of the head goes to; None where there is no head."""
        self.is_guarded = is_guarded
        self.bound: dict[int, Any] = {}
        """What `single` has bound for each scratch, by its number."""
        self.n_asked = 0
        """Searches for one event so far; a hint, which may miss some."""
        self.n_added = n_added
        """The next number in the order of addition."""
        self.n_changes = n_changes
        """Changes before this view; a merge is none."""
        sizes = [len(each) for each in self.parts]
        self.searched = tuple(compress(self.parts, sizes)) or self.stored[-1:]
        """Parts that hold something, or the head alone."""
        self.unlocked = self.searched
        """Those of them that nothing changes, so that a search needs no lock."""
        if context_part is not None:
            self.unlocked = tuple([each for each in self.searched if each is not context_part])
        self.n = 0 if is_guarded else sum(sizes)

    def __len__(self) -> int:
        return len(self.head.subscriptions) if self.is_guarded else self.n

    def with_parts(self, parts: Sequence[Part], spare: Spare | None = None) -> View:
        """A view of the same subscriptions in other segments and heads."""
        return View(
            parts, self.filters, self.spare if spare is None else spare, n_added=self.n_added,
            n_changes=self.n_changes, recent=self.recent, context_part=self.context_part,
        )  # fmt: skip

    def with_contexts(self, part: ContextPart) -> View:
        """A view of the same subscriptions after values of contexts have changed."""
        view = View(
            self.stored, self.filters, self.spare, n_added=self.n_added, n_changes=self.n_changes,
            recent=self.recent, context_part=part,
        )  # fmt: skip
        view.bound, view.n_asked = self.bound, self.n_asked
        return view

    @property
    def contexts(self) -> ContextStore | None:
        """The values of contexts; None while nothing has spoken of one."""
        part = self.stored[-1] if self.context_part is None else self.context_part
        return part.store.contexts

    @property
    def segments(self) -> tuple[Part, ...]:
        """The parts that never change; none where the view is guarded."""
        return () if self.is_guarded else self.stored[:-1]

    def locate(self, id_: Any) -> tuple[Part, int]:
        """The part and the slot of an id; SubscriptionError when there is none."""
        id_ = check_id(id_)
        for part in reversed(self.parts):
            slot = part.slot_of(id_)
            if slot is not None:
                return part, slot
        raise missing(id_)

    def __contains__(self, id_: object) -> bool:
        return any(part.slot_of(id_) is not None for part in reversed(self.parts))

    @property
    def id_kind(self) -> str:
        """What all ids are: `int`, `str`, or `mixed`."""
        n_strings = sum([part.n_string_ids for part in self.parts])
        return "int" if not n_strings else "str" if n_strings == len(self) else "mixed"

    @property
    def own_types(self) -> dict[str, str] | None:
        """Types of own attributes that all tables declare alike; None where there are none."""
        found: dict[str, str] | None = None
        for part in self.parts:
            types = part.own_types
            if types is not None:
                found = types if found is None else agreed_types(found, types)
        return found

    def schema(self) -> Schema:
        """The types of all attributes known so far."""
        types: dict[str, str] = {}
        open_: set[str] = set()
        for part in self.parts:
            attributes = part.store.attributes
            open_.update([name for name, each in attributes.by_name.items() if len(each.kinds) > 1])
            for name, kind in attributes.schema().items():
                if types.setdefault(name, kind) != kind:
                    open_.add(name)
        return Schema({name: kind for name, kind in types.items() if name not in open_})

    def text_types(self) -> dict[str, str]:
        """The types as which texts in files of events are read."""
        types: dict[str, str] = {}
        for part in self.parts:
            for name, kind in part.store.attributes.text_types().items():
                types[name] = kind if types.get(name, kind) == kind else CELL
        return types

    # -- all subscriptions -------------------------------------------------------------------

    def in_order(self) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
        """Each part with its slots in use, and where each is in the order of all of them."""
        slots = [part.slots() for part in self.parts]
        order = [
            part.store.subscriptions.order[at] for part, at in zip(self.parts, slots, strict=True)
        ]
        if len(slots) == 1:
            yield self.parts[0], slots[0], np.arange(len(slots[0]))
            return
        rank = np.empty(sum(map(len, slots)), np.int64)
        rank[np.argsort(np.concatenate(order), kind="stable")] = np.arange(len(rank))
        first = 0
        for part, at in zip(self.parts, slots, strict=True):
            yield part, at, rank[first : first + len(at)]
            first += len(at)

    # -- searching ---------------------------------------------------------------------------

    def match(
        self, events: Sequence[EncodedEvents | Piece], reader: Reader, choice: Choice
    ) -> Matches:
        """The matches of events, encoded for each of `searched`, in the order of addition.

        In place of events: what was found in a part before.
        """
        pieces = self._pieces(events, reader, choice)
        if len(pieces) == 1:
            found, ids = pieces[0].found, pieces[0].ids_or_later
        else:
            found, pieces = joined(pieces, choice.limit)
            ids = np.concatenate([each.ids for each in pieces])[found.slots]
        return Matches(
            found.offsets, ids, found.errors, found.counters, self.id_kind, found.warnings
        )

    def count(self, events: Sequence[EncodedEvents | Piece], reader: Reader, choice: Choice) -> int:
        """How many subscriptions hold for events."""
        pieces = self._pieces(events, reader, choice)
        found = pieces[0].found if len(pieces) == 1 else joined(pieces, choice.limit)[0]
        return len(found.slots)

    def find(
        self, events: Sequence[EncodedEvents | Piece], reader: Reader, choice: Choice
    ) -> Found:
        """As `match`, with slots: those of a part come after all slots of the parts before it."""
        pieces = self._pieces(events, reader, choice)
        if len(pieces) == 1:
            return pieces[0].found
        found, pieces = joined(pieces, choice.limit)
        # the context part is the last: only slots of parts that do not change are counted
        sizes = [part.store.subscriptions.n_slots for part in self.searched[:-1]]
        first = np.cumsum([0, *sizes])
        slots = [each.found.slots + at for each, at in zip(pieces, first, strict=True)]
        return found._replace(slots=np.concatenate(slots)[found.slots])

    def arrow_ids(self) -> pa.Array:
        """Ids by slot, as `find` numbers them; null where there is no subscription."""
        import pyarrow as pa

        found = [_ids_of(part, self.id_kind) for part in self.searched]
        return found[0] if len(found) == 1 else pa.concat_arrays(found)

    def choice_of_parts(self, choice: Choice) -> Choice:
        """What is asked of each part: of several all that holds, at one moment."""
        if len(self.searched) == 1:
            return choice
        one_by_one = choice if choice is ALL else replace(choice, limit=None, most=choice.limit)
        return self.at_one_moment(one_by_one)

    def at_one_moment(self, choice: Choice) -> Choice:
        """The same with the time that decides what has expired, where anything can."""
        columns = [part.store.subscriptions.columns for part in self.searched]
        if choice.now is None and any(len(each.expires) for each in columns):
            return replace(choice, now=time.time_ns() // 1000)
        return choice

    def _pieces(
        self, events: Sequence[EncodedEvents | Piece], reader: Reader, choice: Choice
    ) -> Sequence[Piece]:
        """What was found in each of `searched`."""
        one_by_one = self.choice_of_parts(choice)
        return [
            given
            if isinstance(given, Piece)
            else Piece(part.find(given, reader, one_by_one), part.store.subscriptions)
            for part, given in zip(self.searched, events, strict=True)
        ]


def view_of(events: EncodedEvents, view: View) -> View:
    """The view to search for encoded events: the one that they were encoded for, unless it changed.

    A merge leaves other parts and changes nothing, so a view from before it can still be searched.
    """
    before = view if events.view is None else events.view
    is_same = before.is_guarded == view.is_guarded and before.n_changes == view.n_changes
    if not is_same or len(before.searched) != 1 + len(events.others):
        raise MatchwoodError(
            "expected a matcher that is as it was when events were encoded, found a change since: "
            "encode them again"
        )
    return view if view.is_guarded else before


def _ids_of(part: Part, kind: str) -> pa.Array:
    """Ids by slot, null where a slot is free or its subscription is gone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    subscriptions = part.store.subscriptions
    n = subscriptions.n_slots
    is_gone = are_marked(part.gone, np.arange(n)) if part.n_gone else np.zeros(n, bool)
    if kind == subscriptions.id_kind:
        ids = subscriptions.to_arrow()
        return pc.if_else(pa.array(is_gone), None, ids) if part.n_gone else ids
    is_gone |= subscriptions.order[:n] < 0
    ids = subscriptions.ids[:n]
    if ids.dtype == object:
        ids = ids.copy()
        ids[is_gone] = None
    return ids_to_arrow(ids, kind, is_gone)


def guarded(store: Store, filters: dict[Any, Any] | None = None) -> View:
    """The view of a store that changes in place."""
    return View([Part(store)], {} if filters is None else filters, is_guarded=True)
