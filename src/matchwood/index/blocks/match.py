"""Kernels that match events: codes of the keys, spaces, blocks; bits, cells, slots."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.words import (
    HEAD,
    INTERVAL,
    MASK,
    PRESENCE,
    cell_at,
    cell_attr,
    cell_high,
    cell_kind,
    cell_low,
    cell_words,
    code_of,
    column_attr,
    column_rows,
    column_shift,
    columns_of,
    entry_item,
    entry_of,
    entry_words,
    has_entries,
    has_twins,
    in_pool,
    is_row_block,
    items_of,
    members_of,
    signature_bit,
)
from matchwood.index.core.hit_kernels import all_hold
from matchwood.kernel.jit import bits_set, kernel, lowest_bit, part, prefetch
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    NODES,
    PREDICATES,
    Board,
    Output,
    Posted,
    finish_event,
    post_event,
)

FEW = 12
"""Bits of a word up to which they are looked for one by one."""

AHEAD = 2
"""How many blocks before its turn the rows of a block are asked for."""

MOST_PENDING = 512
"""Members that wait for their entries to be tested, before those of one more block."""

FULL = -1
"""Where the slots of a block end: the output has no room for them."""


class Memory(NamedTuple):
    """What a search writes to: one for each thread."""

    code: np.ndarray  # int32[A], codes of the event at hand, 0 between events
    absent: np.ndarray  # int64[1], bits of signatures that the event has not
    found: np.ndarray  # int64[2A], its spaces
    block: np.ndarray  # int64[], where the blocks of its spaces begin
    row: np.ndarray  # int64[MOST_COLUMNS + 1], rows of a block that decide
    pending: np.ndarray  # int64[MOST_PENDING + 512], members whose entries are to be tested
    work: np.ndarray  # int64[len(COUNTERS)], of the event at hand
    seen: np.ndarray  # int64[slots], when each was last found; for events of sets alone
    clock: np.ndarray  # int64[1], counts events of sets


@part
def place_of(places, dim, key):
    """The space of a dimension that a key falls into; there is one."""
    base, n = places.dim_start[dim], places.dim_start[dim + 1] - places.dim_start[dim]
    while n > 1:  # without a branch that depends on the key
        half = n >> 1
        base += half if places.first_key[base + half] <= key else np.int64(0)
        n -= half
    return base


@part
def _post_codes(codes, events, e, code, absent):
    """Write the codes of an event's keys, and the bits of attributes that it has not."""
    n_attributes, present = len(codes.n), np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr < n_attributes and codes.n[attr] > 0:
            code[attr] = code_of(codes, attr, events.lo[entry])
            present |= signature_bit(attr)
    absent[0] = ~present


@part
def _clear_codes(events, e, code):
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr < len(code):
            code[attr] = 0


@part
def _find_spaces(places, events, e, found):
    """The spaces of an event's keys; returns how many."""
    n_attributes = len(places.dim_start) >> 1
    for entry in range(events.start[e], events.start[e + 1]):
        prefetch(places.dim_start, 2 * np.int64(events.attr[entry]))
    n = np.int64(0)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr >= n_attributes:
            continue
        for dim in range(2 * attr, 2 * attr + 2):
            if places.dim_start[dim] < places.dim_start[dim + 1]:
                place = place_of(places, dim, events.lo[entry])
                prefetch(places.block, place)
                found[n] = place
                n += 1
    return n


@part
def _find_blocks(places, blocks, n_spaces, found, block):
    """Where the blocks of the spaces in `found` begin; returns how many there are."""
    for i in range(n_spaces):
        prefetch(blocks.at, places.block[found[i]])
    n = np.int64(0)
    for i in range(n_spaces):
        for b in range(places.block[found[i]], places.block[found[i] + 1]):
            if n < len(block):
                block[n] = blocks.at[b]
                prefetch(blocks.word, blocks.at[b])
                prefetch(blocks.word, blocks.at[b] + 8)
            n += 1
    return n


