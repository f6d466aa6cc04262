"""Kernels of `stabbing`: hold a predicate, drop one, find all that an event satisfies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.index.stabbing.segment_kernels import (
    Segments,
    has_segments,
    interval,
    is_aligned,
    segment_of,
    span,
)
from matchwood.index.stabbing.span_kernels import next_node
from matchwood.kernel.id_list_kernels import IdLists, insert_id, remove_id
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import Posted, holds_in_table, post_event

N_HELD, N_PENDING = range(2)
"""Positions in `count`: predicates held, those among them that wait outside the tree."""

NOT_PENDING, LAST = -2, -1


class Stabbing(NamedTuple):
    """See `predicates` for the table of arrays; `segments` and `lists` are tables of their own."""

    uses: np.ndarray
    pending_head: np.ndarray
    pending_next: np.ndarray
    count: np.ndarray


class Scratch(NamedTuple):
    """What finding needs: one per matcher."""

    found: np.ndarray  # int32, room for all predicates held
    seen: np.ndarray  # int64[P], when each was last found; read for interval-valued entries alone
    clock: np.ndarray  # int64[1], counts events and repetitions of events


class Finder(NamedTuple):
    """All that finding reads and writes."""

    stabbing: Stabbing
    segments: Segments
    lists: IdLists
    predicates: Any
    scratch: Scratch


@part
def _put(segments, lists, attr, first, last, pred):
    """Put a predicate on the nodes that make up segments first..last; False: lists are full."""
    base = segments.attr_start[attr]
    n = segments.attr_start[attr + 1] - base
    node, left, right = next_node(first - base + n, last - base + n + 1)
    while node > 0:
        if not insert_id(lists, 2 * base + node, pred):
            return False
        node, left, right = next_node(left, right)
    return True


@part
def _take(segments, lists, attr, first, last, pred):
    base = segments.attr_start[attr]
    n = segments.attr_start[attr + 1] - base
    node, left, right = next_node(first - base + n, last - base + n + 1)
    while node > 0:
        remove_id(lists, 2 * base + node, pred)
        node, left, right = next_node(left, right)


@part
def hold(stabbing, segments, lists, predicates, pred):
    """Let a predicate be found, if it is not yet; False, and to be repeated: lists are full."""
    if stabbing.uses[pred] > 0 or stabbing.pending_next[pred] != NOT_PENDING:
        return True
    attr = predicates.attr[pred]
    if is_aligned(segments, predicates, pred):
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, attr, lo, hi)
            if not _put(segments, lists, attr, first, last, pred):
                return False
    else:
        stabbing.pending_next[pred] = stabbing.pending_head[attr]
        stabbing.pending_head[attr] = pred
        stabbing.count[N_PENDING] += 1
    return True


@part
def use(stabbing, pred):
    """Count one more expression on a predicate that is held."""
    if stabbing.uses[pred] == 0:
        stabbing.count[N_HELD] += 1
    stabbing.uses[pred] += 1


@part
def drop(stabbing, segments, lists, predicates, pred):
    """Count one expression less; the last one takes the predicate out."""
    stabbing.uses[pred] -= 1
    if stabbing.uses[pred] > 0:
        return
    stabbing.count[N_HELD] -= 1
    attr = predicates.attr[pred]
    if stabbing.pending_next[pred] == NOT_PENDING:
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, attr, lo, hi)
            _take(segments, lists, attr, first, last, pred)
        return
    stabbing.count[N_PENDING] -= 1
    if stabbing.pending_head[attr] == pred:
        stabbing.pending_head[attr] = stabbing.pending_next[pred]
    else:
        before = stabbing.pending_head[attr]
        while stabbing.pending_next[before] != pred:
            before = stabbing.pending_next[before]
        stabbing.pending_next[before] = stabbing.pending_next[pred]
    stabbing.pending_next[pred] = NOT_PENDING


@kernel
def hold_each(stabbing, segments, lists, predicates, preds, first):
    """Hold predicates first.., one use each; returns how many are done (fewer: lists are full)."""
    for i in range(first, len(preds)):
        if not hold(stabbing, segments, lists, predicates, preds[i]):
            return i
        use(stabbing, preds[i])
    return len(preds)


@kernel
def drop_each(stabbing, segments, lists, predicates, preds):
    """Count one use less of each predicate."""
    for pred in preds:
        drop(stabbing, segments, lists, predicates, pred)


@kernel
def count_on_nodes(segments, predicates, preds, n_on_node):
    """How many of the predicates each node will hold; they are aligned."""
    for pred in preds:
        attr = predicates.attr[pred]
        base = segments.attr_start[attr]
        n = segments.attr_start[attr + 1] - base
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, attr, lo, hi)
            node, left, right = next_node(first - base + n, last - base + n + 1)
            while node > 0:
                n_on_node[2 * base + node] += 1
                node, left, right = next_node(left, right)


@kernel
def put_all(segments, lists, predicates, preds):
    """Fill empty lists, which have room, with aligned predicates, ascending."""
    for pred in preds:
        attr = predicates.attr[pred]
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, attr, lo, hi)
            _put(segments, lists, attr, first, last, pred)


@part
def _stab_key(segments, lists, attr, key, found, n_found):
    """Predicates of one attribute whose set has a key; returns their number and nodes visited."""
    base = segments.attr_start[attr]
    node = segment_of(segments, attr, key) - base + segments.attr_start[attr + 1] - base
    n_nodes = np.int64(0)
    while node > 0:
        n_nodes += 1
        start = lists.start[2 * base + node]
        for i in range(start, start + lists.size[2 * base + node]):
            found[n_found] = lists.item[i]
            n_found += 1
        node >>= 1
    return n_found, n_nodes


@part
def _stab_keys(segments, lists, attr, lo, hi, scratch, n_found):
    """Predicates of one attribute whose set meets lo..hi, unless seen at this time of the clock."""
    found, seen, now = scratch.found, scratch.seen, scratch.clock[0]
    base = segments.attr_start[attr]
    n = segments.attr_start[attr + 1] - base
    left = segment_of(segments, attr, lo) - base + n
    right = segment_of(segments, attr, hi) - base + n
    n_nodes = np.int64(0)
    while right > 0:
        for node in range(max(left, np.int64(1)), right + 1):
            n_nodes += 1
            start = lists.start[2 * base + node]
            for i in range(start, start + lists.size[2 * base + node]):
                pred = lists.item[i]
                if seen[pred] != now:
                    seen[pred] = now
                    found[n_found] = pred
                    n_found += 1
        left >>= 1
        right >>= 1
    return n_found, n_nodes


@part
def stab_event(finder, events, e, stamp, board):
    """Post an event, and find all held predicates that it satisfies.

    They are in `scratch.found`; returns how many, the nodes visited and the predicates tested.
    """
    post_event(events, e, stamp, board)
    event = Posted(events, stamp, board, finder.predicates)
    stabbing, segments, lists = finder.stabbing, finder.segments, finder.lists
    scratch, found = finder.scratch, finder.scratch.found
    scratch.clock[0] += 1
    n_found, n_nodes, n_tested = np.int64(0), np.int64(0), np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = events.attr[entry]
        if has_segments(segments, attr):
            lo, hi = events.lo[entry], events.hi[entry]
            visited = np.int64(0)
            if lo == hi:
                n_found, visited = _stab_key(segments, lists, attr, lo, found, n_found)
            elif len(events.more) == 0 or events.more[entry] < 0:
                n_found, visited = _stab_keys(segments, lists, attr, lo, hi, scratch, n_found)
            else:
                which = events.more[entry]
                for i in range(events.more_start[which], events.more_start[which + 1]):
                    n_found, more = _stab_keys(
                        segments, lists, attr, events.more_lo[i], events.more_hi[i],
                        scratch, n_found,
                    )  # fmt: skip
                    visited += more
            n_nodes += visited
        pred = stabbing.pending_head[attr] if attr < len(stabbing.pending_head) else LAST
        while pred != LAST:
            n_tested += 1
            if holds_in_table(event, pred):
                found[n_found] = pred
                n_found += 1
            pred = stabbing.pending_next[pred]
    return n_found, n_nodes, n_tested
