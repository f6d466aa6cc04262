"""Kernels of keys: combinations of an expression's spaces, and what splits and joins do to them.

An expression with `arity` access predicates is put under every combination of the spaces that these
meet, one of each, in the order of their attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.index.pst.bloom_change import (
    DONE,
    IDS_FULL,
    RECORDS_FULL,
    join,
    split,
)
from matchwood.index.pst.entries import slot_of
from matchwood.index.pst.records import (
    FREE,
    HIGH,
    NONE,
    has_id,
)
from matchwood.index.pst.space_hash import (
    NODE,
    PUT,
    SpaceHash,
    drop_ref_of,
    key_of,
    node_of,
    prune,
    put_node,
    put_ref,
)
from matchwood.index.pst.spaces import (
    has_end,
    position_of,
)
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.id_list_kernels import IdLists, insert_id, remove_id
from matchwood.kernel.interval_kernels import MAX_KEY
from matchwood.kernel.jit import part
from matchwood.kernel.verify_kernels import meets
from matchwood.kernel.word_map_kernels import HELD, find_cell

MEMBERS_FULL = RECORDS_FULL + 1
HASH_FULL = MEMBERS_FULL + 1
"""From here on: HASH_FULL + what `put_ref` found full."""


class Keyed(NamedTuple):
    """What `pst_hash` adds to the homes of `pst_bloom`."""

    access: np.ndarray  # int32[S, N], access predicates by attribute
    arity: np.ndarray  # int8[S], how many; 0: the expression is in records, PSTBloom's way
    by_arity: np.ndarray  # int64[N + 1], expressions of each arity
    demoted: np.ndarray  # int64[1], expressions that had a predicate too wide for a space


class Odometer(NamedTuple):
    """Scratch: the combination at hand, one part for each access predicate."""

    position: np.ndarray  # int64[N]
    piece: np.ndarray  # int64[N], which interval of the predicate
    last: np.ndarray  # int64[N], last position of that interval
    prefix: np.ndarray  # int64[N + 1], prefix[d]: what stands for the parts before d
    key: np.ndarray  # int64[N + 1], key[d]: of the first d parts
    cost: np.ndarray  # float64, for the predicates of one expression
    first: np.ndarray  # int64[max_records], the spaces of an access predicate
    second: np.ndarray  # int64[max_records], those of another


class Keys(NamedTuple):
    """All that combinations of spaces are kept in."""

    keyed: Keyed
    members: IdLists
    table: SpaceHash
    groups: IdLists
    odometer: Odometer


# ── combinations ────────────────────────────────────────────────────────────────────────────────


@part
def _enter(spaces, predicates, pred, odometer, d, after):
    """Point part d at the first space behind `after`; False when there is none."""
    dim = 2 * np.int64(predicates.attr[pred])
    while odometer.piece[d] < predicates.n_intervals[pred]:
        lo, hi = interval(predicates, pred, odometer.piece[d])
        first = max(position_of(spaces, dim, lo), after + 1)
        odometer.last[d] = position_of(spaces, dim, hi)
        if first <= odometer.last[d]:
            odometer.position[d] = first
            return True
        odometer.piece[d] += 1
    return False


@part
def _advance(spaces, predicates, pred, odometer, d):
    """Point part d at its next space; False when there is none."""
    if odometer.position[d] < odometer.last[d]:
        odometer.position[d] += 1
        return True
    odometer.piece[d] += 1
    return _enter(spaces, predicates, pred, odometer, d, odometer.position[d])


@part
def _parent(odometer, d):
    """The node that the key of d parts continues; 0 when that is a space alone."""
    return odometer.prefix[d - 1] & (NODE - 1) if d > 2 else np.int64(0)


@part
def _go_down(table, odometer, d, space, is_put):
    """Take `space` as part d - 1, others follow; 0, -1 (nothing there), or what is full."""
    if d == 1:
        odometer.prefix[1] = space
        return np.int64(0)
    key = key_of(odometer.prefix[d - 1], space)
    odometer.key[d] = key
    if is_put:
        node = put_node(table, key, _parent(odometer, d))
        if node < 0:
            return -node
    else:
        node = node_of(table.cell[find_cell(table.cell, key), HELD])
        if node <= 0:
            return np.int64(-1)
    odometer.prefix[d] = NODE | node
    return np.int64(0)


@part
def for_combinations(spaces, predicates, keys, slot, ref, fixed, fixed_space, is_put):
    """Put an expression under all its spaces, or drop it there.

    Part `fixed`, unless that is -1, is `fixed_space` alone.  Returns PUT, or what was full.
    """
    keyed, table, groups, odometer = keys.keyed, keys.table, keys.groups, keys.odometer
    n = np.int64(keyed.arity[slot])
    d, is_down = np.int64(0), True
    while d >= 0:
        if not is_down and not is_put and 2 <= d + 1 < n:
            prune(table, odometer.key[d + 1], _parent(odometer, d + 1))
        if d == fixed:
            if not is_down:
                d -= 1
                continue
            space = fixed_space
        else:
            pred = np.int64(keyed.access[slot, d])
            if is_down:
                odometer.piece[d] = 0
                is_there = _enter(spaces, predicates, pred, odometer, d, np.int64(-1))
            else:
                is_there = _advance(spaces, predicates, pred, odometer, d)
            if not is_there:
                d, is_down = d - 1, False
                continue
            space = np.int64(spaces.item[odometer.position[d]])
        if d + 1 < n:
            status = _go_down(table, odometer, d + 1, space, is_put)
            if status > 0:
                return status
            d, is_down = (d + 1, True) if status == 0 else (d, False)
            continue
        key = key_of(odometer.prefix[d], space)
        if is_put:
            status = put_ref(table, groups, key, _parent(odometer, n), ref)
            if status != PUT:
                return status
        else:
            drop_ref_of(table, groups, key, _parent(odometer, n), ref)
        is_down = False
    return np.int64(PUT)


@part
def part_on(keyed, predicates, slot, attr):
    """Which access predicate of an expression is on an attribute."""
    d = np.int64(0)
    while predicates.attr[keyed.access[slot, d]] != attr:
        d += 1
    return d


# ── splitting and joining ───────────────────────────────────────────────────────────────────────


@part
def split_members(division, keys, predicates, dim, cut):
    """Split a space; records under its id are copied to the id of the new one."""
    spaces, records, homes, entries = division
    keyed, members = keys.keyed, keys.members
    if not has_id(homes, records):
        return IDS_FULL
    position = position_of(spaces, dim, cut)
    left = np.int64(spaces.item[position])
    right = homes.count[FREE] if homes.count[FREE] != NONE else homes.count[HIGH]
    first = spaces.cut[position]
    last = MAX_KEY
    if position + 1 < spaces.start[dim] + spaces.size[dim]:
        last = spaces.cut[position + 1] - 1
    attr = dim >> 1
    for i in range(members.size[left]):  # a failure here leaves nothing that a search could see
        ref = np.int64(members.item[members.start[left] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        if meets(predicates, keyed.access[slot, d], cut, last):
            if not insert_id(members, right, np.int32(ref)):
                return MEMBERS_FULL
            status = for_combinations(spaces, predicates, keys, slot, ref, d, right, True)
            if status != PUT:
                return HASH_FULL + status
    status = split(division, predicates, dim, cut)
    if status != DONE:
        return status
    position = position_of(spaces, dim, cut)
    for i in range(members.size[left] - 1, -1, -1):
        ref = np.int64(members.item[members.start[left] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        pred = keyed.access[slot, d]
        spaces.uses[position] += has_end(predicates, pred, cut)
        if not meets(predicates, pred, first, cut - 1):
            for_combinations(spaces, predicates, keys, slot, ref, d, left, False)
            remove_id(members, left, np.int32(ref))
    return DONE


@part
def _undo_join(division, keys, predicates, attr, left, right, first, last):
    spaces, entries = division.spaces, division.entries
    keyed, members = keys.keyed, keys.members
    for i in range(members.size[right]):
        ref = np.int64(members.item[members.start[right] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        if not meets(predicates, keyed.access[slot, d], first, last):
            for_combinations(spaces, predicates, keys, slot, ref, d, left, False)
            remove_id(members, left, np.int32(ref))


@part
def join_members(division, keys, predicates, dim, position):
    """Join the space at a position to the one before it, unless there is no room for that."""
    spaces, entries = division.spaces, division.entries
    keyed, members = keys.keyed, keys.members
    left, right = np.int64(spaces.item[position - 1]), np.int64(spaces.item[position])
    first, last = spaces.cut[position - 1], spaces.cut[position] - 1
    attr, is_done = dim >> 1, True
    for i in range(members.size[right]):
        ref = np.int64(members.item[members.start[right] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        if not meets(predicates, keyed.access[slot, d], first, last):
            is_done = insert_id(members, left, np.int32(ref)) and PUT == for_combinations(
                spaces, predicates, keys, slot, ref, d, left, True
            )
            if not is_done:
                break
    if not is_done or not join(division, predicates, dim, position):
        _undo_join(division, keys, predicates, attr, left, right, first, last)
        return
    while members.size[right] > 0:
        ref = np.int64(members.item[members.start[right] + members.size[right] - 1])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        for_combinations(spaces, predicates, keys, slot, ref, d, right, False)
        remove_id(members, right, np.int32(ref))
