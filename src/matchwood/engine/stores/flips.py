"""Flips: which subscriptions a change of context has opened or closed.

A subscription is *open* when the context alone does not keep it from matching: with every test of
the event taken to be TRUE, its expression is TRUE.  `ctx.unread < 100 AND price < ctx.budget` is
open while fewer than 100 are unread and a budget is set, whatever the price.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood.engine.stores.store import Store
from matchwood.engine.stores.subscriptions import Id


class Flips(NamedTuple):
    """Ids of subscriptions that can match now and could not before, and the other way round."""

    opened: list[Id]
    closed: list[Id]


def flips_of(store: Store, contexts: Sequence[Any], apply: Callable[[], None]) -> Flips:
    """Apply a change to contexts and tell what it has flipped, in the order of adding."""
    from matchwood.context.gates import are_open

    cif = store.routing.context_index
    known = store.with_contexts()
    rows = [known.row(id_) for id_ in dict.fromkeys(contexts) if id_ in known]
    slots = np.flatnonzero(np.isin(known.slot_row, rows)).astype(np.int32)
    if cif is None or not len(slots):
        apply()
        return Flips([], [])
    slots = slots[np.argsort(store.subscriptions.order[slots], kind="stable")]
    before = are_open(cif, slots)
    apply()
    after = are_open(cif, slots)
    ids = store.subscriptions.ids_of(slots)
    return Flips(ids[after & ~before].tolist(), ids[before & ~after].tolist())
