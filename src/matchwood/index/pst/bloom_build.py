"""Kernels that build `pst_bloom` at once: cuts are known, lists are filled by space."""

from __future__ import annotations

import numpy as np

from matchwood.index.pst.ahead import AHEAD, ask_for, look_ahead
from matchwood.index.pst.bloom_change import (
    access_of,
    dimension_of,
    is_wide,
    list_expression,
)
from matchwood.index.pst.records import reserve_records, take_id
from matchwood.index.pst.spaces import is_whole, next_places
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.id_list_kernels import room_for, take_block
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel, part


@kernel
def list_ends(predicates, preds, counts, attrs, cuts, weight, n):
    """Append the cuts that the ends of predicates ask for, with counts[predicate]; their number."""
    for pred in preds:
        for i in range(predicates.n_intervals[pred]):
            lo, hi = interval(predicates, pred, i)
            if lo != MIN_KEY:
                attrs[n], cuts[n], weight[n] = predicates.attr[pred], lo, counts[pred]
                n += 1
            if hi != MAX_KEY:
                attrs[n], cuts[n], weight[n] = predicates.attr[pred], hi + 1, counts[pred]
                n += 1
    return n


@kernel
def lay_cuts(spaces, records, homes, dims, first, cuts):
    """Give dimension dims[i] the cuts first[i] .. first[i + 1] - 1; there is room."""
    for i in range(len(dims)):
        dim, n = dims[i], first[i + 1] - first[i]
        room = room_for(n)
        start = take_block(spaces, room)
        spaces.start[dim], spaces.size[dim], spaces.room[dim] = start, n, room
        for k in range(n):
            spaces.cut[start + k] = cuts[first[i] + k]
            spaces.item[start + k] = take_id(homes, records)
            spaces.uses[start + k] = 0


@kernel
def demote_wide(spaces, homes, predicates, slots, limits):
    """Send expressions with a wide access predicate to the coarse division; returns how many."""
    n, last = np.int64(0), len(slots) - 1
    for i in range(len(slots)):
        slot, ahead = slots[i], np.int64(homes.access[slots[min(i + AHEAD, last)]])
        ask_for(predicates, ~ahead if ahead < 0 else ahead)
        if homes.access[slot] >= 0 and is_wide(spaces, predicates, homes.access[slot], limits):
            homes.access[slot] = ~homes.access[slot]
            n += 1
    return n


@part
def in_order(expressions, predicates, slot, skipped, position):
    """A number for the order of entries: first the position, then the shape of the entry.

    Expressions that are reached together lie side by side.  Among them those with as many sets and
    as many intervals follow each other, so that branches of verification are guessed right.
    """
    n_sets = n_intervals = np.int64(0)
    begin = expressions.start[slot]
    for k in range(begin, begin + expressions.size[slot]):
        pred = np.int64(expressions.code[k])
        if pred != skipped:
            is_set = np.int64(predicates.n_intervals[pred] > 1)
            n_sets += is_set
            n_intervals += 1 - is_set
    return position << 12 | min(n_sets, 63) << 6 | min(n_intervals, 63)


@kernel
def count_records(spaces, homes, expressions, predicates, slots, n_records, order):
    """Records of every space, and where every slot comes in the order of entries."""
    for k in range(len(slots)):
        look_ahead(expressions, predicates, slots, k)
        slot = slots[k]
        pred, dim = access_of(homes, slot), dimension_of(homes, predicates, slot)
        skipped = pred if is_whole(spaces, dim, predicates, pred) else np.int64(-1)
        last = np.int64(-1)
        for i in range(predicates.n_intervals[pred]):
            first, last = next_places(spaces, dim, predicates, pred, i, last)
            if i == 0:
                order[k] = in_order(expressions, predicates, slot, skipped, first)
            for position in range(first, last + 1):
                n_records[spaces.item[position]] += 1


@kernel
def reserve_spaces(records, n_records):
    for space in range(len(n_records)):
        reserve_records(records, space, n_records[space])


@kernel
def fill_all(division, signatures, expressions, predicates, slots):
    """Write entries and records; there is room for all of them."""
    for i in range(len(slots)):
        look_ahead(expressions, predicates, slots, i)
        list_expression(division, signatures, expressions, predicates, slots[i])
