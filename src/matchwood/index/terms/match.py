"""The kernel that matches events, and what searches read and write.

First all leaves that hold are found, as runs of neighbours; each sets its bit and gives out the
slots that need nothing else.  Then the rests of the others are tested against the bits.  A bit for
each slot says that it has been given out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.match import CODES
from matchwood.index.blocks.words import ask_for_code, code_of
from matchwood.index.core.query_kernels import query_of
from matchwood.index.terms.words import (
    END,
    FIRST,
    GROUP,
    JUMP,
    LEAF,
    REST,
    SLOTS,
    SURE,
    Structure,
    Terms,
    Tree,
    high_bits,
    is_last,
    is_true,
    low_bits,
    offset_of,
    sense_of,
)
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import kernel, part, prefetch
from matchwood.kernel.verify_kernels import CANDIDATES, COUNTERS, NODES, PREDICATES, finish_event

N_WORK = len(COUNTERS)

AHEAD = 12
"""How many groups before its turn the steps of a group are asked for."""

MOST_PENDING = 512
"""Groups that are collected before their rests are tested."""

FULL = -1
"""Where the slots of an event end: the output has no room for them."""


class Memory(NamedTuple):
    """What a search writes to: one for each thread."""

    truth: np.ndarray  # int64[leaves / 64 + 1], a bit for each leaf, 0 between events
    given: np.ndarray  # int64[slots / 64 + 1], a bit for each slot, 0 between events
    found: np.ndarray  # int32[, 2], runs of leaves that hold
    pending: np.ndarray  # int64[MOST_PENDING], groups to be tested
    work: np.ndarray  # int64[N_WORK], of the event at hand


VIEW = Layout(
    Structure,
    codes=CODES,
    tree=Layout(Tree, base="int64", start="int64", run="int32[2]"),
    terms=Layout(
        Terms,
        start="int64[2]", sure="int32", group="int64[2]", slot="int32", step="int32[2]",
    ),
)  # fmt: skip
MINE = Layout(Memory, truth="int64", given="int64", found="int32[2]", pending="int64", work="int64")
_view_of, _mine_of = VIEW.reader(), MINE.reader()


# ── leaves that hold ────────────────────────────────────────────────────────────────────────────


@part
def _take_runs(tree, node, found, n):
    """Append the runs of a node; returns the new number, which may be more than there is room."""
    for i in range(tree.start[node], tree.start[node + 1]):
        if n < len(found):
            found[n, FIRST], found[n, END] = tree.run[i, FIRST], tree.run[i, END]
        n += 1
    return n


@part
def _find_key(view, attr, key, scratch, n):
    """Runs of leaves of one attribute whose sets have a key."""
    node = view.codes.n[attr] + code_of(view.codes, attr, key) - 1
    while node > 0:
        n = _take_runs(view.tree, view.tree.base[attr] + node, scratch.found, n)
        scratch.work[NODES] += 1
        node >>= 1
    return n


@part
def _find_keys(view, attr, lo, hi, scratch, n):
    """Runs of leaves of one attribute whose sets meet lo..hi, some of them several times."""
    left = view.codes.n[attr] + code_of(view.codes, attr, lo) - 1
    right = view.codes.n[attr] + code_of(view.codes, attr, hi) - 1
    while right > 0:
        for node in range(max(left, np.int64(1)), right + 1):
            n = _take_runs(view.tree, view.tree.base[attr] + node, scratch.found, n)
            scratch.work[NODES] += 1
        left >>= 1
        right >>= 1
    return n


@part
def _find_runs(view, events, e, scratch):
    """Runs of all leaves that an event satisfies; returns how many, which may be too many."""
    n_attributes, n = len(view.codes.n), np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr < n_attributes:
            ask_for_code(view.codes, attr, events.lo[entry])
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr >= n_attributes or view.codes.n[attr] == 0:
            continue
        lo, hi = events.lo[entry], events.hi[entry]
        if lo == hi:
            n = _find_key(view, attr, lo, scratch, n)
        elif len(events.more) == 0 or events.more[entry] < 0:
            n = _find_keys(view, attr, lo, hi, scratch, n)
        else:
            which = events.more[entry]
            for i in range(events.more_start[which], events.more_start[which + 1]):
                n = _find_keys(view, attr, events.more_lo[i], events.more_hi[i], scratch, n)
    return n


@part
def _set_bits(truth, first, last):
    """Set the bits first .. last."""
    begin, end = first >> 6, last >> 6
    if begin == end:
        truth[begin] |= high_bits(first & 63) & low_bits(last & 63)
        return
    truth[begin] |= high_bits(first & 63)
    for i in range(begin + 1, end):
        truth[i] = -1
    truth[end] |= low_bits(last & 63)


@part
def _clear(scratch, n_runs, out, first, n):
    """Clear the bits of all leaves that hold, and of the slots out[first:n]."""
    for r in range(n_runs):
        begin, last = np.int64(scratch.found[r, FIRST]), np.int64(scratch.found[r, END]) - 1
        for i in range(begin >> 6, (last >> 6) + 1):
            scratch.truth[i] = 0
    for i in range(first, n):
        scratch.given[np.int64(out[i]) >> 6] = 0


# ── slots ───────────────────────────────────────────────────────────────────────────────────────


@part
def _give(slot, begin, end, given, out, n):
    """Append slot[begin:end] but those that are given out already; returns the end, or FULL.

    No branch depends on what was given: a wrong guess would cost more than the copy.
    """
    if n + (end - begin) > len(out):
        return np.int64(FULL)
    at = np.uint64(n)
    for i in range(np.uint64(begin), np.uint64(end)):
        s = np.int64(slot[i])
        word, bit = np.uint64(s >> 6), s & 63
        before = given[word]
        given[word] = before | (np.int64(1) << bit)
        out[at] = s
        at += np.uint64(1) - np.uint64((before >> bit) & 1)
    return np.int64(at)


@part
def _give_sure(terms, n_runs, scratch, out, n, most):
    """Set the bits of all leaves that hold, and give out what they satisfy alone."""
    found, first = scratch.found, n
    for r in range(n_runs):
        begin, end = np.int64(found[r, FIRST]), np.int64(found[r, END])
        prefetch(terms.start, 2 * begin)
        prefetch(terms.start, 2 * end)
        _set_bits(scratch.truth, begin, end - 1)
        scratch.work[PREDICATES] += end - begin
    for r in range(n_runs):
        prefetch(terms.sure, terms.start[found[r, FIRST], SURE])
        prefetch(terms.group, 2 * terms.start[found[r, FIRST], GROUP])
    for r in range(n_runs):
        begin, end = terms.start[found[r, FIRST], SURE], terms.start[found[r, END], SURE]
        scratch.work[CANDIDATES] += end - begin
        n = _give(terms.sure, begin, end, scratch.given, out, n)
        if n < 0 or n - first >= most:
            return n
    return n


@part
def _holds(step, at, scratch):
    """Whether the rest that begins with a step holds."""
    while True:
        leaf, jump = step[at, LEAF], step[at, JUMP]
        now = is_true(scratch.truth, leaf)
        scratch.work[PREDICATES] += 1
        if now == sense_of(jump):
            if offset_of(jump) == 0:
                return now == 1
            at += offset_of(jump)
        elif is_last(jump):
            return now == 1
        else:
            at += 1


@part
def _test_groups(terms, scratch, n_pending, out, n):
    """Give out the slots of pending groups whose rest holds; returns the end, or FULL."""
    pending, group, kept = scratch.pending, terms.group, np.int64(0)
    for i in range(min(np.int64(AHEAD), n_pending)):
        prefetch(terms.step, 2 * group[pending[i], REST])
    for i in range(n_pending):
        if i + AHEAD < n_pending:
            prefetch(terms.step, 2 * group[pending[i + AHEAD], REST])
        g = pending[i]
        scratch.work[CANDIDATES] += group[g + 1, SLOTS] - group[g, SLOTS]
        if _holds(terms.step, group[g, REST], scratch):
            prefetch(terms.slot, group[g, SLOTS])
            pending[kept] = g
            kept += 1
    for i in range(kept):
        begin, end = group[pending[i], SLOTS], group[pending[i] + 1, SLOTS]
        n = _give(terms.slot, begin, end, scratch.given, out, n)
        if n < 0:
            return n
    return n


@part
def _give_tested(terms, n_runs, scratch, out, n, most):
    """Give out what leaves that hold satisfy together with a rest; returns the end, or FULL."""
    found, first, n_pending = scratch.found, n, np.int64(0)
    for r in range(n_runs):
        begin, end = terms.start[found[r, FIRST], GROUP], terms.start[found[r, END], GROUP]
        for group in range(begin, end):
            scratch.pending[n_pending] = group
            n_pending += 1
            if n_pending == MOST_PENDING:
                n = _test_groups(terms, scratch, n_pending, out, n)
                n_pending = np.int64(0)
                if n < 0 or n - first >= most:
                    return n
    return _test_groups(terms, scratch, n_pending, out, n)


@kernel
def match_terms(bound, bound_mine, bound_query, first, stamp):
    """Match events; returns how many are done (fewer: `out` is full).

    ~that, with the number in work[NODES], when scratch has no room for the runs of an event.
    """
    view, scratch, query = _view_of(bound), _mine_of(bound_mine), query_of(bound_query)
    events, output, work = query.events, query.output, scratch.work
    out = output.out
    for e in range(first, len(events.start) - 1):
        for i in range(len(work)):
            work[i] = 0
        begin, most = output.offsets[e], query.most[0]
        n_runs = _find_runs(view, events, e, scratch)
        if n_runs > len(scratch.found):
            work[NODES] = n_runs
            return ~np.int64(e)
        n = _give_sure(view.terms, n_runs, scratch, out, begin, most)
        if n >= 0 and n - begin < most:
            n = _give_tested(view.terms, n_runs, scratch, out, n, most - (n - begin))
        if n < 0:
            for i in range(len(scratch.given)):
                scratch.given[i] = 0
            _clear(scratch, n_runs, out, begin, begin)
            return e
        _clear(scratch, n_runs, out, begin, n)
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
