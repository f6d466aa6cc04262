"""Kernels that end a match: give out what another structure found, and join two answers."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import (
    PREDICATES,
    finish_event,
    holds,
    post_event,
)


@part
def all_hold(slot, expressions, predicates, events, stamp, board_event, board_entry, work):
    """Whether a conjunction holds, read from the expression table; counts in `work`."""
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = expressions.code[k]
        work[PREDICATES] += 1
        if not holds(
            events, stamp, board_event, board_entry,
            predicates.attr[pred], predicates.lo[pred], predicates.hi[pred],
            pred if predicates.n_intervals[pred] == 1 else ~pred, predicates,
        ):  # fmt: skip
            return False
    return True


@kernel
def give_out(
    found, starts, is_tested, work, expressions, predicates,
    events, first, stamp, board_event, board_entry, offsets, out, counters,
):  # fmt: skip
    """Give out candidates found elsewhere, event e's being `found[starts[e]:starts[e + 1]]`.

    Those that have to be tested are.  Returns the number of events done (fewer: `out` is full).
    """
    for e in range(first, len(events.start) - 1):
        n = offsets[e]
        if n + starts[e + 1] - starts[e] > len(out):
            return e
        post_event(events, e, stamp + e, board_event, board_entry)
        work[PREDICATES] = 0
        for i in range(starts[e], starts[e + 1]):
            slot = np.int32(found[i])
            if is_tested[slot] and not all_hold(
                slot, expressions, predicates, events, stamp + e, board_event, board_entry, work
            ):
                continue
            out[n] = slot
            n += 1
        finish_event(e, n, 0, starts[e + 1] - starts[e], work[PREDICATES], offsets, counters)
    return len(events.start) - 1


@kernel
def join_hits(offsets, slots, more_offsets, more_slots, joined):
    """Put the hits of two indexes behind each other, event by event; `offsets` becomes theirs."""
    at = np.int64(0)
    for e in range(len(offsets) - 1):
        begin = at
        for i in range(offsets[e], offsets[e + 1]):
            joined[at] = slots[i]
            at += 1
        for i in range(more_offsets[e], more_offsets[e + 1]):
            joined[at] = more_slots[i]
            at += 1
        offsets[e] = begin
    offsets[-1] = at
