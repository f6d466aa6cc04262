"""Kernels that match events against `pst_bloom`: find spaces, sieve by signature, verify."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.core.layout_kernels import BOARD, EXPRESSION_TABLE, PREDICATE_TABLE
from matchwood.index.core.query_kernels import query_of
from matchwood.index.pst.access import SEEN
from matchwood.index.pst.entries import Entries, after_intervals
from matchwood.index.pst.records import Records
from matchwood.index.pst.signatures import Signatures, sign_event
from matchwood.index.pst.spaces import Spaces, position_of
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import inlined, kernel, prefetch
from matchwood.kernel.posting_kernels import (
    clear_offsets,
    entry_slot,
    first_failing,
    first_impossible,
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
)


class Search(NamedTuple):
    """What a search writes to: one per index and scratch."""

    posted: np.ndarray  # int64[attributes], offsets of the event's keys, -1 between events
    found: np.ndarray  # int64[2 * attributes], the spaces of an event
    picks: np.ndarray  # int32, room for all expressions
    seen: np.ndarray  # int64[slots], when each was last found; read for events of sets alone
    clock: np.ndarray  # int64[1], counts events of sets
    work: np.ndarray  # int64[len(COUNTERS)], of the event at hand
    sieve: np.ndarray  # int64[3]
    absent: np.ndarray  # int64[W], the bits of a signature that the event does not have
    learned: np.ndarray  # int32[, 2], attribute and space of the values of sampled events
    count: np.ndarray  # int64[2], N_LEARNED, N_SAMPLED


N_LEARNED, N_SAMPLED = range(2)
"""Positions in `count`: rows of `learned`, and the events that they are from."""

NO_SPACE = -1

TRIED, PASSED, HELD = range(3)
"""Positions in `sieve`: candidates looked at, those that their signature let through, matches."""


class View(NamedTuple):
    """What a search reads."""

    spaces: Spaces
    records: Records
    entries: Entries
    signatures: Signatures
    expressions: ExpressionLayout
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to."""

    search: Search
    board: Board


SPACES = Layout(
    Spaces,
    start="int64", size="int32", room="int8", item="int32", free="int32", count="int64",
    cut="int64", uses="int32",
)  # fmt: skip
RECORDS = Layout(
    Records,
    start="int64", size="int32", room="int8", item="int32", free="int32", count="int64",
    mark="int64[2]",
)  # fmt: skip
ENTRIES = Layout(
    Entries, word="int64", origin="int64", free="int64", count="int64", skipped="int64"
)
SIGNATURES = Layout(Signatures, low="int64", scale="float64")
VIEW = Layout(
    View,
    spaces=SPACES, records=RECORDS, entries=ENTRIES, signatures=SIGNATURES,
    expressions=EXPRESSION_TABLE, predicates=PREDICATE_TABLE,
)  # fmt: skip
MINE = Layout(
    Mine,
    search=Layout(
        Search,
        posted="int64", found="int64", picks="int32", seen="int64", clock="int64", work="int64",
        sieve="int64", absent="int64", learned="int32[2]", count="int64",
    ),
    board=BOARD,
)  # fmt: skip
_view_of, _mine_of = VIEW.reader(), MINE.reader()

LINE = 16
"""Items in a cache line; half as many words."""

AHEAD = np.uint64(16)
"""How many entries before its turn an entry is asked for."""


@inlined
def sieve_list(records, space, absent, picks, n):
    """Append the refs of a space whose signature the event covers; returns their number.

    No branch depends on the outcome: a wrong guess would cost more than the test.
    """
    first = np.uint64(records.start[space])
    end = first + np.uint64(records.size[space])
    if len(absent) == 1:
        missing = absent[0]
        for i in range(first, end):
            picks[n] = records.item[i]
            n += np.uint64((records.mark[i, 0] & missing) == 0)
    else:
        for i in range(first, end):
            wanted = np.int64(0)
            for w in range(len(absent)):
                wanted |= records.mark[i, w] & absent[w]
            picks[n] = records.item[i]
            n += np.uint64(wanted == 0)
    return n


