"""Kernels that test a block: rows of bits, gates, then entries; what holds is written out.

`test_block` and `test_entries` become a part of the loops that use them: a call would pass forty
arrays, and cost a block of 32 members as much as its test (decision 0026).
"""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.words import (
    HEAD,
    INTERVAL,
    MASK,
    MOST_MEMBERS,
    PRESENCE,
    cell_at,
    cell_attr,
    cell_high,
    cell_kind,
    cell_low,
    cell_words,
    column_attr,
    column_rows,
    column_shift,
    columns_of,
    entry_item,
    entry_words,
    has_entries,
    has_twins,
    in_pool,
    is_row_block,
    is_small_open,
    items_of,
    members_of,
)
from matchwood.kernel.jit import bits_set, either, inlined, lowest_bit, part, prefetch
from matchwood.kernel.verify_kernels import CANDIDATES, NODES, PREDICATES

FEW = 12
"""Bits of a word up to which they are looked for one by one."""

ENTRIES_AHEAD = 16
"""How many entries before its turn an entry is asked for."""

FEW_OPEN = 3
"""An entry is asked for when it is deferred if fewer than 1 / FEW_OPEN of a row block's first gates
are open.  Of more, or of column blocks, more would be on their way than a processor can wait for.
"""

ONE, HALF = np.uint64(1), np.uint64(32)
"""Positions in inner loops are unsigned: a signed one is compared with 0 at every access."""

NO_BLOCK = -1
"""Where no block is."""

MEMBERS_ASKED = 64
"""Members of a row block that are asked for at a time."""

FULL = -1
"""Where the slots of a block end: the output has no room for them."""


@part
def ask_for_members(word, at, first, end):
    """Ask for gates and items of some members of a row block."""
    end, items = min(end, members_of(word[at])), at + word[at + 1]
    for i in range(first, end, 8):
        prefetch(word, at + HEAD + i)
    for i in range(first, end, 16):
        prefetch(word, items + (i >> 1))


@part
def ask_for_rows(word, at, code):
    """Ask for what an event needs of a block before its entries."""
    head = word[at]
    if is_row_block(head):
        ask_for_members(word, at, np.int64(0), members_of(head))
        return
    n_words = (members_of(head) + 63) >> 6
    n_columns = columns_of(head)
    for line in range(HEAD + n_columns, HEAD + n_columns * (1 + n_words), 8):
        prefetch(word, at + line)
    for c in range(at + HEAD, at + HEAD + n_columns):
        column = word[c]
        now, shift = np.int64(code[column_attr(column)]), column_shift(column)
        if now > 0 and shift != PRESENCE:
            row = at + column_rows(column) + ((now - 1) >> shift) * n_words
            prefetch(word, row)
            prefetch(word, row + n_words - 1)  # few rows begin where a cache line does
    items = at + word[at + 1]
    for line in range(items, items + (members_of(head) >> 1) + 1, 8):
        prefetch(word, line)


@part
def _find_rows(word, at, head, code, row):
    """Where the rows are that decide about an event; returns how many.

    No branch depends on the event: a position is written and kept, or overwritten.
    """
    n_columns, n_words = columns_of(head), (members_of(head) + 63) >> 6
    n, zero, first = np.uint64(0), at + HEAD + n_columns, np.uint64(at + HEAD)
    for c in range(np.uint64(n_columns)):
        column = word[first + c]
        now, shift = np.int64(code[np.uint64(column_attr(column))]), column_shift(column)
        other = at + column_rows(column) + ((now - 1) >> shift) * n_words
        row[n] = zero if now == 0 else other
        zero += n_words
        n += np.uint64((now == 0) | (shift != PRESENCE))
    return np.int64(n)


@part
def _write_slots(blocks, first, n_members, w, left, out, n):
    """Append the slots of the bits of word w; there is room for all of them."""
    half, begin, at = blocks.half, np.uint64(first + 64 * w), np.uint64(n)
    if left == -1:
        for i in range(np.uint64(64)):
            out[at + i] = half[begin + i]
        return n + 64
    if bits_set(left) <= FEW:
        while left != 0:
            out[at] = half[begin + np.uint64(lowest_bit(left))]
            left &= left - np.int64(1)
            at += ONE
        return np.int64(at)
    for i in range(np.uint64(min(np.int64(64), n_members - 64 * w))):
        out[at] = half[begin + i]  # a wrong guess about a bit would cost more than the copy
        at += np.uint64(left & 1)
        left >>= 1
    return np.int64(at)


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
def _defer(blocks, first, w, left, pending, n_pending):
    """Defer the members of the bits of word w; returns the new number of those deferred."""
    begin, n = np.uint64(first + 64 * w), np.uint64(n_pending)
    while left != 0:
        i = begin + np.uint64(lowest_bit(left))
        left &= left - np.int64(1)
        pending[n] = np.int64(i >> ONE) + blocks.half[i]  # entry_of, without a sign
        n += ONE
    return np.int64(n)


