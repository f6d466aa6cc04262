"""Draft: a change of a view, prepared aside; nothing of it is seen before it is published.

    small changes     go to the spare store of the head (`head`), as steps that are done twice
    many additions    make a store of their own, which becomes a segment
    a removal         of what is in a segment marks it as gone, in a copy of the marks

A draft has the verbs of a `Store`, by id.  If it is dropped, the matcher is as before: the shown
view was never touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine import tiers
from matchwood.engine.changes import Progress, add_chunks
from matchwood.engine.expiry import expired_slots
from matchwood.engine.fields import NO_FIELDS, FieldColumns
from matchwood.engine.given import Given, parsed
from matchwood.engine.head import Spare, Step, writable
from matchwood.engine.loading import BatchReport, Chunk
from matchwood.engine.merge import merged
from matchwood.engine.recovery import blank
from matchwood.engine.store import Store, taken
from matchwood.engine.subscriptions import Id, Subscriptions, check_id
from matchwood.engine.view import Part, View
from matchwood.errors import SubscriptionError
from matchwood.lang.nodes import Expr

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.access import Access


class Draft:
    """A change of a view; see the module's docstring."""

    def __init__(self, view: View, access: Access) -> None:
        self._view = view
        self._parts = list(view.parts[:-1])
        self._is_spare = True
        store = writable(view, access)
        if store is None:  # the head is in use: it becomes a segment
            self._parts.append(view.parts[-1])
            store, self._is_spare = blank(view.head), False
        self.head: Store = store
        self.head.is_whole = True
        self._steps: list[Step] = []
        self._gone: dict[int, list[int]] = {}
        self._n_added = view.n_added
        self._now = time.time_ns() // 1000
        self.changed: dict[Id, bool] | None = None
        """Ids that changed, and whether they were removed on the way, where a log asks for them."""

    # -- asking ------------------------------------------------------------------------------

    def has(self, id_: Any) -> bool:
        return self._place(id_) is not None

    def check(self, expr: Given) -> Expr:
        return self.head.check(expr)

    def _place(self, id_: Any) -> tuple[int, int] | None:
        """The number of the segment that an id is in and its slot; (-1, -1) in the head."""
        if id_ in self.head.subscriptions:
            return -1, -1
        for number, part in enumerate(self._parts):
            slot = part.slot_of(id_)
            if slot is not None and slot not in self._gone.get(number, ()):
                return number, slot
        return None

    # -- changing ----------------------------------------------------------------------------

    def add(
        self, id_: Any, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS
    ) -> None:
        """One new subscription."""
        id_ = check_id(id_)
        if self.has(id_):
            raise taken(id_)
        self._add(id_, expr, self._timed(fields, 1), self._next_order(1))

    def replace(
        self, id_: Id, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS
    ) -> None:
        """Another expression for an id that is there, with its number in the order of addition."""
        place = self._place(id_)
        assert place is not None
        number, slot = place
        if number < 0:
            read = parsed(expr)
            self._do(lambda store: store.replace(id_, read, None, fields))
            return
        at = np.array([slot], np.int32)
        subscriptions = self._parts[number].store.subscriptions
        old = subscriptions.columns.fields(at)
        given = {name: value for name, value in fields._asdict().items() if value is not None}
        both = old._replace(**given)
        if fields.attributes is not None:
            both = both._replace(types=fields.types)
        self._add(id_, expr, both, subscriptions.order[at])
        self._gone.setdefault(number, []).append(slot)

    def remove_ids(self, ids: Sequence[Id]) -> None:
        """Forget subscriptions by id, each once; all of them are there."""
        here: list[Id] = []
        for id_ in ids:
            place = self._place(id_)
            assert place is not None
            if place[0] < 0:
                here.append(id_)
            else:
                self._gone.setdefault(place[0], []).append(place[1])
                if self.changed is not None:
                    self.changed[id_] = True
        if here:
            self._do(lambda store: store.remove_ids(here))

    def add_chunks(
        self, chunks: Iterable[Chunk], progress: Progress = None, report: BatchReport | None = None
    ) -> BatchReport:
        """Add what was read; rows that are refused never stop the others."""
        more = iter(chunks)
        first = next(more, None)
        if first is None:
            return BatchReport() if report is None else report
        if first.total >= tiers.HEAD_MOST:
            return self._add_segment(chain([first], more), progress, report)
        read = [self._numbered(chunk) for chunk in chain([first], more)]
        return self._do(lambda store: add_chunks(store, read, progress, report), read)

    def _add_segment(
        self, chunks: Iterable[Chunk], progress: Progress, report: BatchReport | None
    ) -> BatchReport:
        store = blank(self.head, is_segment=True)
        store.subscriptions.changed = self.changed
        report = add_chunks(store, map(self._numbered, chunks), progress, report)
        store.subscriptions.changed = None
        store.settle()
        store.settled_change()
        store.freeze()
        self._parts.append(Part(store))
        return report

    def sweep(self, now: int | None) -> int:
        """Forget what has expired; returns how many."""
        ids: list[Id] = []
        for part in [*self._parts, Part(self.head)]:
            gone = part.living(expired_slots(part.store.subscriptions, now))
            ids += [id_ for id_ in part.store.subscriptions.ids_of(gone).tolist() if self.has(id_)]
        self.remove_ids(ids)
        return len(ids)

    def clear(self) -> None:
        """Forget all."""
        self.remove_ids([id_ for part in self._all() for id_ in _ids(part)])

    def compact(self) -> None:
        """All segments and the head as one, without gaps."""
        if not self._parts:
            self._do(lambda store: store.compact())
            return
        store = merged(self._all())
        self.head, self._is_spare, self._steps, self._gone = blank(store), False, [], {}
        self._parts = [Part(store)]

    def renumber(self) -> pa.Array:
        """Number subscriptions from 0 in their order, as slots and as ids; returns the old ids."""
        self.compact()
        if not self._parts:
            return self._do(lambda store: store.subscriptions.renumber())
        return self._parts[0].store.subscriptions.renumber()

    # -- the end -----------------------------------------------------------------------------

    def view(self) -> View:
        """The view to publish."""
        view = self._view
        parts = self._left()
        if not self._steps and self._is_spare:  # the head is as it was
            head, spare = view.head, view.spare
        else:
            self.head.settle()
            self.head.subscriptions.changed = None
            self.head.settled_change()
            head = self.head
            spare = Spare(view.head, self._steps) if self._is_spare else Spare()
            if len(head.subscriptions) >= tiers.HEAD_MOST:
                parts.append(Part(head))
                head, spare = blank(head), Spare()
        return View(
            [*parts, Part(head)], view.filters, spare, n_added=self._n_added,
            n_changes=view.n_changes + 1,
        )  # fmt: skip

    def spoil(self) -> None:
        """What was done so far is not published."""

    def set_contexts(self, read: Any, flips: bool) -> Any:
        raise AssertionError("a change that speaks of contexts has a guarded view")

    def drop(self) -> None:
        """Nothing of it happened; the spare store can be used again unless it was changed."""
        spare = self._view.spare
        if self._is_spare and spare is not None and not self._steps and self.head.is_whole:
            self.head.subscriptions.changed = None
            self.head.settled_change()
            spare.is_clean = spare.store is self.head

    def _left(self) -> list[Part]:
        """The segments that hold something."""
        parts = list(self._parts)
        for number, slots in self._gone.items():
            parts[number] = parts[number].without(np.array(slots, np.int32))
        return [part for part in parts if len(part)]

    def _all(self) -> list[Part]:
        return [*self._left(), Part(self.head)]

    # -- the steps ---------------------------------------------------------------------------

    def _touch(self) -> None:
        """From here on the spare store is no longer what the view says it is."""
        if self._view.spare is not None:
            self._view.spare.is_clean = False

    def _do(self, step: Callable[[Store], Any], chunks: Sequence[Chunk] | None = None) -> Any:
        """Carry out a step, and note it for the other store of the head."""
        self._touch()
        self.head.subscriptions.changed = self.changed
        found = step(self.head)
        self._steps.append(step if chunks is None else lambda store: add_chunks(store, chunks))
        return found

    def _add(self, id_: Id, expr: Given, fields: FieldColumns, order: np.ndarray) -> None:
        read = parsed(expr)
        self._do(lambda store: store.add(id_, read, None, fields, order))

    def _timed(self, fields: FieldColumns, n: int) -> FieldColumns:
        """Fields with the time of addition, so that both stores of the head have the same."""
        return fields if fields.added is not None else fields._replace(added=np.full(n, self._now))

    def _next_order(self, n: int) -> np.ndarray:
        order = np.arange(self._n_added, self._n_added + n)
        self._n_added += n
        return order

    def _numbered(self, chunk: Chunk) -> Chunk:
        """A chunk with numbers in the order of addition, without ids that are in use elsewhere."""
        n = len(chunk.ids)
        if chunk.order is None:
            chunk.order = self._next_order(n)
        else:
            self._n_added = max(self._n_added, int(chunk.order.max(initial=-1)) + 1)
        chunk.fields = self._timed(chunk.fields, n)
        for part in [*self._parts, Part(self.head)]:
            known = part.store.subscriptions
            if not _is_disjoint(known, chunk.ids):
                for row, id_ in enumerate(chunk.ids):
                    with suppress(SubscriptionError):  # what is no id is refused later
                        checked = check_id(id_)
                        if checked in known and self.has(checked):
                            chunk.refused.setdefault(row, taken(checked))
        return chunk


def _is_disjoint(known: Subscriptions, ids: Sequence[Any]) -> bool:
    try:
        return not known.has_any(ids)
    except TypeError:  # something that cannot be an id
        return False


def _ids(part: Part) -> list[Id]:
    found: list[Id] = part.store.subscriptions.ids_of(part.slots()).tolist()
    return found