@inlined
def find_spaces(spaces, records, events, e, scratch):
    """Step 1: the spaces of an event's values are in found; returns how many.

    Memory that the next step reads is prefetched for all attributes before the first is read, so
    that their cache misses overlap.
    """
    first, end = events.start[e], events.start[e + 1]
    for entry in range(first, end):
        prefetch(spaces.size, 2 * np.int64(events.attr[entry]))
        prefetch(spaces.start, 2 * np.int64(events.attr[entry]))
    for entry in range(first, end):
        dim = 2 * np.int64(events.attr[entry])
        if dim < len(spaces.size):
            prefetch(spaces.cut, spaces.start[dim])
            prefetch(spaces.item, spaces.start[dim])
    n = np.int64(0)
    for entry in range(first, end):
        attr = np.int64(events.attr[entry])
        if 2 * attr >= len(spaces.size):
            continue
        for dim in range(2 * attr, 2 * attr + 2):
            if spaces.size[dim] > 0:
                space = spaces.item[position_of(spaces, dim, events.lo[entry])]
                prefetch(records.size, space)
                prefetch(records.start, space)
                scratch.found[n] = space
                n += 1
    return n


@inlined
def _ask_for_list(records, space, n_words):
    """Prefetch all records of a space while those of another are sieved: a third of the time."""
    first = np.int64(records.start[space])
    for at in range(first, first + records.size[space], LINE):
        prefetch(records.item, at)
        for line in range(2 * n_words):
            prefetch(records.mark, at * n_words + line * LINE // 2)


@inlined
def sieve_spaces(records, absent, scratch, n_spaces):
    """Step 2: the refs whose signature the event covers are in picks; returns how many."""
    n, tried = np.uint64(0), np.int64(0)
    for i in range(n_spaces):
        tried += records.size[scratch.found[i]]
        prefetch(records.item, records.start[scratch.found[i]])
        prefetch(records.mark, records.start[scratch.found[i]] * len(absent))
    for i in range(n_spaces):
        _ask_for_list(records, scratch.found[min(i + 1, n_spaces - 1)], len(absent))
        n = sieve_list(records, scratch.found[i], absent, scratch.picks, n)
    scratch.work[NODES] += n_spaces
    scratch.work[CANDIDATES] += tried
    scratch.sieve[TRIED] += tried
    return n


@inlined
def learn(spaces, events, e, scratch):
    """Note an event: its attributes, and the spaces of their fine divisions."""
    scratch.count[N_SAMPLED] += 1
    n = scratch.count[N_LEARNED]
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if 2 * attr < len(spaces.size):
            scratch.learned[n, 0] = attr
            scratch.learned[n, 1] = NO_SPACE
            if spaces.size[2 * attr] > 0:
                scratch.learned[n, 1] = spaces.item[position_of(spaces, 2 * attr, events.lo[entry])]
            n += 1
    scratch.count[N_LEARNED] = n


@kernel
def absorb_events(scratch, homes, statistics):
    """Add what `learn` has noted to the counts of the index."""
    statistics.total[SEEN] += scratch.count[N_SAMPLED]
    for i in range(scratch.count[N_LEARNED]):
        attr, space = np.int64(scratch.learned[i, 0]), np.int64(scratch.learned[i, 1])
        if attr < len(statistics.seen):
            statistics.seen[attr] += 1
        if space != NO_SPACE and space < len(homes.space_seen):
            homes.space_seen[space] += 1


@inlined
def _meet_spaces(spaces, records, entries, dim, lo, hi, scratch, n):
    """Append the refs of all spaces that lo..hi meets, each expression once."""
    clock = scratch.clock[0]
    for position in range(position_of(spaces, dim, lo), position_of(spaces, dim, hi) + 1):
        space = spaces.item[position]
        scratch.work[NODES] += 1
        for i in range(records.start[space], records.start[space] + records.size[space]):
            ref = records.item[i]
            slot = entry_slot(entries.word[ref])
            if scratch.seen[slot] != clock:
                scratch.seen[slot] = clock
                scratch.picks[n] = ref
                n += np.uint64(1)
    return n


@inlined
def gather_sets(spaces, records, entries, events, e, scratch, n):
    """As `sieve_spaces`, for an event of sets: all members of its spaces, without signatures."""
    scratch.clock[0] += 1
    before = n
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if 2 * attr >= len(spaces.size):
            continue
        for dim in range(2 * attr, 2 * attr + 2):
            if spaces.size[dim] == 0:
                continue
            which = np.int64(-1) if len(events.more) == 0 else np.int64(events.more[entry])
            if which < 0:
                n = _meet_spaces(
                    spaces, records, entries, dim, events.lo[entry], events.hi[entry], scratch, n
                )
                continue
            for i in range(events.more_start[which], events.more_start[which + 1]):
                n = _meet_spaces(
                    spaces, records, entries, dim, events.more_lo[i], events.more_hi[i], scratch, n
                )
    scratch.work[CANDIDATES] += np.int64(n - before)
    return n


@inlined
def verify(entries, event, scratch, n_sieved, n_picks, n, out):
    """Step 3: append what holds to `out`; returns its end, or -1 when it may become full.

    The first n_sieved picks have passed the sieve.
    """
    if n + np.int64(n_picks) > len(out):
        return np.int64(-1)
    word, tested, before, sieved_end = entries.word, np.int64(0), n, n
    for i in range(n_picks):
        ahead = np.int64(scratch.picks[min(i + AHEAD, n_picks - np.uint64(1))])
        prefetch(word, ahead)
        prefetch(word, ahead + 7)
        if i == n_sieved:
            sieved_end = n
        ref = np.uint64(scratch.picks[i])
        head = word[ref]
        end = ref + np.uint64(head >> 32)
        at, verdict = after_intervals(word, ref + np.uint64(1), end, scratch.posted)
        tested += np.int64(at - ref) - 1
        if at < end and verdict >= 0:
            at, tested = first_failing(word, at, end, event, scratch.posted, tested)
            verdict = np.int64(at) - np.int64(end)
        out[n] = entry_slot(head)
        n += verdict >= 0
    scratch.work[PREDICATES] += tested
    scratch.sieve[PASSED] += np.int64(n_sieved)
    scratch.sieve[HELD] += (sieved_end if n_sieved < n_picks else n) - before
    return n


@inlined
def verify_sets(entries, event, expressions, scratch, n_picks, n, out):
    """As `verify`, for an event of sets; apart, since one loop for both is half as fast."""
    if n + np.int64(n_picks) > len(out):
        return np.int64(-1)
    word, tested = entries.word, np.int64(0)
    for i in range(n_picks):
        ref = np.uint64(scratch.picks[i])
        head = word[ref]
        end = ref + np.uint64(head >> 32)
        at, tested = first_impossible(
            word, ref + np.uint64(1), end, event, expressions, entry_slot(head), tested
        )
        out[n] = entry_slot(head)
        n += at >= end
    scratch.work[PREDICATES] += tested
    return n


@inlined
def begin_event(events, e, now, board, predicates, work):
    """Post an event and set the counters of its work to 0; returns it for verification."""
    post_event(events, e, now, board)
    for i in range(len(work)):
        work[i] = 0
    return Posted(events, now, board, predicates)


@inlined
def end_event(spaces, events, e, now, every, scratch, n, output):
    """Count an event whose matches end at n, and note it if its turn has come (`match_bloom`)."""
    if every > 0 and now % every == 0:
        learn(spaces, events, e, scratch)
    work = scratch.work
    finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)


