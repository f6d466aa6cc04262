"""One part of a view, bound for one event after the other (`single`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.added import END, AddedEntries
from matchwood.encode.computing import LookedUp, computing
from matchwood.encode.dicts.plan import DictOneByOne, DictPlan
from matchwood.encode.event_batch import EventBatch
from matchwood.encode.json.plan import JsonPlan
from matchwood.encode.json.reader import JsonOneByOne, JsonReader
from matchwood.engine.segments.single_kernels import (
    ENDING,
    ENDING_WORDS,
    NO_ROOM,
    STEP_WORDS,
    Ending,
)
from matchwood.index.core.query_kernels import ALL_MATCHES, QUERY, Query
from matchwood.index.core.scratch import Scratch
from matchwood.kernel import chains
from matchwood.kernel.bound import Binding
from matchwood.kernel.marks import NO_MARKS
from matchwood.kernel.verify_kernels import COUNTERS, Output

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.stores.store import Store

_NO_ORDER = np.empty(0, np.int64)


class SinglePart:
    """A store that is only read, bound with the memory of one scratch, and marks of what is gone.

    Marks may be exchanged (`mark`): a removal leaves everything else bound.
    """

    def __init__(self, store: Store, plan: JsonPlan, reader: Reader) -> None:
        scratch = reader.scratch
        self.store, self.subscriptions = store, store.subscriptions
        self.order_bounds = store.subscriptions.order_bounds()
        self.attributes, self.plan = store.attributes, plan
        columns = store.subscriptions.columns
        self._columns = columns if len(columns.expires) else None
        self.gone = NO_MARKS
        self._n_gone, self._work = 0, reader.work
        self._dicts: DictOneByOne | None = None
        self._documents: JsonOneByOne | None = None
        self._last: DictOneByOne | JsonOneByOne | None = None
        self._looked_up: LookedUp | None = None
        """What is known of the computed attributes of a dict that was not read yet."""
        n = 2 * len(plan.names) + len(plan.plan.absent)
        n += len(self.attributes) if plan.has_computed else 0
        attr = np.full(n, len(self.attributes) - 1, np.int32)  # the highest: so long are boards
        key = np.zeros(n, np.int64)
        self._events = EventBatch(np.zeros(2, np.int64), attr, key, key)
        if plan.has_computed:
            self._added = AddedEntries(self._events, len(self.attributes))
        scratch.post(self._events, store.table.n_attributes)
        self._most, self._n_enough = np.array([ALL_MATCHES]), 0
        self.is_usable = self._bind(scratch, 1024)

    # -- binding -----------------------------------------------------------------------------

    def _bind(self, scratch: Scratch, room: int) -> bool:
        """Bind indexes and the end of a search to an output; False where that cannot be."""
        self.out = np.empty(room, np.int32)
        offsets = self._offsets = np.zeros(2, np.int64)
        counters = np.zeros(len(COUNTERS), np.int64)
        query = Query(self._events, Output(offsets, self.out, counters), self._most)
        self._query = Binding(QUERY).of(query)  # by no kernel, which would give up the lock
        self._searches: list[tuple[Callable[[int], int], Any]] = []
        self._kept: list[Any] = []
        for index in self.store.routing.indexes:
            if len(index):
                alone = getattr(index, "alone", None)
                step = None if alone is None else alone(self._events, scratch)
                if step is None:
                    return False
                search, mine = step.with_query(self._query)
                self._searches.append((search, index))
                self._kept.append(mine)
        subscriptions = self.subscriptions
        words, order = subscriptions.n_slots // 64 + 1, _NO_ORDER
        if not subscriptions.in_order:
            words, order = 0, subscriptions.order[:]
        self._end = Ending(
            offsets, self.out, counters, self._work, order, scratch.sort_room(words),
            self.store.routing.always, self.gone,
        )  # fmt: skip
        self._ending = Binding(ENDING).of(self._end)
        steps = self._native_steps()
        if steps is None:
            return False
        self.words = [len(self._searches), *self._ending.tolist(), *steps]
        """The part as `search_parts` takes it."""
        return True

    def _native_steps(self) -> list[int] | None:
        """The words of the searches (`single_kernels`); None where kernels cannot be chained."""
        if not chains.is_usable():
            return None
        words: list[int] = []
        for search, _ in self._searches:
            called, (bound, mine, *settings, query, _) = search.func, search.args  # type: ignore[attr-defined]
            address = _address(called, bound, mine, settings, query)
            if not address or len(settings) > chains.MOST_SETTINGS:
                return None
            arrays = [each.__array_interface__["data"][0] for each in (bound, mine, query)]
            given = (*settings, 0, 0)[: chains.MOST_SETTINGS]
            words += address, len(settings), arrays[0], arrays[1], *given, arrays[2]
        assert len(words) == STEP_WORDS * len(self._searches)
        return words

    def mark(self, gone: np.ndarray, n_gone: int) -> None:
        """Leave out other slots than so far: those that are marked here."""
        if gone is self.gone or not (n_gone or self._n_gone):
            return
        self.gone, self._n_gone, self._n_enough = gone, n_gone, -1
        if not self.is_usable:
            return
        marks = gone if n_gone else NO_MARKS
        self._end = self._end._replace(gone=marks)
        # after every change of a segment, so only these two words are written
        self._ending[-2:] = marks.__array_interface__["data"][0], len(marks)
        self.words[ENDING_WORDS - 1 : ENDING_WORDS + 1] = self._ending[-2:].tolist()

    def make_room(self, status: int, scratch: Scratch) -> None:
        """After a search that ended with FULL or NO_ROOM: bind again, with more memory."""
        if status <= NO_ROOM:
            self._searches[NO_ROOM - status][1].make_room(scratch)
        self._bind(scratch, 2 * len(self.out))

    # -- asking ------------------------------------------------------------------------------

    @property
    def may_expire(self) -> bool:
        """Whether `is_due` has to be asked before each search."""
        return self._columns is not None

    @property
    def is_due(self) -> bool:
        """Whether something may have expired, which the general way leaves out."""
        columns = self._columns
        return columns is not None and columns.next_expiry <= time.time_ns() // 1000

    def read(self, event: Any) -> bool:
        """Take an event, a dict or the bytes of a document; False: it goes the general way."""
        if type(event) is dict:
            dicts = self.dicts()
            return dicts is not None and dicts.read(event)
        if self._documents is None:
            start, attr, key = self._events[:3]
            self._documents = JsonReader(self.plan).one_by_one(start, attr, key)
        self._last = self._documents
        return self._documents.read(event)

    @property
    def has_grown(self) -> bool:
        """Whether reading dicts took more memory since it was bound for a kernel."""
        return self._dicts is not None and self._dicts.has_grown

    def dicts(self) -> DictOneByOne | None:
        """What reads dicts from now on; None where there is no plan for them."""
        dicts = self._dicts
        if dicts is None:
            plan: DictPlan | None = self.attributes.dict_plan
            if plan is None or plan.changes != self.plan.changes:
                return None
            start, attr, key = self._events[:3]
            dicts = self._dicts = plan.one_by_one(start, attr, key, len(self.attributes))
        self._last = dicts
        return dicts

    def known_computed(self, event: dict[str, Any]) -> bytes | None:
        """The computed attributes of a dict, and END, where they are known of other events.

        None where some have to be computed, which is counted: after the event was read
        `add_computed` does it.
        """
        if not self.plan.has_computed:
            return END
        plan = computing(self.attributes)
        made, left = found = plan.look_up(event)
        if left or plan.grouped:
            self._looked_up = found
            return None
        self._looked_up = None
        made.append(END)
        return b"".join(made)

    def add_computed(self, event: Any) -> None:
        """Add the computed attributes of the event that was read."""
        plan, looked_up = computing(self.attributes), self._looked_up
        self._looked_up = None
        if type(event) is not dict:
            assert self._documents is not None
            event, looked_up = self._documents.inputs(event), None
        made = plan.finish(looked_up or plan.look_up(event), event, [])
        self._added.add(b"".join((*made, END)))  # type: ignore[arg-type]

    def count_unknown(self) -> None:
        """Count the predicates that the event left unknown."""
        if self._last is not None and self._last.has_unknown:
            self._last.count(self.attributes)

    def forget_unknown(self) -> None:
        """Leave that to the general way."""
        if self._last is not None and self._last.has_unknown:
            self._last.forget()

    def end_reading(self, is_left: bool) -> None:
        """Count what a dict left unknown, or leave that to the general way."""
        assert self._dicts is not None
        if is_left:
            self._dicts.forget()
        else:
            self._dicts.count(self.attributes)

    def want(self, most: int) -> None:
        """So many matches are enough, and where an index can it stops; 0: all."""
        if most != self._n_enough:
            self._n_enough = most
            self._most[0] = self._n_gone + most if most else ALL_MATCHES


_addresses: dict[tuple[Any, int], int] = {}
"""Where the code of kernels is, by the kernel and its number of settings."""


def _address(called: Any, bound: Any, mine: Any, settings: list[Any], query: Any) -> int:
    """The address of a kernel; looking up its variant takes longer than binding its arrays."""
    found = _addresses.get((called, len(settings)))
    if found is None:
        found = chains.native_address(called, (bound, mine, *settings, query, 0, 0))
        if found:
            _addresses[called, len(settings)] = found
    return found