@part
def _ask_for_rows(word, at, code):
    """Ask for the rows of a block that an event needs."""
    head = word[at]
    if is_row_block(head):
        for line in range(at + 16, at + word[at + 1] + (members_of(head) >> 1) + 1, 8):
            prefetch(word, line)
        return
    n_words = (members_of(head) + 63) >> 6
    n_columns = columns_of(head)
    for line in range(HEAD + n_columns, HEAD + n_columns * (1 + n_words), 8):
        prefetch(word, at + line)
    for c in range(at + HEAD, at + HEAD + n_columns):
        column = word[c]
        now, shift = np.int64(code[column_attr(column)]), column_shift(column)
        if now > 0 and shift != PRESENCE:
            prefetch(word, at + column_rows(column) + ((now - 1) >> shift) * n_words)
    items = at + word[at + 1]
    for line in range(items, items + (members_of(head) >> 1) + 1, 8):
        prefetch(word, line)


@part
def _find_rows(word, at, head, code, row):
    """Where the rows are that decide about an event; returns how many.

    No branch depends on the event: a position is written and kept, or overwritten.
    """
    n_columns, n_words = columns_of(head), (members_of(head) + 63) >> 6
    n, zero = np.int64(0), at + HEAD + n_columns
    for c in range(n_columns):
        column = word[at + HEAD + c]
        now, shift = np.int64(code[column_attr(column)]), column_shift(column)
        other = at + column_rows(column) + ((now - 1) >> shift) * n_words
        row[n] = zero + c * n_words if now == 0 else other
        n += np.int64((now == 0) | (shift != PRESENCE))
    return n


@part
def _write_slots(blocks, first, n_members, w, left, out, n):
    """Append the slots of the bits of word w; there is room for all of them."""
    half, begin = blocks.half, first + 64 * w
    if left == -1:
        for i in range(64):
            out[n + i] = half[begin + i]
        return n + 64
    if bits_set(left) <= FEW:
        while left != 0:
            bit = lowest_bit(left)
            left ^= np.int64(1) << bit
            out[n] = half[begin + bit]
            n += 1
        return n
    for i in range(min(np.int64(64), n_members - 64 * w)):
        out[n] = half[begin + i]  # a wrong guess about a bit would cost more than the copy
        n += (left >> i) & 1
    return n


@part
def _write_item(blocks, item, out, n):
    """Append a slot, or those of twins; FULL when there is no room."""
    if item >= 0:
        if n >= len(out):
            return np.int64(FULL)
        out[n] = item
        return n + 1
    begin, end = blocks.twin_start[~item], blocks.twin_start[~item + 1]
    if n + end - begin > len(out):
        return np.int64(FULL)
    for k in range(begin, end):
        out[n] = blocks.twin[k]
        n += 1
    return n


@part
def _write_twins(blocks, first, w, left, out, n):
    """Append what the bits of word w stand for; FULL when there is no room."""
    while left != 0 and n >= 0:
        bit = lowest_bit(left)
        left ^= np.int64(1) << bit
        n = _write_item(blocks, np.int64(blocks.half[first + 64 * w + bit]), out, n)
    return n


@part
def _ask_for_entry(blocks, item, pending, n_pending):
    """Note the entry of the member with this item as one to be tested, and ask for it."""
    at = entry_of(blocks.half, item)
    pending[n_pending] = at
    prefetch(blocks.word, at)
    prefetch(blocks.word, at + 7)


@part
def _defer(blocks, first, w, left, pending, n_pending):
    """Defer the members of the bits of word w; returns the new number of those deferred."""
    while left != 0:
        bit = lowest_bit(left)
        left ^= np.int64(1) << bit
        _ask_for_entry(blocks, first + 64 * w + bit, pending, n_pending)
        n_pending += 1
    return n_pending


@part
def _test_rows(blocks, at, n_members, scratch, n_pending):
    """Defer the members of a row block whose attributes the event has; returns the new number.

    No branch depends on the outcome: a wrong guess would cost more than the test.
    """
    word, pending, absent = blocks.word, scratch.pending, scratch.absent[0]
    first, n = items_of(word, at), np.uint64(n_pending)
    signatures = np.uint64(at + HEAD)
    for i in range(np.uint64(n_members)):
        pending[n] = i
        n += np.uint64((word[signatures + i] & absent) == 0)
    for k in range(n_pending, np.int64(n)):
        _ask_for_entry(blocks, first + pending[k], pending, k)
    return np.int64(n)


