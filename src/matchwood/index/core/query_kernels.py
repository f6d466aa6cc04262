"""The kernel that binds a query."""

from __future__ import annotations

from matchwood.kernel.bound import address_of
from matchwood.kernel.jit import kernel


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