@part
def _test_gates(blocks, at, n_members, ahead, scratch, n_pending):
    """Append the members of a row block whose first gates are open; returns the new number.

    No branch depends on the outcome: a wrong guess would cost more than the test.  Members of the
    row block `ahead` are asked for meanwhile, some at a time: a processor can wait for few lines.
    """
    word, pending, now = blocks.word, scratch.pending, scratch.fold_code
    gates, end = np.uint64(at + HEAD), np.uint64(n_pending)
    for begin in range(np.int64(0), n_members, MEMBERS_ASKED):
        if ahead != NO_BLOCK:
            ask_for_members(word, ahead, begin, begin + MEMBERS_ASKED)
        last = min(begin + MEMBERS_ASKED, n_members)
        for i in range(np.uint64(begin), np.uint64(last)):
            pending[end] = np.int64(i)
            end += np.uint64(is_small_open(np.uint64(word[gates + i]), now))
    if ahead != NO_BLOCK:
        asked = (n_members + MEMBERS_ASKED - 1) // MEMBERS_ASKED * MEMBERS_ASKED
        ask_for_members(word, ahead, asked, np.int64(MOST_MEMBERS))
    return np.int64(end)


@part
def _test_rows(blocks, at, n_members, ahead, scratch, n_pending):
    """Defer the members of a row block whose gates are open; returns the new number."""
    word, half, pending, now = blocks.word, blocks.half, scratch.pending, scratch.fold_code
    first, gates = np.uint64(items_of(word, at)), np.uint64(at + HEAD)
    n, end = np.uint64(n_pending), _test_gates(blocks, at, n_members, ahead, scratch, n_pending)
    are_few = FEW_OPEN * (end - n_pending) < n_members
    for k in range(n, np.uint64(end)):
        i = np.uint64(pending[k])
        entry = np.int64((first + i) >> ONE) + half[first + i]  # entry_of, without a sign
        is_open = is_small_open(np.uint64(word[gates + i]) >> HALF, now)
        prefetch(word, either(is_open & are_few, entry, at))
        pending[n] = entry
        n += np.uint64(is_open)
    return np.int64(n)


@inlined
def test_block(blocks, at, ahead, scratch, out, n, n_pending):
    """Append the slots of a block that hold to `out`, defer those that have entries.

    Asks for the block `ahead`, if there is one.  Returns the end of `out`, or FULL, and the number
    of those deferred.
    """
    word = blocks.word
    head = word[at]
    if ahead != NO_BLOCK and not (is_row_block(head) and is_row_block(word[ahead])):
        ask_for_rows(word, ahead, scratch.code)
        ahead = np.int64(NO_BLOCK)
    n_members, work = members_of(head), scratch.work
    if is_row_block(head):
        work[NODES] += 1
        work[CANDIDATES] += n_members
        return n, _test_rows(blocks, at, n_members, ahead, scratch, n_pending)
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
        for r in range(np.uint64(n_rows)):
            left &= word[np.uint64(scratch.row[r] + w)]
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
def _ask_for_entry(word, at):
    """Ask for an entry; few are longer than two cache lines."""
    prefetch(word, at)
    prefetch(word, at + 7)


@inlined
def test_entries(blocks, scratch, n_pending, out, n):
    """Append the deferred members whose cells hold; returns the end of `out`, or FULL.

    No branch depends on the outcome of a test of an interval: there are few, and a wrong guess
    would cost more than testing them all.
    """
    word, code, pending = blocks.word, scratch.code, scratch.pending
    tested = np.int64(0)
    if n + n_pending > len(out):
        return np.int64(FULL)
    for i in range(min(np.int64(ENTRIES_AHEAD), n_pending)):
        _ask_for_entry(word, pending[i])
    last = np.uint64(max(n_pending, np.int64(1)) - 1)
    for i in range(np.uint64(n_pending)):
        _ask_for_entry(word, pending[min(i + np.uint64(ENTRIES_AHEAD), last)])
        k = np.uint64(pending[i])
        head, verdict = word[k], np.int64(0)
        end = k + np.uint64(entry_words(head))
        tested += entry_words(head) - 1
        k += ONE
        while k < end:
            cell = word[k]
            if cell_kind(cell) != INTERVAL:
                break
            c = np.int64(code[np.uint64(cell_attr(cell))])
            verdict |= (c - cell_low(cell)) | (cell_high(cell) - c)
            k += ONE
        if k < end and verdict >= 0:
            if not _sets_hold(word, blocks.pool, np.int64(k), np.int64(end), code):
                verdict = np.int64(-1)
        item = entry_item(head)
        if item >= 0:
            out[np.uint64(n)] = item
            n += np.int64(verdict >= 0)
        elif verdict >= 0:
            n = _write_item(blocks, item, out, n)
            if n < 0 or n + (n_pending - np.int64(i)) > len(out):
                n = np.int64(FULL)
                break
    scratch.work[PREDICATES] += tested
    return n
