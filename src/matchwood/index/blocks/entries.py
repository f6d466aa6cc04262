"""Kernels that write entries, what columns do not decide, and the gates of members."""

from __future__ import annotations

import numpy as np

from matchwood.index.blocks.codes import hull
from matchwood.index.blocks.words import (
    FOLDED_ATTRIBUTES,
    HEAD,
    INTERVAL,
    MASK,
    NO_SMALL_GATE,
    cell_attr,
    cell_kind,
    cell_low,
    cell_words,
    folded,
    small_gate,
)
from matchwood.kernel.jit import part

NONE = -1
"""No predicate."""


@part
def choose_gates(source, members, first, end, plan):
    """plan.gate: of each member the two predicates that events satisfy most seldom, or NONE.

    Returns how many of them gates decide.
    """
    expressions, coded = source.expressions, source.coded
    n_decided = np.int64(0)
    for i in range(first, end):
        m = members.listed[i]
        one, other, least, less = np.int64(NONE), np.int64(NONE), np.inf, np.inf
        begin = expressions.start[members.slot[m]]
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = np.int64(expressions.code[k])
            if pred == members.skipped[m] or cell_attr(coded.cell[pred]) >= FOLDED_ATTRIBUTES:
                continue
            odds = 1.0 if pred == members.access[m] else coded.odds[pred]  # it brought events here
            if odds < least:
                one, other, least, less = pred, one, odds, least
            elif odds < less:
                other, less = pred, odds
        plan.gate[2 * (i - first)], plan.gate[2 * (i - first) + 1] = one, other
        for pred in (one, other):
            n_decided += np.int64(decided_by_gate(source, pred) != NONE)
    return n_decided


@part
def decided_by_gate(source, pred):
    """The predicate that a gate is made of, if the gate decides it; else NONE."""
    if pred == NONE or cell_kind(source.coded.cell[pred]) != INTERVAL:
        return np.int64(NONE)
    if source.codes.fold[cell_attr(source.coded.cell[pred])] > 0:
        return np.int64(NONE)
    return np.int64(pred)


@part
def _gate_of(source, pred):
    """The gate of a member that is made of a predicate."""
    if pred == NONE:
        return np.int64(NO_SMALL_GATE)
    attr = cell_attr(source.coded.cell[pred])
    low, high = hull(source.coded, source.pool, pred)
    fold = source.codes.fold[attr]
    return small_gate(attr, folded(low, fold), folded(high, fold))


@part
def write_gates(source, n, plan, word, at):
    """Write the gates of the n members of a row block."""
    for i in range(n):
        one, other = _gate_of(source, plan.gate[2 * i]), _gate_of(source, plan.gate[2 * i + 1])
        word[at + HEAD + i] = one | (other << 32)


@part
def _write_cell(predicates, coded, pred, word, at):
    """Write a cell; returns the position behind it."""
    cell = coded.cell[pred]
    word[at] = cell
    if cell_kind(cell) == MASK:
        low, first = cell_low(cell), np.int64(predicates.interval_start[pred])
        for i in range(first, first + predicates.n_intervals[pred]):
            for code in range(coded.interval_low[i], coded.interval_high[i] + 1):
                offset = np.int64(code) - low
                word[at + 1 + (offset >> 6)] |= np.int64(1) << (offset & 63)
    return at + cell_words(cell)


@part
def write_cells(source, begin, end, without, plan, word, to):
    """Write the cells of a member, intervals before sets; returns the position behind them.

    without  predicates that need none: a space or gates decide them
    """
    for is_set in range(2):
        for k in range(begin, end):
            pred = np.int64(source.expressions.code[k])
            cell = source.coded.cell[pred]
            if pred in without or (cell_kind(cell) != INTERVAL) != is_set:
                continue
            if plan.shift[cell_attr(cell)] != 0:
                to = _write_cell(source.predicates, source.coded, pred, word, to)
    return to


@part
def count_entries(expressions, coded, members, first, end, plan):
    """How many members have a predicate that columns do not decide."""
    n = np.int64(0)
    for i in range(first, end):
        m = members.listed[i]
        begin = expressions.start[members.slot[m]]
        for k in range(begin, begin + expressions.size[members.slot[m]]):
            pred = expressions.code[k]
            if pred != members.skipped[m] and plan.shift[cell_attr(coded.cell[pred])] != 0:
                n += 1
                break
    return n
