"""Kernels that find, block by block, which members have open gates for many events.

    events ──► visits (block, event) ──► by block ──► open members (event, entry) ──► by event

A block is then read once for all events of a group that reach it.  Which of its members have the
first gate on an attribute that the event has, two sets of MARKS bits tell: one of the attributes of
first gates, one of the event's attributes; members are chained by attribute.  So an event that has
few of the attributes looks at few members, not at all of a block.

    record of an event   [marks 4 words][prefix 4 bytes, a word][tags, two in a word]
    tag                  attribute 24 | folded code 8; in the order of marks, then those whose mark
                         another attribute of the event has, then 0
    prefix               byte w: marks in the words before w; byte 0: whether two share a mark

Blocks of columns, and those that few events reach, are left to `match_groups`, event by event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.reach import clear_codes, find_spaces
from matchwood.index.blocks.words import (
    FOLDED_ATTRIBUTES,
    HEAD,
    NO_SMALL_GATE,
    ONE,
    is_open,
    is_row_block,
    items_of,
    members_of,
    small_gate_attr,
)
from matchwood.kernel.jit import bits_set, inlined, lowest_bit, part, prefetch

MARKS, MARK_WORDS = 256, 4
MOST_TAGS = 250
"""Attributes of an event that a record has room for: its prefix counts them in bytes."""

FEW_VISITS = 3
"""Visits of a block from which chaining its members is worth it."""

EVENT_BITS, EVENT = 20, 2**20 - 1
"""Of a visit: block << EVENT_BITS | event."""

TOGETHER, AHEAD = 32, 8
"""Visits of a block that are tested together, and visits ahead whose records are asked for."""

NO_ROOM = -1
"""Where a group needs more memory than it has."""

SIX, HALF, LOW, BYTE = np.uint64(6), np.uint64(32), np.uint64(63), np.uint64(255)
WORD_BITS, WORD = 2, 3
"""Bits of a number of a word of marks."""


class Group(NamedTuple):
    """Memory of a group of events."""

    code: np.ndarray  # int32[entries of the batch]
    visit: np.ndarray  # int64[V]
    listed: np.ndarray  # int32[V], the events of all visits, block after block
    block_end: np.ndarray  # int32[B + 1], where those of each block end, beginning with 0
    record: np.ndarray  # int64[]
    tag: np.ndarray  # int32[], the same memory
    record_start: np.ndarray  # int32[G + 1]
    mark: np.ndarray  # int64[MARK_WORDS], attributes of the first gates of a block
    head: np.ndarray  # int16[MARKS + 1], the first member with a mark, from 1; of gates always open
    after: np.ndarray  # int16[MOST_MEMBERS + 1], the next one
    met: np.ndarray  # int64[TOGETHER * MARK_WORDS], marks that a block and an event share
    met_at: np.ndarray  # int64[the same], visit << WORD_BITS | word
    tried: np.ndarray  # int64[TOGETHER * MOST_MEMBERS + 1], visit << 16 | member, from 1
    event: np.ndarray  # int32[C], of an open member
    entry: np.ndarray  # int64[C], its entry; ~block where a block is left
    by_event: np.ndarray  # int64[C], the entries of all events, event after event
    event_end: np.ndarray  # int64[G + 1], where those of each event end, beginning with 0


@inlined
def _rank(record, at, mark):
    """How many marks of a record are below one."""
    word = mark >> SIX
    before = (np.uint64(record[at + np.uint64(MARK_WORDS)]) >> (word << np.uint64(3))) & BYTE
    before = before if word > 0 else np.uint64(0)
    below = record[at + word] & ((np.int64(1) << np.int64(mark & LOW)) - np.int64(1))
    return before + np.uint64(bits_set(below))


@part
def _is_in_record(attr, code):
    """Whether an entry of an event may open a gate of a member."""
    return (code != 0) & (attr < FOLDED_ATTRIBUTES)


@inlined
def _write_record(codes, events, e, at, group, fold_code):
    """Write the record of an event; returns its end, or NO_ROOM for too many attributes."""
    record, tag, code = group.record, group.tag, group.code
    first, end = events.start[e], events.start[e + 1]
    if end - first > MOST_TAGS:
        return np.int64(NO_ROOM)
    at_word, n_shared, tags = np.uint64(at), np.int64(0), np.uint64(2 * (at + MARK_WORDS + 1))
    for w in range(at, at + MARK_WORDS + 2 + ((end - first) >> 1) + 1):
        record[w] = 0
    for i in range(first, end):
        if _is_in_record(events.attr[i], code[i]):
            mark = np.uint64(events.attr[i]) & np.uint64(MARKS - 1)
            bit = np.int64(1) << np.int64(mark & LOW)
            n_shared += np.int64((record[at_word + (mark >> SIX)] & bit) != 0)
            record[at_word + (mark >> SIX)] |= bit
    n, prefix = np.int64(0), np.uint64(n_shared != 0)
    for w in range(MARK_WORDS):
        if w > 0:
            prefix |= np.uint64(n) << np.uint64(8 * w)
        n += bits_set(record[at + w])
    record[at + MARK_WORDS] = np.int64(prefix)
    last = tags + np.uint64(n)
    for i in range(first, end):
        attr = np.int64(events.attr[i])
        if _is_in_record(attr, code[i]):
            to = tags + _rank(record, at_word, np.uint64(attr) & np.uint64(MARKS - 1))
            if tag[to] != 0:
                to = last
                last += ONE
            tag[to] = (attr << 8) | np.int64(fold_code[np.uint64(attr)])
    return np.int64((last + np.uint64(2)) >> ONE)


@inlined
def _has_mark(record, at, gate):
    """Whether an event has the mark of the attribute that a gate is about, as 0 or 1."""
    mark = small_gate_attr(gate) & np.uint64(MARKS - 1)
    return np.uint64(record[at + (mark >> SIX)] >> np.int64(mark & LOW)) & ONE


@inlined
def _is_gate_open(record, tag, at, gate):
    """Whether an event passes the gate in the low half of a word; as `words.is_small_open`.

    No branch depends on the event, unless it has two attributes with one mark.
    """
    attr = small_gate_attr(gate)
    mark, first = attr & np.uint64(MARKS - 1), np.uint64(2) * (at + np.uint64(MARK_WORDS + 1))
    found = np.uint64(tag[first + _rank(record, at, mark)])
    has_mark = _has_mark(record, at, gate)
    is_its = np.uint64(found >> np.uint64(8) == attr)
    code = (found & BYTE) * (has_mark & is_its)
    if (np.uint64(record[at + np.uint64(MARK_WORDS)]) & has_mark & (is_its ^ ONE)) != 0:
        i = first  # it may be behind those of all marks
        while tag[i] != 0:
            if np.uint64(tag[i]) >> np.uint64(8) == attr:
                code = np.uint64(tag[i]) & BYTE
            i += ONE
    above = code - (gate >> np.uint64(8))
    return (above & BYTE) <= (gate & BYTE)


@part
def gather_visits(view, events, first, scratch, group):
    """Write visits and records of events from `first` on; how many visits, and the last event.

    Fewer events than there are if memory ends.
    """
    places, blocks, visit = view.places, view.blocks, group.visit
    n, at, most = np.int64(0), np.int64(0), len(group.record_start) - 1
    last = min(first + most, len(events.start) - 1)
    for e in range(first, last):
        before, g = n, e - first
        n_spaces = find_spaces(view.codes, places, events, e, scratch)
        for i in range(events.start[e], events.start[e + 1]):
            attr = np.uint64(events.attr[i])
            group.code[i] = scratch.code[attr] if attr < np.uint64(len(scratch.code)) else 0
        group.record_start[g] = at
        room = MARK_WORDS + 3 + ((events.start[e + 1] - events.start[e]) >> 1)
        end = np.int64(NO_ROOM)
        if at + room <= len(group.record):
            end = _write_record(view.codes, events, e, at, group, scratch.fold_code)
        for i in range(np.uint64(n_spaces)):
            space = np.uint64(scratch.found[i])
            for b in range(np.uint64(places.block[space]), np.uint64(places.block[space + ONE])):
                if n < len(visit):
                    visit[np.uint64(n)] = (np.int64(b) << EVENT_BITS) | g
                n += np.int64(is_open(blocks.gate[b], scratch.code))
        clear_codes(events, e, scratch)
        if end == NO_ROOM or n > len(visit):
            return before, e
        at = end
    return n, last


@part
def list_by_block(group, n):
    """List the events of all visits, block after block."""
    end, visit, listed = group.block_end, group.visit, group.listed
    for b in range(len(end)):
        end[b] = 0
    for i in range(np.uint64(n)):
        end[np.uint64(visit[i] >> EVENT_BITS) + ONE] += 1
    at = np.int64(0)
    for b in range(1, len(end)):  # for now where the next event of block b - 1 goes
        at, end[b] = at + end[b], at
    for i in range(np.uint64(n)):
        b = np.uint64(visit[i] >> EVENT_BITS) + ONE
        listed[np.uint64(end[b])] = visit[i] & EVENT
        end[b] += 1


@inlined
def _chain_members(word, at, group):
    """Chain the members of a row block by the mark of their first gates."""
    mark, head, after = group.mark, group.head, group.after
    for w in range(MARK_WORDS):
        mark[w] = 0
    for i in range(len(head)):
        head[i] = 0
    gates = np.uint64(at + HEAD)
    for m in range(np.uint64(members_of(word[at]))):
        gate = np.uint64(word[gates + m])
        of = small_gate_attr(gate) & np.uint64(MARKS - 1)
        if gate & np.uint64(0xFFFFFFFF) == np.uint64(NO_SMALL_GATE):
            of = np.uint64(MARKS)
        else:
            mark[of >> SIX] |= np.int64(1) << np.int64(of & LOW)
        after[m + ONE] = head[of]
        head[of] = np.int64(m) + 1


@inlined
def _meet(group, first, end):
    """Note which marks of the block each event of some visits has; returns how many words."""
    record, mark, met, met_at = group.record, group.mark, group.met, group.met_at
    n, last = np.uint64(0), np.int64(group.block_end[len(group.block_end) - 1])
    for v in range(first, end):
        if v + AHEAD < last:
            ahead = group.record_start[np.uint64(group.listed[v + AHEAD])]
            prefetch(record, ahead)
            prefetch(record, ahead + 8)
        at = np.uint64(group.record_start[np.uint64(group.listed[v])])
        for w in range(np.uint64(MARK_WORDS)):
            met[n] = record[at + w] & mark[w]
            met_at[n] = (v << WORD_BITS) | np.int64(w)
            n += np.uint64(met[n] != 0)
    return np.int64(n)


@inlined
def _try_chain(blocks, at, v, m, group, n):
    """Note the members of a chain whose second gates may be open for a visit; returns how many."""
    word, record, tried = blocks.word, group.record, group.tried
    gates = np.uint64(at + HEAD - 1)
    of = np.uint64(group.record_start[np.uint64(group.listed[np.uint64(v)])])
    while m != 0:
        tried[np.uint64(n)] = (v << 16) | m
        gate = np.uint64(word[gates + np.uint64(m)]) >> HALF
        n += np.int64(_has_mark(record, of, gate) | np.uint64(gate == np.uint64(NO_SMALL_GATE)))
        m = np.int64(group.after[np.uint64(m)])
    return n


@inlined
def _test_visits(blocks, at, first, end, group, n):
    """Append the open members of a row block for the events of some visits; returns how many."""
    word, half, n_tried = blocks.word, blocks.half, np.int64(0)
    record, tag = group.record, group.tag
    for q in range(_meet(group, first, end)):
        met, of, v = group.met[q], (group.met_at[q] & WORD) << 6, group.met_at[q] >> WORD_BITS
        while met != 0:
            m = np.int64(group.head[np.uint64(of + lowest_bit(met))])
            met &= met - np.int64(1)
            n_tried = _try_chain(blocks, at, v, m, group, n_tried)
    if group.head[MARKS] != 0:
        for v in range(first, end):
            n_tried = _try_chain(blocks, at, v, np.int64(group.head[MARKS]), group, n_tried)
    gates, items, to = np.uint64(at + HEAD - 1), np.uint64(items_of(word, at) - 1), np.uint64(n)
    for k in range(np.uint64(n_tried)):
        g = np.uint64(group.listed[np.uint64(group.tried[k] >> 16)])
        m, of = np.uint64(group.tried[k] & 0xFFFF), np.uint64(group.record_start[g])
        i, gate = items + m, np.uint64(word[gates + m])
        group.event[to], group.entry[to] = g, np.int64(i >> ONE) + half[i]
        is_open = _is_gate_open(record, tag, of, gate) & _is_gate_open(
            record, tag, of, gate >> HALF
        )
        to += np.uint64(is_open)
    return np.int64(to)


@part
def test_by_block(blocks, group):
    """Find open members of all blocks, and blocks that are left; how many, visits, members.

    NO_ROOM in place of the first if there are too many.
    """
    n, n_visits, n_members = np.int64(0), np.int64(0), np.int64(0)
    end, word = group.block_end, blocks.word
    for b in range(len(end) - 1):
        first, last = np.int64(end[b]), np.int64(end[b + 1])
        if b + 4 < len(end) and end[b + 3] < end[b + 4]:
            for line in range(0, 48, 8):
                prefetch(word, blocks.at[b + 3] + line)
        if first == last:
            continue
        at = blocks.at[b]
        if last - first < FEW_VISITS or not is_row_block(word[at]):
            if n + last - first > len(group.event):
                return np.int64(NO_ROOM), n_visits, n_members
            for v in range(first, last):
                group.event[n], group.entry[n] = group.listed[v], ~at
                n += 1
            continue
        size = members_of(word[at])
        n_visits += last - first
        n_members += (last - first) * size
        _chain_members(word, at, group)
        for v in range(first, last, TOGETHER):
            if n + TOGETHER * size >= len(group.event):
                return np.int64(NO_ROOM), n_visits, n_members
            n = _test_visits(blocks, at, v, min(v + TOGETHER, last), group, n)
    return n, n_visits, n_members


@part
def list_by_event(group, n):
    """List what was found, event after event."""
    end, event = group.event_end, group.event
    for g in range(len(end)):
        end[g] = 0
    for i in range(np.uint64(n)):
        end[np.uint64(event[i]) + ONE] += 1
    at = np.int64(0)
    for g in range(1, len(end)):
        at, end[g] = at + end[g], at
    for i in range(np.uint64(n)):
        g = np.uint64(event[i]) + ONE
        group.by_event[np.uint64(end[g])] = group.entry[i]
        end[g] += 1
