"""Kernels of the words that a block is made of: headers, columns, cells; and codes of keys.

    column block  [header][parts][columns][rows 0][has an entry][other rows][items][entries]
    row block     [header][parts][gates][items][entries]         no columns; all have entries

    header  columns 16 | twins 1 | entries 1 | members 10                 bits, high to low
    parts   where the items begin, in words from the header
    item    of a member without an entry: its slot, or ~t for all slots of the twins t (32 bits)
            of one with an entry: where this is, in words from the word of the item
    entry   [words 32 | item 32][cell][cell] ...   what columns and an exact gate do not decide,
            intervals first
    gates   of a member, two in a word: attribute 16 | low 8 | high - low 8     in folded codes
            the hulls of what it accepts of two attributes
    column  attribute 24 | shift 8 | row 1 32 (in words from the header)
    cell    kind 2 | attribute 24 | low 18 | high 18                      INTERVAL, MASK
            kind 2 | attribute 24 | position in `pool` 36                 POOLED

A *code* is the number of a segment between two cut points of an attribute, from 1; 0 stands for an
absent attribute, and no predicate contains it.  A row of a column has a bit for each member; row 0
is for events without the attribute, row 1 + ((code - 1) >> shift) for the others.  A column with
the shift PRESENCE has row 0 alone: the other would have all bits.  Rows 0 of all columns lie side
by side, because most attributes of a block are absent from an event, or few are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import part, prefetch
from matchwood.kernel.sort_kernels import last_not_above

INTERVAL, MASK, POOLED = range(3)
ONE = np.uint64(1)
"""Positions in searches are unsigned: a signed one is compared with 0 at every access."""

PRESENCE = 31
MOST_MEMBERS = 512
"""Members of a block: a row has at most 8 words, a cache line."""

MOST_ATTRIBUTES = 2**24
MOST_CODE = 2**18 - 1
"""The highest code in a cell; predicates with higher ones are in the pool."""

MOST_MASK = 4
"""Words of the longest mask; longer sets are in the pool."""

HEAD = 2
"""Words before the first column."""

MOST_FOLDED, FOLDED_ATTRIBUTES = 2**8 - 1, 2**16
"""The highest folded code; attributes that gates of members may be about."""

NO_SMALL_GATE = MOST_FOLDED
"""A gate of a member that is always open."""

NO_GATE = MOST_CODE
"""A gate that is always open: all codes of attribute 0, and its absence."""


class Codes(NamedTuple):
    """Cut points of every attribute: sorted, or as a table of codes where its keys are dense.

    An attribute with codes has either dense_start[a] < dense_start[a + 1], the codes of the keys
    low[a], low[a] + 1, ... (keys before have code 1, keys after code n[a]), or the n[a] cuts from
    cut_start[a] on, ascending, the first being MIN_KEY.  Many cuts have a guide: entry i is the
    last cut that is not above low[a] + (i << shift[a]), low[a] being the second cut, and the last
    entry is the last cut; so few cuts, often one, are left to compare a key with.
    """

    n: np.ndarray  # int32[A], codes; 0: no predicate is about the attribute
    low: np.ndarray  # int64[A]
    dense_start: np.ndarray  # int64[A + 1]
    dense: np.ndarray  # uint16[]
    cut_start: np.ndarray  # int64[A + 1]
    cut: np.ndarray  # int64[]
    shift: np.ndarray  # int64[A]
    guide_start: np.ndarray  # int64[A + 1]
    guide: np.ndarray  # int32[], counted from cut_start[a]
    fold: np.ndarray  # uint8[A], bits that folding drops from codes


class Places(NamedTuple):
    """The spaces of access predicates, and where their blocks are.

    Dimension 2a is the fine division of attribute a, 2a + 1 the coarse one; space i of all begins
    with the code first_code[i] and has the blocks block[i] .. block[i + 1] - 1.  Every dimension
    with spaces has a guide: entry i is the last space that begins at or before 1 + (i << shift[d]),
    and the last entry is its last space.  With the shift 0 it is the space of code 1 + i.
    """

    dim_start: np.ndarray  # int64[2A + 1]
    first_code: np.ndarray  # int32[N]
    shift: np.ndarray  # int64[2A]
    guide_start: np.ndarray  # int64[2A + 1]
    guide: np.ndarray  # int32[], counted from dim_start[d]
    block: np.ndarray  # int64[N + 1]


class Blocks(NamedTuple):
    """The blocks of all spaces, and what they refer to."""

    at: np.ndarray  # int64[B + 1], where each begins in `word`, and the end
    gate: np.ndarray  # int64[B], a cell that an event must meet, else no member holds
    word: np.ndarray  # int64[], see above
    half: np.ndarray  # int32[], the same memory
    pool: np.ndarray  # int32[], sets: [n, low 0, high 0, low 1, ...] in codes
    twin_start: np.ndarray  # int64[T + 1]
    twin: np.ndarray  # int32[], slots of equal subscriptions; a slot ~t in a block stands for all


@part
def header(n_columns, has_twins, has_entries, n_members):
    return (
        (np.int64(n_columns) << 12) | (np.int64(has_twins) << 11) | (np.int64(has_entries) << 10)
        | np.int64(n_members)
    )  # fmt: skip


@part
def columns_of(head):
    return head >> 12


@part
def has_twins(head):
    return ((head >> 11) & 1) != 0


@part
def has_entries(head):
    return ((head >> 10) & 1) != 0


@part
def members_of(head):
    return head & 0x3FF


@part
def is_row_block(head):
    return (head & 0x0FFFF400) == 0x400  # entries, and no columns


@part
def items_of(word, at):
    """Where the items of a block are, in halves."""
    return 2 * (at + word[at + 1])


@part
def entry_of(half, i):
    """Where the entry of the member with item i (in halves) is."""
    return (i >> 1) + half[i]


@part
def item_of(blocks, at, m):
    """The slot of member m of a block, or ~t for the twins t."""
    head, i = blocks.word[at], items_of(blocks.word, at) + m
    has_entry = is_row_block(head)
    if has_entries(head) and not has_entry:
        having = at + HEAD + columns_of(head) * (1 + ((members_of(head) + 63) >> 6))
        has_entry = ((blocks.word[having + (m >> 6)] >> (m & 63)) & 1) != 0
    if has_entry:
        return entry_item(blocks.word[entry_of(blocks.half, i)])
    return np.int64(blocks.half[i])


@part
def entry_head(words, item):
    return (np.int64(words) << 32) | (np.int64(item) & 0xFFFFFFFF)


@part
def entry_words(head):
    return head >> 32


@part
def entry_item(head):
    return ((head & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000  # with its sign


@part
def column(attr, shift, rows):
    return (np.int64(attr) << 40) | (np.int64(shift) << 32) | np.int64(rows)


@part
def column_attr(word):
    return word >> 40


@part
def column_shift(word):
    return (word >> 32) & 0xFF


@part
def column_rows(word):
    return word & 0xFFFFFFFF


@part
def n_rows(n_codes, shift):
    """Rows of a column for an attribute with so many codes."""
    if shift == PRESENCE:
        return np.int64(1)
    return np.int64(2) + ((np.int64(n_codes) - 1) >> shift)


@part
def cell(kind, attr, low, high):
    return (np.int64(kind) << 60) | (np.int64(attr) << 36) | (np.int64(low) << 18) | np.int64(high)


@part
def pooled_cell(attr, at):
    return (np.int64(POOLED) << 60) | (np.int64(attr) << 36) | np.int64(at)


@part
def cell_kind(word):
    return word >> 60


@part
def cell_attr(word):
    return (word >> 36) & 0xFFFFFF


@part
def cell_low(word):
    return (word >> 18) & 0x3FFFF


@part
def cell_high(word):
    return word & 0x3FFFF


@part
def cell_at(word):
    return word & 0xFFFFFFFFF


@part
def cell_words(word):
    """Words of a cell, its mask among them."""
    if cell_kind(word) == MASK:
        return 2 + ((cell_high(word) - cell_low(word)) >> 6)
    return np.int64(1)


@part
def gate(attr, low, high):
    """The gate of a block: what members need of an attribute lies inside these codes."""
    return cell(INTERVAL, attr, min(low, np.int64(MOST_CODE)), min(high, np.int64(MOST_CODE)))


@part
def folded(code, fold):
    """A code in 8 bits, neighbours in one where there are many; 0 for an absent attribute."""
    return ((np.int64(code) - 1) >> np.int64(fold)) + 1


@part
def small_gate(attr, low, high):
    """A gate of a member, in folded codes."""
    return (np.int64(attr) << 16) | (low << 8) | (high - low)


@part
def small_gate_attr(gate):
    return (gate >> np.uint64(16)) & np.uint64(0xFFFF)


@part
def is_small_open(gate, fold_code):
    """Whether an event's folded codes pass the gate in the low half of an unsigned word."""
    above = np.uint64(fold_code[small_gate_attr(gate)]) - (gate >> np.uint64(8))
    return (above & np.uint64(0xFF)) <= (gate & np.uint64(0xFF))  # absent: 0 is below all lows


