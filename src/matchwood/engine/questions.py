"""What users ask of a matcher beside `match`: counts, expiry, relations, near misses, proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from matchwood.encode.events import EncodedEvents, encode_event
from matchwood.engine.choices import check_limit, read_choice
from matchwood.engine.expiry import expired_slots
from matchwood.engine.fields import read_moment
from matchwood.engine.matches import Id
from matchwood.engine.metrics import Meter, measured, prometheus
from matchwood.engine.nearest import NearMiss, near_misses, reasons
from matchwood.engine.proof import Verification, sampled, verified
from matchwood.engine.relations import Related, duplicates, overlapping, subsumes
from matchwood.errors import EventError
from matchwood.lang.nodes import Boolean, Expr

if TYPE_CHECKING:
    from matchwood.engine.access import Reader
    from matchwood.engine.store import Store


class Questions:
    """The methods of a matcher that are not about one change or one search."""

    _store: Store
    _meter: Meter
    _exclusive: Callable[[], AbstractContextManager[None]]
    _changing: Callable[[], AbstractContextManager[None]]
    _absorb: Callable[[], None]
    _search: Callable[[Callable[[Store, Reader], Any]], Any]

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

        return int(self._search(search))

    def stats(self) -> dict[str, Any]:
        """Sizes, memory in bytes, and work and durations of calls since this matcher was made."""
        with self._exclusive():
            self._absorb()
            calls = {name: each.stats() for name, each in self._meter.items()}
            return {**self._store.stats(), "calls": calls}

    def metrics(self) -> str:
        """Sizes, work and durations in the text format of Prometheus."""
        with self._exclusive():
            self._absorb()
            return prometheus(self._store.stats(), self._meter)

    def draw(self) -> str:
        """The structure of every index as text."""
        with self._exclusive():
            self._absorb()
            return "\n".join([index.draw() for index in self._store.routing.indexes])

    @measured
    def why_not(self, id: Id, event: Mapping[str, Any], *, now: Any = None) -> list[str]:
        """Why a subscription does not match an event: the fewest predicates that fail, in words.

        Empty if it matches.  `explain` shows the whole expression.
        """
        micros = time.time_ns() // 1000 if now is None else read_moment(now, "now")
        with self._exclusive():
            return reasons(self._store, id, _values(event), micros)

    @measured
    def near(self, event: Mapping[str, Any], k: int = 10) -> list[NearMiss]:
        """At most k subscriptions that miss an event by exactly one predicate, and that predicate.

        Those of the highest priority first, ties in the order they were added.  Subscriptions with
        a context are left out.
        """
        limit = check_limit(k, "k") or 1
        with self._exclusive():
            encoded = encode_event(self._store.attributes, _values(event))
            return near_misses(self._store, event, encoded, limit)

    @measured
    def verify(self, events: Any, *, sample: int | None = None, seed: int = 0) -> Verification:
        """Compare the indexes with a scan of all expressions; the first difference is explained.

        events  as for `match_many`; `sample` draws so many of them by `seed`

        The result is true if they agree.
        """
        some = sampled(events, check_limit(sample, "sample"), seed)
        found: Verification = self._search(lambda store, reader: verified(store, some, reader))
        return found

    @measured
    def overlaps(self, id: Id) -> Related:
        """Subscriptions that some event matches together with this one (`relations`).

        What cannot be decided is in `unknown` of the list.
        """
        with self._exclusive():
            return overlapping(self._store, self._store.subscriptions.find(id))

    @measured
    def subsumes(self, id: Id, other: Id) -> bool | None:
        """Whether every event that `other` matches is matched by `id`; None: not decided."""
        with self._exclusive():
            find = self._store.subscriptions.find
            return subsumes(self._store, find(id), find(other))

    @measured
    def duplicates(self) -> list[list[Id]]:
        """Groups of subscriptions whose expressions say the same, by their normal form."""
        with self._exclusive():
            return duplicates(self._store)

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


def _values(event: Any) -> Mapping[str, Any]:
    if not isinstance(event, Mapping):
        raise EventError(
            f"expected a mapping of values, found {type(event).__name__}: give one event"
        )
    return event
