"""Matching in `gryphon`: all paths of the tree that an event satisfies, with a stack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout, hash_set
from matchwood.index.baselines.gryphon_kernels import (
    EQUALITY,
    GENERIC,
    IS_GROUP,
    NEARBY,
    NONE,
    ROOT,
    Factoring,
    Tree,
)
from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import ABSENT, PairMap, find_pair, pair
from matchwood.kernel.posting_kernels import (
    N,
    PostingLayout,
    clear_offsets,
    emit_list,
    post_offsets,
)
from matchwood.kernel.sort_kernels import last_not_above
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    PREDICATES,
    Posted,
    finish_event,
    holds,
    post_event,
)


class View(NamedTuple):
    """What a search reads."""

    tree: Tree
    factoring: Factoring
    pairs: PairMap
    postings: PostingLayout
    expressions: ExpressionLayout
    predicates: PredicateLayout


class Walk(NamedTuple):
    """What a search writes to."""

    posted: np.ndarray  # int64[attributes], see `posting_kernels.post_offsets`
    stack: np.ndarray  # int32[nodes]
    equality: np.ndarray  # int64[entries of the longest event], their value predicates


@part
def _equality_of(predicates, attr, keys, entry):
    """The predicate `attr = key` of an entry, if any expression has it; else NONE."""
    at = first_cell(predicates.table, hash_set(predicates, attr, keys, keys, entry, 1))
    while predicates.table[at] != EMPTY:
        pred = predicates.table[at]
        if (
            predicates.attr[pred] == attr
            and predicates.n_intervals[pred] == 1
            and predicates.lo[pred] == keys[entry]
            and predicates.hi[pred] == keys[entry]
        ):
            return np.int64(pred)
        at = next_cell(predicates.table, at)
    return np.int64(NONE)


@part
def _follow(tree, which, event, entry, stack, top):
    """Push the nodes below all edges of a list whose key set the event's entry meets."""
    lo, hi, attr = event.events.lo[entry], event.events.hi[entry], event.events.attr[entry]
    for at in range(tree.start[which], tree.start[which + 1]):
        if tree.lo[at] > hi or lo > tree.hi[at]:
            continue
        if (tree.ref[at] >= 0 and lo == hi) or holds(
            event, attr, tree.lo[at], tree.hi[at], tree.ref[at]
        ):
            stack[top] = tree.child[at]
            top += 1
    return top


@part
def _branch(view, node, group, event, entry, equality, stack, top):
    """One attribute of a node: the value edge by its hash, the others one by one."""
    tree, events = view.tree, event.events
    equalities, generic = 2 * group + EQUALITY, 2 * group + GENERIC
    n_equalities = tree.start[equalities + 1] - tree.start[equalities]
    tested = tree.start[generic + 1] - tree.start[generic]
    if n_equalities > 0:
        if events.lo[entry] == events.hi[entry]:
            tested += 1
            if equality != NONE:
                child = find_pair(view.pairs, pair(node, equality))
                if child != ABSENT:
                    stack[top] = child
                    top += 1
        else:
            tested += n_equalities
            top = _follow(tree, equalities, event, entry, stack, top)
    top = _follow(tree, generic, event, entry, stack, top)
    return top, tested


@part
def _root_of(x, event):
    """The root of the tree for an event's values of the factored attributes; that of the whole tree
    for an event with a range there; NONE when no expression can hold.
    """
    events, board, at = event.events, event.board, np.int64(0)
    for f in range(len(x.attr)):
        attr, first, last = x.attr[f], x.start[f], x.start[f + 1]
        cell = last - first + 1  # absent
        if board.event[attr] == event.stamp:
            entry = board.entry[attr]
            is_range = events.lo[entry] != events.hi[entry]
            if is_range or (len(events.more) > 0 and events.more[entry] >= 0):
                return np.int64(ROOT)
            cell = last_not_above(x.cuts, first - 1, last, events.lo[entry]) - first + 1
        at = at * (last - first + 2) + cell
    return np.int64(x.root[at])


@part
def _match_event(view, walk, event, e, n, output):
    """Every node whose path holds; the end of `out` (-1: full), nodes visited, edges tested."""
    tree, postings, events, board = view.tree, view.postings, event.events, event.board
    stack, equality = walk.stack, walk.equality
    begin, end = events.start[e], events.start[e + 1]
    for entry in range(begin, end):
        equality[entry - begin] = _equality_of(
            view.predicates, events.attr[entry], events.lo, entry
        )
    n_nodes, n_tested = np.int64(0), np.int64(len(view.factoring.attr))
    root = _root_of(view.factoring, event)
    stack[0] = root
    top = np.int64(root != NONE)
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        n_nodes += 1
        if postings.lists[node, N] > 0:
            n = emit_list(postings, node, event, walk.posted, view.expressions, n, output)
            if n < 0:
                break
        first, last = tree.first[node], tree.first[node + 1]
        if last - first <= NEARBY * (end - begin):
            for group in range(first, last):
                attr = tree.attr[group]
                if board.event[attr] == event.stamp:
                    entry = board.entry[attr]
                    top, tested = _branch(
                        view, node, group, event, entry, equality[entry - begin], stack, top
                    )
                    n_tested += tested
        else:
            for entry in range(begin, end):
                attr = np.int64(events.attr[entry])
                group = find_pair(view.pairs, pair(node, IS_GROUP | attr))
                if group != ABSENT:
                    top, tested = _branch(
                        view, node, group, event, entry, equality[entry - begin], stack, top
                    )
                    n_tested += tested
    return n, n_nodes, n_tested


@kernel
def search_batch(view, walk, batch, output):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    events, stamp, counters = batch.events, batch.stamp, output.counters
    for e in range(batch.first, len(events.start) - 1):
        candidates, tests = counters[CANDIDATES], counters[PREDICATES]
        post_event(events, e, stamp + e, batch.board)
        post_offsets(view.postings, events, e, walk.posted)
        event = Posted(events, stamp + e, batch.board, view.predicates)
        n, n_nodes, n_tested = _match_event(view, walk, event, e, output.offsets[e], output)
        clear_offsets(events, e, walk.posted)
        if n < 0:
            counters[CANDIDATES], counters[PREDICATES] = candidates, tests
            return e
        finish_event(e, n, n_nodes, 0, n_tested, output)
    return len(events.start) - 1
