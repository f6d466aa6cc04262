"""A change of a view with subscriptions that have contexts (`context_part`).

What has a context goes to the live store, everything else to a draft of the other parts.  The lock
of contexts is taken at the first step that changes the live store and kept until the change was
published or undone; a change that needs no such step never takes it.

A subscription that is given a context moves: it is added there, and gone here, in one change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.resolve import reference_rows
from matchwood.engine.changes import Progress, refuse_known
from matchwood.engine.input.fields import NO_FIELDS, FieldColumns
from matchwood.engine.input.given import Given, single
from matchwood.engine.input.loading import BatchReport, Chunk, Refused
from matchwood.engine.matches import ids_to_arrow
from matchwood.engine.segments.context_part import ContextPart, LiveStore, found_between
from matchwood.engine.segments.draft import Draft
from matchwood.engine.segments.pieces import Piece, TakenPiece
from matchwood.engine.stores.expiry import expired_slots
from matchwood.engine.stores.ids import check_id, used_id
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id
from matchwood.errors import SubscriptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.encode.events import EncodedEvents
    from matchwood.engine.access import Access, Reader
    from matchwood.engine.answers.choices import Choice
    from matchwood.engine.changes import Target
    from matchwood.engine.matches import Found
    from matchwood.engine.segments.view import View
    from matchwood.engine.stores.context_changes import ContextChange


class ContextDraft(Draft):
    """A draft of all parts of a view.

    until  the block that the lock of contexts is held for
    """

    def __init__(self, view: View, access: Access, until: ExitStack) -> None:
        super().__init__(view, access)
        self._until = until
        self._live: LiveStore | None = None
        """The live store, once this change has the lock of contexts."""
        self._token = object()
        self._is_of_values = True
        """Whether no subscription has changed."""

    # -- asking ------------------------------------------------------------------------------

    @property
    def is_aside(self) -> bool:
        return self._view.context_part is None

    @property
    def _linked(self) -> Store | None:
        """The live store, to read its facts: only a change can change them."""
        if self._live is not None:
            return self._live.store
        part = self._view.context_part
        return None if part is None else part.store

    def _is_linked(self, id_: Any) -> bool:
        store = self._linked
        return store is not None and id_ in store.subscriptions

    def has(self, id_: Any) -> bool:
        return self._is_linked(id_) or super().has(id_)

    def check_types(self, expr: Given) -> None:
        store = self._linked if reference_rows(single(expr)) else None
        (store or self._view.head).check_types(expr)

    # -- changing ----------------------------------------------------------------------------

    def opened(self) -> Store:
        """The live store, to change it; takes the lock of contexts."""
        if self._live is None:
            self._access.take_contexts(self._until)
            part = self._view.context_part
            live = LiveStore(blank(self._view.head)) if part is None else part.live
            store = live.begin(part, self._token)
            self._live = live
            self.known = None  # changes of subscriptions there are not listed one by one
            if self.changed is not None:
                store.subscriptions.changed, store.changed_contexts = self.changed, {}
        return self._live.store

    @property
    def has_contexts(self) -> bool:
        """Whether this change has the lock of contexts."""
        return self._live is not None

    @property
    def changed_contexts(self) -> dict[Id, None]:
        """Contexts that changed, where a log asks for them."""
        return {} if self._live is None else self._live.store.changed_contexts or {}

    def add(
        self, id_: Any, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS,
        order: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self._is_of_values = False
        if context is None:
            super().add(id_, expr, None, fields, order)
            return
        id_ = check_id(id_)
        if self.has(id_):
            raise used_id(id_)
        at = np.array([self._n_added]) if order is None else order
        self.opened().add(id_, expr, context, self._timed(fields, 1), at)
        self._number(at)

    def replace(
        self, id_: Id, expr: Given, context: Any = None, fields: FieldColumns = NO_FIELDS
    ) -> None:
        self._is_of_values = False
        if self._is_linked(id_):
            self.opened().replace(id_, expr, context, fields)
        elif context is None:
            super().replace(id_, expr, None, fields)
        else:
            both, order = self._kept(id_, fields)
            # may be refused: then nothing has changed
            self.opened().add(id_, expr, context, both, np.array([order]))
            self._take_out(id_)

    def remove_ids(self, ids: Sequence[Id]) -> None:
        self._is_of_values = False
        linked = [id_ for id_ in ids if self._is_linked(id_)]
        if linked:
            self.opened().remove_ids(linked)
            gone = set(linked)
            ids = [id_ for id_ in ids if id_ not in gone]
        super().remove_ids(ids)

    def set_contexts(self, read: Any, flips: bool) -> Any:
        """See `Store.set_contexts`."""
        return self.opened().set_contexts(read, flips)

    def sweep(self, now: int | None) -> int:
        now_micros = self._now if now is None else now
        self._is_of_values = False
        n, store = super().sweep(now_micros), self._linked
        if store is not None and len(expired_slots(store.subscriptions, now_micros)):
            n += self.opened().sweep(now_micros)
        return n

    def clear(self) -> None:
        super().clear()
        if self._linked is not None and len(self._linked.subscriptions):
            self.opened().clear()

    def compact(self) -> None:
        super().compact()
        self.compact_contexts()

    def compact_contexts(self) -> None:
        """The live store without gaps, and without strings that no context has."""
        self._is_of_values = False
        if self._linked is not None:
            self.opened().compact()

    def renumber(self) -> pa.Array:
        if self._linked is None or not len(self._linked.subscriptions):
            return super().renumber()
        self.compact()
        linked = self.opened().subscriptions
        others = [part.store.subscriptions for part in self._stored() if len(part)]
        facts = [*others, linked]
        n_before = np.cumsum([0, *map(len, facts)])
        rank = np.argsort(np.argsort(np.concatenate([each.order[: len(each)] for each in facts])))
        numbers = [rank[a:b] for a, b in pairwise(n_before.tolist())]
        before = np.empty(len(rank), object)
        before[rank] = [id_ for each in facts for id_ in each.ids[: len(each)].tolist()]
        n_strings = sum([each.n_strings for each in facts])
        linked.renumber(numbers[-1])
        if self._places.parts and others:
            others[0].renumber(numbers[0])
        elif others:
            self._do(lambda store: store.subscriptions.renumber(numbers[0]))
        kind = "int" if not n_strings else "str" if n_strings == len(rank) else "mixed"
        return ids_to_arrow(before, kind)

    def find(
        self,
        view: View,
        events: EncodedEvents,
        changes: Sequence[ContextChange],
        reader: Reader,
        choice: Choice,
    ) -> Found:
        """As `View.find`, for events between which contexts change."""
        self.opened()
        live = self._live
        assert live is not None
        each = [events, *events.others]
        if not view.follows_contexts:  # nothing is found there
            found_between(live, events, changes)
            return view.find(each, reader, choice)
        found = found_between(live, each[-1], changes, view.choice_of_parts(choice))
        piece = TakenPiece(Piece(found, live.store.subscriptions))
        return view.find([*each[:-1], piece], reader, choice)

    # -- many --------------------------------------------------------------------------------

    def add_chunks(
        self, chunks: Iterable[Chunk], progress: Progress = None, report: BatchReport | None = None
    ) -> BatchReport:
        """Add what was read; rows that are refused never stop the others."""
        more = iter(chunks)
        first = next(more, None)
        report = BatchReport() if report is None else report
        if first is None:
            return report
        self._is_of_values = False
        linked = _Linked(self)
        super().add_chunks(linked.others(chain([first], more), progress), progress, report)
        linked.end(report)
        return report

    def _numbered(self, chunk: Chunk) -> Chunk:
        chunk = super()._numbered(chunk)
        if self._linked is not None:
            refuse_known(chunk, [self._linked.subscriptions], self._is_linked)
        return chunk

    # -- the end -----------------------------------------------------------------------------

    def spoil(self) -> None:
        if self._live is not None:
            self._live.store.spoil()

    def view(self) -> View:
        part = None if self._live is None else self._context_part()
        if self._is_of_values and part is not None:
            return self._view.with_contexts(part)
        return super().view()

    def _context_part(self) -> ContextPart | None:
        if self._live is None:
            return self._view.context_part
        store = self._live.store
        if not store.routing.is_settled:
            store.settle()
        return ContextPart(self._live, self._token)

    def close(self, shown: View) -> None:
        """The end of the change, which has happened if its view is shown."""
        if self._live is not None:
            part = shown.context_part
            self._live.end(part is not None and part.token is self._token)


def context_store(target: Target) -> Store:
    """The store of a change that follows contexts, to change it."""
    inner = getattr(target, "inner", target)  # where subscriptions are set aside (`repair`)
    if isinstance(inner, Store):
        return inner
    assert isinstance(inner, ContextDraft)
    return inner.opened()


class _Linked:
    """The rows of an `add_chunks` that have contexts, on their way to the live store."""

    def __init__(self, draft: ContextDraft) -> None:
        self._draft = draft
        self._slots: list[np.ndarray] = []
        self._rows: list[int] = []
        self._errors: list[Refused] = []
        self._apart: set[int] = set()
        """Rows of the whole load that were taken out of a chunk with others."""
        self._seen: dict[Id, bool] = {}
        """Ids of the load, and whether they have a context."""

    def others(self, chunks: Iterable[Chunk], progress: Progress) -> Iterator[Chunk]:
        """The rows without contexts; takes the rows with them."""
        for chunk in chunks:
            if chunk.contexts is None:
                yield chunk
                continue
            is_linked = [each is not None for each in chunk.contexts]
            chunk = self._draft._numbered(chunk)
            self._refuse_twice(chunk, is_linked)
            if any(is_linked):
                self._take(chunk if all(is_linked) else _rows_of(chunk, is_linked), is_linked)
            if not all(is_linked):
                self._apart.update(
                    [chunk.first + row for row, each in enumerate(is_linked) if each]
                )
                yield replace(_rows_of(chunk, [not each for each in is_linked]), contexts=None)
            elif progress is not None:
                progress(chunk.done, chunk.total)

    def _refuse_twice(self, chunk: Chunk, is_linked: list[bool]) -> None:
        """Refuse ids that occur with a context and without; other repetitions are found later."""
        for row, id_ in enumerate(chunk.ids):
            if row in chunk.refused or type(id_) not in (int, str):
                continue
            if self._seen.setdefault(id_, is_linked[row]) != is_linked[row]:
                chunk.refused[row] = SubscriptionError(
                    f"expected a new id, found {id_!r} twice in one batch"
                )

    def _take(self, chunk: Chunk, is_linked: list[bool]) -> None:
        store = self._draft.opened()
        self._slots += store.add_chunk(store.admit(chunk.ids, chunk.refused), chunk)
        self._rows += [chunk.first + row for row in chunk.rows if row not in chunk.refused]
        for row, error in sorted(chunk.refused.items()):
            if is_linked[row]:
                self._errors.append(Refused(chunk.first + row, chunk.ids[row], error))

    def end(self, report: BatchReport) -> None:
        """Hand all of them to the index; tell how it went."""
        mine = BatchReport(sum(map(len, self._slots)), self._errors)
        if self._slots:
            store, slots = self._draft.opened(), np.concatenate(self._slots)
            names = store.subscriptions.ids_of(slots)
            mine.refuse(store.insert(slots), slots, self._rows, names)
        report.count += mine.count
        others = [each for each in report.errors if each.row not in self._apart]
        report.errors = sorted([*others, *mine.errors], key=lambda each: each.row)


def _rows_of(chunk: Chunk, wanted: list[bool]) -> Chunk:
    """Some rows of a chunk, with the numbers that they have; the others have no id."""
    at = [number for number, row in enumerate(chunk.rows) if wanted[row]]
    return replace(
        chunk,
        ids=[id_ if wanted[row] else None for row, id_ in enumerate(chunk.ids)],
        batch=chunk.batch.some(at),
        rows=[chunk.rows[number] for number in at],
        refused={row: error for row, error in chunk.refused.items() if wanted[row]},
    )
