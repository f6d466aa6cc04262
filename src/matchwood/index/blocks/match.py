"""The kernel that matches events of values, and what searches read and write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.blocks.reach import clear_codes, find_blocks, find_spaces
from matchwood.index.blocks.verify import NO_BLOCK, ask_for_rows, test_block, test_entries
from matchwood.index.blocks.words import Blocks, Codes, Places
from matchwood.index.core.layout_kernels import BOARD, EXPRESSION_TABLE, PREDICATE_TABLE
from matchwood.index.core.query_kernels import query_of
from matchwood.kernel.bound import Layout
from matchwood.kernel.jit import inlined, kernel, prefetch
from matchwood.kernel.verify_kernels import CANDIDATES, NODES, PREDICATES, Board, finish_event

AHEAD, FAR_AHEAD = 2, 8
"""How many blocks before its turn the rows of a block, and its header, are asked for."""

MOST_PENDING = 512
"""Members that wait for their entries to be tested, before those of one more block."""


class Memory(NamedTuple):
    """What a search writes to: one for each thread."""

    code: np.ndarray  # int32[A], codes of the event at hand, 0 between events
    fold_code: np.ndarray  # uint8[A], the same folded
    found: np.ndarray  # int64[2A], its spaces
    block: np.ndarray  # int64[], where the blocks of its spaces begin
    row: np.ndarray  # int64[MOST_COLUMNS + 1], rows of a block that decide
    pending: np.ndarray  # int64[MOST_PENDING + 512], members whose entries are to be tested
    work: np.ndarray  # int64[len(COUNTERS)], of the event at hand
    seen: np.ndarray  # int64[slots], when each was last found; for events of sets alone
    clock: np.ndarray  # int64[1], counts events of sets


class View(NamedTuple):
    """What a search reads; the tables for events of sets alone."""

    codes: Codes
    places: Places
    blocks: Blocks
    expressions: ExpressionLayout
    predicates: PredicateLayout


class Mine(NamedTuple):
    """What a search writes to."""

    memory: Memory
    board: Board


CODES = Layout(
    Codes,
    n="int32", low="int64", dense_start="int64", dense="uint16", cut_start="int64", cut="int64",
    shift="int64", guide_start="int64", guide="int32", fold="uint8",
)  # fmt: skip
VIEW = Layout(
    View,
    codes=CODES,
    places=Layout(
        Places,
        dim_start="int64", first_code="int32", shift="int64", guide_start="int64", guide="int32",
        block="int64",
    ),
    blocks=Layout(
        Blocks,
        at="int64", gate="int64", word="int64", half="int32", pool="int32", twin_start="int64",
        twin="int32",
    ),
    expressions=EXPRESSION_TABLE,
    predicates=PREDICATE_TABLE,
)  # fmt: skip
MINE = Layout(
    Mine,
    memory=Layout(
        Memory,
        code="int32", fold_code="uint8", found="int64", block="int64", row="int64", pending="int64",
        work="int64", seen="int64", clock="int64",
    ),
    board=BOARD,
)  # fmt: skip
view_of, mine_of = VIEW.reader(), MINE.reader()


@inlined
def test_reached(blocks, n_blocks, most, scratch, out, first):
    """Append what holds in the blocks that `scratch.block` has; returns the end of `out`, or FULL.

    It may end after `most` matches.
    """
    block, code, n, n_pending = scratch.block, scratch.code, first, np.int64(0)
    for i in range(min(np.int64(FAR_AHEAD), n_blocks)):
        prefetch(blocks.word, block[i])
        prefetch(blocks.word, block[i] + 8)
    for i in range(min(np.int64(AHEAD), n_blocks)):
        ask_for_rows(blocks.word, block[i], code)
    for i in range(n_blocks):
        if i + FAR_AHEAD < n_blocks:
            prefetch(blocks.word, block[i + FAR_AHEAD])
            prefetch(blocks.word, block[i + FAR_AHEAD] + 8)
        ahead = block[i + AHEAD] if i + AHEAD < n_blocks else np.int64(NO_BLOCK)
        n, n_pending = test_block(blocks, block[i], ahead, scratch, out, n, n_pending)
        is_due = n_pending > MOST_PENDING or n_pending >= most
        if n >= 0 and (is_due or i + 1 == n_blocks):
            n = test_entries(blocks, scratch, n_pending, out, n)
            n_pending = np.int64(0)
        if n < 0 or n - first >= most:
            break
    return n


@kernel
def match_blocks(bound, bound_mine, bound_query, first, stamp):
    """Match events of values; returns how many are done (fewer: `out` is full).

    ~that, with the number in work[NODES], when scratch has no room for the blocks of an event.
    """
    view, scratch, query = view_of(bound), mine_of(bound_mine).memory, query_of(bound_query)
    events, output = query.events, query.output
    places, blocks, out, work = view.places, view.blocks, output.out, scratch.work
    n = output.offsets[first]
    for e in range(first, len(events.start) - 1):
        for i in range(len(work)):
            work[i] = 0
        n_spaces = find_spaces(view.codes, places, events, e, scratch)
        n_blocks = find_blocks(places, blocks, n_spaces, scratch)
        if n_blocks > len(scratch.block):
            clear_codes(events, e, scratch)
            work[NODES] = n_blocks
            return ~np.int64(e)
        n = test_reached(blocks, n_blocks, query.most[0], scratch, out, n)
        clear_codes(events, e, scratch)
        if n < 0:
            return e
        finish_event(e, n, work[NODES], work[CANDIDATES], work[PREDICATES], output)
    return len(events.start) - 1
