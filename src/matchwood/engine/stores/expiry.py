"""Expiry: which subscriptions have expired; a search skips them, `sweep` removes them."""

from __future__ import annotations

import time

import numpy as np

from matchwood.engine.input.fields import NEVER
from matchwood.engine.stores.subscriptions import Subscriptions


def expired_slots(subscriptions: Subscriptions, now: int | None) -> np.ndarray:
    """Slots that have expired at a time (microseconds since 1970; None: now).

    Also finds out again when the next one will.
    """
    columns = subscriptions.columns
    at = time.time_ns() // 1000 if now is None else now
    if not len(columns.expires):
        return np.empty(0, np.int32)
    slots = subscriptions.slots()
    expires = columns.expires[slots]
    columns.next_expiry = int(expires[expires > at].min(initial=NEVER))
    gone = slots[expires <= at]
    if len(gone):
        columns.next_expiry = min(columns.next_expiry, int(expires.min()))
    return gone
