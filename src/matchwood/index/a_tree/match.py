"""Matching with the A-Tree: zero suppression and propagation on demand (section 5.2).

Only TRUE is passed on.  A leaf that holds makes its OR parents true at once.  An AND is queued by
one child, which gives access to it, and tests its other children when all nodes of lower levels are
done.  A byte per node holds the number of the event for which it was last true, so nothing is
cleared between events.

Nodes are handled in waves: all that became true since the last wave, in passes that each read one
kind of memory: the `hot` rows of all nodes, then the blocks of those with several parents, then the
truth of the parents.  No read of a pass depends on another one, and there is hardly a branch, so
that a processor loads the memory of a dozen nodes at the same time (docs/decisions/0018).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.a_tree.blocks import (
    DOWN,
    N_ACTIVE,
    N_OR,
    NO_SLOT,
    PARENTS,
    SLOT,
    TELL,
    TO_AND,
    TO_TOP,
    ATreeLayout,
)
from matchwood.index.core.layout_kernels import BOARD, ID_LISTS, PREDICATE_TABLE
from matchwood.index.core.query_kernels import query_of
from matchwood.index.stabbing.predicate_kernels import Finder, Stabbing, stab_event
from matchwood.index.stabbing.predicate_kernels import Scratch as Found
from matchwood.index.stabbing.segment_kernels import Segments
from matchwood.kernel.bound import Layout
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import Board, finish_event

LAST_SIGNATURE = 255
FULL = -1


class Matching(NamedTuple):
    """Scratch of one matcher; all but the clock are as long as `node`.

    A link p is a node, or ~slot of a top: the entry of both in `truth` is S + p, for S slots.
    """

    truth: np.ndarray  # uint8, S more: the signature of the last event for which a node was true
    queue: np.ndarray  # int32: nodes that are true, in the order in which they became true
    row: np.ndarray  # int32[, 2]: copies of the `hot` rows of a wave of nodes
    sole: np.ndarray  # int32: links to ORs that are the only parent of a node of the wave
    opened: np.ndarray  # int32[, 3]: positions in `word` of blocks of parents or children
    pending: np.ndarray  # int32: ANDs to test once all nodes of lower levels are done
    ready: np.ndarray  # int32: ANDs of the lowest pending level, to test now
    clock: np.ndarray  # int64[1]: the signature


class View(NamedTuple):
    """What a search reads."""

    graph: ATreeLayout
    stabbing: Stabbing
    segments: Segments
    on_node: IdLists
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to."""

    matching: Matching
    found: Found
    board: Board


VIEW = Layout(
    View,
    graph=Layout(
        ATreeLayout,
        hot="int32[2]", node="int32[2]", level="int16", op="int8", rarity="uint8",
        leaf_of="int32", root_of="int32", table="int32", word="int32", free="int32",
        count="int64",
    ),
    stabbing=Layout(
        Stabbing, uses="int32", pending_head="int32", pending_next="int32", count="int64"
    ),
    segments=Layout(Segments, attr_start="int64", cut="int64"),
    on_node=ID_LISTS, predicates=PREDICATE_TABLE,
)  # fmt: skip
MINE = Layout(
    Mine,
    matching=Layout(
        Matching,
        truth="uint8", queue="int32", row="int32[2]", sole="int32", opened="int32[2]",
        pending="int32", ready="int32", clock="int64",
    ),
    found=Layout(Found, found="int32", seen="int64", clock="int64"),
    board=BOARD,
)  # fmt: skip
_view_of, _mine_of = VIEW.reader(), MINE.reader()


@part
def next_signature(matching):
    """The next signature, in no entry of `truth`; every 255 events `truth` is cleared for this."""
    if matching.clock[0] == LAST_SIGNATURE:
        matching.truth[:] = 0
        matching.clock[0] = 0
    matching.clock[0] += 1
    return np.uint8(matching.clock[0])


@part
def emit(x, v, out, n):
    """Write the slots of a node's expressions to `out`; returns the new end, or FULL."""
    slot = x.hot[v, SLOT]
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
def _open(x, matching, head, tail, out, n, n_pending):
    """Write the slots of queue[head:tail] to `out` and sort the nodes by their parents.

    A node has one OR parent (goes to `sole`), one AND parent (to `pending`) or a block of parents
    (to `opened`).  Returns the end of `out` (FULL: no room) and the lengths of the three.
    """
    row, sole, opened, pending = matching.row, matching.sole, matching.opened, matching.pending
    n_sole, n_opened = np.int64(0), np.int64(0)
    size = tail - head
    if n + size > len(out):
        return np.int64(FULL), n_sole, n_pending, n_opened
    for k in range(size):
        v = matching.queue[head + k]
        row[k, TELL], row[k, SLOT] = x.hot[v, TELL], x.hot[v, SLOT]
    for k in range(size):  # what is written counts only where the end moves: cheaper than a branch
        tell, slot = np.int64(row[k, TELL]), row[k, SLOT]
        out[n] = slot
        n += np.int64(slot >= 0)
        opened[n_opened, 0] = tell
        n_opened += np.int64(tell >= 0)
        code = ~tell - 1
        kind = code & 3
        sole[n_sole] = pending[n_pending] = (code >> 2) ^ -np.int64(kind == TO_TOP)
        n_sole += np.int64((code >= 0) & (kind != TO_AND))
        n_pending += np.int64((code >= 0) & (kind == TO_AND))
        if slot < NO_SLOT:
            at = ~slot - 1
            n_more = np.int64(x.word[at])
            if n + n_more + size - k > len(out):
                return np.int64(FULL), n_sole, n_pending, n_opened
            for i in range(n_more):
                out[n + i] = x.word[at + 1 + i]
            n += n_more
    return n, n_sole, n_pending, n_opened


