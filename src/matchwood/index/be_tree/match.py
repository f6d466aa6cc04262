"""Matching in `be_tree`: Algorithms 1 and 2, with a stack instead of recursion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.be_tree.nodes import (
    ATTR,
    HEAD,
    HI,
    LEFT,
    LO,
    N_DIR,
    N_NOTED,
    NEXT,
    RIGHT,
    ROOT,
    TOP_BUCKET,
    Search,
    TreeLayout,
    search_p_dir,
)
from matchwood.index.be_tree.rank import WATCH
from matchwood.index.core.layout_kernels import BOARD, EXPRESSION_TABLE, PREDICATE_TABLE
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import inlined, kernel
from matchwood.kernel.posting_kernels import (
    USED,
    PostingLayout,
    clear_offsets,
    emit_watched,
    post_offsets,
)
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    NODES,
    PREDICATES,
    Board,
    Posted,
    finish_event,
    post_event,
    set_meets,
)


class View(NamedTuple):
    """What a search reads."""

    tree: TreeLayout
    expressions: ExpressionLayout
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to."""

    search: Search
    board: Board


_POSTINGS = Layout(
    PostingLayout, word="int64", lists="int32[2]", free="int64", origin="int64", count="int64"
)
_TREE = Layout(
    TreeLayout,
    c="int32[2]", span="int64[2]", p="int32[2]", grid="int64[2]", directory="int32",
    attr_span="int64[2]", attr_n="int64", leaf_of="int32", todo="int32", pending="int32",
    count="int64", postings=_POSTINGS,
)  # fmt: skip
_SEARCH = Layout(
    Search,
    stack="int32", posted="int64", visits="int64", discarded="int64", noted="int32", count="int64",
)  # fmt: skip
VIEW = Layout(View, tree=_TREE, expressions=EXPRESSION_TABLE, predicates=PREDICATE_TABLE)
MINE = Layout(Mine, search=_SEARCH, board=BOARD)
_view_of, _mine_of = VIEW.reader(), MINE.reader()


@inlined
def _search_c_dir(tree, p, events, entry, stack, top):
    """SearchCDir: push every bucket of a p-node that shares a key with an entry of the event.

    The keys of the entry are compared as a set, not only by its lowest and highest: a predicate
    that a bucket subsumes is not verified again.
    """
    lo, hi = events.lo[entry], events.hi[entry]
    is_set = len(events.more) > 0 and events.more[entry] >= 0
    stack[top] = tree.p[p, TOP_BUCKET]
    i = top
    top += 1
    while i < top:
        c = stack[i]
        for side in (LEFT, RIGHT):
            child = tree.c[c, side]
            if child >= 0 and tree.span[child, LO] <= hi and lo <= tree.span[child, HI]:
                if is_set and not set_meets(
                    events, entry, tree.span[child, LO], tree.span[child, HI]
                ):
                    continue
                stack[top] = child
                top += 1
        i += 1
    return top


@inlined
def _search_p_dirs(tree, c, event, e, stack, top):
    """Push the buckets below a c-node: by its p-nodes or by the event's attributes, the fewer."""
    events, board = event.events, event.board
    begin, end = events.start[e], events.start[e + 1]
    if tree.c[c, N_DIR] <= end - begin:
        p = tree.c[c, HEAD]
        while p >= 0:
            attr = tree.p[p, ATTR]
            if board.event[attr] == event.stamp:
                top = _search_c_dir(tree, p, events, board.entry[attr], stack, top)
            p = tree.p[p, NEXT]
        return top
    for i in range(begin, end):
        p = search_p_dir(tree, c, events.attr[i])
        if p >= 0:
            top = _search_c_dir(tree, p, events, i, stack, top)
    return top


@inlined
def _match_event(tree, expressions, event, e, scratch, n, output, is_watched):
    """MatchBETree from the root; returns the end of `out`, or -1 when it is full."""
    stack = scratch.stack
    stack[0] = ROOT
    top = np.int64(1)
    visited = np.int64(0)
    while top > 0:
        top -= 1
        c = stack[top]
        visited += 1
        if tree.postings.lists[c, USED] > 0:
            n, discarded = emit_watched(
                tree.postings, c, event, scratch.posted, expressions, n, output
            )
            if n < 0:
                return n
            if is_watched:
                if scratch.visits[c] == 0:
                    scratch.noted[scratch.count[N_NOTED]] = c
                    scratch.count[N_NOTED] += 1
                scratch.visits[c] += 1
                scratch.discarded[c] += discarded
        if tree.c[c, N_DIR] > 0:
            top = _search_p_dirs(tree, c, event, e, stack, top)
    output.counters[NODES] += visited
    return n


@kernel
def match_events(bound, mine, bound_query, first, stamp):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    view, memory, query = _view_of(bound), _mine_of(mine), query_of(bound_query)
    events, output = query.events, query.output
    tree, scratch, counters = view.tree, memory.search, output.counters
    for e in range(first, len(events.start) - 1):
        candidates, tested = counters[CANDIDATES], counters[PREDICATES]
        post_event(events, e, stamp + e, memory.board)
        post_offsets(tree.postings, events, e, scratch.posted)
        event = Posted(events, stamp + e, memory.board, view.predicates)
        is_watched = (stamp + e) % WATCH == 0
        n = _match_event(
            tree, view.expressions, event, e, scratch, output.offsets[e], output, is_watched
        )
        clear_offsets(events, e, scratch.posted)
        if n < 0:
            counters[CANDIDATES], counters[PREDICATES] = candidates, tested
            return e
        finish_event(e, n, 0, 0, 0, output)
    return len(events.start) - 1


@kernel
def absorb_visits(search, scratch):
    """Add the visits that searches counted in their scratch to the tree, and set these to zero."""
    for i in range(search.count[N_NOTED]):
        c = search.noted[i]
        scratch.visits[c] += search.visits[c]
        scratch.discarded[c] += search.discarded[c]
        search.visits[c] = 0
        search.discarded[c] = 0
    search.count[N_NOTED] = 0
