"""Hits of several indexes as one, in the order subscriptions were added."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from matchwood.engine.stores.arrange_kernels import Slots, arrange, put_in_order
from matchwood.index.core.protocol import Hits, side_by_side

if TYPE_CHECKING:
    from matchwood.engine.segments.repeats import Repeats
    from matchwood.engine.stores.subscriptions import Subscriptions
    from matchwood.index.core.scratch import Scratch

_NO_ORDER = np.empty(0, np.int64)
"""Where slots ascend in the order of addition."""


def arranged(
    found: Sequence[Hits],
    always: np.ndarray,
    errors: Collection[int],
    subscriptions: Subscriptions,
    scratch: Scratch,
    repeats: Repeats | None = None,
) -> Hits:
    """The hits of a search, in order, with what every event satisfies; none for events in error.

    found    of each index that was searched; where there is one alone, its arrays are used again
    repeats  if distinct events were searched: which of them each event is
    """
    if repeats is not None:
        hits = arranged(found, always, (), subscriptions, scratch)
        return Hits(*repeats.all_hits(hits.offsets, hits.slots, errors), hits.counters)
    words, order = subscriptions.n_slots // 64 + 1, _NO_ORDER
    if not subscriptions.in_order:
        words, order = 0, subscriptions.order[:]
    if len(found) == 1 and not len(always) and not errors:
        (hits,) = found
        if len(hits.slots) > 1:
            put_in_order(hits.offsets, hits.slots, order, scratch.sort_room(words))
        return hits
    first, *others = found
    second = _nothing(first) if not others else others[0]
    for other in others[1:]:
        second = side_by_side(second, other)
    n = len(first.offsets) - 1
    skip = np.zeros(n, bool)
    skip[list(errors)] = True
    most = len(first.slots) + len(second.slots) + n * len(always)
    merged = Slots(np.zeros(n + 1, np.int64), np.empty(most, np.int32))
    used = arrange(
        Slots(first.offsets, first.slots), Slots(second.offsets, second.slots), always, skip,
        order, scratch.sort_room(words), merged,
    )  # fmt: skip
    return Hits(merged.offsets, merged.slots[:used], first.counters + second.counters)


def _nothing(like: Hits) -> Hits:
    return Hits(np.zeros_like(like.offsets), np.empty(0, np.int32), np.zeros_like(like.counters))
