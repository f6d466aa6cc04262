"""Matching in `gryphon`: all paths of the tree that an event satisfies, with a stack."""

from __future__ import annotations

import numpy as np

from matchwood.encode.predicate_kernels import hash_set
from matchwood.index.baselines.gryphon_kernels import (
    EQUALITY,
    GENERIC,
    IS_GROUP,
    NEARBY,
    NONE,
    ROOT,
)
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import ABSENT, find_pair, pair
from matchwood.kernel.posting_kernels import N, clear_offsets, emit_list, post_offsets
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    PREDICATES,
    finish_event,
    holds,
    post_event,
)


@part
def _equality_of(predicates, attr, keys, entry):
    """The predicate `attr = key` of an entry, if any expression has it; else NONE."""
    mask = np.uint64(len(predicates.table) - 1)
    at = hash_set(predicates, attr, keys, keys, entry, 1) & mask
    while predicates.table[at] >= 0:
        pred = predicates.table[at]
        if (
            predicates.attr[pred] == attr
            and predicates.n_intervals[pred] == 1
            and predicates.lo[pred] == keys[entry]
            and predicates.hi[pred] == keys[entry]
        ):
            return np.int64(pred)
        at = (at + np.uint64(1)) & mask
    return np.int64(NONE)


@part
def _follow(tree, which, events, entry, attr, stamp, board_event, board_entry, predicates,
            stack, top):  # fmt: skip
    """Push the nodes below all edges of a list whose key set the event's entry meets."""
    lo, hi = events.lo[entry], events.hi[entry]
    for at in range(tree.start[which], tree.start[which + 1]):
        if tree.lo[at] > hi or lo > tree.hi[at]:
            continue
        if (tree.ref[at] >= 0 and lo == hi) or holds(
            events, stamp, board_event, board_entry, attr, tree.lo[at], tree.hi[at], tree.ref[at],
            predicates,
        ):  # fmt: skip
            stack[top] = tree.child[at]
            top += 1
    return top


@part
def _branch(
    tree, pairs, node, group, attr, events, entry, equality, stamp, board_event, board_entry,
    predicates, stack, top,
):  # fmt: skip
    """One attribute of a node: the value edge by its hash, the others one by one."""
    equalities, generic = 2 * group + EQUALITY, 2 * group + GENERIC
    n_equalities = tree.start[equalities + 1] - tree.start[equalities]
    tested = tree.start[generic + 1] - tree.start[generic]
    if n_equalities > 0:
        if events.lo[entry] == events.hi[entry]:
            tested += 1
            if equality != NONE:
                child = find_pair(pairs, pair(node, equality))
                if child != ABSENT:
                    stack[top] = child
                    top += 1
        else:
            tested += n_equalities
            top = _follow(
                tree, equalities, events, entry, attr, stamp, board_event, board_entry,
                predicates, stack, top,
            )  # fmt: skip
    top = _follow(
        tree, generic, events, entry, attr, stamp, board_event, board_entry,
        predicates, stack, top,
    )  # fmt: skip
    return top, tested


@part
def _match_event(
    tree, pairs, postings, events, e, stamp, board_event, board_entry, posted,
    expressions, predicates, stack, equality, out, n, counters,
):  # fmt: skip
    """Every node whose path holds; the end of `out` (-1: full), nodes visited, edges tested."""
    begin, end = events.start[e], events.start[e + 1]
    for entry in range(begin, end):
        equality[entry - begin] = _equality_of(predicates, events.attr[entry], events.lo, entry)
    n_nodes, n_tested = np.int64(0), np.int64(0)
    stack[0] = ROOT
    top = np.int64(1)
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        n_nodes += 1
        if postings.lists[node, N] > 0:
            n = emit_list(
                postings, node, events, stamp, board_event, board_entry, posted,
                expressions, predicates, n, out, counters,
            )  # fmt: skip
            if n < 0:
                break
        first, last = tree.first[node], tree.first[node + 1]
        if last - first <= NEARBY * (end - begin):
            for group in range(first, last):
                attr = tree.attr[group]
                if board_event[attr] == stamp:
                    entry = board_entry[attr]
                    top, tested = _branch(
                        tree, pairs, node, group, attr, events, entry, equality[entry - begin],
                        stamp, board_event, board_entry, predicates, stack, top,
                    )  # fmt: skip
                    n_tested += tested
        else:
            for entry in range(begin, end):
                attr = events.attr[entry]
                group = find_pair(pairs, pair(node, IS_GROUP | np.int64(attr)))
                if group != ABSENT:
                    top, tested = _branch(
                        tree, pairs, node, group, attr, events, entry, equality[entry - begin],
                        stamp, board_event, board_entry, predicates, stack, top,
                    )  # fmt: skip
                    n_tested += tested
    return n, n_nodes, n_tested


@kernel
def search_batch(
    tree, pairs, postings, posted, expressions, stack, equality,
    events, first, stamp, board_event, board_entry, predicates, offsets, out, counters,
):  # fmt: skip
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    for e in range(first, len(events.start) - 1):
        candidates, tests = counters[CANDIDATES], counters[PREDICATES]
        post_event(events, e, stamp + e, board_event, board_entry)
        post_offsets(postings, events, e, posted)
        n, n_nodes, n_tested = _match_event(
            tree, pairs, postings, events, e, stamp + e, board_event, board_entry, posted,
            expressions, predicates, stack, equality, out, offsets[e], counters,
        )  # fmt: skip
        clear_offsets(events, e, posted)
        if n < 0:
            counters[CANDIDATES], counters[PREDICATES] = candidates, tests
            return e
        finish_event(e, n, n_nodes, 0, n_tested, offsets, counters)
    return len(events.start) - 1
