"""Holding: how the methods of a matcher get at what it holds.

    a search            `_search`: the current view, and a reader of the calling thread
    a question          `_reading`: the same, without a scratch
    a change            `_changing`: a draft that is published when it is whole, or the store of a
                        guarded view, which is changed in place

What a view is, and which one is guarded, is in `view`; the locks and their order are in `access`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import ref

from matchwood.engine.access import Access, Reader
from matchwood.engine.changes import Target
from matchwood.engine.durability import Durability
from matchwood.engine.durable.checkpoint import Checkpoints
from matchwood.engine.durable.folder import Durable
from matchwood.engine.input.loading import BatchReport
from matchwood.engine.metrics import Meter
from matchwood.engine.segments.asked import Asked, Encoding
from matchwood.engine.segments.background import Merger, replaced
from matchwood.engine.segments.context_draft import ContextDraft
from matchwood.engine.segments.context_part import ContextPart, LiveStore
from matchwood.engine.segments.gathering import Gathering
from matchwood.engine.segments.head import COPIED_MOST, Spare
from matchwood.engine.segments.planned import Planned
from matchwood.engine.segments.single import make_ready
from matchwood.engine.segments.view import Part, View, guarded
from matchwood.engine.stores.recovery import blank, settled
from matchwood.engine.stores.routing import AUTO
from matchwood.engine.stores.savepoint import Change
from matchwood.engine.stores.store import Store
from matchwood.errors import FormatError, MatchwoodError
from matchwood.index.core.scratch import Scratch
from matchwood.kernel.deferred import NotCompiledError, deferred, may_compile

if TYPE_CHECKING:
    from matchwood.engine.matcher import Matcher

Result = TypeVar("Result")

ABSORB_FROM = 256
"""Events after which a matcher that is idle absorbs what was learned from them."""

FORGET_FROM = 100_000
"""Events after which a scratch is made anew where nothing absorbs what was learned from them."""


class Holding(Gathering, Durability):
    """The view of a matcher; see the module's docstring."""

    _view: View
    _durable: Durable | None
    _loading: ref[BatchReport] | None
    """The report of the add_many that is under way.  An interruption may leave the reference here,
    but not the report, which dies with the call."""

    def _hold(self, store: Store) -> None:
        """Begin with a store: guarded, as the head, or as a segment with an empty head."""
        if store.routing.name != AUTO:
            view = guarded(store)
        elif store.contexts is not None:
            view = View([Part(blank(store))], {}, Spare(), n_added=store.subscriptions.n_added,
                        context_part=ContextPart(LiveStore(store)))  # fmt: skip
        else:
            store.settle()
            n_added, parts = store.subscriptions.n_added, [Part(store)]
            is_segment = isinstance(store.routing, Planned) and len(store.subscriptions)
            if is_segment or len(store.subscriptions) > COPIED_MOST:
                parts.append(Part(blank(store)))
            view = View(parts, {}, Spare(), n_added=n_added)
        self._meter: Meter = {}
        self._durable = None
        self._access = Access()
        self._loading = None
        self._helpers: list[Reader] = []  # what threads of `match_many` search with
        self._merger = Merger()
        self._checkpoints = Checkpoints()
        self._view: View = view

    def _hold_stores(self, store: Store, linked: Store | None) -> None:
        """Begin with a store, and with one of subscriptions with contexts."""
        self._hold(store)
        if linked is not None:
            view = self._view
            n_added = max(view.n_added, linked.subscriptions.n_added)
            part = ContextPart(LiveStore(linked))
            self._view = View(view.stored, {}, Spare(), n_added=n_added, context_part=part)

    def _hold_parts(self, parts: Sequence[Part], n_added: int) -> None:
        """Begin with segments and an empty head, or with one store that is guarded.

        A segment with contexts is what the context part had; there is one at most (FormatError).
        """
        self._hold(parts[0].store)
        if self._view.is_guarded:
            return
        linked = [part for part in parts if part.store.contexts is not None]
        if len(linked) > 1 or any(part.n_gone for part in linked):
            raise FormatError("expected one segment with contexts and no marks, found others")
        others = [part for part in parts if part.store.contexts is None]
        live = ContextPart(LiveStore(linked[0].store)) if linked else None
        head = Part(blank(parts[0].store))
        self._view = View([*others, head], {}, Spare(), n_added=n_added, context_part=live)

    def _take(self, other: Holding) -> None:
        """Hold what another matcher holds, which gives it up."""
        if hasattr(self, "_access"):
            self._view = other._view
        else:
            vars(self).update(vars(other))

    @property
    def _store(self) -> Store:
        """The store of a guarded view, or of one with one part that holds something."""
        return self._view.searched[-1].store

    # -- access ------------------------------------------------------------------------------

    def _search(
        self, search: Callable[[View, Reader], Result], asked: Asked | Encoding | None = None
    ) -> Result:
        """Call a search of the view, beside others unless it has to follow contexts.

        asked  searches the context part ahead; without it all is searched with its lock
        """
        while True:
            is_guarded = self._view.is_guarded
            try:
                with self._access.shared(is_guarded) as reader:
                    view = self._shown(reader)
                    if not view.is_guarded:
                        if view.follows_contexts:
                            found = self._search_beside_contexts(search, asked, reader)
                        else:
                            found = search(view, reader)
                        if reader.n_events >= FORGET_FROM:  # segments do not learn from events
                            reader.scratch, reader.n_events = Scratch(), 0
                        return found
                    store = view.head
                    is_ready = is_guarded and store.pending is None and store.routing.is_settled
                    if is_ready and store.contexts is None:
                        found = deferred(search, view, reader)  # changes wait for this search
                        break
            except NotCompiledError as missing:
                missing.compile()
                continue
            if store.contexts is not None:
                return self._search_in_contexts(search)
            with self._exclusive():
                self._store.settle()
        if reader.n_events >= ABSORB_FROM and self._access.is_idle:
            with self._exclusive():
                self._absorb()
        return found

    def _search_single(self, search: Callable[..., Result | None], *asked: Any) -> Result | None:
        """Call `single_ids` or `single_count`; None: it is for `_search`.

        A guarded view is not for them: it may change meanwhile.
        """
        view, access = self._view, self._access
        if view.is_guarded or view.follows_contexts:
            return None
        reader = access.take()
        if reader is None:
            return None
        found = None
        try:
            reader.view = view
            if view is not self._view:
                view = self._shown(reader)
            if not view.follows_contexts and reader.n_events < FORGET_FROM:
                view.n_asked += 1
                found = search(view, reader, *asked)
                reader.n_events += 1
        finally:
            reader.view = None
        access.give_back(reader)
        return found

    def _shown(self, reader: Reader) -> View:
        """The view of a search: a writer that comes later finds it with the reader."""
        while True:
            view = reader.view = self._view
            if view is self._view:
                return view

    def _search_beside_contexts(
        self,
        search: Callable[[View, Reader], Result],
        asked: Asked | Encoding | None,
        reader: Reader,
    ) -> Result:
        """Take a view with the lock of contexts, and search its context part (`context_part`)."""
        self._rehearse(bound=True)
        with self._access.contexts:
            view = self._shown(reader)
            part = view.context_part
            if part is not None and len(part):
                part.live.mended(part)
                if asked is None:
                    return search(view, reader)
            if asked is not None:
                asked.ahead(view)
        return search(view, reader)

    def _search_in_contexts(self, search: Callable[[View, Reader], Result]) -> Result:
        """The same where values change: an index may follow them while it is searched."""
        with self._changing(is_logged=False):
            return search(self._view, self._access.owner)

    def _absorb(self) -> None:
        """Take over what searches have counted and learned; with exclusive access."""
        readers = [each for each in self._access.readers() if each.n_events]
        if readers and self._store.pending is None:
            with Change(self._store):
                self._store.absorb(readers)

    @contextmanager
    def _reading(self) -> Iterator[View]:
        """The current view; it does not change while the block runs."""
        if self._view.is_guarded:
            with self._exclusive():
                yield self._view
        else:
            with self._access.shared(is_guarded=False) as reader:
                view = self._shown(reader)
                if view.context_part is None:
                    yield view
                    return
                with self._access.contexts:
                    view = self._shown(reader)
                    assert view.context_part is not None
                    view.context_part.live.mended(view.context_part)
                    yield view

    def _rehearse(self, bound: bool = False) -> None:
        """Compile what a change needs, before it takes locks that others wait for.

        bound  the change, or search, is one of contexts
        """
        view, access = self._view, self._access
        if may_compile() and access.is_served and not access.is_mine:
            from matchwood.engine.rehearsal import rehearse

            kind, routing = cast("type[Matcher]", type(self)), view.head.routing
            has_contexts = bound or view.head.contexts is not None
            rehearse(kind, routing.name, routing.config, has_contexts)

    @contextmanager
    def _exclusive(self, report: BatchReport | None = None) -> Iterator[None]:
        """No other change; if the view is guarded no search either, and a store that is whole."""
        self._rehearse()
        with self._access.writing():
            self._check_loading(report)
            if not self._view.is_guarded:
                yield
                return
            with self._access.alone():
                store = self._store
                if store.pending is not None and not store.is_between_events:
                    self._view = guarded(settled(store), self._view.filters)
                yield

    @contextmanager
    def _one_loading(self) -> Iterator[BatchReport]:
        """No other change until an add_many is over; also what it reads may not change this."""
        self._rehearse()
        with self._access.writing():
            self._check_loading()
            if self._durable is not None:
                self._follow_log(self._durable)
            report = BatchReport()
            self._loading = ref(report)
            try:
                yield report
            finally:
                self._loading = None

    def _check_loading(self, report: BatchReport | None = None) -> None:
        loading = None if self._loading is None else self._loading()
        if loading is not None and loading is not report:
            raise MatchwoodError(
                "expected a progress callback that only reports, found one that uses the "
                "matcher: it is not ready before add_many returns"
            )

    @contextmanager
    def _changing(
        self, *, is_logged: bool = True, bound: bool = False, report: BatchReport | None = None
    ) -> Iterator[Target]:
        """A change, which happens whole or not at all: of what this gives.

        is_logged  write it to the folder's log; not a search that follows contexts, nor what is
                   read from the log
        bound      it refers to contexts
        report     of the add_many that it belongs to
        """
        self._rehearse(bound)
        with self._access.writing():
            self._check_loading(report)
            if not self._view.is_guarded:
                part = self._view.context_part
                if part is not None and part.store.is_between_events:
                    yield part.store  # a change between the events of the search it is part of
                    return
                durable = self._durable if is_logged else None
                with self._drafted(durable) as draft:
                    yield draft if durable is None else durable.target(draft)
                self._merger.wake(self)
                self._after_change()
                return
            with self._exclusive(report):
                self._absorb()  # before nodes and spaces that searches have counted are others
                durable = self._durable if is_logged and not self._store.is_between_events else None
                with Change(self._store) if durable is None else self._logged(durable):
                    yield self._store if durable is None else durable.target(self._store)
                self._after_change()

    @contextmanager
    def _drafted(self, durable: Durable | None) -> Iterator[ContextDraft]:
        """A change of a view of segments: prepared, logged, published."""
        if durable is not None:
            self._follow_log(durable)
        with ExitStack() as until:
            draft = ContextDraft(self._view, self._access, until)
            if durable is not None:
                draft.changed = {}
            try:
                yield draft
                view = draft.view()
                make_ready(view, self._view)
                if durable is not None:
                    contexts = draft.changed_contexts
                    durable.commit(
                        view, draft.changed or {}, contexts, draft.known, draft.has_contexts
                    )
                self._view = view  # from here on the change has happened
            except BaseException:
                draft.drop()
                raise
            finally:
                draft.close(self._view)
        if durable is not None:
            durable.settle()
            durable.log.sync()  # searches with contexts wait no more

    def _swap(self, old: list[Part], fresh: Part) -> None:
        """Publish one segment instead of some that it was merged from."""
        with self._access.writing():
            published = replaced(self._view, old, fresh)
            if published is not None:
                self._view = published

    def _compact(self) -> None:
        """Merge all segments into one."""
        with self._changing() as target:
            target.compact()
