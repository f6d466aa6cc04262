"""One event through a view in a few compiled calls, where nothing special is asked.

    dict ── read_dict ───────┐
    JSON ── read_documents ──┴► entries of each part ── search_parts ──► slots ──► ids

Everything that a call needs is bound when it is first needed: the plan by which dicts are read, the
indexes, the arrays of a scratch.  What is bound to a store (`single_part`) is used again in every
view that shows it, with other marks of what is gone; what is bound to a view, as long as it is
shown.  All parts are searched in one call, because each call may have to wait for the interpreter's
lock (`kernel.chains`).

Where subscriptions have contexts their part is searched ahead, in the general way (`asked`), and
what was found there joins what is found here in the others.

What does not fit here is left to the general way (`Matcher.match`), which gives the same answer:
events that are no dicts of plain values, attributes for which no plan was made yet, an expiry that
is due, guarded views, an index that has no such step (`IndexFrame.alone`), kernels that cannot be
called by their addresses (`kernel.chains`).
"""

from __future__ import annotations

from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.dicts.plan import make_plans
from matchwood.encode.dicts.walk_kernels import FULL, HAS_UNKNOWN, LEFT
from matchwood.encode.json.plan import JsonPlan
from matchwood.engine.segments.single_kernels import (
    ASKING,
    STOPPED,
    Asking,
    search_for_dict,
    search_parts,
)
from matchwood.engine.segments.single_part import SinglePart
from matchwood.index.core.scratch import KEPT_OUT, new_version
from matchwood.kernel.arrays import positions
from matchwood.kernel.bound import Binding

if TYPE_CHECKING:
    from matchwood.encode.event_batch import EventBatch
    from matchwood.engine.access import Reader
    from matchwood.engine.matches import Id
    from matchwood.engine.segments.pieces import Piece
    from matchwood.engine.segments.single_live import LiveHits
    from matchwood.engine.segments.view import Part, View
    from matchwood.engine.stores.store import Store
    from matchwood.index.core.scratch import Scratch

WORTH_IT = 8
"""Searches of the last view and additions to it from which a change makes the next one ready."""

NOTHING_DONE = -1
"""Instead of a part that had no room."""

MOST_KEPT = 64
"""Scratches that a part is bound for; more than there are readers, and some were replaced."""


class SingleView:
    """The parts of a view, bound with the memory of one scratch."""

    def __init__(self, parts: list[SinglePart]) -> None:
        self.parts = parts = sorted(parts, key=lambda each: each.order_bounds)
        """In the order of addition, if `is_in_order`."""
        bounds = [each.order_bounds for each in parts]
        self.is_in_order = all(a[1] < b[0] for a, b in pairwise(bounds))
        """Whether all of a part was added before all of the next one: the usual case."""
        self.number = new_version()
        """A reader searches with what it has bound last (`Reader.bound`): parts are shared."""
        self.is_spent = False
        """Whether a part has more memory than is kept for the next search."""
        self.expiring = [each for each in parts if each.may_expire]
        """Parts that `is_due` has to look at."""
        self._counts = np.zeros(len(parts), np.int64)
        self._most = -1
        self._has_computed = any(each.plan.has_computed for each in parts)
        self._bind()

    def _bind(self) -> None:
        """Put the words of all parts side by side."""
        words = [each.words for each in self.parts]
        self._start = np.array([0, *accumulate(map(len, words))])
        self._words = np.array(list(chain.from_iterable(words)), np.int64)
        self._asking: Any = None

    def _bind_dicts(self) -> Any:
        """What `search_for_dict` takes; None where there is no plan for dicts."""
        readers = [each.dicts() for each in self.parts]
        bound = [each.bound() for each in readers if each is not None]
        if len(bound) < len(readers):
            return None
        reading = np.array([word for each in bound for word in each], np.int64)
        asking = Asking(reading, self._words, self._start, self._counts)
        self._binding = Binding(ASKING)
        self._asking = self._binding.of(asking)
        return self._asking

    @property
    def is_due(self) -> bool:
        """Whether something may have expired, which the general way leaves out."""
        return any(each.is_due for each in self.expiring)

    def found(self, event: Any, scratch: Scratch, most: int = 0) -> list[int] | None:
        """How many slots of each part hold for an event: the first of its `out`.

        most  so many in all are enough; 0: all
        None: the event goes the general way
        """
        parts = self.parts
        if most != self._most:
            self._most = most
            for part in parts:
                part.want(most)
        if type(event) is dict:
            added = self._computed(event) if self._has_computed else b""
            asking = self._asking
            if asking is None:
                asking = self._bind_dicts()
            if asking is not None and added is not None:
                n_parts = len(parts)
                n = search_for_dict(
                    asking, id(event), scratch.next_stamp(n_parts), most, id(added) if added else 0
                )
                if 0 <= n < HAS_UNKNOWN:
                    return [n] if n_parts == 1 else self._counts.tolist()
                self._after(n)
                if n >= HAS_UNKNOWN:
                    return self._counts.tolist()
                if n <= STOPPED:
                    return self._search(scratch, most, STOPPED - n)
                if n == LEFT:
                    return None
        return self._search(scratch, most) if self._read(event) else None

    def found_in(self, entries: EventBatch, scratch: Scratch, most: int = 0) -> list[int] | None:
        """As `found` of the one part there is, for an event that was encoded for it."""
        (part,) = self.parts
        if most != self._most:
            self._most = most
            part.want(most)
        return self._search(scratch, most) if part.take(entries) else None

    def _computed(self, event: dict[str, Any]) -> bytes | None:
        """The computed attributes for all parts (`SinglePart.known_computed`); None: not all."""
        if len(self.parts) == 1:
            return self.parts[0].known_computed(event)
        found = [part.known_computed(event) for part in self.parts]
        return None if None in found else b"".join(found)  # type: ignore[arg-type]

    def _after(self, status: int) -> None:
        """Count what the event left unknown, unless it is read again."""
        is_left = status in (LEFT, FULL)
        for part in self.parts:
            part.end_reading(is_left)

    def _read(self, event: Any) -> bool:
        """Have all parts read an event, or none of them."""
        parts = self.parts
        for i, part in enumerate(parts):
            is_read = part.read(event)
            if part.has_grown:
                self._asking = None  # bound to memory that is free now
            if not is_read:
                for other in parts[:i]:
                    other.forget_unknown()
                return False
        for part in parts:
            part.count_unknown()
            if part.plan.has_computed:
                part.add_computed(event)
        return True

    def _search(self, scratch: Scratch, most: int, done: int = NOTHING_DONE) -> list[int]:
        """Search for the event that was read, from a part on that had no room for it."""
        parts, counts, n = self.parts, self._counts, len(self.parts)
        while done < n:
            if done != NOTHING_DONE:
                parts[done].make_room(int(counts[done]), scratch)
                self.is_spent |= len(parts[done].out) > KEPT_OUT
                self._bind()
            first, stamp = max(done, 0), scratch.next_stamp(n)
            enough = most - int(counts[:first].sum()) if most else 0
            done = search_parts(self._words, self._start, counts, first, stamp, enough)
        found: list[int] = counts.tolist()
        return found


