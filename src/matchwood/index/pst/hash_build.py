"""Kernels that build `pst_hash` at once: cuts are known, expressions are put under their spaces."""

from __future__ import annotations

import numpy as np

from matchwood.index.pst.ahead import look_ahead
from matchwood.index.pst.bloom_build import in_order
from matchwood.index.pst.bloom_change import DONE, ENTRIES_FULL
from matchwood.index.pst.hash_change import choose_keys, count_keyed, put_keyed, put_keyed_entry
from matchwood.index.pst.keys import HASH_FULL, MEMBERS_FULL
from matchwood.index.pst.space_hash import PUT, key_of, put_ref
from matchwood.index.pst.spaces import next_places, position_of
from matchwood.kernel.id_list_kernels import insert_id
from matchwood.kernel.jit import kernel, part, prefetch
from matchwood.kernel.word_map_kernels import home_of


@kernel
def choose_all_keys(spaces, homes, keyed, odometer, costs, tables, limits, slots):
    """Choose access predicates by costs[predicate]; returns how many combinations that makes."""
    expressions, predicates = tables.expressions, tables.predicates
    n = np.int64(0)
    for i in range(len(slots)):
        look_ahead(expressions, predicates, slots, i)
        begin = expressions.start[slots[i]]
        for k in range(expressions.size[slots[i]]):
            odometer.cost[k] = costs[expressions.code[begin + k]]
        n += choose_keys(spaces, homes, keyed, odometer, expressions, predicates, limits, slots[i])
    return n


@kernel
def order_keyed(spaces, keyed, expressions, predicates, slots, order):
    """Where every slot comes in the order of entries: by its first position, and then by shape."""
    for i in range(len(slots)):
        pred = np.int64(keyed.access[slots[i], 0])
        dim = 2 * np.int64(predicates.attr[pred])
        order[i] = in_order(
            expressions, predicates, slots[i], pred, position_of(spaces, dim, predicates.lo[pred])
        )


@part
def _list_spaces(spaces, predicates, pred, found):
    """The spaces that a predicate meets, in order; returns how many."""
    dim, last, n = 2 * np.int64(predicates.attr[pred]), np.int64(-1), np.int64(0)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        for position in range(first, last + 1):
            found[n] = spaces.item[position]
            n += 1
    return n


@part
def _put_pair(division, keys, expressions, predicates, slot):
    """As `put_keyed` for two access predicates: spaces are found once, cells prefetched."""
    spaces, homes, entries = division.spaces, division.homes, division.entries
    keyed, members, table, groups, odometer = (
        keys.keyed,
        keys.members,
        keys.table,
        keys.groups,
        keys.odometer,
    )
    if not put_keyed_entry(spaces, homes, entries, keyed, expressions, predicates, slot):
        return ENTRIES_FULL
    ref, first, second = np.int64(homes.ref[slot]), odometer.first, odometer.second
    n = _list_spaces(spaces, predicates, np.int64(keyed.access[slot, 0]), first)
    m = _list_spaces(spaces, predicates, np.int64(keyed.access[slot, 1]), second)
    for i in range(n):
        for j in range(m):
            prefetch(table.cell, np.uint64(2) * home_of(table.cell, key_of(first[i], second[j])))
    for i in range(n):
        if not insert_id(members, first[i], np.int32(ref)):
            return MEMBERS_FULL
    for j in range(m):
        if not insert_id(members, second[j], np.int32(ref)):
            return MEMBERS_FULL
    for i in range(n):
        for j in range(m):
            status = put_ref(table, groups, key_of(first[i], second[j]), np.int64(0), ref)
            if status != PUT:
                return HASH_FULL + status
    count_keyed(spaces, keyed, predicates, slot)
    return DONE


@kernel
def fill_keyed(division, keys, expressions, predicates, slots, done):
    """Put slots[done:] under spaces that are all made; returns how many are done, what is full.

    Nothing is split here, so nothing has more combinations than it was chosen for, and the lists
    of spaces have room.
    """
    keyed = keys.keyed
    while done < len(slots):
        look_ahead(expressions, predicates, slots, done)
        if keyed.arity[slots[done]] == 2:
            status = _put_pair(division, keys, expressions, predicates, slots[done])
        else:
            status = put_keyed(division, keys, expressions, predicates, slots[done])
        if status != DONE:
            return done, status
        done += 1
    return done, DONE
