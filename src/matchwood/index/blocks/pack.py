"""Kernels that write blocks: which attributes of the members become columns, then all words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.blocks.words import (
    HEAD,
    INTERVAL,
    MASK,
    MOST_MEMBERS,
    POOLED,
    PRESENCE,
    cell,
    column,
    header,
    n_rows,
    pooled_cell,
)
from matchwood.kernel.jit import kernel, part

NO_COLUMN = -1
MOST_COLUMNS = 2**16 - 1
MOST_SORTED = 1024
"""Columns up to which those that exclude most come first."""


class Members(NamedTuple):
    """Which subscriptions are to be packed, and where."""

    slot: np.ndarray  # int32[M], one of equal subscriptions
    item: np.ndarray  # int32[M], what a block has for it: the slot, or ~twins
    skipped: np.ndarray  # int32[M], the access predicate if reaching a space proves it, or -1
    start: np.ndarray  # int64[N + 1], slice of `listed` that belongs to a space
    listed: np.ndarray  # int32[], positions of the arrays above


class Plan(NamedTuple):
    """Scratch: the attributes of one block."""

    count: np.ndarray  # int64[A], members with a predicate on an attribute, 0 between blocks
    cells: np.ndarray  # int64[A], words of their cells
    shift: np.ndarray  # int64[A], of its column, or NO_COLUMN
    rows: np.ndarray  # int64[A], where the rows of its column begin
    attr: np.ndarray  # int64[A], the attributes of the block
    column: np.ndarray  # int64[A], those that have columns
    loss: np.ndarray  # float64[A], members that a column excludes on average


class Shares(NamedTuple):
    """Settings, as kernels take them."""

    exact: float  # rows of an exact column, in words for a word of cells
    sieve: float  # the same of a coarse column
    least: float  # share of the members that a column needs


@part
def _cell_words(coded, pred):
    if coded.kind[pred] == MASK:
        return np.int64(2) + ((np.int64(coded.high[pred]) - np.int64(coded.low[pred])) >> 6)
    return np.int64(1)


@part
def _gather(expressions, predicates, coded, members, first, end, plan):
    """Count what the members have; returns the number of their attributes."""
    n = np.int64(0)
    for i in range(first, end):
        m = members.listed[i]
        begin = expressions.start[members.slot[m]]
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = np.int64(expressions.code[k])
            if pred == members.skipped[m]:
                continue
            attr = np.int64(predicates.attr[pred])
            if plan.count[attr] == 0:
                plan.attr[n] = attr
                n += 1
            plan.count[attr] += 1
            plan.cells[attr] += _cell_words(coded, pred)
    return n


@part
def _shift_for(n_codes, n_words, count, cells, n_members, shares):
    """The shift of the column that an attribute gets, or NO_COLUMN."""
    if n_rows(n_codes, 0) * n_words <= shares.exact * cells:
        return np.int64(0)
    if count < 2 or count < shares.least * n_members:
        return np.int64(NO_COLUMN)
    shift = np.int64(1)
    while (n_codes - 1) >> shift > 0:
        if n_rows(n_codes, shift) * n_words <= shares.sieve * cells:
            return shift
        shift += 1
    return np.int64(PRESENCE)


@part
def _choose_columns(codes, presence, n_attrs, n_members, plan, shares):
    """Decide about every attribute; returns columns, words of their rows, words of all cells."""
    n_words = (n_members + 63) >> 6
    n_columns, rows, cells = np.int64(0), np.int64(0), np.int64(0)
    for i in range(n_attrs):
        attr = plan.attr[i]
        shift = _shift_for(
            np.int64(codes.n[attr]), n_words, plan.count[attr], plan.cells[attr], n_members, shares
        )
        if n_columns == MOST_COLUMNS:
            shift = np.int64(NO_COLUMN)
        plan.shift[attr] = shift
        if shift != 0:
            cells += plan.cells[attr]
        if shift == NO_COLUMN:
            continue
        rows += n_rows(codes.n[attr], shift) * n_words
        at, loss = n_columns, plan.count[attr] * (1.0 - presence[attr])
        while n_columns < MOST_SORTED and at > 0 and plan.loss[at - 1] < loss:
            plan.column[at], plan.loss[at] = plan.column[at - 1], plan.loss[at - 1]
            at -= 1
        plan.column[at], plan.loss[at] = attr, loss
        n_columns += 1
    return n_columns, rows, cells


@part
def _toggle(predicates, coded, pred, shift, height, word, rows, n_words, w, bit):
    """Change a member's bit in the rows where its predicate begins and ends to hold."""
    n, first = np.int64(predicates.n_intervals[pred]), np.int64(predicates.interval_start[pred])
    last = np.int64(0)
    for i in range(n):
        low, high = np.int64(coded.low[pred]), np.int64(coded.high[pred])
        if n > 1:
            low = np.int64(coded.interval_low[first + i])
            high = np.int64(coded.interval_high[first + i])
        begin, end = 1 + ((low - 1) >> shift), 2 + ((high - 1) >> shift)
        if begin <= last:  # intervals of one set may share a coarse row
            begin = last
        last = end
        if begin < height:
            word[rows + begin * n_words + w] ^= bit
        if end < height:
            word[rows + end * n_words + w] ^= bit


