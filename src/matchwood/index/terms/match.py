"""The kernel that matches events, and what searches read and write.

First the nodes of segment trees that an event reaches are found.  The piece of each says which
leaves hold: these set their bits; and which slots need nothing else: these are given out.  Then the
rests of the others are tested against the bits.  A bit for each slot says that it has been given
out.

Positions in inner loops are unsigned: a signed one is compared with 0 at every access.
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
    HEAD,
    JUMP,
    LEAF,
    N_COPIES,
    N_RANGES,
    N_RUNS,
    N_SLICES,
    REST,
    SLOTS,
    Structure,
    Terms,
    Tree,
    high_bits,
    is_last,
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

ONE, TWO, SIX, LOW = np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(63)

ASKED, LINE = 128, 16
"""Words of a piece that are asked for when its node is found, and words of a cache line."""

FULL = -1
"""Where the slots of an event end: the output has no room for them."""


class Memory(NamedTuple):
    """What a search writes to: one for each thread."""

    truth: np.ndarray  # int64[leaves / 64 + 1], a bit for each leaf, 0 between events
    given: np.ndarray  # int64[slots / 64 + 1], a bit for each slot, 0 between events
    found: np.ndarray  # int64[], nodes that the event reaches, then where their pieces begin
    pending: np.ndarray  # int64[MOST_PENDING], groups to be tested
    work: np.ndarray  # int64[N_WORK], of the event at hand


VIEW = Layout(
    Structure,
    codes=CODES,
    tree=Layout(Tree, base="int64", start="int64", piece="int32", leaf="int32"),
    terms=Layout(Terms, sure="int32", group="int64[2]", slot="int32", step="int32[2]"),
)
MINE = Layout(Memory, truth="int64", given="int64", found="int64", pending="int64", work="int64")
_view_of, _mine_of = VIEW.reader(), MINE.reader()


# ── nodes that an event reaches ─────────────────────────────────────────────────────────────────


@part
def _take_node(tree, node, found, n):
    """Append a node; returns the new number, which may be more than there is room."""
    prefetch(tree.start, node)
    if n < len(found):
        found[n] = node
    return n + 1


@part
def _find_key(view, attr, key, scratch, n):
    """Nodes of one attribute whose keys include a key."""
    node = view.codes.n[attr] + code_of(view.codes, attr, key) - 1
    while node > 0:
        n = _take_node(view.tree, view.tree.base[attr] + node, scratch.found, n)
        node >>= 1
    return n


@part
def _find_keys(view, attr, lo, hi, scratch, n):
    """Nodes of one attribute whose keys meet lo..hi, some of them several times."""
    left = view.codes.n[attr] + code_of(view.codes, attr, lo) - 1
    right = view.codes.n[attr] + code_of(view.codes, attr, hi) - 1
    while right > 0:
        for node in range(max(left, np.int64(1)), right + 1):
            n = _take_node(view.tree, view.tree.base[attr] + node, scratch.found, n)
        left >>= 1
        right >>= 1
    return n


@part
def _find_nodes(view, events, e, scratch):
    """Nodes of all leaves that an event satisfies; returns how many, which may be too many."""
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
def _find_pieces(tree, n_nodes, found):
    """Replace nodes by where their pieces begin; returns how many have one."""
    n = np.int64(0)
    for i in range(n_nodes):
        at, end = tree.start[found[i]], tree.start[found[i] + 1]
        for line in range(at, min(end, at + ASKED), LINE):
            prefetch(tree.piece, line)
        found[n] = at
        n += np.int64(at < end)
    return n


@part
def _set_bits(truth, first, last):
    """Set the bits first .. last, which are unsigned."""
    begin, end = first >> SIX, last >> SIX
    if begin == end:
        truth[begin] |= high_bits(first & LOW) & low_bits(last & LOW)
        return
    truth[begin] |= high_bits(first & LOW)
    for i in range(begin + ONE, end):
        truth[i] = -1
    truth[end] |= low_bits(last & LOW)


@part
def _number(piece, at, which):
    """A count of a piece, or a number of one of its pairs."""
    return np.uint64(piece[at + np.uint64(which)])


@part
def _parts_of(piece, at):
    """Where the runs, the ranges, the slices and the copies of a piece begin, and its end."""
    runs = at + np.uint64(HEAD)
    ranges = runs + TWO * _number(piece, at, N_RUNS)
    slices = ranges + TWO * _number(piece, at, N_RANGES)
    copies = slices + TWO * _number(piece, at, N_SLICES)
    return runs, ranges, slices, copies, copies + _number(piece, at, N_COPIES)


@part
def _clear(tree, scratch, n_pieces, out, first, n):
    """Clear the bits of all leaves that hold, and of the slots out[first:n]."""
    piece, truth, given = tree.piece, scratch.truth, scratch.given
    for p in range(n_pieces):
        r, end, _, _, _ = _parts_of(piece, np.uint64(scratch.found[p]))
        while r < end:
            begin, last = _number(piece, r, FIRST), _number(piece, r, END) - ONE
            truth[begin >> SIX] = 0
            for i in range((begin >> SIX) + ONE, (last >> SIX) + ONE):
                truth[i] = 0
            r += TWO
    for i in range(np.uint64(first), np.uint64(n)):
        given[np.uint64(out[i]) >> SIX] = 0


# ── slots ───────────────────────────────────────────────────────────────────────────────────────


@part
def _give(slot, begin, end, given, out, n):
    """Append slot[begin:end] but those that are given out already; returns the end, or FULL.

    No branch depends on what was given: a wrong guess would cost more than the copy.
    """
    if n + np.int64(end - begin) > len(out):
        return np.int64(FULL)
    at = np.uint64(n)
    for i in range(begin, end):
        s = np.uint64(slot[i])
        word, bit = s >> SIX, np.int64(s & LOW)
        before = given[word]
        given[word] = before | (np.int64(1) << bit)
        out[at] = np.int64(s)
        at += ONE - np.uint64((before >> bit) & 1)
    return np.int64(at)


@part
def _set_leaves(view, n_pieces, scratch):
    """Set the bits of all leaves that hold; ask for what is given out and tested later."""
    piece, sure, group = view.tree.piece, view.terms.sure, view.terms.group
    n_leaves = np.uint64(0)
    for p in range(n_pieces):
        r, ranges, slices, copies, _ = _parts_of(piece, np.uint64(scratch.found[p]))
        while r < ranges:
            begin, end = _number(piece, r, FIRST), _number(piece, r, END)
            _set_bits(scratch.truth, begin, end - ONE)
            n_leaves += end - begin
            r += TWO
        while r < slices:
            prefetch(group, TWO * _number(piece, r, FIRST))
            r += TWO
        while r < copies:
            prefetch(sure, _number(piece, r, FIRST))
            r += TWO
    scratch.work[PREDICATES] += np.int64(n_leaves)


@part
def _give_sure(view, n_pieces, scratch, out, n, most):
    """Give out what leaves that hold satisfy alone; returns the end, or FULL."""
    piece, first, n_tried = view.tree.piece, n, np.uint64(0)
    for p in range(n_pieces):
        _, _, r, copies, end = _parts_of(piece, np.uint64(scratch.found[p]))
        n_tried += end - copies
        n = _give(piece, copies, end, scratch.given, out, n)
        while r < copies and n >= 0:
            begin, end = _number(piece, r, FIRST), _number(piece, r, END)
            n_tried += end - begin
            n = _give(view.terms.sure, begin, end, scratch.given, out, n)
            r += TWO
        if n < 0 or n - first >= most:
            break
    scratch.work[CANDIDATES] += np.int64(n_tried)
    return n


@part
def _holds(step, at, truth):
    """1 if the rest that begins with a step holds, else 0; and how many steps were done."""
    n = np.int64(1)
    while True:
        leaf, jump = np.uint64(step[at, LEAF]), step[at, JUMP]
        now = (truth[leaf >> SIX] >> np.int64(leaf & LOW)) & 1
        if now == sense_of(jump):
            if offset_of(jump) == 0:
                break
            at += np.uint64(offset_of(jump))
        elif is_last(jump):
            break
        else:
            at += ONE
        n += 1
    return now, n


@part
def _test_groups(terms, scratch, n_pending, out, n):
    """Give out the slots of pending groups whose rest holds; returns the end, or FULL."""
    pending, group, kept = scratch.pending, terms.group, np.uint64(0)
    n_tried, n_steps, last = np.int64(0), np.int64(0), np.uint64(max(n_pending, np.int64(1)) - 1)
    for i in range(min(np.uint64(AHEAD), np.uint64(n_pending))):
        prefetch(terms.step, 2 * group[np.uint64(pending[i]), REST])
    for i in range(np.uint64(n_pending)):
        ahead = np.uint64(pending[min(i + np.uint64(AHEAD), last)])
        prefetch(terms.step, 2 * group[ahead, REST])
        g = np.uint64(pending[i])
        n_tried += group[g + ONE, SLOTS] - group[g, SLOTS]
        now, steps = _holds(terms.step, np.uint64(group[g, REST]), scratch.truth)
        n_steps += steps
        prefetch(terms.slot, group[g, SLOTS])
        pending[kept] = np.int64(g)
        kept += np.uint64(now)
    scratch.work[CANDIDATES] += n_tried
    scratch.work[PREDICATES] += n_steps
    for i in range(kept):
        g = np.uint64(pending[i])
        begin, end = np.uint64(group[g, SLOTS]), np.uint64(group[g + ONE, SLOTS])
        n = _give(terms.slot, begin, end, scratch.given, out, n)
        if n < 0:
            return n
    return n


@part
def _give_tested(view, n_pieces, scratch, out, n, most):
    """Give out what leaves that hold satisfy together with a rest; returns the end, or FULL."""
    piece, terms, first, n_pending = view.tree.piece, view.terms, n, np.int64(0)
    for p in range(n_pieces):
        _, r, ranges_end, _, _ = _parts_of(piece, np.uint64(scratch.found[p]))
        while r < ranges_end:
            for group in range(_number(piece, r, FIRST), _number(piece, r, END)):
                scratch.pending[n_pending] = np.int64(group)
                n_pending += 1
                if n_pending == MOST_PENDING:
                    n = _test_groups(terms, scratch, n_pending, out, n)
                    n_pending = np.int64(0)
                    if n < 0 or n - first >= most:
                        return n
            r += TWO
    return _test_groups(terms, scratch, n_pending, out, n)


@kernel
def match_terms(bound, bound_mine, bound_query, first, stamp):
    """Match events; returns how many are done (fewer: `out` is full).

    ~that, with the number in work[NODES], when scratch has no room for the nodes of an event.
    """
    view, scratch, query = _view_of(bound), _mine_of(bound_mine), query_of(bound_query)
    events, output, work = query.events, query.output, scratch.work
    out = output.out
    for e in range(first, len(events.start) - 1):
        for i in range(len(work)):
            work[i] = 0
        begin, most = output.offsets[e], query.most[0]
        n_nodes = _find_nodes(view, events, e, scratch)
        work[NODES] = n_nodes
        if n_nodes > len(scratch.found):
            return ~np.int64(e)
        n_pieces = _find_pieces(view.tree, n_nodes, scratch.found)
        _set_leaves(view, n_pieces, scratch)
        n = _give_sure(view, n_pieces, scratch, out, begin, most)
        if n >= 0 and n - begin < most:
            n = _give_tested(view, n_pieces, scratch, out, n, most - (n - begin))
        if n < 0:
            for i in range(len(scratch.given)):
                scratch.given[i] = 0
            _clear(view.tree, scratch, n_pieces, out, begin, begin)
            return e
        _clear(view.tree, scratch, n_pieces, out, begin, n)
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