@part
def is_open(word, code):
    """Whether an event's codes pass a gate; codes that are too high for a cell count as one."""
    now = min(np.int64(code[np.uint64(cell_attr(word))]), np.int64(MOST_CODE))
    return ((now - cell_low(word)) | (cell_high(word) - now)) >= 0


@part
def code_of(codes, attr, key):
    """The code of a key, from 1; the attribute has codes."""
    a = np.uint64(attr)
    n, low = np.int64(codes.n[a]), codes.low[a]
    begin = codes.dense_start[a]
    size = codes.dense_start[a + ONE] - begin
    if size > 0:
        if key < low:
            return np.int64(1)
        if key > low + (size - 1):
            return n
        return np.int64(codes.dense[np.uint64(begin + (key - low))])
    first, begin = codes.cut_start[a], codes.guide_start[a]
    size = codes.guide_start[a + ONE] - begin
    if size == 0:
        return last_not_above(codes.cut, first, first + n, key) - first + 1
    if key < low:
        return np.int64(1)
    step = (np.uint64(key) - np.uint64(low)) >> np.uint64(codes.shift[a])
    at = np.uint64(begin) + min(step, np.uint64(size - 2))
    low, high = first + codes.guide[at], first + codes.guide[at + ONE]
    return last_not_above(codes.cut, low, high + 1, key) - first + 1


