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
    has_cells,
    has_twins,
    in_pool,
    members_of,
)
from matchwood.index.core.hit_kernels import all_hold
from matchwood.kernel.jit import bits_set, kernel, lowest_bit, part, prefetch
from matchwood.kernel.verify_kernels import (
    CANDIDATES,
    NODES,
    PREDICATES,
    finish_event,
    post_event,
)

FEW = 12
"""Bits of a word up to which they are looked for one by one."""

AHEAD = 2
"""How many blocks before its turn the rows of a block are asked for."""

FULL = -1
"""Where the slots of a block end: the output has no room for them."""


class Scratch(NamedTuple):
    """What a search writes to: one for each thread."""

    code: np.ndarray  # int32[A], codes of the event at hand, 0 between events
    found: np.ndarray  # int64[2A], its spaces
    block: np.ndarray  # int64[], where the blocks of its spaces begin
    mask: np.ndarray  # int64[8], members of a block that still hold
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
def _post_codes(codes, events, e, code):
    """Write the codes of an event's keys."""
    n_attributes = len(codes.n)
    for entry in range(events.start[e], events.start[e + 1]):
        attr = np.int64(events.attr[entry])
        if attr < n_attributes and codes.n[attr] > 0:
            code[attr] = code_of(codes, attr, events.lo[entry])


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
    n_words = (members_of(head) + 63) >> 6
    n_columns = columns_of(head)
    for line in range(HEAD + n_columns, HEAD + n_columns * (1 + n_words), 8):
        prefetch(word, at + line)
    for c in range(at + HEAD, at + HEAD + n_columns):
        column = word[c]
        now, shift = np.int64(code[column_attr(column)]), column_shift(column)
        if now > 0 and shift != PRESENCE:
            prefetch(word, at + column_rows(column) + ((now - 1) >> shift) * n_words)
    slots = at + (word[at + 1] >> 32)
    for line in range(slots, slots + (members_of(head) >> 1) + 1, 8):
        prefetch(word, line)


@part
def _row_of(word, at, c, n_columns, n_words, code):
    """Where the row of column c is that an event needs; negative: all members hold."""
    column = word[at + HEAD + c]
    now, shift = np.int64(code[column_attr(column)]), column_shift(column)
    if now == 0:
        return at + HEAD + n_columns + c * n_words
    if shift == PRESENCE:
        return np.int64(-1)
    return at + column_rows(column) + ((now - 1) >> shift) * n_words


@part
def _test_columns(word, at, head, code, mask):
    """Which members hold by their columns: bits in mask; returns columns read, or ~that: none."""
    n_members, n_columns = members_of(head), columns_of(head)
    n_words = (n_members + 63) >> 6
    for w in range(n_words):
        mask[w] = -1
    if n_members & 63:
        mask[n_words - 1] = ~(np.int64(-1) << (n_members & 63))
    read = np.int64(0)
    for c in range(n_columns):
        row = _row_of(word, at, c, n_columns, n_words, code)
        if row < 0:
            continue
        left = np.int64(0)
        for w in range(n_words):
            mask[w] &= word[row + w]
            left |= mask[w]
        read += 1
        if left == 0:
            return ~read
    return read


@part
def _test_one_word(word, at, head, code, mask):
    """The same for a block of up to 64 members."""
    n_members, n_columns = members_of(head), columns_of(head)
    left = np.int64(-1) if n_members == 64 else ~(np.int64(-1) << n_members)
    read = np.int64(0)
    for c in range(n_columns):
        row = _row_of(word, at, c, n_columns, 1, code)
        if row < 0:
            continue
        left &= word[row]
        read += 1
        if left == 0:
            return ~read
    mask[0] = left
    return read


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
def _test_cells(blocks, at, head, code, mask):
    """Clear the bits of members with a cell that does not hold; returns words of cells tested.

    No branch depends on the outcome of a test of an interval: there are few cells, and a wrong
    guess would cost more than testing them all.
    """
    word, half, n_members = blocks.word, blocks.half, members_of(head)
    n_words = (n_members + 63) >> 6
    todo = at + HEAD + columns_of(head) * (1 + n_words)
    starts = 2 * (at + (word[at + 1] >> 32)) + n_members
    cells, tested = at + (word[at + 1] & 0xFFFFFFFF), np.int64(0)
    for w in range(n_words):
        having, lost = word[todo + w], np.int64(0)
        left = mask[w] & having
        while left != 0:
            bit = lowest_bit(left)
            left ^= np.int64(1) << bit
            i = starts + bits_set(having & ~(np.int64(-1) << bit))
            k, end = cells + half[i], cells + half[i + 1]
            verdict = np.int64(0)
            tested += end - k
            while k < end:
                cell = word[k]
                if cell_kind(cell) != INTERVAL:
                    break
                c = np.int64(code[cell_attr(cell)])
                verdict |= (c - cell_low(cell)) | (cell_high(cell) - c)
                k += 1
            if k < end and verdict >= 0 and not _sets_hold(word, blocks.pool, k, end, code):
                verdict = np.int64(-1)
            lost |= np.int64(verdict < 0) << bit
        mask[w] ^= lost
        starts += bits_set(having)
    return tested


