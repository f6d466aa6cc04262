"""Draft: a change of a view, prepared aside; nothing of it is seen before it is published.

    an addition       waits with other recent ones (`recent`) until they are some dozens; then the
                      spare store of the head takes them (`head`), in a step that is done twice
    many additions    make a store of their own, which becomes a segment
    a removal         of what is in a store marks it as gone, in a copy of the marks; the head is
                      rid of it with its next step
    a replacement     is a removal and an addition with the same number in the order of addition

A draft has the verbs of a `Store`, by id.  If it is dropped, the matcher is as before: the shown
view was never touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.changes import Progress, add_chunks, refuse_known
from matchwood.engine.input.fields import NO_FIELDS, FieldColumns
from matchwood.engine.input.given import Given, Parsed, parsed
from matchwood.engine.input.loading import BatchReport, Chunk
from matchwood.engine.segments import tiers
from matchwood.engine.segments.head import Spare, Step, writable
from matchwood.engine.segments.merge import merged
from matchwood.engine.segments.places import Places
from matchwood.engine.segments.recent import Addition, Recent, Taking, encoded, expired
from matchwood.engine.segments.view import Part, View
from matchwood.engine.stores.expiry import expired_slots
from matchwood.engine.stores.ids import check_id, used_id
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.access import Access
    from matchwood.engine.segments.context_part import ContextPart

RECENT, HEAD = -2, -1
"""Places of a subscription that is not in a segment."""


class Draft:
    """A change of a view; see the module's docstring."""

    @property
    def is_aside(self) -> bool:
        return True

    def __init__(self, view: View, access: Access) -> None:
        self._view = view
        self._access = access
        self._places = Places(view.segments)
        self._shown: Part | None = view.stored[-1]
        """The head as the view shows it; None once steps change the spare store."""
        self._head: Store | None = None
        """The store that takes the steps, from the first one on."""
        self._is_spare = False
        self._steps: list[Step] = []
        self._recent: Mapping[Id, Addition] = {} if view.recent is None else view.recent.additions
        """Those of the view until they change (`_own_recent`)."""
        self._n_put = 0  # additions of this change
        self._gone: dict[int, set[int]] = {}
        self._n_added = view.n_added
        self._now = time.time_ns() // 1000
        self.changed: dict[Id, bool] | None = None
        """Ids that changed, and whether they were removed on the way, where a log asks for them."""
        self.known: dict[Id, Addition | None] | None = {}
        """What has become of them, None: gone; None once a store was changed by many at once."""

    # -- asking ------------------------------------------------------------------------------

    def has(self, id_: Any) -> bool:
        return self._position(id_) is not None

    def check_types(self, expr: Given) -> None:
        self._view.head.check_types(expr)

    def _position(self, id_: Any) -> tuple[int, int] | None:
        """The number of the segment that an id is in, or RECENT or HEAD, and its slot there."""
        if id_ in self._recent:
            return RECENT, -1
        if self._head is not None:
            if id_ in self._head.subscriptions:
                return HEAD, -1
        elif self._shown is not None:
            slot = self._shown.slot_of(id_)
            if slot is not None and slot not in self._gone.get(HEAD, ()):
                return HEAD, slot
        return self._places.find(id_, self._gone)

    def _own_recent(self) -> dict[Id, Addition]:
        """Recent additions, to be changed."""
        if self._view.recent is not None and self._recent is self._view.recent.additions:
            self._recent = {**self._recent}
        return self._recent  # type: ignore[return-value]

    # -- changing ----------------------------------------------------------------------------

    def add(
        self, id_: Any, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS
    ) -> None:
        """One new subscription."""
        id_ = check_id(id_)
        if self.has(id_):
            raise used_id(id_)
        read = self._checked(expr)
        self._put(id_, Addition(read, self._timed(fields, 1), self._n_added))
        self._n_added += 1

    def replace(
        self, id_: Id, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS
    ) -> None:
        """Another expression for an id that is there, with its number in the order of addition."""
        read = self._checked(expr)
        both, order = self._kept(id_, fields)
        self._take_out(id_)
        self._put(id_, Addition(read, both, order))

    def remove_ids(self, ids: Sequence[Id]) -> None:
        """Forget subscriptions by id, each once; all of them are there."""
        for id_ in ids:
            self._take_out(id_)
        if self.changed is not None:
            self.changed.update(dict.fromkeys(ids, True))
            if self.known is not None:
                self.known.update(dict.fromkeys(ids))

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
        read, self.known = [self._numbered(chunk) for chunk in chain([first], more)], None
        return self._do(
            lambda store: add_chunks(store, read, progress, report),
            lambda store: add_chunks(store, read),
            self.changed,
        )

    def _add_segment(
        self, chunks: Iterable[Chunk], progress: Progress, report: BatchReport | None
    ) -> BatchReport:
        store = blank(self._view.head, is_segment=True)
        store.subscriptions.changed, self.known = self.changed, None
        report = add_chunks(store, map(self._numbered, chunks), progress, report)
        store.subscriptions.changed = None
        store.settle()
        store.settled_change()
        store.freeze()
        self._places.append(Part(store))
        return report

    def sweep(self, now: int | None) -> int:
        """Forget what has expired; returns how many."""
        now_micros = self._now if now is None else now
        ids = expired(self._recent, now_micros)
        for part in self._stored():
            gone = part.living(expired_slots(part.store.subscriptions, now_micros))
            ids += part.store.subscriptions.ids_of(gone).tolist()
        self.remove_ids(ids)
        return len(ids)

    def clear(self) -> None:
        """Forget all."""
        self.remove_ids([id_ for part in self._stored() for id_ in _ids(part)] + [*self._recent])

    def compact(self) -> None:
        """All segments, the head and recent additions as one, without gaps."""
        if not self._places.parts:
            self._flush()
            self._do(lambda store: store.compact())
            return
        recent = [Recent(self._recent, self._view.head)] if self._recent else []
        store = merged([*self._stored(), *recent])
        self._head, self._shown, self._is_spare = blank(store), None, False
        self._steps, self._gone, self._recent, self._places = [], {}, {}, Places([Part(store)])

    def renumber(self) -> pa.Array:
        """Number subscriptions from 0 in their order, as slots and as ids; returns the old ids."""
        self.compact()
        if not self._places.parts:
            return self._do(lambda store: store.subscriptions.renumber())
        return self._places.parts[0].store.subscriptions.renumber()

    # -- the end -----------------------------------------------------------------------------

    def view(self) -> View:
        """The view to publish."""
        view = self._view
        if self._is_due():
            self._flush()
        parts, spare = self._left(), view.spare
        if self._head is None:
            head = self._left_of(HEAD)
        else:
            self._head.settle()
            self._head.subscriptions.changed = None
            self._head.settled_change()
            head = Part(self._head)
            spare = Spare()
            if self._steps:
                spare = Spare(view.head if self._is_spare else blank(view.head), self._steps)
            if len(head) >= tiers.HEAD_MOST:
                parts.append(head)
                head, spare = Part(blank(self._head)), Spare()
        recent = view.recent if self._head is None else None  # else what it was made for changes
        if recent is None or recent.additions is not self._recent:
            recent = Recent(self._recent, head.store) if self._recent else None
        return View(
            [*parts, head], view.filters, spare, n_added=self._n_added,
            n_changes=view.n_changes + 1, recent=recent, context_part=self._context_part(),
        )  # fmt: skip

    def spoil(self) -> None:
        """What was done so far is not published."""

    def _context_part(self) -> ContextPart | None:
        return self._view.context_part

    def drop(self) -> None:
        """Nothing of it happened; the spare store can be used again unless it was changed."""
        spare, head = self._view.spare, self._head
        if self._is_spare and spare is not None and head is not None:
            spare.is_clean = not self._steps and head.is_whole and spare.store is head

    def _left(self) -> list[Part]:
        """The segments that hold something."""
        parts = [self._left_of(number) for number in range(len(self._places.parts))]
        return [part for part in parts if len(part)]

    def _left_of(self, number: int) -> Part:
        """A segment, or the head that is shown, without what is gone."""
        part = self._shown if number == HEAD else self._places.parts[number]
        assert part is not None
        gone = self._gone.get(number)
        return part.without(np.fromiter(gone, np.int32, len(gone))) if gone else part

    def _stored(self) -> list[Part]:
        """Segments and the head."""
        head = self._left_of(HEAD) if self._head is None else Part(self._head)
        return [*self._left(), head]

    # -- the steps ---------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether the head has to take recent additions, or give up what is gone."""
        is_asked = self._view.n_asked and self._n_put >= tiers.AT_ONCE
        if len(self._recent) >= (1 if is_asked else min(tiers.RECENT_MOST, tiers.HEAD_MOST)):
            return True
        if self._shown is None:
            return False
        n_gone = self._shown.n_gone + len(self._gone.get(HEAD, ()))
        n_left = len(self._shown.store.subscriptions) - n_gone
        return n_gone > (tiers.RECENT_MOST + n_left if n_left else 0)

    def _flush(self) -> None:
        """Have the head take recent additions, in their order; of many make a segment."""
        self._recent = dict(sorted(self._recent.items(), key=lambda each: each[1].order))
        if len(self._recent) >= tiers.HEAD_MOST:
            store = encoded(self._recent, self._view.head, is_segment=True)
            self._places.append(Part(store))
        elif self._recent:
            taking = Taking(self._recent)
            self._opened(taking)
            if taking not in self._steps:
                self._do(taking)
        else:
            self._opened()
        self._recent = {}

    def _opened(self, more: Taking | None = None) -> Store:
        """The store that takes steps: it holds what the head does, without what is gone.

        more  the next step; it is among `_steps` if it was carried out here
        """
        if self._head is None:
            shown, gone = self._left_of(HEAD), []
            if shown.n_gone:
                marks = np.unpackbits(shown.gone, bitorder="little")
                gone = shown.store.subscriptions.ids_of(np.flatnonzero(marks)).tolist()
            is_used_up, store = shown.n_gone and not len(shown), None
            if not is_used_up:
                more = None if more is None or more.has_any(gone) else more
                store, more = writable(self._view, self._access, more)
                self._steps += [] if more is None else [more]
            if store is None:  # all of it is gone, or it is in use: then it becomes a segment
                if not is_used_up:
                    self._places.append(shown)
                store = blank(self._view.head)
            else:
                self._is_spare = True
            self._head, self._shown = store, None
            self._gone.pop(HEAD, None)
            store.is_whole = True
            if self._is_spare and gone:
                self._do(lambda store: store.remove_ids(gone))
        return self._head

    def _do(
        self,
        step: Callable[[Store], Any],
        again: Step | None = None,
        changed: dict[Id, bool] | None = None,
    ) -> Any:
        """Carry out a step, and note it, or `again`, for the other store of the head.

        changed  takes the ids that the store changes
        """
        store = self._opened()
        if self._view.spare is not None:  # it is no longer what the view says it is
            self._view.spare.is_clean = False
        store.subscriptions.changed = changed
        self._access.breathe()
        found = step(store)
        store.subscriptions.changed = None
        self._steps.append(step if again is None else again)
        return found

    def _checked(self, expr: Given) -> Parsed:
        """An expression that every store of this view takes."""
        read = parsed(expr)
        self._view.head.check_unbound(read)
        self._access.breathe()
        return read

    def _kept(self, id_: Id, fields: FieldColumns) -> tuple[FieldColumns, int]:
        """The fields of a subscription after a replacement, and its number in the order."""
        position = self._position(id_)
        assert position is not None
        if position[0] == RECENT:
            old, order = self._recent[id_].fields, self._recent[id_].order
        else:
            if position[0] == HEAD and self._head is not None:
                found = self._head.subscriptions
                position = HEAD, found.find(id_)
            else:
                part = self._shown if position[0] == HEAD else self._places.parts[position[0]]
                assert part is not None
                found = part.store.subscriptions
            at = np.array([position[1]], np.int32)
            old, order = found.columns.fields(at), int(found.order[at[0]])
        given = {name: value for name, value in fields._asdict().items() if value is not None}
        both = old._replace(**given)
        if fields.attributes is not None:
            both = both._replace(types=fields.types)
        return both, order

    def _take_out(self, id_: Id) -> None:
        """Take an id out of where it is."""
        position = self._position(id_)
        assert position is not None
        if position[0] == RECENT:
            del self._own_recent()[id_]
        elif position[0] == HEAD and self._head is not None:
            self._do(lambda store: store.remove_ids([id_]))
        else:
            self._gone.setdefault(position[0], set()).add(position[1])

    def _put(self, id_: Id, addition: Addition) -> None:
        """Add to the recent additions, and note it for the log."""
        self._own_recent()[id_] = addition
        self._n_put += 1
        if self.changed is not None:
            self.changed.setdefault(id_, False)
            if self.known is not None:
                self.known[id_] = addition

    def _timed(self, fields: FieldColumns, n: int) -> FieldColumns:
        """Fields with the time of addition, so that both stores of the head have the same."""
        return fields if fields.added is not None else fields._replace(added=np.full(n, self._now))

    def _numbered(self, chunk: Chunk) -> Chunk:
        """A chunk with numbers in the order of addition, without ids that are in use elsewhere."""
        n = len(chunk.ids)
        if chunk.order is None:
            chunk.order = np.arange(self._n_added, self._n_added + n)
        self._n_added = max(self._n_added, int(chunk.order.max(initial=-1)) + 1)
        chunk.fields = self._timed(chunk.fields, n)
        stored = self._places.parts if self._shown is None else [*self._places.parts, self._shown]
        facts = [part.store.subscriptions for part in stored]
        if self._head is not None:
            facts.append(self._head.subscriptions)
        refuse_known(chunk, [self._recent, *facts], self.has)
        return chunk


def _ids(part: Part) -> list[Id]:
    found: list[Id] = part.store.subscriptions.ids_of(part.slots()).tolist()
    return found
