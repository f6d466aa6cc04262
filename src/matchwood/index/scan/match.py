"""Kernels of `scan`: append records, sweep over them, close gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.merge_kernels import token_is_and, token_operands
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.core.layout_kernels import BOARD, PREDICATE_TABLE
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import inlined, kernel, part
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    PREDICATES,
    Board,
    Posted,
    finish_event,
    holds,
    inline,
    post_event,
)

MATCH, FAIL = -1, -2
"""Where a jump leads when it leaves the expression."""

CONJUNCTIONS, TREES = range(2)
"""Places in `View.sizes`."""


class Records(NamedTuple):
    """Expressions one after the other; see the page of this folder for the table of arrays."""

    slot: np.ndarray
    start: np.ndarray
    attr: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    ref: np.ndarray
    on_true: np.ndarray
    on_false: np.ndarray


@kernel
def append_conjunctions(expressions, predicates, slots, records, n_records):
    """Write records for conjunctions after the first n_records; returns the new number."""
    at = records.start[n_records]
    for slot in slots:
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            inline(
                predicates, expressions.code[k],
                records.attr, records.lo, records.hi, records.ref, at,
            )  # fmt: skip
            at += 1
        records.slot[n_records] = slot
        n_records += 1
        records.start[n_records] = at
    return n_records


@part
def _leaf_counts(code, begin, end, n_leaves, n_tokens):
    """Leaves and tokens below every token of a prefix code, from its end to its beginning."""
    for k in range(end - 1, begin - 1, -1):
        if code[k] >= 0:
            n_leaves[k - begin], n_tokens[k - begin] = 1, 1
            continue
        leaves, child = 0, k + 1
        for _ in range(token_operands(code[k])):
            leaves += n_leaves[child - begin]
            child += n_tokens[child - begin]
        n_leaves[k - begin], n_tokens[k - begin] = leaves, child - k


@kernel
def append_trees(expressions, predicates, slots, records, n_records, scratch):
    """Write records for trees: leaves in order, each knowing where to go on TRUE and on not TRUE.

        (a OR b) AND c      a: TRUE -> c, else b      b: TRUE -> c, else FAIL     c: MATCH, FAIL

    scratch is int32[5, longest code].
    """
    n_leaves, n_tokens, on_true, on_false, first = scratch
    for slot in slots:
        begin = expressions.start[slot]
        end = begin + expressions.size[slot]
        _leaf_counts(expressions.code, begin, end, n_leaves, n_tokens)
        on_true[0], on_false[0], first[0] = MATCH, FAIL, 0
        base = records.start[n_records]
        for k in range(end - begin):  # a token comes after its parent: targets are known by then
            token = expressions.code[begin + k]
            if token >= 0:
                at = base + first[k]
                inline(
                    predicates, token,
                    records.attr, records.lo, records.hi, records.ref, at,
                )  # fmt: skip
                records.on_true[at], records.on_false[at] = on_true[k], on_false[k]
                continue
            child, leaf = k + 1, first[k]
            n = token_operands(token)
            for i in range(n):
                on_true[child], on_false[child], first[child] = on_true[k], on_false[k], leaf
                leaf += n_leaves[child]
                if i + 1 < n:
                    if token_is_and(token):
                        on_true[child] = leaf
                    else:
                        on_false[child] = leaf
                child += n_tokens[child]
        records.slot[n_records] = slot
        n_records += 1
        records.start[n_records] = base + n_leaves[0]
    return n_records


class View(NamedTuple):
    """What a search reads."""

    conjunctions: Records
    trees: Records
    predicates: PredicateLayout
    sizes: np.ndarray  # int64[2]: records, those of deleted expressions among them


class Mine(NamedTuple):
    """What a search writes to."""

    board: Board


_RECORDS = Layout(
    Records,
    slot="int32", start="int64", attr="int32", lo="int64", hi="int64", ref="int32",
    on_true="int32", on_false="int32",
)  # fmt: skip
VIEW = Layout(
    View, conjunctions=_RECORDS, trees=_RECORDS, predicates=PREDICATE_TABLE, sizes="int64"
)
MINE = Layout(Mine, board=BOARD)
_view_of, _mine_of = VIEW.reader(), MINE.reader()


@inlined
def _scan_conjunctions(records, n_records, event, n, last, output):
    """Append conjunctions that match to `out`, up to `last`; its end, or -1 when it is full."""
    out, counters = output.out, output.counters
    for r in range(n_records):
        if n == last:
            break
        if records.slot[r] < 0:
            continue
        counters[CANDIDATES] += 1
        i, end = records.start[r], records.start[r + 1]
        while i < end and holds(
            event, records.attr[i], records.lo[i], records.hi[i], records.ref[i]
        ):
            i += 1
        counters[PREDICATES] += min(i + 1, end) - records.start[r]
        if i == end:
            if n == len(out):
                return -1
            out[n] = records.slot[r]
            n += 1
    return n


@inlined
def _scan_trees(records, n_records, event, n, last, output):
    """Append matching trees to `out`, up to `last`; returns its end, or -1 when it is full."""
    out, counters = output.out, output.counters
    for r in range(n_records):
        if n == last:
            break
        if records.slot[r] < 0:
            continue
        counters[CANDIDATES] += 1
        target = np.int32(0)
        while target >= 0:
            i = records.start[r] + target
            counters[PREDICATES] += 1
            is_true = holds(event, records.attr[i], records.lo[i], records.hi[i], records.ref[i])
            target = records.on_true[i] if is_true else records.on_false[i]
        if target == MATCH:
            if n == len(out):
                return -1
            out[n] = records.slot[r]
            n += 1
    return n


@kernel
def scan_batch(bound, mine, bound_query, first, stamp):
    """Match events first..; returns the number of events done (fewer: `out` is full)."""
    view, board, query = _view_of(bound), _mine_of(mine).board, query_of(bound_query)
    events, output, sizes = query.events, query.output, view.sizes
    counters = output.counters
    for e in range(first, len(events.start) - 1):
        candidates, tested = counters[CANDIDATES], counters[PREDICATES]
        post_event(events, e, stamp + e, board)
        event = Posted(events, stamp + e, board, view.predicates)
        first_hit = output.offsets[e]
        last = first_hit + query.most[0]
        n = _scan_conjunctions(
            view.conjunctions, sizes[CONJUNCTIONS], event, first_hit, last, output
        )
        if n >= 0:
            n = _scan_trees(view.trees, sizes[TREES], event, n, last, output)
        if n < 0:
            counters[CANDIDATES], counters[PREDICATES] = candidates, tested
            return e
        finish_event(e, n, 0, 0, 0, output)
    return len(events.start) - 1


@kernel
def close_gaps(records, n_records):
    """Move live records together; returns how many there are."""
    kept, at = 0, 0
    for r in range(n_records):
        begin, end = records.start[r], records.start[r + 1]
        if records.slot[r] < 0:
            continue
        for i in range(begin, end):
            records.attr[at] = records.attr[i]
            records.lo[at] = records.lo[i]
            records.hi[at] = records.hi[i]
            records.ref[at] = records.ref[i]
            if len(records.on_true) > 0:
                records.on_true[at] = records.on_true[i]
                records.on_false[at] = records.on_false[i]
            at += 1
        records.slot[kept] = records.slot[r]
        kept += 1
        records.start[kept] = at
    return kept
