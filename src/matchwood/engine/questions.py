"""What users ask of a matcher beside `match`: counts, expiry, relations, near misses, proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from matchwood.encode.events import EncodedEvents, encode_event
from matchwood.engine.choices import read_choice
from matchwood.engine.expiry import expired_slots
from matchwood.engine.fields import read_moment
from matchwood.engine.metrics import measured
from matchwood.lang.nodes import Boolean, Expr

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.store import Store


class Questions:
    """The methods of a matcher that are not about one change or one search."""

    _store: Store
    _exclusive: Callable[[], AbstractContextManager[None]]
    _changing: Callable[[], AbstractContextManager[None]]
    _search: Callable[[Callable[[Store, Reader], int]], int]

    @measured
    def match_count(
        self,
        event: Mapping[str, Any] | Expr,
        *,
        where: str | Boolean | None = None,
        now: Any = None,
    ) -> int:
        """How many subscriptions hold for an event."""
        return self._count(event, where, now)

    @measured
    def exists(
        self,
        event: Mapping[str, Any] | Expr,
        *,
        where: str | Boolean | None = None,
        now: Any = None,
    ) -> bool:
        """Whether a subscription holds for an event."""
        return self._count(event, where, now) > 0

    def _count(self, event: Mapping[str, Any] | Expr, where: Any, now: Any) -> int:
        def search(store: Store, reader: Reader) -> int:
            choice = read_choice(store, False, None, where, now)
            encoded = EncodedEvents(encode_event(store.attributes, event), {})
            return len(store.find(encoded, reader, (), choice).slots)

        return self._search(search)

    @measured
    def sweep(self, now: Any = None) -> int:
        """Remove the subscriptions that have expired; returns how many."""
        micros = None if now is None else read_moment(now, "now")
        with self._changing():
            slots = expired_slots(self._store.subscriptions, micros)
            if len(slots):
                self._store.remove(slots)
            return len(slots)

    @measured
    def compact(self) -> None:
        """Renumber slots without gaps, shrink every table and build the indexes anew."""
        with self._changing():
            self._store.compact()