@part
def _write_cell(predicates, coded, pred, word, at):
    """Write a cell; returns the position behind it."""
    attr, kind = predicates.attr[pred], coded.kind[pred]
    if kind == POOLED:
        word[at] = pooled_cell(attr, coded.pooled[pred])
        return at + 1
    low = np.int64(coded.low[pred])
    word[at] = cell(kind, attr, low, coded.high[pred])
    at += 1
    if kind == INTERVAL:
        return at
    end = at + ((np.int64(coded.high[pred]) - low) >> 6) + 1
    for k in range(at, end):
        word[k] = 0
    first = np.int64(predicates.interval_start[pred])
    for i in range(first, first + predicates.n_intervals[pred]):
        for code in range(coded.interval_low[i], coded.interval_high[i] + 1):
            offset = np.int64(code) - low
            word[at + (offset >> 6)] |= np.int64(1) << (offset & 63)
    return end


@part
def _write_members(
    expressions, predicates, coded, codes, members, first, end, plan, word, half, at, parts
):
    """Write slots and cells, and toggle bits in the rows of columns."""
    slots_at, cells_at, n_words = parts
    n = end - first
    starts, to = 2 * (at + slots_at) + n, at + cells_at
    for i in range(n):
        m = members.listed[first + i]
        half[2 * (at + slots_at) + i] = members.item[m]
        if cells_at > 0:
            half[starts + i] = to - (at + cells_at)
        w, bit = np.int64(i >> 6), np.int64(1) << np.int64(i & 63)
        begin = expressions.start[members.slot[m]]
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = np.int64(expressions.code[k])
            if pred == members.skipped[m]:
                continue
            attr = np.int64(predicates.attr[pred])
            shift = plan.shift[attr]
            if shift != NO_COLUMN:
                word[at + plan.rows[attr] + w] |= bit
                if shift != PRESENCE:
                    _toggle(
                        predicates, coded, pred, shift, n_rows(codes.n[attr], shift), word,
                        at + plan.rows[attr], n_words, w, bit,
                    )  # fmt: skip
            if shift != 0:
                to = _write_cell(predicates, coded, pred, word, to)
    if cells_at > 0:
        half[starts + n] = to - (at + cells_at)


@part
def _finish_column(word, rows, n_words, n, n_members):
    """Turn marks into rows: row 0 has who has a predicate, the others where a bit changes."""
    for w in range(n_words):
        full = np.int64(-1)
        if 64 * (w + 1) > n_members:
            full = ~(np.int64(-1) << (n_members & 63))
        word[rows + w] ^= full
        if n > 1:
            word[rows + n_words + w] ^= word[rows + w]
        for r in range(2, n):
            word[rows + r * n_words + w] ^= word[rows + (r - 1) * n_words + w]


@part
def _pack(
    expressions, predicates, coded, codes, presence, members, first, end, plan, shares, word, half,
    at,
):  # fmt: skip
    """Write one block at a position; returns its words, negative when there is no room."""
    n = end - first
    n_words = (n + 63) >> 6
    n_attrs = _gather(expressions, predicates, coded, members, first, end, plan)
    n_columns, rows, cells = _choose_columns(codes, presence, n_attrs, n, plan, shares)
    slots_at = HEAD + n_columns + rows
    cells_at, words = np.int64(0), slots_at + ((n + 1) >> 1)
    if cells > 0:
        cells_at = slots_at + ((2 * n + 2) >> 1)
        words = cells_at + cells
    is_full = at + words > len(word)
    if not is_full:
        to = HEAD + n_columns
        for k in range(at, at + words):
            word[k] = 0
        for c in range(n_columns):
            attr = plan.column[c]
            word[at + HEAD + c] = column(attr, plan.shift[attr], to)
            plan.rows[attr] = to
            to += n_rows(codes.n[attr], plan.shift[attr]) * n_words
        _write_members(
            expressions, predicates, coded, codes, members, first, end, plan, word, half, at,
            (slots_at, cells_at, n_words),
        )  # fmt: skip
        has_twins = False
        for i in range(first, end):
            has_twins |= members.item[members.listed[i]] < 0
        for c in range(n_columns):
            attr = plan.column[c]
            height = n_rows(codes.n[attr], plan.shift[attr])
            _finish_column(word, at + plan.rows[attr], n_words, height, n)
        word[at] = header(words, n_columns, has_twins, cells > 0, n)
        word[at + 1] = (slots_at << 32) | cells_at
    for i in range(n_attrs):
        plan.count[plan.attr[i]] = 0
        plan.cells[plan.attr[i]] = 0
    return -words if is_full else words


@kernel
def pack_spaces(
    expressions, predicates, coded, codes, presence, members, plan, shares, word, half, block,
    first, at,
):  # fmt: skip
    """Write the blocks of spaces first..; returns spaces done, the end, and words that lacked."""
    for space in range(first, len(members.start) - 1):
        block[space] = at
        begin, n = members.start[space], members.start[space + 1] - members.start[space]
        n_blocks = (n + MOST_MEMBERS - 1) // MOST_MEMBERS
        for b in range(n_blocks):
            words = _pack(
                expressions, predicates, coded, codes, presence, members,
                begin + n * b // n_blocks, begin + n * (b + 1) // n_blocks, plan, shares, word,
                half, at,
            )  # fmt: skip
            if words < 0:
                return space, block[space], -words
            at += words
    block[len(members.start) - 1] = at
    return len(members.start) - 1, at, np.int64(0)