@part
def position_of(places, dim, code):
    """The space of a dimension, which has spaces, that a code from 1 on belongs to."""
    first = places.dim_start[np.uint64(dim)]
    at = np.uint64(guide_of(places, dim, code))
    low = first + places.guide[at]
    if places.shift[np.uint64(dim)] == 0:
        return low
    return last_not_above(places.first_code, low, first + places.guide[at + ONE] + 1, code)


@part
def guide_of(places, dim, code):
    """Where the guide of a dimension tells about a code."""
    return places.guide_start[np.uint64(dim)] + ((code - 1) >> places.shift[np.uint64(dim)])


@part
def ask_for_code(codes, attr, key):
    """Ask for what `code_of` reads first."""
    a = np.uint64(attr)
    offset = np.uint64(key) - np.uint64(codes.low[a])
    if codes.dense_start[a] < codes.dense_start[a + ONE]:
        prefetch(codes.dense, np.uint64(codes.dense_start[a]) + offset)
    else:
        step = offset >> np.uint64(codes.shift[a])
        prefetch(codes.guide, np.uint64(codes.guide_start[a]) + step)


@part
def in_pool(pool, at, code):
    """Whether a set of the pool has a code."""
    low, high = np.int64(0), np.int64(pool[at])
    while low < high:  # the first interval that does not end before the code
        middle = (low + high) >> 1
        if pool[at + 2 + 2 * middle] < code:
            low = middle + 1
        else:
            high = middle
    return low < pool[at] and pool[at + 1 + 2 * low] <= code
