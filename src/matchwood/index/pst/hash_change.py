"""Kernels of `pst_hash`: choose access predicates, insert and delete."""

from __future__ import annotations

import numpy as np

from matchwood.index.pst.access import cost_of, note_expression
from matchwood.index.pst.bloom_change import (
    COARSE,
    DONE,
    ENTRIES_FULL,
    access_of,
    dimension_of,
    idle_cut,
    is_wide,
    opened,
    settle,
    take_out,
)
from matchwood.index.pst.entries import give_entry, has_room, put_entry
from matchwood.index.pst.keys import (
    HASH_FULL,
    MEMBERS_FULL,
    for_combinations,
    join_members,
    split_members,
)
from matchwood.index.pst.records import NO_ACCESS, NONE
from matchwood.index.pst.space_hash import (
    PUT,
)
from matchwood.index.pst.spaces import (
    is_open,
    is_whole,
    n_met,
    next_places,
    position_of,
    use_cuts,
)
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.id_list_kernels import insert_id, remove_id
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel, part

# ── insertion ───────────────────────────────────────────────────────────────────────────────────


@part
def choose_keys(spaces, homes, keyed, odometer, expressions, predicates, limits, slot):
    """The access predicates of an expression: the least costly first, as many as fit.

    odometer.cost has what each of its predicates costs.  One that would make more than max_records
    combinations is left to verification.  Returns how many combinations there are.
    """
    begin, size = expressions.start[slot], np.int64(expressions.size[slot])
    n, most = np.int64(0), keyed.access.shape[1]
    product, is_demoted, best = np.int64(1), False, NO_ACCESS
    for tries in range(size):
        k = np.int64(0)
        for other in range(1, size):
            if odometer.cost[other] < odometer.cost[k]:
                k = np.int64(other)
        odometer.cost[k] = np.inf
        pred = np.int64(expressions.code[begin + k])
        if tries == 0:
            best = pred
        dim = 2 * np.int64(predicates.attr[pred])
        met = np.int64(predicates.n_intervals[pred])
        if is_open(spaces, dim):
            met = max(met, n_met(spaces, dim, predicates, pred, limits.max_records))
        if product * met > limits.max_records:
            is_demoted = is_demoted or tries < most
            continue
        product *= met
        j = n
        while j > 0 and predicates.attr[keyed.access[slot, j - 1]] > predicates.attr[pred]:
            keyed.access[slot, j] = keyed.access[slot, j - 1]
            j -= 1
        keyed.access[slot, j] = pred
        n += 1
        if n == most:
            break
    keyed.demoted[0] += is_demoted
    if n >= 2:
        keyed.arity[slot] = n
        return product
    homes.access[slot] = best
    return np.int64(0)


@part
def _cut_ends(division, keys, statistics, predicates, limits, dim, pred):
    """Open a dimension and cut it at the ends of a predicate, which may be repeated."""
    spaces, records, members = division.spaces, division.records, keys.members
    status = opened(division, dim)
    if status != DONE:
        return status
    most = COARSE if dim & 1 else limits.max_spaces
    for i in range(2 * predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i >> 1)
        if spaces.size[dim] >= most:
            break
        if (i & 1 == 0 and lo == MIN_KEY) or (i & 1 and hi == MAX_KEY):
            continue
        cut = hi + 1 if i & 1 else lo
        position = position_of(spaces, dim, cut)
        space = np.int64(spaces.item[position])
        held = records.size[space] + members.size[space]
        if spaces.cut[position] == cut or held < limits.space_size:
            continue
        status = split_members(division, keys, predicates, dim, cut)
        if status != DONE:
            return status
        statistics.values[dim >> 1] = max(statistics.values[dim >> 1], np.int64(spaces.size[dim]))
    return DONE


@part
def _join_ends(division, keys, predicates, dim, pred):
    spaces = division.spaces
    for i in range(2 * predicates.n_intervals[pred]):
        position = idle_cut(spaces, dim, predicates, pred, i)
        if position >= 0:
            join_members(division, keys, predicates, dim, position)


@part
def in_members(spaces, members, predicates, pred, ref, is_put):
    """Put a ref into the member list of every space that a predicate meets, or take it out."""
    dim, last = 2 * np.int64(predicates.attr[pred]), np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        for position in range(first, last + 1):
            if not is_put:
                remove_id(members, spaces.item[position], np.int32(ref))
            elif not insert_id(members, spaces.item[position], np.int32(ref)):
                return False
    return True


@part
def put_keyed_entry(spaces, homes, entries, keyed, expressions, predicates, slot):
    """Write the entry of an expression, if that is still to do; False: no room."""
    if homes.ref[slot] != NONE:
        return True
    if not has_room(entries, expressions.size[slot]):
        return False
    n_skipped = np.int64(0)
    for d in range(keyed.arity[slot]):
        pred = np.int64(keyed.access[slot, d])
        if is_whole(spaces, 2 * np.int64(predicates.attr[pred]), predicates, pred):
            entries.skipped[n_skipped] = pred
            n_skipped += 1
    homes.ref[slot] = put_entry(entries, expressions, predicates, slot, n_skipped)
    return True


