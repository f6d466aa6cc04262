"""What users ask of a matcher besides `match`: counts, expiry, relations, near misses, proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from matchwood.encode.frames import collected
from matchwood.engine.answers.choices import read_choice
from matchwood.engine.answers.explain import event_values
from matchwood.engine.answers.nearest import NearMiss, near_misses, reasons
from matchwood.engine.answers.proof import Verification, sampled, verified
from matchwood.engine.answers.relations import Related, duplicates, overlapping, subsumes
from matchwood.engine.changes import add_chunks
from matchwood.engine.input.fields import read_count, read_moment
from matchwood.engine.input.loading import load_batches
from matchwood.engine.matches import Id
from matchwood.engine.metrics import Meter, measured, prometheus
from matchwood.engine.segments.asked import Asked, one_event
from matchwood.engine.segments.single import single_count
from matchwood.engine.segments.view_stats import view_plan, view_stats
from matchwood.engine.stores.recovery import blank
from matchwood.engine.stores.routing import AUTO
from matchwood.lang.nodes import Boolean, Expr

if TYPE_CHECKING:
    from matchwood.engine.access import Access
    from matchwood.engine.changes import Target
    from matchwood.engine.durable.checkpoint import Checkpoints
    from matchwood.engine.durable.refused import RefusedSubscription
    from matchwood.engine.segments.background import Merger
    from matchwood.engine.segments.view import Part, View
    from matchwood.engine.stores.store import Store


class Questions:
    """The methods of a matcher that are not about one change or one search."""

    _view: View
    _locate: Callable[[View, Any], tuple[Part, int]]
    _access: Access
    _merger: Merger
    _checkpoints: Checkpoints
    refused: Callable[[], list[RefusedSubscription]]
    _meter: Meter
    _reading: Callable[[], AbstractContextManager[View]]
    _changing: Callable[..., AbstractContextManager[Target]]
    _as_one: Callable[..., AbstractContextManager[Store]]
    _absorb: Callable[[], None]
    _compact: Callable[[], None]
    _search: Callable[..., Any]
    _search_single: Callable[..., Any]

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
        return self._count(event, where, now, most=1) > 0

    def _count(self, event: Mapping[str, Any] | Expr, where: Any, now: Any, most: int = 0) -> int:
        """How many hold; if `most` are enough, at least so many of them."""
        alone = event if type(event) is dict and where is None and now is None else None
        if alone is not None:
            found = self._search_single(single_count, alone, most)
            if found is not None:
                return int(found)

        asked = Asked(
            one_event(event), lambda view: read_choice(view, False, None, where, now), alone
        )
        return int(self._search(lambda view, reader: asked.count(view, reader, most), asked))

    def stats(self) -> dict[str, Any]:
        """Sizes, memory in bytes, and work and durations of calls since this matcher was made."""
        with self._learned() as view:
            calls = {name: each.stats() for name, each in self._meter.items()}
            found = {**view_stats(view, self._access.readers()), "calls": calls}
            found["refused"] = len(self.refused())
            if self._merger.error is not None:
                found["merge_error"] = repr(self._merger.error)
            if self._checkpoints.error is not None:
                found["checkpoint_error"] = repr(self._checkpoints.error)
            return found

    def plan(self, subscriptions: Any = None) -> list[dict[str, Any]]:
        """Which index holds how many subscriptions, and why: a row for each index of each segment.

        subscriptions  as for `add_many`: tell what would hold these, and add none of them.  What
                       is wrong with some of them is left to `add_many`
        """
        with self._reading() as view:
            if subscriptions is None:
                return view_plan(view)
            store = blank(view.head, is_segment=view.head.routing.name == AUTO)
        add_chunks(store, load_batches(subscriptions, None))
        return store.routing.planned()

    def metrics(self) -> str:
        """Sizes, work and durations in the text format of Prometheus."""
        with self._learned() as view:
            sizes = {**view_stats(view, self._access.readers()), "refused": len(self.refused())}
            return prometheus(sizes, self._meter)

    def draw(self) -> str:
        """The structure of every index as text."""
        with self._learned() as view:
            indexes = [index for part in view.searched for index in part.store.routing.indexes]
            return "\n".join([index.draw() for index in indexes])

    @contextmanager
    def _learned(self) -> Iterator[View]:
        """A view to ask whose indexes have absorbed what searches learned."""
        with self._reading() as view:
            if view.is_guarded:
                self._absorb()
            yield view

    @measured
    def why_not(self, id: Id, event: Mapping[str, Any], *, now: Any = None) -> list[str]:
        """Why a subscription does not match an event: the fewest predicates that fail, in words.

        Empty if it matches.  `explain` shows the whole expression.
        """
        micros = time.time_ns() // 1000 if now is None else read_moment(now, "now")
        with self._reading() as view:
            return reasons(self._locate(view, id)[0].store, id, event_values(event), micros)

    @measured
    def near(self, event: Mapping[str, Any], k: int = 10) -> list[NearMiss]:
        """At most k subscriptions that miss an event by exactly one predicate, and that predicate.

        Those of the highest priority first, ties in the order they were added.  Subscriptions with
        a context are left out.
        """
        limit = read_count(k, "k", "by default it is 10")
        with self._reading() as view:
            return near_misses(view, event_values(event), limit)

    @measured
    def verify(self, events: Any, *, sample: int | None = None, seed: int = 0) -> Verification:
        """Compare the indexes with a scan of all expressions; the first difference is explained.

        events  as for `match_many`; `sample` draws so many of them by `seed`

        The result is true if they agree; its `errors` are the events that could not be read.
        """
        if sample is not None:
            sample = read_count(sample, "sample", "leave it out to compare all events")
        some = sampled(collected(events), sample, seed)
        found: Verification = self._search(lambda view, reader: verified(view, some, reader))
        return found

    @measured
    def overlaps(self, id: Id) -> Related:
        """Subscriptions that some event matches together with this one (`relations`).

        What cannot be decided is in `unknown` of the list.
        """
        with self._as_one() as store:
            return overlapping(store, store.subscriptions.find(id))

    @measured
    def subsumes(self, id: Id, other: Id) -> bool | None:
        """Whether every event that `other` matches is matched by `id`; None: not decided."""
        with self._as_one() as store:
            find = store.subscriptions.find
            return subsumes(store, find(id), find(other))

    @measured
    def duplicates(self) -> list[list[Id]]:
        """Groups of subscriptions whose expressions say the same, by their normal form."""
        with self._as_one() as store:
            return duplicates(store)

    @measured
    def sweep(self, now: Any = None) -> int:
        """Remove the subscriptions that have expired; returns how many."""
        micros = None if now is None else read_moment(now, "now")
        with self._changing() as target:
            return target.sweep(micros)

    @measured
    def compact(self) -> None:
        """Merge all segments into one, without gaps and what is gone; build the indexes anew."""
        self._compact()
