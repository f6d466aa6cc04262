"""Matching with the A-Tree: zero suppression and propagation on demand (section 5.2).

Only TRUE travels.  A leaf that holds tells its parents: an OR is true at once; an AND is told by
the one child that gives access to it, and looks at its other children when the nodes below its
level are done.  A byte per node says for which event it was last true, so nothing is cleared
between events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.a_tree_node_kernels import (
    DOWN,
    N_ACTIVE,
    N_OR,
    NO_SLOT,
    NOTHING,
    PARENTS,
    SLOT,
    UP,
)
from matchwood.index.stabbing_kernels import stab_event
from matchwood.index.verify_kernels import (
    finish_event,
)
from matchwood.jit import kernel, part

LAST_SIGNATURE = 255
FULL = -1


class Matching(NamedTuple):
    """Scratch of one matcher; `truth` to `opened` are as long as `node`."""

    truth: np.ndarray  # uint8: the signature of the event for which a node is true
    queue: np.ndarray  # int32: nodes that are true, in the order in which they became so
    pending: np.ndarray  # int32: ANDs that wait until their level has come
    ready: np.ndarray  # int32: those whose level has come
    opened: np.ndarray  # int32[, 3]: where parents, or children, of a row of nodes are
    clock: np.ndarray  # int64[1]: the signature


@part
def next_signature(matching):
    """A signature that no node has; all are cleared once in 255 events."""
    if matching.clock[0] == LAST_SIGNATURE:
        matching.truth[:] = 0
        matching.clock[0] = 0
    matching.clock[0] += 1
    return np.uint8(matching.clock[0])


@part
def emit(x, v, out, n):
    """Write the expressions of a node; returns the new end, or FULL."""
    slot = x.node[v, SLOT]
    if slot >= 0:
        if n == len(out):
            return np.int64(FULL)
        out[n] = slot
        return n + 1
    if slot == NO_SLOT:
        return n
    at = ~slot - 1
    size = np.int64(x.word[at])
    if n + size > len(out):
        return np.int64(FULL)
    for i in range(size):
        out[n + i] = x.word[at + 1 + i]
    return n + size


@part
def _open(x, matching, head, tail, out, n):
    """Emit queue[head:tail], find their parents; returns the end of `out` and how many have some.

    In two passes, apart from the propagation, so that the memory of many nodes is on its way at
    once instead of one after the other.
    """
    opened = matching.opened
    n_opened = np.int64(0)
    for k in range(head, tail):
        v = matching.queue[k]
        if x.node[v, SLOT] != NO_SLOT:
            n = emit(x, v, out, n)
            if n == FULL:
                return n, n_opened
        opened[n_opened, 0] = x.node[v, UP]
        n_opened += np.int64(x.node[v, UP] != NOTHING)
    for k in range(n_opened):
        up = opened[k, 0] + PARENTS
        opened[k, 1] = up + x.word[up - PARENTS + N_OR]
        opened[k, 2] = up + x.word[up - PARENTS + N_ACTIVE]
    return n, n_opened


@part
def _propagate(x, matching, now, n_opened, tail, n_pending):
    """Make OR parents true and let AND parents wait; returns the ends of both queues."""
    truth, queue, pending = matching.truth, matching.queue, matching.pending
    for k in range(n_opened):
        begin, ors, end = (
            matching.opened[k, 0] + PARENTS,
            matching.opened[k, 1],
            matching.opened[k, 2],
        )
        for i in range(begin, ors):
            p = x.word[i]
            queue[tail] = p
            tail += np.int64(truth[p] != now)
            truth[p] = now
        for i in range(ors, end):
            pending[n_pending] = x.word[i]
            n_pending += 1
    return tail, n_pending


@part
def _make_ready(x, matching, n_pending):
    """Take the lowest ANDs out of those that wait; returns how many, and how many wait on.

    Nothing waits below them, so all that they depend on is decided.
    """
    lowest = np.int64(2**30)
    for k in range(n_pending):
        lowest = min(lowest, np.int64(x.level[matching.pending[k]]))
    n_ready, kept = np.int64(0), np.int64(0)
    for k in range(n_pending):
        p = matching.pending[k]
        if x.level[p] == lowest:
            matching.ready[n_ready] = p
            n_ready += 1
        else:
            matching.pending[kept] = p
            kept += 1
    return n_ready, kept


@part
def _evaluate(x, matching, now, n_ready, tail):
    """Which of the ready ANDs are true; returns the end of the queue.

    Also how many of the others have expressions: candidates in vain.
    """
    truth, in_vain = matching.truth, np.int64(0)
    for k in range(n_ready):
        down = x.node[matching.ready[k], DOWN]
        matching.opened[k, 0] = down
    for k in range(n_ready):
        down = matching.opened[k, 0]
        i, end = down + 2, down + 1 + x.word[down]  # the first child gave access: it is true
        while i < end and truth[x.word[i]] == now:
            i += 1
        if i == end:
            truth[matching.ready[k]] = now
            matching.queue[tail] = matching.ready[k]
            tail += 1
        else:
            in_vain += np.int64(x.node[matching.ready[k], SLOT] != NO_SLOT)
    return tail, in_vain


@part
def match_event(x, matching, found, n_found, out, n):
    """All expressions that follow from the predicates found.

    Returns the end of `out` (FULL: no room), the nodes looked at, and the expressions among them
    that do not match.
    """
    now = next_signature(matching)
    for f in range(n_found):
        v = x.leaf_of[found[f]]
        matching.truth[v] = now
        matching.queue[f] = v
    head, tail = np.int64(0), n_found
    n_pending, n_looked_at, in_vain = np.int64(0), n_found, np.int64(0)
    while True:
        while head < tail:
            n, n_opened = _open(x, matching, head, tail, out, n)
            if n == FULL:
                return n, n_looked_at, in_vain
            head = tail
            tail, n_pending = _propagate(x, matching, now, n_opened, tail, n_pending)
            n_looked_at += tail - head
        if n_pending == 0:
            return n, n_looked_at, in_vain
        n_ready, n_pending = _make_ready(x, matching, n_pending)
        n_looked_at += n_ready
        tail, missed = _evaluate(x, matching, now, n_ready, tail)
        in_vain += missed


@kernel
def match_batch(
    x, matching, stabbing, segments, on_node, scratch,
    events, first, stamp, board_event, board_entry, predicates, offsets, out, counters,
):  # fmt: skip
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    for e in range(first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(
            stabbing, segments, on_node, predicates,
            events, e, stamp + e, board_event, board_entry, scratch,
        )  # fmt: skip
        n, n_looked_at, in_vain = match_event(x, matching, scratch.found, n_found, out, offsets[e])
        if n == FULL:
            return e
        finish_event(
            e,
            n,
            n_nodes + n_looked_at,
            n - offsets[e] + in_vain,
            n_found + n_tested,
            offsets,
            counters,
        )
    return len(events.start) - 1
