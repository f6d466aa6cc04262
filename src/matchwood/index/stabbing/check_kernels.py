"""Kernels that check a stabbing tree of a snapshot: lists, and what waits outside."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.predicate_kernels import LAST, N_PENDING, NOT_PENDING
from matchwood.index.stabbing.segment_kernels import interval, is_aligned, span
from matchwood.index.stabbing.span_kernels import next_node
from matchwood.kernel.id_list_kernels import first_at_least
from matchwood.kernel.jit import kernel, part


@kernel
def check_sorted(lists, n_predicates):
    """Whether ids ascend in every list, all of them below a number."""
    for which in range(len(lists.size)):
        before = np.int64(-1)
        for i in range(lists.start[which], lists.start[which] + lists.size[which]):
            if lists.item[i] <= before or lists.item[i] >= n_predicates:
                return False
            before = np.int64(lists.item[i])
    return True


@part
def _has(lists, which, pred):
    at = first_at_least(lists, which, pred)
    return at < lists.size[which] and lists.item[lists.start[which] + at] == pred


@part
def _n_nodes(segments, lists, attr, first, last, pred):
    """The nodes that make up segments first..last, or -1 if one does not list the predicate."""
    base = segments.attr_start[attr]
    n = segments.attr_start[attr + 1] - base
    node, left, right = next_node(first - base + n, last - base + n + 1)
    found = np.int64(0)
    while node > 0:
        if not _has(lists, 2 * base + node, pred):
            return np.int64(-1)
        found += 1
        node, left, right = next_node(left, right)
    return found


@kernel
def check_held(stabbing, segments, lists, predicates, held):
    """How many ids lists must have in all; -1 if a predicate is not where it belongs."""
    total = np.int64(0)
    for pred in held:
        if stabbing.pending_next[pred] != NOT_PENDING:
            continue
        attr = predicates.attr[pred]
        if not is_aligned(segments, predicates, pred):
            return np.int64(-1)
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            first, last = span(segments, attr, lo, hi)
            n = _n_nodes(segments, lists, attr, first, last, pred)
            if n < 0:
                return n
            total += n
    return total


@kernel
def check_pending(stabbing, predicates, n_predicates):
    """Whether what waits is in the list of its attribute, once, and nothing else waits."""
    n = np.int64(0)
    for attr in range(len(stabbing.pending_head)):
        pred = np.int64(stabbing.pending_head[attr])
        while pred != LAST:
            if pred < 0 or pred >= n_predicates or n == stabbing.count[N_PENDING]:
                return False
            if stabbing.uses[pred] < 1 or predicates.attr[pred] != attr:
                return False
            pred = np.int64(stabbing.pending_next[pred])
            n += 1
    waiting = np.int64(0)
    for pred in range(len(stabbing.pending_next)):
        waiting += stabbing.pending_next[pred] != NOT_PENDING
    return n == stabbing.count[N_PENDING] and n == waiting