@part
def count_keyed(spaces, keyed, predicates, slot):
    """An expression is under all its spaces: count it, and the ends of its access predicates."""
    for d in range(keyed.arity[slot]):
        pred = np.int64(keyed.access[slot, d])
        use_cuts(spaces, 2 * np.int64(predicates.attr[pred]), predicates, pred, 1)
    keyed.by_arity[keyed.arity[slot]] += 1


@part
def put_keyed(division, keys, expressions, predicates, slot):
    """Put an expression under its spaces, whose ends are cut; may be repeated."""
    spaces, homes, entries = division.spaces, division.homes, division.entries
    keyed, members = keys.keyed, keys.members
    if not put_keyed_entry(spaces, homes, entries, keyed, expressions, predicates, slot):
        return ENTRIES_FULL
    ref = np.int64(homes.ref[slot])
    status = for_combinations(spaces, predicates, keys, slot, ref, np.int64(-1), np.int64(-1), True)
    if status != PUT:
        return HASH_FULL + status
    for d in range(keyed.arity[slot]):
        if not in_members(spaces, members, predicates, keyed.access[slot, d], ref, True):
            return MEMBERS_FULL
    count_keyed(spaces, keyed, predicates, slot)
    return DONE


@part
def settle_keyed(division, keys, statistics, expressions, predicates, limits, slot):
    """Cut the ends of an expression's access predicates, and put it under its spaces."""
    homes = division.homes
    keyed = keys.keyed
    if homes.ref[slot] == NONE:  # not again when something was full behind the cuts
        for d in range(keyed.arity[slot]):
            pred = np.int64(keyed.access[slot, d])
            status = _cut_ends(
                division,
                keys,
                statistics,
                predicates,
                limits,
                2 * np.int64(predicates.attr[pred]),
                pred,
            )
            if status != DONE:
                return status
    return put_keyed(division, keys, expressions, predicates, slot)


@kernel
def insert_keyed(division, keys, signatures, statistics, tables, limits, slots, done):
    """Insert slots[done:]; returns how many are done and what is full."""
    spaces, homes = division.spaces, division.homes
    keyed, odometer = keys.keyed, keys.odometer
    expressions, predicates = tables.expressions, tables.predicates
    while done < len(slots):
        slot = slots[done]
        if keyed.arity[slot] == 0 and homes.access[slot] == NO_ACCESS:
            note_expression(statistics, expressions, predicates, slot, 1)
            begin = expressions.start[slot]
            for k in range(expressions.size[slot]):
                odometer.cost[k] = cost_of(
                    statistics, spaces, homes.space_seen, predicates, expressions.code[begin + k],
                    limits.ranking,
                )  # fmt: skip
            choose_keys(spaces, homes, keyed, odometer, expressions, predicates, limits, slot)
        if keyed.arity[slot] > 0:
            status = settle_keyed(division, keys, statistics, expressions, predicates, limits, slot)
        else:
            pred = access_of(homes, slot)
            if homes.access[slot] >= 0 and is_wide(spaces, predicates, pred, limits):
                homes.access[slot] = ~pred
            status = _cut_ends(
                division,
                keys,
                statistics,
                predicates,
                limits,
                dimension_of(homes, predicates, slot),
                pred,
            )
            if status == DONE:  # what is to be cut is cut, so this cuts no more
                status = settle(
                    division, signatures, statistics, expressions, predicates, limits, slot
                )
                if status == DONE:
                    keyed.by_arity[1] += 1
        if status != DONE:
            return done, status
        done += 1
    return done, DONE


# ── deletion ────────────────────────────────────────────────────────────────────────────────────


@kernel
def delete_keyed(division, keys, statistics, expressions, predicates, slots):
    spaces, homes, entries = division.spaces, division.homes, division.entries
    keyed, members = keys.keyed, keys.members
    for slot in slots:
        n = np.int64(keyed.arity[slot])
        keyed.by_arity[max(n, 1)] -= 1
        if n == 0:
            pred, dim = access_of(homes, slot), dimension_of(homes, predicates, slot)
            take_out(division, predicates, slot)
            _join_ends(division, keys, predicates, dim, pred)
        else:
            ref = np.int64(homes.ref[slot])
            for_combinations(spaces, predicates, keys, slot, ref, np.int64(-1), np.int64(-1), False)
            for d in range(n):
                pred = np.int64(keyed.access[slot, d])
                in_members(spaces, members, predicates, pred, ref, False)
                use_cuts(spaces, 2 * np.int64(predicates.attr[pred]), predicates, pred, -1)
            give_entry(entries, ref)
            for d in range(n):
                pred = np.int64(keyed.access[slot, d])
                _join_ends(division, keys, predicates, 2 * np.int64(predicates.attr[pred]), pred)
        homes.ref[slot], homes.access[slot], keyed.arity[slot] = NONE, NO_ACCESS, 0
        note_expression(statistics, expressions, predicates, slot, -1)
