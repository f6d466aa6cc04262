"""Kernels that end a match: give out what another structure found, and join two answers."""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import (
    PREDICATES,
    Posted,
    finish_event,
    holds_in_table,
    post_event,
)


@part
def all_hold(slot, expressions, event, work):
    """Whether a conjunction holds, read from the expression table; counts in `work`."""
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        work[PREDICATES] += 1
        if not holds_in_table(event, expressions.code[k]):
            return False
    return True


@kernel
def give_out(found, starts, is_tested, work, expressions, predicates, batch, output):
    """Give out candidates found elsewhere, event e's being `found[starts[e]:starts[e + 1]]`.

    Those that have to be tested are.  Returns the number of events done (fewer: `out` is full).
    """
    events, stamp, out = batch.events, batch.stamp, output.out
    for e in range(batch.first, len(events.start) - 1):
        n = output.offsets[e]
        if n + starts[e + 1] - starts[e] > len(out):
            return e
        post_event(events, e, stamp + e, batch.board)
        event = Posted(events, stamp + e, batch.board, predicates)
        work[PREDICATES] = 0
        for i in range(starts[e], starts[e + 1]):
            slot = np.int32(found[i])
            if is_tested[slot] and not all_hold(slot, expressions, event, work):
                continue
            out[n] = slot
            n += 1
        finish_event(e, n, 0, starts[e + 1] - starts[e], work[PREDICATES], output)
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
    offsets[len(offsets) - 1] = at
