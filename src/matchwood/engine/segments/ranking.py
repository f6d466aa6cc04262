"""Ranking: which subscriptions of a segment `limit` prefers, so that a search need not find all.

The rank of a slot is its place by priority, then by the order of addition.  An index that can
(`search_best`) leaves out what is behind the wanted number of matches; what it finds has the best
of them, and `choices.best` still chooses.  A segment that is only read has one ranking, made when a
limit is first asked of it: 4 bytes for each block, and for each subscription if some have a
priority.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from matchwood.kernel.marks import NO_MARKS

if TYPE_CHECKING:
    from matchwood.encode.events import EventBatch
    from matchwood.engine.answers.choices import Choice
    from matchwood.engine.stores.store import Store
    from matchwood.engine.stores.subscriptions import Subscriptions
    from matchwood.index.core.protocol import Hits
    from matchwood.index.core.scratch import Scratch

MOST_BEST = 16
"""Wanted matches up to which a search for the best is worth its bookkeeping: for 100 of 10,000 it
would leave out hardly any block of a million (`bench run --suite speed --case begen` has 10)."""


class Ranking:
    """Ranks of the slots of a segment, and what its indexes derived from them."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self.rank = np.empty(0, np.int32)  # slots of a segment are in the order of addition
        priority = subscriptions.columns.priority
        if len(priority):
            by_rank = np.argsort(~priority[: subscriptions.n_slots], kind="stable")
            self.rank = np.empty(len(by_rank), np.int32)
            self.rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
        self._best: dict[int, np.ndarray] = {}

    def best_of(self, number: int, index: object) -> np.ndarray:
        """The best ranks of the blocks of an index, which has a number among those of its store."""
        found = self._best.get(number)
        if found is None:
            found = self._best[number] = index.best_ranks(self.rank)  # type: ignore[attr-defined]
        return found


def is_ranked(store: Store, choice: Choice) -> bool:
    """Whether a search may leave out what is behind the best: nothing else leaves out some."""
    most = choice.limit if choice.most is None else choice.most
    if most is None or most > MOST_BEST or choice.where is not None or choice.filters is not None:
        return False
    if not store.routing.is_static or store.subscriptions.frozen_ids is None:
        return False
    now = time.time_ns() // 1000 if choice.now is None else choice.now
    return store.subscriptions.columns.next_expiry > now


def best_hits(
    store: Store, events: EventBatch, scratch: Scratch, choice: Choice, gone: np.ndarray | None
) -> list[Hits]:
    """The hits of each index, in which the best are that `choice` wants; see `is_ranked`."""
    routing = store.routing
    if routing.ranking is None:
        routing.ranking = Ranking(store.subscriptions)  # several threads make equal ones
    ranking, most = routing.ranking, choice.limit if choice.most is None else choice.most
    assert most is not None
    found = []
    for number, index in enumerate(routing.indexes):
        search = getattr(index, "search_best", None)
        if search is None:
            found.append(index.search(events, scratch))
            continue
        best = ranking.best_of(number, index)
        marks = NO_MARKS if gone is None else np.require(gone, np.uint8, ("C", "W"))
        found.append(search(events, scratch, (ranking.rank, best, marks), most))
    return found
