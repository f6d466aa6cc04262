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

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.changes import Progress, add_chunks, refuse_known
from matchwood.engine.input.fields import NO_FIELDS, FieldColumns, with_given
from matchwood.engine.input.given import Given, Parsed, parsed
from matchwood.engine.input.loading import BatchReport, Chunk
from matchwood.engine.segments import tiers
from matchwood.engine.segments.head import Spare
from matchwood.engine.segments.head_draft import HEAD, RECENT, HeadDraft
from matchwood.engine.segments.merge import merged
from matchwood.engine.segments.places import Places
from matchwood.engine.segments.recent import Addition, Recent, expired
from matchwood.engine.segments.view import Part, View
from matchwood.engine.stores.expiry import expired_slots
from matchwood.engine.stores.ids import check_id, used_id
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.subscriptions import Id

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.segments.context_part import ContextPart


class Draft(HeadDraft):
    """A change of a view; see the module's docstring."""

    @property
    def is_aside(self) -> bool:
        return True

    # -- changing ----------------------------------------------------------------------------

    def add(
        self, id_: Any, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS,
        order: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """One new subscription; `order` as that of `Store.add`."""
        id_ = check_id(id_)
        if self.has(id_):
            raise used_id(id_)
        read = self._checked(expr)
        self._put(id_, Addition(read, self._timed(fields, 1), self._number(order)))

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
        self.note_removed(ids)

    def note_removed(self, ids: Sequence[Id]) -> None:
        """Remember that ids are gone, for a log."""
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
        if not self._places.parts:  # else the head could not be changed, and is a segment by now
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
        return with_given(old, fields), order

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

    def _number(self, given: np.ndarray | None) -> int:
        """The number of one addition in the order of addition: a given one, or the next."""
        number = self._n_added if given is None else int(given[0])
        self._n_added = max(self._n_added, number + 1)
        return number

    def _timed(self, fields: FieldColumns, n: int) -> FieldColumns:
        """Fields with the time of addition, so that both stores of the head have the same."""
        if fields.added is not None:
            return fields
        if fields is NO_FIELDS and n == 1:
            return self._plain
        return fields._replace(added=np.full(n, self._now))

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
