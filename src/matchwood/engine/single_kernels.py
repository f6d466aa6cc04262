"""The end of a search for one event: what every event satisfies, order, what is gone, counters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.engine.arrange_kernels import arrange_event
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import kernel
from matchwood.kernel.verify_kernels import EVENTS, MATCHES

FULL = -1
"""The output has no room for what every event satisfies."""


class Ending(NamedTuple):
    """What the indexes of a part have found for an event, and what is done with it."""

    offsets: np.ndarray  # int64[2]: the last index has ended at offsets[1]
    out: np.ndarray  # int32
    counters: np.ndarray  # int64[len(COUNTERS)], of this event; zero between events
    work: np.ndarray  # int64[len(COUNTERS)], of all events
    order: np.ndarray  # int64, by slot; empty where slots ascend in the order of addition
    bitmap: np.ndarray  # int64, as for `arrange_event`
    always: np.ndarray  # int32, slots that every event satisfies
    gone: np.ndarray  # uint8, marks of slots that are left out; empty: none


ENDING = Layout(
    Ending, offsets="int64", out="int32", counters="int64", work="int64", order="int64",
    bitmap="int64", always="int32", gone="uint8",
)  # fmt: skip
_ending_of = ENDING.reader()


@kernel
def end_event(bound):
    """Put the slots of an event in order, without those that are gone; their number, or FULL."""
    x = _ending_of(bound)
    out, counters, work, gone = x.out, x.counters, x.work, x.gone
    n = x.offsets[1]
    if n + len(x.always) > len(out):
        return np.int64(FULL)
    for i in range(len(x.always)):
        out[n + i] = x.always[i]
    n += len(x.always)
    x.offsets[0] = x.offsets[1] = 0
    counters[EVENTS], counters[MATCHES] = 1, n
    for i in range(len(counters)):
        work[i] += counters[i]
        counters[i] = 0
    if len(gone) > 0:
        kept = np.int64(0)
        for i in range(n):
            slot = out[i]
            out[kept] = slot
            kept += ((gone[slot >> 3] >> (slot & 7)) & 1) == 0
        n = kept
    arrange_event(out, np.int64(0), n, x.order, x.bitmap)
    return n
