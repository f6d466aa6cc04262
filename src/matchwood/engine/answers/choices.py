"""Which of the subscriptions that hold for an event are given: what is alive, wanted, and best.

found ──► not expired ──► the filter is TRUE (`own_attributes`) ──► the `limit` of the highest
                                                                    priority (`priority_kernels`)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood.engine.input.fields import read_count, read_moment
from matchwood.engine.input.given import tree
from matchwood.engine.matches import Found, kept
from matchwood.engine.stores.own_attributes import Filters, FilterSet
from matchwood.errors import MatchwoodError

if TYPE_CHECKING:
    from matchwood.engine.segments.view import View
    from matchwood.engine.stores.subscription_columns import SubscriptionColumns

FILTERS_KEPT = 128
"""Compiled filters that a matcher keeps."""


@dataclass(frozen=True)
class Choice:
    """What a search asks for, in addition to the event.

    limit    at most so many subscriptions an event, highest priority first
    where    a filter for all events
    filters  one filter per event, or none
    now      microseconds since 1970; None: the time of the call
    """

    limit: int | None = None
    where: FilterSet | None = None
    filters: Filters | None = None
    now: int | None = None
    most: int | None = None
    """What is given is chosen later, from several parts: the `limit` then; None: of one part."""
    first_event: int = 0
    """The number that the first event has in `filters`."""


ALL = Choice()


def read_choice(view: View, first: Any, limit: Any, where: Any, now: Any) -> Choice:
    """The arguments of `match`, checked."""
    if first is False and limit is None and where is None and now is None:
        return ALL
    if first is not False:
        wanted = 1 if first is True else check_limit(first, "first")
        if limit is not None:
            raise MatchwoodError("expected first= or limit=, found both: leave one out")
        limit = wanted
    return Choice(
        check_limit(limit),
        None if where is None else _compiled(view, where),
        now=None if now is None else read_moment(now, "now"),
    )


def _compiled(view: View, where: Any) -> FilterSet:
    declared, filters = view.own_types or {}, view.filters
    text = where if isinstance(where, str) else str(tree(where))
    key = (text, tuple(declared.items()))
    found = filters.get(key)
    if found is None:
        found = FilterSet.of(text, declared)
        while len(filters) >= FILTERS_KEPT:
            for oldest in list(filters)[:1]:  # other threads do the same at the same time
                filters.pop(oldest, None)
        filters[key] = found
    return found


def check_limit(limit: Any, name: str = "limit") -> int | None:
    return None if limit is None else read_count(limit, name, "leave it out to get all matches")


def chosen(columns: SubscriptionColumns, found: Found, choice: Choice) -> Found:
    """Of what was found, what is given; `living` comes before."""
    if choice.where is not None:
        found = choice.where.keep(found, lambda slots: columns.texts("attributes", slots))
    if choice.filters is not None:
        found = choice.filters.keep(
            found, choice.first_event, lambda slots: columns.texts("attributes", slots)
        )
    return found if choice.limit is None else best(found, columns.priority, choice.limit)


def living(columns: SubscriptionColumns, found: Found, now: int | None) -> Found:
    """Without subscriptions that have expired."""
    now = time.time_ns() // 1000 if now is None else now
    if columns.next_expiry > now:
        return found
    keep = columns.expires[found.slots] > now
    return found if keep.all() else kept(found, keep)


def best(found: Found, priority: np.ndarray, limit: int) -> Found:
    """At most `limit` slots an event, those of the highest priority, highest first.

    Ties stay in the order they have.  An empty `priority` means that all are equal.
    """
    sizes = np.minimum(np.diff(found.offsets), limit)
    if not len(priority):
        position = np.arange(len(found.slots)) - np.repeat(
            found.offsets[:-1], np.diff(found.offsets)
        )
        return kept(found, position < limit)
    from matchwood.engine.answers.priority_kernels import top_k

    heap = np.empty(int(sizes.sum()), np.int64)
    offsets = np.empty(len(found.offsets), np.int64)
    top_k(found.offsets, found.slots, priority, limit, heap, offsets)
    return found._replace(offsets=offsets, slots=found.slots[heap])
