"""One event through a view in a few compiled calls, where nothing special is asked.

    dict ── read_dict ───────┐
    JSON ── read_documents ──┴► entries ── search of each index ──► slots ── end_event ──► ids

Everything that a call needs is bound when it is first needed and used again while the view is the
same: the plan by which dicts are read, the indexes, the arrays of a scratch.  What does not fit
here is left to the general way (`Matcher.match`), which gives the same answer: events that are no
dicts of plain values, attributes that have just changed, an expiry that is due, guarded views, an
index that has no such step (`IndexFrame.alone`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.dict_plan import DictOneByOne, DictPlan
from matchwood.encode.event_batch import EventBatch
from matchwood.encode.json_plan import JsonPlan
from matchwood.encode.json_reader import JsonOneByOne, JsonReader
from matchwood.engine.single_kernels import ENDING, FULL, Ending, end_event
from matchwood.index.core.query import bind_query
from matchwood.index.core.query_kernels import ALL_MATCHES
from matchwood.index.core.scratch import KEPT_OUT, Scratch
from matchwood.kernel.bound import Binding
from matchwood.kernel.verify_kernels import COUNTERS, Output

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.matches import Id
    from matchwood.engine.store import Store
    from matchwood.engine.view import Part, View

WORTH_IT = 3
"""Searches of a part for one event before it is bound: changes may come as fast as events."""

MOST_KEPT = 64
"""Scratches that a part is bound for; more than there are readers, and some were replaced."""

_NO_ORDER, _NO_MARKS = np.empty(0, np.int64), np.empty(0, np.uint8)


class SinglePart:
    """One part of a view, bound for one event after the other with the memory of one scratch.

    It refers to neither of them: the part keeps it (`view.Part.singles`).
    """

    def __init__(self, part: Part, store: Store, plan: JsonPlan, reader: Reader) -> None:
        scratch = reader.scratch
        self.store, self.subscriptions = store, store.subscriptions
        self.attributes, self.plan = store.attributes, plan
        columns = store.subscriptions.columns
        self._columns = columns if len(columns.expires) else None
        self._gone = part.gone if part.n_gone else _NO_MARKS
        self._n_gone, self._work = part.n_gone, reader.work
        self._dicts: DictOneByOne | None = None
        self._documents: JsonOneByOne | None = None
        self._last: DictOneByOne | JsonOneByOne | None = None
        n = 2 * len(plan.names) + len(plan.plan.absent)
        attr = np.full(n, len(self.attributes) - 1, np.int32)  # the highest: so long are boards
        key = np.zeros(n, np.int64)
        self._events = EventBatch(np.zeros(2, np.int64), attr, key, key)
        scratch.post(self._events, store.table.n_attributes)
        self._most, self._n_enough = np.array([ALL_MATCHES]), 0
        self.is_spent = False
        self.is_usable = self._bind(scratch, 1024)

    def _bind(self, scratch: Scratch, room: int) -> bool:
        """Bind indexes and the end of a search to an output; False where an index has no step."""
        self.out = np.empty(room, np.int32)
        self._offsets = np.zeros(2, np.int64)
        counters = np.zeros(len(COUNTERS), np.int64)
        query = bind_query(self._events, Output(self._offsets, self.out, counters), self._most)
        self._searches: list[tuple[Callable[[int], int], Any]] = []
        self._kept: list[Any] = []
        for index in self.store.routing.indexes:
            if len(index):
                alone = getattr(index, "alone", None)
                step = None if alone is None else alone(self._events, scratch)
                if step is None:
                    return False
                search, mine = step.with_query(query)
                self._searches.append((search, index))
                self._kept.append(mine)
        subscriptions = self.subscriptions
        words, order = subscriptions.n_slots // 64 + 1, _NO_ORDER
        if not subscriptions.in_order:
            words, order = 0, subscriptions.order[:]
        ending = Ending(
            self._offsets, self.out, counters, self._work, order, scratch.bitmap(words),
            self.store.routing.always, self._gone,
        )  # fmt: skip
        self._kept.append(ending)
        self._ending = Binding(ENDING).of(ending)
        return True

    def is_current(self) -> bool:
        """Whether it can be searched: dicts are read as before, and nothing may have expired."""
        if not self.is_usable or self.plan.changes != self.attributes.changes:
            return False
        columns = self._columns
        return columns is None or columns.next_expiry > time.time_ns() // 1000

    def read(self, event: Any) -> bool:
        """Take an event, a dict or the bytes of a document; False: it goes the general way."""
        if type(event) is dict:
            dicts = self._dicts
            if dicts is None:
                plan: DictPlan | None = self.attributes.dict_plan
                if plan is None or plan.changes != self.plan.changes:
                    return False
                start, attr, key = self._events[:3]
                dicts = self._dicts = plan.one_by_one(start, attr, key)
            self._last = dicts
            return dicts.read(event)
        if self._documents is None:
            start, attr, key = self._events[:3]
            self._documents = JsonReader(self.plan).one_by_one(start, attr, key)
        self._last = self._documents
        return self._documents.read(event)

    def count_unknown(self) -> None:
        """Count the predicates that the event left unknown."""
        if self._last is not None and self._last.has_unknown:
            self._last.count(self.attributes)

    def forget_unknown(self) -> None:
        """Leave that to the general way."""
        if self._last is not None and self._last.has_unknown:
            self._last.forget()

    def search(self, scratch: Scratch, most: int = 0) -> int:
        """How many slots hold for the event that was read: the first of `out`, in order.

        most  so many are enough, and where an index can it stops; 0: all
        """
        if most != self._n_enough:
            self._n_enough = most
            self._most[0] = self._n_gone + most if most else ALL_MATCHES
        n = self._search(scratch)
        while n < 0:
            self._bind(scratch, 2 * len(self.out))
            n = self._search(scratch)
        if len(self.out) > KEPT_OUT:
            self.is_spent = True  # another one is made, with a short output
        return n

    def _search(self, scratch: Scratch) -> int:
        """The same; FULL where there was no room."""
        stamp = scratch.next_stamp()
        for i, (search, index) in enumerate(self._searches):
            if i:
                self._offsets[0] = self._offsets[1]
            found = search(stamp)
            if found != 1:
                if found < 0:
                    index.make_room(scratch)
                return FULL
        return end_event(self._ending)


def _bound_parts(view: View, reader: Reader) -> list[SinglePart] | None:
    """The parts of a view, bound for a reader; None where one cannot be, or is not worth it."""
    number = reader.scratch.number
    found: list[SinglePart] = []
    for part in view.searched:
        single: SinglePart | None = part.singles.get(number)
        if single is None or single.plan is not single.attributes.json_plan or single.is_spent:
            single = _bound(part, reader)
        if single is not None and single.is_current():
            found.append(single)
    return found if len(found) == len(view.searched) else None


def _bound(part: Part, reader: Reader) -> SinglePart | None:
    store = part.store  # once: that of recent additions may be made by several threads
    attributes = store.attributes
    plan: JsonPlan | None = attributes.json_plan
    part.n_asked += 1
    if plan is None or plan.changes != attributes.changes or part.n_asked < WORTH_IT:
        return None
    if plan.is_by_hand:
        return None
    if len(part.singles) >= MOST_KEPT:
        part.singles = {}
    single = part.singles[reader.scratch.number] = SinglePart(part, store, plan, reader)
    return single


def _read(singles: list[SinglePart], event: Any) -> bool:
    """Have all parts read an event, or none of them."""
    if len(singles) == 1:
        if not singles[0].read(event):
            return False
        singles[0].count_unknown()
        return True
    for i, single in enumerate(singles):
        if not single.read(event):
            for other in singles[:i]:
                other.forget_unknown()
            return False
    for single in singles:
        single.count_unknown()
    return True


def single_ids(view: View, reader: Reader, event: Any) -> list[Id] | None:
    """The ids of what holds for an event, in the order of addition; None: ask the general way.

    event  a dict, or the bytes of a JSON document as an array of uint8 that is not to be written
    """
    singles = _bound_parts(view, reader)
    if singles is None or not _read(singles, event):
        return None
    scratch = reader.scratch
    if len(singles) == 1:
        single = singles[0]
        n = single.search(scratch)
        return single.subscriptions.id_list(single.out[:n])
    order: list[int] = []
    ids: list[Id] = []
    for single in singles:
        n = single.search(scratch)
        if n:
            slots = single.out[:n]
            order += single.subscriptions.order[slots].tolist()
            ids += single.subscriptions.id_list(slots)
    by_order = sorted(range(len(order)), key=order.__getitem__)
    return [ids[i] for i in by_order]


def single_count(view: View, reader: Reader, event: Any, most: int = 0) -> int | None:
    """How many hold for an event; if `most` are enough perhaps no more; None: as `single_ids`."""
    singles = _bound_parts(view, reader)
    if singles is None or not _read(singles, event):
        return None
    n = 0
    for single in singles:
        n += single.search(reader.scratch, most)
        if most and n >= most:
            break
    return n