@part
def _test_block(blocks, at, scratch, out, n, n_pending):
    """Append the slots of a block that hold to `out`, defer those that have entries.

    Returns the end of `out`, or FULL, and the number of those deferred.
    """
    word = blocks.word
    head = word[at]
    n_members, work = members_of(head), scratch.work
    if is_row_block(head):
        work[NODES] += 1
        work[CANDIDATES] += n_members
        return n, _test_rows(blocks, at, n_members, scratch, n_pending)
    n_rows = _find_rows(word, at, head, scratch.code, scratch.row)
    work[NODES] += 1
    work[CANDIDATES] += n_members
    work[PREDICATES] += n_rows
    first, n_words = items_of(word, at), (n_members + 63) >> 6
    having = at + HEAD + columns_of(head) * (1 + n_words)
    if n + n_members > len(out):
        return np.int64(FULL), n_pending
    for w in range(n_words):
        left = np.int64(-1)
        if 64 * (w + 1) > n_members:
            left = ~(np.int64(-1) << (n_members & 63))
        for r in range(n_rows):
            left &= word[scratch.row[r] + w]
            if left == 0:
                break
        if left == 0:
            continue
        if has_entries(head):
            deferred = left & word[having + w]
            n_pending = _defer(blocks, first, w, deferred, scratch.pending, n_pending)
            left ^= deferred
        if has_twins(head):
            n = _write_twins(blocks, first, w, left, out, n)
            if n < 0:
                return n, n_pending
        else:
            n = _write_slots(blocks, first, n_members, w, left, out, n)
    return n, n_pending


@part
def _sets_hold(word, pool, at, end, code):
    """Whether the cells that are no intervals hold."""
    while at < end:
        w = word[at]
        c = np.int64(code[cell_attr(w)])
        if cell_kind(w) == MASK:
            offset = c - cell_low(w)
            if offset < 0 or c > cell_high(w):
                return False
            if ((word[at + 1 + (offset >> 6)] >> (offset & 63)) & 1) == 0:
                return False
            at += cell_words(w)
        else:
            if c == 0 or not in_pool(pool, cell_at(w), c):
                return False
            at += 1
    return True


@part
def _test_entries(blocks, scratch, n_pending, out, n):
    """Append the deferred members whose cells hold; returns the end of `out`, or FULL.

    No branch depends on the outcome of a test
    of an interval: there are few, and a wrong guess would cost more than testing them all.
    """
    word, code, pending = blocks.word, scratch.code, scratch.pending
    tested = np.int64(0)
    for i in range(n_pending):
        k = pending[i]
        head, verdict = word[k], np.int64(0)
        end = k + entry_words(head)
        tested += end - k - 1
        k += 1
        while k < end:
            cell = word[k]
            if cell_kind(cell) != INTERVAL:
                break
            c = np.int64(code[cell_attr(cell)])
            verdict |= (c - cell_low(cell)) | (cell_high(cell) - c)
            k += 1
        if k < end and verdict >= 0 and not _sets_hold(word, blocks.pool, k, end, code):
            verdict = np.int64(-1)
        if verdict >= 0:
            n = _write_item(blocks, entry_item(head), out, n)
            if n < 0:
                break
    scratch.work[PREDICATES] += tested
    return n


