"""Scratch that every matcher of encoded events needs: the board, and an output that grows.

One per index and thread.  The board maps an attribute to its entry in the event at hand; stamps
only ever rise, so it is never cleared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matchwood.encode.events import EventBatch
from matchwood.index.core.protocol import Hits
from matchwood.kernel.arrays import doubled, grown
from matchwood.kernel.verify_kernels import COUNTERS


class Board:
    """The scratch arrays; see `verify_kernels.post_event`."""

    def __init__(self) -> None:
        self.event = np.full(64, -1, np.int64)
        self.entry = np.zeros(64, np.int64)
        self.out = np.empty(1024, np.int32)
        self._stamp = 0

    def run(self, events: EventBatch, n_attributes: int, step: Callable[..., int]) -> Hits:
        """Match a batch: `step(first, stamp, offsets, out, counters)` returns how far it came.

        The board gets a place for every attribute of the expressions (`n_attributes`) and of the
        events.  A step that stopped early found the output full: it is doubled, and the step goes
        on.
        """
        size = max(n_attributes, int(events.attr.max(initial=-1)) + 1)
        self.event = grown(self.event, doubled(len(self.event), size), -1)
        self.entry = grown(self.entry, len(self.event))
        offsets = np.zeros(events.n_events + 1, np.int64)
        counters = np.zeros(len(COUNTERS), np.int64)
        stamp = self._stamp
        self._stamp += events.n_events  # first: stamps of an interrupted search are never met again
        done = 0
        while True:
            done = step(done, stamp, offsets, self.out, counters)
            if done == events.n_events:
                break
            self.out = grown(self.out, 2 * len(self.out))
        slots = self.out[: offsets[-1]].copy()
        if len(self.out) > 2**22:
            self.out = np.empty(1024, np.int32)
        return Hits(offsets, slots, counters)
