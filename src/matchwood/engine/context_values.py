"""The methods of a matcher that set and show values of contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from matchwood.engine.metrics import Meter, measured, note
from matchwood.engine.segments.context_draft import context_store
from matchwood.engine.segments.context_part import unpublished
from matchwood.engine.stores.ids import check_id
from matchwood.engine.stores.subscriptions import Id
from matchwood.engine.stores.tidy import hold_strings
from matchwood.engine.stores.value_changes import change_values
from matchwood.errors import EventError

if TYPE_CHECKING:
    from matchwood.engine.access import Access
    from matchwood.engine.durable.folder import Durable
    from matchwood.engine.segments.view import View
    from matchwood.engine.stores.flips import Flips


class ContextValues:
    """Changes of contexts; every later match sees them."""

    _view: View
    _access: Access
    _durable: Durable | None
    _loading: Any
    _meter: Meter
    _rehearse: Callable[..., None]
    _reading: Callable[[], AbstractContextManager[View]]
    _changing: Callable[..., AbstractContextManager[Any]]

    def set_context(
        self, id: Id, values: Mapping[str, Any], *, flips: bool = False
    ) -> Flips | None:
        """Change values of a context: every later match sees them.  None makes a value absent.

        flips  also tell which subscriptions the change has opened and closed: those whose
               predicates on the context alone became TRUE, or are no longer

        >>> from matchwood import Matcher
        >>> m = Matcher()
        >>> m.add("s1", "price < ctx.budget AND NOT ctx.away", context="ann")
        >>> m.set_context("ann", {"budget": 20, "away": False})
        >>> m.match({"price": 12})
        ['s1']
        >>> m.set_context("ann", {"away": True}, flips=True)
        Flips(opened=[], closed=['s1'])
        """
        started = perf_counter_ns()  # not `measured`, which costs as much as the rest of this
        try:
            if type(values) is dict and not flips and self._change_values(id, values):
                return None
            return self._set_context(id, values, flips)
        finally:
            note(self._meter, "set_context", started)

    def _set_context(self, id: Id, values: Mapping[str, Any], flips: bool) -> Flips | None:
        """The general way."""
        id_ = check_id(id, "a context's id")
        if not isinstance(values, Mapping):
            raise EventError(
                f"expected a mapping from names to values, found {type(values).__name__}"
            )
        with self._changing(bound=True) as store:
            return store.set_contexts(
                lambda contexts: ([id_], lambda: contexts.set(id_, values)), flips
            )

    def _change_values(self, id_: Id, values: dict[str, Any]) -> bool:
        """The usual way (`change_values`); False: nothing has changed, it takes the general way.

        It publishes no view: the view says nothing of values.  Searches that look at contexts have
        the main lock too, if the view is guarded, and the lock of contexts, if it is not.
        """
        access = self._access
        kind = type(id_)
        if (kind is not int and kind is not str) or self._durable is not None or access.is_inside:
            return False
        if access.notes_users:
            access.note_user()
            self._rehearse(bound=True)
        with access.main, access.contexts:
            live = unpublished(self._view, access)
            return live is not None and self._loading is None and change_values(*live, id_, values)

    @measured
    def remove_context(self, id: Id, *, flips: bool = False) -> Flips | None:
        """Make all values of a context absent, as if none had ever been set.

        Subscriptions that name the context stay, and so does their link to it: values that are set
        later count for them again.  The matcher forgets the id once no subscription has it.  A
        context without values, or an unknown one, is left as it is.

        flips  also tell which subscriptions the change has opened and closed, see `set_context`

        >>> from matchwood import Matcher
        >>> m = Matcher()
        >>> m.add("s1", "price < ctx.budget", context="ann")
        >>> m.set_context("ann", {"budget": 20})
        >>> m.remove_context("ann")
        >>> m.match({"price": 12}), m.context("ann")
        ([], {})
        """
        id_ = check_id(id, "a context's id")
        with self._changing(bound=True) as store:
            return store.set_contexts(lambda contexts: ([id_], lambda: contexts.remove(id_)), flips)

    @measured
    def set_context_many(self, contexts: Any, *, flips: bool = False) -> Flips | None:
        """Change values of many contexts at once, all of them or none.

        contexts  a table (Arrow, pandas, polars) with a column `context` and one column per value,
                  where null leaves a value as it is; or a mapping from ids to values, or pairs
        """
        from matchwood.engine.input.context_tables import read_updates

        with self._changing(bound=True) as store:
            return store.set_contexts(lambda known: read_updates(known, contexts), flips)

    def hold_strings(self) -> None:
        """Forget strings that no context has any more, and from here to the next call none.

        For owners that set earlier values again between encoded events, see `find`.
        """
        with self._changing(bound=True) as target:
            store = context_store(target)
            store.spoil()
            hold_strings(store)

    def context(self, id: Id) -> dict[str, Any]:
        """The values of a context that are set now."""
        return self.contexts([id])[0]

    def contexts(self, ids: Iterable[Id]) -> list[dict[str, Any]]:
        """The values of some contexts that are set now, all at the same time."""
        asked = [check_id(id_, "a context's id") for id_ in ids]
        with self._reading() as view:
            known = view.contexts
            return [{} if known is None else known.values(id_) for id_ in asked]

    def context_ids(self) -> list[Id]:
        """The contexts that have a value or a subscription."""
        with self._reading() as view:
            contexts = view.contexts
            return [] if contexts is None else contexts.ids()