@kernel
def match_bloom(bound, mine, every, is_plain, bound_query, first, stamp):
    """Match events first..; returns how many are done.

    every  one event in so many is noted, 0: none
    """
    view, memory, query = _view_of(bound), _mine_of(mine), query_of(bound_query)
    events, output = query.events, query.output
    spaces, records, entries, signatures = view.spaces, view.records, view.entries, view.signatures
    scratch, out = memory.search, output.out
    n = output.offsets[first]
    for e in range(first, len(events.start) - 1):
        now = stamp + e
        event = begin_event(events, e, now, memory.board, view.predicates, scratch.work)
        if is_plain:
            sign_event(signatures, events, e, scratch.absent)
            post_offsets(entries, events, e, scratch.posted)
            n_spaces = find_spaces(spaces, records, events, e, scratch)
            n_picks = sieve_spaces(records, scratch.absent, scratch, n_spaces)
            found = verify(entries, event, scratch, n_picks, n_picks, n, out)
            clear_offsets(events, e, scratch.posted)
        else:
            n_picks = gather_sets(spaces, records, entries, events, e, scratch, np.uint64(0))
            found = verify_sets(entries, event, view.expressions, scratch, n_picks, n, out)
        if found < 0:
            return e
        n = found
        end_event(spaces, events, e, now, every, scratch, n, output)
    return len(events.start) - 1
