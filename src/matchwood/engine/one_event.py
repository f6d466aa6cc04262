"""One event: how `match` and its like get at what is held without the general way of `holding`.

A search that `segments.single` can do in a few compiled calls takes a reader and no lock.  Where
subscriptions have contexts it takes the lock that is theirs for the part of it that needs one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from matchwood.engine.segments.context_part import unpublished
from matchwood.engine.segments.single import single_count, single_ids
from matchwood.engine.segments.single_live import is_ready, live_count, live_hits, live_ids

if TYPE_CHECKING:
    from matchwood.engine.access import Access, Reader
    from matchwood.engine.segments.single_live import LiveHits
    from matchwood.engine.segments.view import View

Result = TypeVar("Result")

FORGET_FROM = 100_000
"""Events after which a scratch is made anew where nothing absorbs what was learned from them."""

_OF_LIVE: dict[Any, Any] = {single_ids: live_ids, single_count: live_count}
"""What is called instead where all is in a store that changes in place."""


class OneEvent:
    """The part of `Holding` that searches for one event."""

    _view: View
    _access: Access
    _loading: Any
    _rehearse: Callable[..., None]
    _shown: Callable[[Reader], View]

    def _search_single(self, search: Callable[..., Result | None], *asked: Any) -> Result | None:
        """Call `single_ids` or `single_count`; None: it is for `_search`.

        A guarded view without contexts is not for them: its searches run beside each other.
        """
        view, access = self._view, self._access
        if view.is_guarded:
            return None if view.head.contexts is None else self._search_guarded(search, *asked)
        if view.follows_contexts:
            return self._search_beside_live(search, *asked)
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

    def _search_guarded(self, search: Callable[..., Result | None], *asked: Any) -> Result | None:
        """The same in a guarded view with contexts: it has the matcher for itself."""
        access = self._access
        if access.is_inside:
            return None
        self._rehearse(bound=True)
        with access.main:
            view = self._view
            live = unpublished(view, access)
            if live is None or not view.is_guarded or self._loading is not None:
                return None
            found: Result | None = _OF_LIVE[search](*live, *asked)
            return found

    def _search_beside_live(
        self, search: Callable[..., Result | None], *asked: Any
    ) -> Result | None:
        """The same in a view of segments: its context part first, then the others."""
        access = self._access
        if access.is_inside:
            return None
        self._rehearse(bound=True)
        reader = access.take()
        if reader is None:
            return None
        found = None
        try:
            view = self._shown(reader)
            if reader.n_events < FORGET_FROM and is_ready(view, reader):
                view, ahead = self._live_hits(view, reader, *asked)
                if ahead is not None:
                    view.n_asked += 1
                    found = search(view, reader, *asked, ahead=ahead)
                    reader.n_events += 1
        finally:
            reader.view = None
        access.give_back(reader)
        return found

    def _live_hits(self, before: View, reader: Reader, *asked: Any) -> tuple[View, LiveHits | None]:
        """The view with the lock of contexts, and what holds there; None: as `live_hits`."""
        with self._access.contexts:
            view = self._shown(reader)
            if view is not before and not is_ready(view, reader):
                return view, None
            return view, live_hits(unpublished(view, self._access), *asked)
