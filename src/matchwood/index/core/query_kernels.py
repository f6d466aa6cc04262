"""Query: the events that a search is given and the arrays that it answers in, bound as one.

A kernel of a search takes `(bound, mine, *settings, query, first, stamp)`, and the first three
arrays are addresses (`kernel.bound`).  An owner that searches one event after the other in the same
arrays (`engine.segments.single`) binds its query once.

most   the matches of an event after which a search of it may end, for owners that want no more; a
       kernel that does not look at it finds all
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.kernel.bound import Layout, address_of
from matchwood.kernel.jit import kernel
from matchwood.kernel.verify_kernels import Output

ALL_MATCHES = 2**62
"""`most` of a search for all matches."""


class Events(NamedTuple):
    """Encoded events, as `encode.event_batch.EventBatch` has them."""

    start: np.ndarray
    attr: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    more: np.ndarray
    more_start: np.ndarray
    more_lo: np.ndarray
    more_hi: np.ndarray


class Query(NamedTuple):
    """See the module's docstring."""

    events: Any
    output: Output
    most: np.ndarray  # int64[1]


QUERY = Layout(
    Query,
    events=Layout(
        Events, start="int64", attr="int32", lo="int64", hi="int64", more="int32",
        more_start="int64", more_lo="int64", more_hi="int64",
    ),
    output=Layout(Output, offsets="int64", out="int32", counters="int64"),
    most="int64",
)  # fmt: skip
query_of = QUERY.reader()


@kernel
def write_query(events, output, most, words):
    """Write addresses and lengths, as `Layout.write` does."""
    start, attr, lo, hi = events.start, events.attr, events.lo, events.hi
    words[0], words[1] = address_of(start), len(start)
    words[2], words[3] = address_of(attr), len(attr)
    words[4], words[5] = address_of(lo), len(lo)
    words[6], words[7] = address_of(hi), len(hi)
    words[8], words[9] = address_of(events.more), len(events.more)
    words[10], words[11] = address_of(events.more_start), len(events.more_start)
    words[12], words[13] = address_of(events.more_lo), len(events.more_lo)
    words[14], words[15] = address_of(events.more_hi), len(events.more_hi)
    words[16], words[17] = address_of(output.offsets), len(output.offsets)
    words[18], words[19] = address_of(output.out), len(output.out)
    words[20], words[21] = address_of(output.counters), len(output.counters)
    words[22], words[23] = address_of(most), len(most)
