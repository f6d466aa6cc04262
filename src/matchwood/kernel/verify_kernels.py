"""Verification: does a predicate hold for the event at hand?  The piece that all indexes end in.

An event is first *posted* to a board, so that a predicate finds its attribute's entry in one step;
what every test needs of it is one tuple, `Posted`.

A predicate is *inline* with its expression, so that testing it touches no other memory:

    attr int32, lo int64, hi int64   the hull of its key set
    ref  int32                       its id in the predicate table; ~id when the set has several
                                     intervals, so that the hull alone does not decide
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.kernel.interval_kernels import in_set
from matchwood.kernel.jit import inlined, part

COUNTERS = ("events", "nodes", "candidates", "predicates", "matches")
"""Machine-independent work: events matched, structure nodes visited, expressions looked at,
predicates evaluated, matches emitted."""

EVENTS, NODES, CANDIDATES, PREDICATES, MATCHES = range(len(COUNTERS))


class Board(NamedTuple):
    """Where the event at hand has each attribute; nothing has to be cleared between events."""

    event: np.ndarray  # int64[A], the stamp of the event that last had it
    entry: np.ndarray  # int64[A], where its entry is


class Posted(NamedTuple):
    """The event at hand, and the table of the predicates that it is tested with."""

    events: Any  # the arrays of its batch
    stamp: int
    board: Board
    predicates: Any


class Batch(NamedTuple):
    """What a search is to match: the events from `first` on."""

    events: Any
    first: int
    stamp: int  # of event 0; event e has stamp + e
    board: Board


class Output(NamedTuple):
    """What a search gives out: event e has found out[offsets[e]:offsets[e + 1]]."""

    offsets: np.ndarray  # int64[n + 1]
    out: np.ndarray  # int32, doubled when it is full
    counters: np.ndarray  # int64[len(COUNTERS)]


@inlined
def post_event(events, e, stamp, board):
    """Post the entries of event e under a stamp that no event before it had."""
    for i in range(events.start[e], events.start[e + 1]):
        board.event[events.attr[i]] = stamp
        board.entry[events.attr[i]] = i


@inlined
def finish_event(e, n, nodes, candidates, predicates, output):
    """The matches of event e end at n of the output; this is the work that found them."""
    offsets, counters = output.offsets, output.counters
    counters[EVENTS] += 1
    counters[NODES] += nodes
    counters[CANDIDATES] += candidates
    counters[PREDICATES] += predicates
    counters[MATCHES] += n - offsets[e]
    offsets[e + 1] = n


@inlined
def holds(event, attr, lo, hi, ref):
    """Whether the posted event satisfies an inline predicate: has a key of its set."""
    if event.board.event[attr] != event.stamp:
        return False
    entry, events = event.board.entry[attr], event.events
    if lo > events.hi[entry] or events.lo[entry] > hi:
        return False
    if ref >= 0 and len(events.more) == 0:
        return True
    return _sets_meet(events, entry, ref, event.predicates)


@inlined
def holds_in_table(event, pred):
    """Whether the posted event satisfies a predicate of the table."""
    predicates = event.predicates
    ref = pred if predicates.n_intervals[pred] == 1 else ~pred
    return holds(event, predicates.attr[pred], predicates.lo[pred], predicates.hi[pred], ref)


@part
def _sets_meet(events, entry, ref, predicates):
    """The rare case that hulls overlap and the predicate or the event has several intervals."""
    pred = ref if ref >= 0 else ~ref
    if len(events.more) == 0 or events.more[entry] < 0:
        return meets(predicates, pred, events.lo[entry], events.hi[entry])
    which = events.more[entry]
    for i in range(events.more_start[which], events.more_start[which + 1]):
        if meets(predicates, pred, events.more_lo[i], events.more_hi[i]):
            return True
    return False


@part
def set_meets(events, entry, lo, hi):
    """Whether an entry that has several intervals shares a key with lo..hi."""
    which = events.more[entry]
    start = events.more_start[which]
    return in_set(
        events.more_lo, events.more_hi, start, events.more_start[which + 1] - start, lo, hi
    )


@part
def meets(predicates, pred, lo, hi):
    """Whether a predicate's set has a key of lo..hi."""
    if predicates.n_intervals[pred] == 1:
        return predicates.lo[pred] <= hi and lo <= predicates.hi[pred]
    return in_set(
        predicates.interval_lo,
        predicates.interval_hi,
        predicates.interval_start[pred],
        predicates.n_intervals[pred],
        lo,
        hi,
    )


@part
def inline(predicates, pred, attr, lo, hi, ref, at):
    """Copy a predicate of the table to position `at` of inline arrays."""
    attr[at] = predicates.attr[pred]
    lo[at] = predicates.lo[pred]
    hi[at] = predicates.hi[pred]
    ref[at] = pred if predicates.n_intervals[pred] == 1 else ~pred
