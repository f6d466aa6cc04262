"""Matching: events in, ids out; the methods of a matcher that search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.encode.events import EncodedEvents
from matchwood.encode.frames import collected, with_nan
from matchwood.encode.json.events import JsonLines, as_bytes
from matchwood.engine.access import Reader
from matchwood.engine.answers.choices import ALL, Choice, read_choice
from matchwood.engine.matches import Found, Matches
from matchwood.engine.metrics import Meter, measured, note
from matchwood.engine.segments.asked import (
    Asked,
    Encoding,
    Finding,
    many_events,
    one_event,
    sliced_events,
)
from matchwood.engine.segments.context_draft import ContextDraft
from matchwood.engine.segments.parallel import check_threads, match_in_threads
from matchwood.engine.segments.single import single_ids
from matchwood.engine.segments.view import View, view_of
from matchwood.engine.stores.context_changes import ContextChange
from matchwood.engine.stores.finding import find
from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id
from matchwood.lang.nodes import Boolean, Expr

if TYPE_CHECKING:
    import pyarrow as pa

    from matchwood.engine.access import Access
    from matchwood.engine.changes import Target


class Matching:
    """The methods of a matcher that search for events."""

    _access: Access
    _meter: Meter
    _helpers: Any
    _reading: Callable[[], AbstractContextManager[View]]
    _changing: Callable[..., AbstractContextManager[Target]]
    _search: Callable[..., Any]
    _shown: Callable[[Reader], View]
    _search_single: Callable[..., Any]

    def match(
        self,
        event: Mapping[str, Any] | Expr,
        *,
        first: bool | int = False,
        limit: int | None = None,
        where: str | Boolean | None = None,
        now: Any = None,
    ) -> list[Id]:
        """Ids of the subscriptions that hold for an event, in the order they were added.

        An event is a mapping from attribute names to values, or an expression: a conjunction of
        predicates that stands for all values it allows.

        limit  at most so many: those of the highest priority, highest first, ties in their order
        first  True for the best one alone; a number is the same as `limit`
        where  an expression over the subscriptions' own attributes: only those for which it is TRUE
        now    the time that decides what has expired, as `expires` of `add`; by default this one
        """
        started = perf_counter_ns()  # not `measured`, which costs more than the rest of this
        try:
            is_plain = first is False and limit is None and where is None and now is None
            alone = event if is_plain and type(event) is dict else None
            if alone is not None:
                found: list[Id] | None = self._search_single(single_ids, alone)
                if found is not None:
                    return found
            return self._match(event, alone, first, limit, where, now)
        finally:
            note(self._meter, "match", started)

    def _match(self, event: Any, alone: Any, *chosen: Any) -> list[Id]:
        """The general way; chosen: as `choices.read_choice` takes it."""
        asked = Asked(one_event(event), lambda view: read_choice(view, *chosen), alone)
        return self._search(asked.ids, asked)

    @measured
    def match_many(
        self,
        events: Any,
        *,
        first: bool | int = False,
        limit: int | None = None,
        where: str | Boolean | None = None,
        now: Any = None,
        nan: str = "absent",
        threads: int | None = None,
    ) -> Matches:
        """Matches of many events: a list of them, an Arrow table or batch, or a data frame.

        Events that cannot be read are in `Matches.errors`; they match nothing and stop nothing.
        The rest is as for `match`.

        nan      what NaN is in a pandas frame's columns of floats: "absent", or a "number"
        threads  how many search at the same time; by default the calling one alone.  Subscriptions
                 with contexts are searched by the calling one, before the others
        """
        read, n_threads = with_nan(collected(events), nan), check_threads(threads)

        asked = Asked(many_events(read), lambda view: read_choice(view, first, limit, where, now))

        def search(view: View, reader: Reader) -> Matches:
            if n_threads == 1 or (view.is_guarded and view.head.contexts is not None):
                return asked.match(view, reader)
            sources, choice = asked.sources(view, sliced_events(read)), asked.choice(view)
            return match_in_threads(view, sources, reader, choice, n_threads, self._helpers)

        return self._search(search, asked)

    @measured
    def match_json(self, document: bytes | str) -> list[Id]:
        """Ids of the subscriptions that hold for an event that is a JSON object, as text.

        The same answer as that of `match(json.loads(document))`, but only what subscriptions use
        is read.  Strings of attributes that are declared as dates or times are read as such.
        """
        text = as_bytes(document)
        alone = np.frombuffer(text, np.uint8) if text else None
        quick: list[Id] | None = None if alone is None else self._search_single(single_ids, alone)
        if quick is not None:
            return quick
        asked = Asked(many_events(JsonLines([text])), alone=alone)
        return self._search(asked.ids, asked)

    def match_many_json(self, documents: Any) -> Matches:
        """Matches of many JSON documents: a buffer with one per line, or an iterable of them.

        Documents that cannot be read are in `Matches.errors`; they match nothing and stop nothing.
        """
        return self.match_many(JsonLines(documents))

    def encode(self, events: Any) -> EncodedEvents:
        """Events as integers, for `find`; they hold until the next change."""
        encoding = Encoding(collected(events))
        return self._search(lambda view, reader: encoding.encoded(view), encoding)

    def find(
        self, events: EncodedEvents, changes: Sequence[ContextChange] = (), choice: Choice = ALL
    ) -> Found:
        """The slots that hold for encoded events; `arrow_ids` tells the id of each slot.

        Slots of several parts (`view`) are numbered part after part.

        changes  made to contexts between the events, ascending.  Those that would give other
                 integers to events are an EventError, and then none is made: a string that is new
                 and compared with events (one that no context has any more may be new again, unless
                 `hold_strings` was called before it was set), and the first value of a name without
                 a type that is compared
        choice   which of what holds is given (`choices`)
        """
        if changes:
            with self._changing(is_logged=False, bound=True) as target:
                if isinstance(target, Store):
                    return find(target, events, self._access.owner, changes, choice)
                assert isinstance(target, ContextDraft)
                with self._access.shared(is_guarded=False) as reader:
                    return target.find(view_of(events, self._shown(reader)), events, changes,
                                       reader, choice)  # fmt: skip
        finding = Finding(events, choice)
        return self._search(finding.find, finding)

    def arrow_ids(self, events: EncodedEvents | None = None) -> pa.Array:
        """Ids by slot, as an Arrow array, null for slots without a subscription.

        int64 or strings; a struct of `int` and `str` where there are both.  They hold until the
        next change, or merge of segments; with encoded events they are those that `find` means.
        """
        with self._reading() as view:
            return (view if events is None else view_of(events, view)).arrow_ids()
