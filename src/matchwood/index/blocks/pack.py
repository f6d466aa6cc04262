"""Kernels that write blocks: which attributes of the members become columns, then all words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.blocks.codes import Coded
from matchwood.index.blocks.entries import (
    NONE,
    choose_gates,
    count_entries,
    decided_by_gate,
    write_cells,
    write_gates,
)
from matchwood.index.blocks.words import (
    HEAD,
    INTERVAL,
    MASK,
    PRESENCE,
    Codes,
    cell_at,
    cell_attr,
    cell_high,
    cell_kind,
    cell_low,
    cell_words,
    column,
    entry_head,
    header,
    n_rows,
)
from matchwood.kernel.jit import kernel, part, prefetch

NO_COLUMN = -1
MOST_PAID = 4.0
"""Times `exact` that are paid for a column where too many cells would be undecided."""

MOST_COLUMNS = 2**16 - 1
MOST_SORTED = 1024
"""Columns up to which those that exclude most come first."""


class Members(NamedTuple):
    """Which subscriptions are to be packed, and where."""

    slot: np.ndarray  # int32[M], one of equal subscriptions
    item: np.ndarray  # int32[M], what a block has for it: the slot, or ~twins
    access: np.ndarray  # int32[M], the access predicate
    skipped: np.ndarray  # int32[M], the same if reaching a space proves it, or -1
    start: np.ndarray  # int64[N + 1], slice of `listed` that belongs to a space
    listed: np.ndarray  # int32[], positions of the arrays above


class Plan(NamedTuple):
    """Scratch: the attributes of one block."""

    count: np.ndarray  # int64[A], members with a predicate on an attribute, 0 between blocks
    cells: np.ndarray  # int64[A], words of their cells
    shift: np.ndarray  # int64[A], of its column, or NO_COLUMN
    zero: np.ndarray  # int64[A], where row 0 of its column is
    rows: np.ndarray  # int64[A], where the other rows begin, less one row
    attr: np.ndarray  # int64[A], the attributes of the block
    column: np.ndarray  # int64[A], those that have columns
    loss: np.ndarray  # float64[A], members that a column excludes on average
    presence: np.ndarray  # float64[A], how likely an event has each attribute
    gate: np.ndarray  # int64[2 * MOST_MEMBERS], predicates of the gates of members, or NONE


class Shares(NamedTuple):
    """Settings, as kernels take them."""

    exact: float  # rows of an exact column, in words for a word of cells
    undecided: float  # share of the cells above which more is paid for exact columns
    sieve: float  # the same as `exact` of a coarse column
    least: float  # share of the members that a coarse column needs
    columns: float  # share of the cells that exact columns must replace in a column block
    ungated: int  # members of a space that is not divided
    gated: int  # members of a row block behind a gate, at most


class Source(NamedTuple):
    """What subscriptions are packed from."""

    expressions: ExpressionLayout
    predicates: PredicateLayout
    coded: Coded
    pool: np.ndarray  # int32, sets that do not fit into cells
    codes: Codes


class Target(NamedTuple):
    """Where blocks are written to."""

    word: np.ndarray  # int64[]
    half: np.ndarray  # int32[], the same memory
    start: np.ndarray  # int64[blocks + 1], the first word of each block


class Rows(NamedTuple):
    """The rows of one column, in which the bits of a member are changed."""

    word: np.ndarray
    first: int  # position of the member's word in row 0
    n_words: int  # of a row
    shift: int
    height: int


STEP = 4
"""Members between one round of asking ahead and the next."""


@part
def _look_ahead(expressions, coded, members, i):
    """Ask for what the members behind position i need: slot, then code, then cells."""
    last = len(members.listed) - 1
    prefetch(members.slot, members.listed[min(i + 4 * STEP, last)])
    prefetch(members.skipped, members.listed[min(i + 4 * STEP, last)])
    slot = members.slot[members.listed[min(i + 3 * STEP, last)]]
    prefetch(expressions.start, slot)
    prefetch(expressions.size, slot)
    slot = members.slot[members.listed[min(i + 2 * STEP, last)]]
    prefetch(expressions.code, expressions.start[slot])
    slot = members.slot[members.listed[min(i + STEP, last)]]
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        prefetch(coded.cell, expressions.code[k])


@part
def gather(expressions, coded, members, first, end, plan):
    """Count what the members have; returns the number of their attributes."""
    n = np.int64(0)
    for i in range(first, end):
        _look_ahead(expressions, coded, members, i)
        m = members.listed[i]
        begin = expressions.start[members.slot[m]]
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = expressions.code[k]
            if pred == members.skipped[m]:
                continue
            attr = cell_attr(coded.cell[pred])
            if plan.count[attr] == 0:
                plan.attr[n] = attr
                n += 1
            plan.count[attr] += 1
            plan.cells[attr] += cell_words(coded.cell[pred])
    return n


@part
def _is_exact(codes, attr, n_words, plan, exact):
    """Whether a column for every code of an attribute is worth its memory."""
    return n_rows(codes.n[attr], 0) * n_words <= exact * plan.cells[attr]


@part
def _count_decided(codes, n_attrs, n_words, plan, exact):
    """Words of the cells that exact columns replace, and of all cells."""
    decided, cells = np.int64(0), np.int64(0)
    for i in range(n_attrs):
        attr = plan.attr[i]
        cells += plan.cells[attr]
        if _is_exact(codes, attr, n_words, plan, exact):
            decided += plan.cells[attr]
    return decided, cells


@part
def is_for_columns(codes, n_attrs, n_words, plan, shares):
    """Whether exact columns decide about most predicates of the members."""
    decided, cells = _count_decided(codes, n_attrs, n_words, plan, shares.exact)
    return decided >= shares.columns * cells and cells > 0


@part
def _price_of(codes, n_attrs, n_words, plan, shares):
    """What is paid for an exact column: more where too many cells would be left undecided."""
    exact = shares.exact
    while exact < MOST_PAID * shares.exact:
        decided, cells = _count_decided(codes, n_attrs, n_words, plan, exact)
        if cells - decided <= shares.undecided * cells:
            break
        exact *= 2.0
    return exact


@part
def _shift_for(codes, attr, n_words, n_members, plan, shares):
    """The shift of the column that an attribute gets, or NO_COLUMN; not of an exact one."""
    if plan.count[attr] < 2 or plan.count[attr] < shares.least * n_members:
        return np.int64(NO_COLUMN)
    shift, n_codes = np.int64(1), np.int64(codes.n[attr])
    while (n_codes - 1) >> shift > 0:
        if n_rows(n_codes, shift) * n_words <= shares.sieve * plan.cells[attr]:
            return shift
        shift += 1
    return np.int64(PRESENCE)


@part
def _choose_columns(codes, n_attrs, n_members, plan, shares):
    """Decide about every attribute; returns columns, words of their rows, words of all cells."""
    n_words = (n_members + 63) >> 6
    has_columns = is_for_columns(codes, n_attrs, n_words, plan, shares)
    n_columns, rows, cells = np.int64(0), np.int64(0), np.int64(0)
    exact = _price_of(codes, n_attrs, n_words, plan, shares)
    for i in range(n_attrs):
        attr, shift = plan.attr[i], np.int64(NO_COLUMN)
        if has_columns and n_columns < MOST_COLUMNS:
            shift = np.int64(0)
            if not _is_exact(codes, attr, n_words, plan, exact):
                shift = _shift_for(codes, attr, n_words, n_members, plan, shares)
        plan.shift[attr] = shift
        if shift != 0:
            cells += plan.cells[attr]
        if shift == NO_COLUMN:
            continue
        rows += n_rows(codes.n[attr], shift) * n_words
        at, loss = n_columns, plan.count[attr] * (1.0 - plan.presence[attr])
        while n_columns < MOST_SORTED and at > 0 and plan.loss[at - 1] < loss:
            plan.column[at], plan.loss[at] = plan.column[at - 1], plan.loss[at - 1]
            at -= 1
        plan.column[at], plan.loss[at] = attr, loss
        n_columns += 1
    return n_columns, rows, cells


@part
def _toggle(low, high, last, rows, bit):
    """Change a member's bit in the rows where an interval begins and ends.

    Intervals of one set come in order; `last` is where the one before ended, and is returned for
    this one: two may share a coarse row.
    """
    begin, end = 1 + ((low - 1) >> rows.shift), 2 + ((high - 1) >> rows.shift)
    begin = max(begin, last)
    if begin < rows.height:
        rows.word[rows.first + begin * rows.n_words] ^= bit
    if end < rows.height:
        rows.word[rows.first + end * rows.n_words] ^= bit
    return end


@part
def _toggle_all(source, pred, rows, bit):
    """The same for all intervals of a predicate."""
    predicates, coded, pool = source.predicates, source.coded, source.pool
    cell, last = coded.cell[pred], np.int64(0)
    if cell_kind(cell) == INTERVAL:
        _toggle(cell_low(cell), cell_high(cell), last, rows, bit)
    elif cell_kind(cell) == MASK:
        first = np.int64(predicates.interval_start[pred])
        for i in range(first, first + predicates.n_intervals[pred]):
            low, high = np.int64(coded.interval_low[i]), np.int64(coded.interval_high[i])
            last = _toggle(low, high, last, rows, bit)
    else:
        at = cell_at(cell)
        for i in range(at + 1, at + 1 + 2 * np.int64(pool[at]), 2):
            low, high = np.int64(pool[i]), np.int64(pool[i + 1])
            last = _toggle(low, high, last, rows, bit)


@part
def _write_members(source, members, first, end, plan, target, at, where):
    """Write items and entries, and change bits in the rows of columns; whether there are twins."""
    expressions, coded = source.expressions, source.coded
    word, half = target.word, target.half
    items_at, entries_at, having, n_words = where
    n, has_twins, to = end - first, False, at + entries_at
    is_rows = having < 0 and entries_at > 0
    for i in range(n):
        m = members.listed[first + i]
        half[2 * (at + items_at) + i] = members.item[m]
        has_twins |= members.item[m] < 0
        w, bit = np.int64(i >> 6), np.int64(1) << np.int64(i & 63)
        begin = expressions.start[members.slot[m]]
        last = begin + expressions.size[members.slot[m]]
        for k in range(begin, begin if is_rows else last):
            pred = np.int64(expressions.code[k])
            attr = cell_attr(coded.cell[pred])
            shift = plan.shift[attr]
            if pred == members.skipped[m]:
                continue
            if shift == NO_COLUMN:
                continue
            word[plan.zero[attr] + w] |= bit
            if shift != PRESENCE:
                height = n_rows(source.codes.n[attr], shift)
                rows = Rows(word, plan.rows[attr] + w, n_words, shift, height)
                _toggle_all(source, pred, rows, bit)
        if entries_at > 0:
            one = other = np.int64(NONE)
            if is_rows:
                one = decided_by_gate(source, plan.gate[2 * i])
                other = decided_by_gate(source, plan.gate[2 * i + 1])
            without = (np.int64(members.skipped[m]), one, other)
            after = write_cells(source, begin, last, without, plan, word, to + 1)
            if after > to + 1 or is_rows:
                if not is_rows:
                    word[having + w] |= bit
                word[to] = entry_head(after - to, members.item[m])
                half[2 * (at + items_at) + i] = to - (at + items_at + (i >> 1))
                to = after
    return has_twins


@part
def _finish_column(word, zero, rows, n_words, height, n_members):
    """Turn marks into rows: row 0 has a bit where a predicate is, the others where it changes."""
    for w in range(n_words):
        full = np.int64(-1)
        if 64 * (w + 1) > n_members:
            full = ~(np.int64(-1) << (n_members & 63))
        word[zero + w] ^= full
        if height > 1:
            word[rows + n_words + w] ^= word[zero + w]
        for r in range(2, height):
            word[rows + r * n_words + w] ^= word[rows + (r - 1) * n_words + w]


@part
def _lay_columns(codes, plan, n_columns, n_words, first, word, at):
    """Write the columns of a block, and note where their rows are."""
    for c in range(n_columns):
        attr = plan.column[c]
        shift = plan.shift[attr]
        plan.zero[attr] = at + HEAD + n_columns + c * n_words
        plan.rows[attr] = at + first - n_words
        word[at + HEAD + c] = column(attr, shift, first)
        first += (n_rows(codes.n[attr], shift) - 1) * n_words


@part
def _pack(source, members, first, end, plan, shares, target, at):
    """Write one block at a position; returns its words, negative when there is no room."""
    expressions, coded, codes, word = source.expressions, source.coded, source.codes, target.word
    n = end - first
    n_words = (n + 63) >> 6
    n_attrs = gather(expressions, coded, members, first, end, plan)
    n_columns, rows, cells = _choose_columns(codes, n_attrs, n, plan, shares)
    having, items_at = np.int64(-1), HEAD + n_columns + rows
    if cells > 0:
        having = np.int64(HEAD) + n_columns * (1 + n_words) if n_columns > 0 else having
        items_at += n_words if n_columns > 0 else n
    first_row = having + n_words
    entries_at, words = np.int64(0), items_at + ((n + 1) >> 1)
    if cells > 0:
        entries_at = words
        words += cells + n
        if n_columns > 0:
            words -= n - count_entries(expressions, coded, members, first, end, plan)
        else:
            words -= choose_gates(source, members, first, end, plan)
    else:
        first_row = HEAD + n_columns * (1 + n_words)
    is_full = at + words > len(word)
    if not is_full:
        _lay_columns(codes, plan, n_columns, n_words, first_row, word, at)
        if cells > 0 and n_columns == 0:
            write_gates(source, n, plan, word, at)
        where = (items_at, entries_at, at + having if having >= 0 else having, n_words)
        has_twins = _write_members(source, members, first, end, plan, target, at, where)
        for c in range(n_columns):
            attr = plan.column[c]
            height = n_rows(codes.n[attr], plan.shift[attr])
            _finish_column(word, plan.zero[attr], plan.rows[attr], n_words, height, n)
        word[at] = header(n_columns, has_twins, cells > 0, n)
        word[at + 1] = items_at
    for i in range(n_attrs):
        plan.count[plan.attr[i]] = 0
        plan.cells[plan.attr[i]] = 0
    return -words if is_full else words


@kernel
def pack_blocks(source, members, plan, shares, bound, target, first, at):
    """Write the blocks first..; returns blocks done, the end, and words that lacked.

    bound  where the members of each block begin in members.listed
    """
    for b in range(first, len(bound) - 1):
        target.start[b] = at
        words = _pack(source, members, bound[b], bound[b + 1], plan, shares, target, at)
        if words < 0:
            return b, at, -words
        at += words
    target.start[len(bound) - 1] = at
    return len(bound) - 1, at, np.int64(0)