@kernel
def match_blocks(codes, places, blocks, scratch, events, first, offsets, out, counters):
    """Match events of values; returns how many are done (fewer: `out` is full).

    ~that, with the number in work[NODES], when scratch has no room for the blocks of an event.
    """
    code, block, work = scratch.code, scratch.block, scratch.work
    output = Output(offsets, out, counters)
    n = offsets[first]
    for e in range(first, len(events.start) - 1):
        for i in range(len(work)):
            work[i] = 0
        n_spaces = _find_spaces(places, events, e, scratch.found)
        n_blocks = _find_blocks(places, blocks, n_spaces, scratch.found, block)
        if n_blocks > len(block):
            work[NODES] = n_blocks
            return ~np.int64(e)
        _post_codes(codes, events, e, code, scratch.absent)
        for i in range(min(np.int64(AHEAD), n_blocks)):
            _ask_for_rows(blocks.word, block[i], code)
        n_pending = np.int64(0)
        for i in range(n_blocks):
            if i + AHEAD < n_blocks:
                _ask_for_rows(blocks.word, block[i + AHEAD], code)
            n, n_pending = _test_block(blocks, block[i], scratch, out, n, n_pending)
            if n >= 0 and (n_pending > MOST_PENDING or i + 1 == n_blocks):
                n = _test_entries(blocks, scratch, n_pending, out, n)
                n_pending = np.int64(0)
            if n < 0:
                break
        _clear_codes(events, e, code)
        if n < 0:
            return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1


@part
def _try_slot(
    slot, expressions, predicates, events, stamp, board_event, board_entry, scratch, out, n
):
    """Append a slot that the event of sets has not met yet, if it holds; there is room."""
    if scratch.seen[slot] == scratch.clock[0]:
        return n
    scratch.seen[slot] = scratch.clock[0]
    scratch.work[CANDIDATES] += 1
    event = Posted(events, stamp, Board(board_event, board_entry), predicates)
    if all_hold(slot, expressions, event, scratch.work):
        out[n] = slot
        n += 1
    return n


@part
def _try_blocks(
    blocks, first_block, end_block, expressions, predicates, events, stamp, board_event,
    board_entry, scratch, out, n,
):  # fmt: skip
    """Test every slot of the blocks of a space; returns the end of `out`, or FULL."""
    for b in range(first_block, end_block):
        at = blocks.at[b]
        head = blocks.word[at]
        scratch.work[NODES] += 1
        first = items_of(blocks.word, at)
        having = at + HEAD + columns_of(head) * (1 + ((members_of(head) + 63) >> 6))
        for i in range(first, first + members_of(head)):
            item = np.int64(blocks.half[i])
            m = i - first
            has_entry = is_row_block(head)
            if has_entries(head) and not has_entry:
                has_entry = ((blocks.word[having + (m >> 6)] >> (m & 63)) & 1) != 0
            if has_entry:
                item = entry_item(blocks.word[entry_of(blocks.half, i)])
            begin, last = np.int64(0), np.int64(1)
            if item < 0:
                begin, last = blocks.twin_start[~item], blocks.twin_start[~item + 1]
            if n + last - begin > len(out):
                return np.int64(FULL)
            for k in range(begin, last):
                slot = item if item >= 0 else np.int64(blocks.twin[k])
                n = _try_slot(
                    slot, expressions, predicates, events, stamp, board_event, board_entry,
                    scratch, out, n,
                )  # fmt: skip
    return n


@kernel
def match_sets(
    places, blocks, expressions, predicates, scratch, events, first, stamp, board_event,
    board_entry, offsets, out, counters,
):  # fmt: skip
    """Match events of sets: every member of a space that a hull meets is tested by its predicates.

    Returns how many events are done (fewer: `out` is full).
    """
    n_attributes = len(places.dim_start) >> 1
    output = Output(offsets, out, counters)
    n = offsets[first]
    for e in range(first, len(events.start) - 1):
        post_event(events, e, stamp + e, Board(board_event, board_entry))
        for i in range(len(scratch.work)):
            scratch.work[i] = 0
        scratch.clock[0] += 1
        for entry in range(events.start[e], events.start[e + 1]):
            attr = np.int64(events.attr[entry])
            if attr >= n_attributes:
                continue
            for dim in range(2 * attr, 2 * attr + 2):
                if places.dim_start[dim] == places.dim_start[dim + 1]:
                    continue
                low = place_of(places, dim, min(events.lo[entry], events.hi[entry]))
                high = place_of(places, dim, max(events.lo[entry], events.hi[entry]))
                n = _try_blocks(
                    blocks, places.block[low], places.block[high + 1], expressions, predicates,
                    events, stamp + e, board_event, board_entry, scratch, out, n,
                )  # fmt: skip
                if n < 0:
                    return e
        work = scratch.work
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
