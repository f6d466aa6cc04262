"""Kernels that check the blocks of a snapshot: no search may leave an array, no slot be missing."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.words import (
    HEAD,
    INTERVAL,
    MASK,
    MOST_MEMBERS,
    POOLED,
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
    entry_of,
    entry_words,
    has_entries,
    is_row_block,
    items_of,
    members_of,
    n_rows,
    small_gate_attr,
)
from matchwood.kernel.jit import kernel, part


@part
def _is_cell(codes, pool, word, k, end):
    """Whether there is a cell at a position, all of it before the end."""
    cell = word[k]
    attr, kind = cell_attr(cell), cell_kind(cell)
    if attr >= len(codes.n) or kind < INTERVAL or kind > POOLED:
        return False
    if kind == MASK and (cell_low(cell) > cell_high(cell) or k + cell_words(cell) > end):
        return False
    if kind == POOLED:
        at = cell_at(cell)
        return at < len(pool) and pool[at] >= 0 and at + 2 * np.int64(pool[at]) < len(pool)
    return True


@part
def _is_gate(codes, word):
    """Whether a word is a gate of a block."""
    return cell_kind(word) == INTERVAL and cell_attr(word) < len(codes.n)


@part
def _are_gates(codes, gates):
    """Whether both halves of an unsigned word are gates of a member."""
    one, other = small_gate_attr(gates), small_gate_attr(gates >> np.uint64(32))
    return one < np.uint64(len(codes.n)) and other < np.uint64(len(codes.n))


@part
def _has_columns(codes, blocks, at, end):
    """Whether columns and rows of a block, or gates, and items lie inside it, in this order."""
    word = blocks.word
    head, items = word[at], word[at + 1]
    n_members, n_columns = members_of(head), columns_of(head)
    n_words = (n_members + 63) >> 6
    if items < 0 or items > end - at or at + items + ((n_members + 1) >> 1) > end:
        return False
    if is_row_block(head):
        if HEAD + n_members > items:
            return False
        for i in range(at + HEAD, at + HEAD + n_members):
            if not _are_gates(codes, np.uint64(word[i])):
                return False
        return True
    before = HEAD + n_columns * (1 + n_words) + (n_words if has_entries(head) else 0)
    if before > items:
        return False
    for c in range(at + HEAD, at + HEAD + n_columns):
        attr, shift, rows = column_attr(word[c]), column_shift(word[c]), column_rows(word[c])
        if attr < 0 or attr >= len(codes.n) or shift > PRESENCE or rows < before:
            return False
        if codes.n[attr] < 1 or rows + (n_rows(codes.n[attr], shift) - 1) * n_words > items:
            return False
    return True


@part
def _see(blocks, item, seen):
    """Note that a slot, or those of twins, are there; False when they are no slots."""
    if item >= 0:
        if item >= len(seen):
            return False
        seen[item] = True
        return True
    if ~item >= len(blocks.twin_start) - 1:
        return False
    for k in range(blocks.twin_start[~item], blocks.twin_start[~item + 1]):
        seen[blocks.twin[k]] = True
    return True


@part
def _has_members(codes, blocks, at, end, seen):
    """Whether items are slots or lead to entries inside the block."""
    word, head = blocks.word, blocks.word[at]
    n_words, first = (members_of(head) + 63) >> 6, items_of(word, at)
    having = at + HEAD + columns_of(head) * (1 + n_words)
    for i in range(members_of(head)):
        item = np.int64(blocks.half[first + i])
        has_entry = is_row_block(head)
        if has_entries(head) and not has_entry:
            has_entry = ((word[having + (i >> 6)] >> (i & 63)) & 1) != 0
        if has_entry:
            k = entry_of(blocks.half, first + i)
            if k < at or k >= end or entry_words(word[k]) < 1 or entry_words(word[k]) > end - k:
                return False
            item, last = entry_item(word[k]), k + entry_words(word[k])
            k += 1
            while k < last:
                if not _is_cell(codes, blocks.pool, word, k, last):
                    return False
                k += cell_words(word[k])
        if not _see(blocks, item, seen):
            return False
    return True


@kernel
def check_blocks(codes, blocks, seen):
    """Whether all blocks are whole; notes the slots that they have."""
    for b in range(len(blocks.at) - 1):
        at, end = blocks.at[b], blocks.at[b + 1]
        if end - at < HEAD:
            return False
        if not _is_gate(codes, blocks.gate[b]):
            return False
        head = blocks.word[at]
        if head < 0 or head >> 28 != 0 or members_of(head) < 1 or members_of(head) > MOST_MEMBERS:
            return False
        if not _has_columns(codes, blocks, at, end):
            return False
        if not _has_members(codes, blocks, at, end, seen):
            return False
    return True