@part
def _propagate(x, matching, n_sole, n_opened, tail, n_pending, out, n):
    """Mark OR parents as true and queue them, or write their slots; add AND parents to `pending`.

    Returns the ends of `queue`, `pending` and `out` (FULL: no room).
    """
    truth, queue, opened = matching.truth, matching.queue, matching.opened
    now = np.uint8(matching.clock[0])
    slots, n_links = len(x.root_of), n_sole
    for k in range(n_opened):
        up = np.int64(opened[k, 0])
        opened[k, 1], opened[k, 2] = x.word[up + N_OR], x.word[up + N_ACTIVE]
        n_links += opened[k, 1]
    if n + n_links >= len(out):
        return tail, n_pending, np.int64(FULL)
    for k in range(n_sole):
        p = np.int64(matching.sole[k])
        is_new, is_top = np.int64(truth[slots + p] != now), np.int64(p < 0)
        truth[slots + p] = now
        queue[tail], out[n] = p, ~p
        tail += is_new & (1 - is_top)
        n += is_new & is_top
    for k in range(n_opened):
        begin = np.int64(opened[k, 0]) + PARENTS
        ors, end = begin + opened[k, 1], begin + opened[k, 2]
        for i in range(begin, ors):
            p = np.int64(x.word[i])
            is_new, is_top = np.int64(truth[slots + p] != now), np.int64(p < 0)
            truth[slots + p] = now
            queue[tail], out[n] = p, ~p
            tail += is_new & (1 - is_top)
            n += is_new & is_top
        for i in range(ors, end):
            matching.pending[n_pending] = x.word[i]
            n_pending += 1
    return tail, n_pending, n


@part
def _make_ready(x, matching, n_pending):
    """Move the ANDs of the lowest level from `pending` to `ready`; returns both lengths.

    No AND of a lower level is pending, so the truth of their children is final.
    """
    pending, ready = matching.pending, matching.ready
    lowest = np.int64(2**30)
    for k in range(n_pending):
        lowest = min(lowest, np.int64(x.level[pending[k]]))
    n_ready, kept = np.int64(0), np.int64(0)
    for k in range(n_pending):
        p = pending[k]
        is_ready = np.int64(x.level[p] == lowest)
        ready[n_ready] = pending[kept] = p
        n_ready += is_ready
        kept += 1 - is_ready
    return n_ready, kept


@part
def _evaluate(x, matching, now, n_ready, tail):
    """Queue the ready ANDs that are true; returns the end of `queue`.

    Also returns how many of the others have expressions: candidates that do not match.  The first
    child is true, since it gave access.  The second child decides most ANDs, so it is tested for
    all of them before any other child.
    """
    truth, ready, opened = matching.truth, matching.ready, matching.opened
    slots, in_vain, kept = len(x.root_of), np.int64(0), np.int64(0)
    for k in range(n_ready):
        v = ready[k]
        opened[k, 0] = x.node[v, DOWN]
        in_vain += np.int64(x.hot[v, SLOT] != NO_SLOT)
    for k in range(n_ready):
        down, v = opened[k, 0], ready[k]
        opened[kept, 0], ready[kept] = down, v
        kept += np.int64(truth[slots + x.word[down + 2]] == now)
    for k in range(kept):
        down, v = np.int64(opened[k, 0]), ready[k]
        i, end = down + 3, down + 1 + x.word[down]
        while i < end and truth[slots + x.word[i]] == now:
            i += 1
        if i == end:
            truth[slots + v] = now
            matching.queue[tail] = v
            tail += 1
            in_vain -= np.int64(x.hot[v, SLOT] != NO_SLOT)
    return tail, in_vain


@part
def match_event(x, matching, found, n_found, out, n):
    """Write the expressions that hold when predicates found[:n_found] hold.

    Returns the end of `out` (FULL: no room), the number of nodes visited, and the number of
    expressions that were candidates and do not match.
    """
    now = next_signature(matching)
    for f in range(n_found):
        v = x.leaf_of[found[f]]
        matching.truth[len(x.root_of) + v] = now
        matching.queue[f] = v
    head, tail = np.int64(0), n_found
    n_pending, n_looked_at, in_vain = np.int64(0), n_found, np.int64(0)
    while True:
        while head < tail:
            n, n_sole, n_pending, n_opened = _open(x, matching, head, tail, out, n, n_pending)
            if n == FULL:
                return n, n_looked_at, in_vain
            head, before = tail, n
            tail, n_pending, n = _propagate(x, matching, n_sole, n_opened, tail, n_pending, out, n)
            if n == FULL:
                return n, n_looked_at, in_vain
            n_looked_at += tail - head + n - before
        if n_pending == 0:
            return n, n_looked_at, in_vain
        n_ready, n_pending = _make_ready(x, matching, n_pending)
        n_looked_at += n_ready
        tail, missed = _evaluate(x, matching, now, n_ready, tail)
        in_vain += missed


@kernel
def match_events(bound, mine, bound_query, first, stamp):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    view, memory, query = _view_of(bound), _mine_of(mine), query_of(bound_query)
    events, output = query.events, query.output
    x, matching, scratch = view.graph, memory.matching, memory.found
    finder = Finder(view.stabbing, view.segments, view.on_node, view.predicates, scratch)
    offsets, out = output.offsets, output.out
    for e in range(first, len(events.start) - 1):
        n_found, n_nodes, n_tested = stab_event(finder, events, e, stamp + e, memory.board)
        n, n_looked_at, in_vain = match_event(x, matching, scratch.found, n_found, out, offsets[e])
        if n == FULL:
            return e
        n_candidates = n - offsets[e] + in_vain
        finish_event(e, n, n_nodes + n_looked_at, n_candidates, n_found + n_tested, output)
    return len(events.start) - 1