def bound_view(view: View, reader: Reader) -> SingleView | None:
    """What nothing changes of a view, bound for a reader; None where it cannot be, or is due."""
    number = reader.scratch.number
    found: SingleView | None = view.bound.get(number)
    if found is None or found.number != reader.bound or found.is_spent:
        parts: list[SinglePart] = []
        for part in view.unlocked:
            single = _bound_part(part, reader, found is not None and found.is_spent)
            if single is None:
                return None
            single.mark(part.gone, part.n_gone)
            parts.append(single)
        if len(view.bound) >= MOST_KEPT:
            view.bound.clear()
        found = view.bound[number] = SingleView(parts)
        reader.bound = found.number
    return None if found.expiring and found.is_due else found


def _bound_part(part: Part, reader: Reader, is_spent: bool) -> SinglePart | None:
    """A part of a view, bound for a reader; None where it cannot be.

    is_spent  what was bound for it has more memory than is kept
    """
    single: SinglePart | None = part.singles.get(reader.scratch.number)
    if single is None or is_spent:
        store = part.store  # once: that of recent additions may be made by several threads
        single = bound_store(store, reader)
        if single is None:
            return None
        if len(part.singles) >= MOST_KEPT:
            part.singles.clear()
        part.singles[reader.scratch.number] = single
    return single if single.is_usable else None


def bound_store(store: Store, reader: Reader) -> SinglePart | None:
    """A store, bound for a reader as far as it can be; None while there is no plan for events."""
    attributes = store.attributes
    plan: JsonPlan | None = attributes.json_plan
    if plan is None or plan.changes != attributes.changes or plan.is_by_hand:
        return None
    return SinglePart(store, plan, reader)


def make_ready(view: View, before: View) -> None:
    """Do what the first searches of a new view would have to do, for all of them; while writing.

    Encodes recent additions, plans how the parts that small changes go to read events, and binds
    their indexes.
    """
    if before.n_asked and before.n_asked + view.n_added - before.n_added >= WORTH_IT:
        for part in (view.stored[-1], view.recent):
            if part is not None and len(part):
                make_plans(part.store.attributes)
                part.store.routing.bind()


def single_ids(
    view: View, reader: Reader, event: Any, ahead: Piece | LiveHits | None = None
) -> list[Id] | None:
    """The ids of what holds for an event, in the order of addition; None: ask the general way.

    event  a dict, or the bytes of a JSON document as an array of uint8 that is not to be written
    ahead  what holds in the context part; None where there is none
    """
    if ahead is not None and not view.unlocked:
        alone: list[Id] = ahead.ids.tolist()
        return alone
    bound = bound_view(view, reader)
    counts = None if bound is None else bound.found(event, reader.scratch)
    if bound is None or counts is None:
        return None
    parts = bound.parts
    if ahead is not None and not len(ahead):
        ahead = None
    if len(parts) == 1 and ahead is None:
        part = parts[0]
        return part.subscriptions.id_list(part.out[: counts[0]])
    found = [(part.subscriptions, part.out[:n]) for n, part in zip(counts, parts, strict=True) if n]
    if ahead is None and (bound.is_in_order or len(found) < 2):
        listed: list[Id] = []
        for each, slots in found:
            listed += each.id_list(slots)
        return listed
    order = [each.order[positions(slots)] for each, slots in found]
    ids = [each.ids_of(slots) for each, slots in found]
    if ahead is not None:
        order.append(ahead.order)
        ids.append(ahead.ids)
    by_order = np.argsort(np.concatenate(order), kind="stable")
    in_order: list[Id] = np.concatenate(ids)[by_order].tolist()
    return in_order


def single_count(
    view: View, reader: Reader, event: Any, most: int = 0, ahead: Piece | LiveHits | None = None
) -> int | None:
    """How many hold for an event; if `most` are enough perhaps no more; None: as `single_ids`."""
    n = 0 if ahead is None else len(ahead)
    if (most and n >= most) or (ahead is not None and not view.unlocked):
        return n
    bound = bound_view(view, reader)
    if bound is None:
        return None
    counts = bound.found(event, reader.scratch, most - n if most else 0)
    return None if counts is None else n + sum(counts)