@part
def _write_slots(half, first, n_members, mask, out, n):
    """Append the slots of the bits; there is room for all members."""
    for w in range((n_members + 63) >> 6):
        left, begin = mask[w], first + 64 * w
        if left == -1:
            for i in range(64):
                out[n + i] = half[begin + i]
            n += 64
        elif bits_set(left) <= FEW:
            while left != 0:
                bit = lowest_bit(left)
                left ^= np.int64(1) << bit
                out[n] = half[begin + bit]
                n += 1
        else:  # no branch depends on a bit: a wrong guess would cost more than the copy
            for i in range(min(np.int64(64), n_members - 64 * w)):
                out[n] = half[begin + i]
                n += (left >> i) & 1
    return n


@part
def _write_twins(blocks, first, n_members, mask, out, n):
    """The same where a bit may stand for many slots; FULL when there is no room."""
    for i in range(n_members):
        if (mask[i >> 6] >> (i & 63)) & 1 == 0:
            continue
        item = np.int64(blocks.half[first + i])
        if item >= 0:
            if n == len(out):
                return np.int64(FULL)
            out[n] = item
            n += 1
            continue
        begin, end = blocks.twin_start[~item], blocks.twin_start[~item + 1]
        if n + end - begin > len(out):
            return np.int64(FULL)
        for k in range(begin, end):
            out[n] = blocks.twin[k]
            n += 1
    return n


@part
def test_block(blocks, at, code, mask, work, out, n):
    """Append the slots of a block that hold to `out`; returns its end, or FULL."""
    word = blocks.word
    head = word[at]
    n_members = members_of(head)
    work[NODES] += 1
    work[CANDIDATES] += n_members
    if n_members <= 64:
        read = _test_one_word(word, at, head, code, mask)
    else:
        read = _test_columns(word, at, head, code, mask)
    if read < 0:
        work[PREDICATES] += ~read
        return n
    work[PREDICATES] += read
    if has_cells(head):
        work[PREDICATES] += _test_cells(blocks, at, head, code, mask)
    first = 2 * (at + (word[at + 1] >> 32))
    if has_twins(head):
        return _write_twins(blocks, first, n_members, mask, out, n)
    if n + n_members > len(out):
        return np.int64(FULL)
    return _write_slots(blocks.half, first, n_members, mask, out, n)


@kernel
def match_blocks(codes, places, blocks, scratch, events, first, offsets, out, counters):
    """Match events of values; returns how many are done (fewer: `out` is full).

    ~that, with the number in work[NODES], when scratch has no room for the blocks of an event.
    """
    code, block, work = scratch.code, scratch.block, scratch.work
    n = offsets[first]
    for e in range(first, len(events.start) - 1):
        for i in range(len(work)):
            work[i] = 0
        n_spaces = _find_spaces(places, events, e, scratch.found)
        n_blocks = _find_blocks(places, blocks, n_spaces, scratch.found, block)
        if n_blocks > len(block):
            work[NODES] = n_blocks
            return ~np.int64(e)
        _post_codes(codes, events, e, code)
        for i in range(min(np.int64(AHEAD), n_blocks)):
            _ask_for_rows(blocks.word, block[i], code)
        for i in range(n_blocks):
            if i + AHEAD < n_blocks:
                _ask_for_rows(blocks.word, block[i + AHEAD], code)
            n = test_block(blocks, block[i], code, scratch.mask, work, out, n)
            if n < 0:
                break
        _clear_codes(events, e, code)
        if n < 0:
            return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], offsets, counters)
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
    if all_hold(
        slot, expressions, predicates, events, stamp, board_event, board_entry, scratch.work
    ):
        out[n] = slot
        n += 1
    return n


@part
def _try_blocks(
    blocks, first_block, end_block, expressions, predicates, events, stamp, board_event, board_entry, scratch,
    out, n,
):  # fmt: skip
    """Test every slot of the blocks of a space; returns the end of `out`, or FULL."""
    for b in range(first_block, end_block):
        at = blocks.at[b]
        head = blocks.word[at]
        scratch.work[NODES] += 1
        first = 2 * (at + (blocks.word[at + 1] >> 32))
        for i in range(first, first + members_of(head)):
            item = np.int64(blocks.half[i])
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
    n = offsets[first]
    for e in range(first, len(events.start) - 1):
        post_event(events, e, stamp + e, board_event, board_entry)
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
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], offsets, counters)
    return len(events.start) - 1
