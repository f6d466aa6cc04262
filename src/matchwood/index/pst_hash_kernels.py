"""Kernels of `pst_hash`: N-dimensional spaces of expressions, and what splits and joins do to them.

An expression with `arity` access predicates is put under every combination of the spaces that these
meet, one of each, in the order of their attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.forms.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.index.access_kernels import cost_of, note_predicate
from matchwood.index.entry_kernels import give_entry, has_room, put_entry, slot_of
from matchwood.index.id_list_kernels import insert_id, remove_id
from matchwood.index.pst_bloom_kernels import (
    COARSE,
    DONE,
    ENTRIES_FULL,
    FREE,
    HIGH,
    IDS_FULL,
    NO_ACCESS,
    NONE,
    RECORDS_FULL,
    SPACES_FULL,
    access_of,
    dimension_of,
    give_id,
    has_id,
    idle_cut,
    is_wide,
    join,
    settle,
    split,
    take_id,
    take_out,
)
from matchwood.index.segment_kernels import interval
from matchwood.index.space_hash_kernels import (
    HELD,
    NODE,
    PUT,
    drop_ref_of,
    find_place,
    key_of,
    node_of,
    prune,
    put_node,
    put_ref,
)
from matchwood.index.space_kernels import (
    has_end,
    is_open,
    is_whole,
    n_met,
    open_dimension,
    place_of,
    use_cuts,
)
from matchwood.index.verify_kernels import meets
from matchwood.jit import kernel, part

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

    place: np.ndarray  # int64[N]
    piece: np.ndarray  # int64[N], which interval of the predicate
    last: np.ndarray  # int64[N], last place of that interval
    prefix: np.ndarray  # int64[N + 1], prefix[d]: what stands for the parts before d
    key: np.ndarray  # int64[N + 1], key[d]: of the first d parts
    cost: np.ndarray  # float64, for the predicates of one expression


# ── combinations ────────────────────────────────────────────────────────────────────────────────


@part
def _enter(spaces, predicates, pred, odometer, d, after):
    """Point part d at the first space behind `after`; False when there is none."""
    dim = 2 * np.int64(predicates.attr[pred])
    while odometer.piece[d] < predicates.n_intervals[pred]:
        lo, hi = interval(predicates, pred, odometer.piece[d])
        first = max(place_of(spaces, dim, lo), after + 1)
        odometer.last[d] = place_of(spaces, dim, hi)
        if first <= odometer.last[d]:
            odometer.place[d] = first
            return True
        odometer.piece[d] += 1
    return False


@part
def _advance(spaces, predicates, pred, odometer, d):
    """Point part d at its next space; False when there is none."""
    if odometer.place[d] < odometer.last[d]:
        odometer.place[d] += 1
        return True
    odometer.piece[d] += 1
    return _enter(spaces, predicates, pred, odometer, d, odometer.place[d])


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
        node = node_of(table.place[find_place(table, key), HELD])
        if node <= 0:
            return np.int64(-1)
    odometer.prefix[d] = NODE | node
    return np.int64(0)


@part
def for_combinations(
    spaces, predicates, keyed, table, groups, odometer, slot, ref, fixed, fixed_space, is_put
):
    """Put an expression under all its spaces, or drop it there.

    Part `fixed`, unless that is -1, is `fixed_space` alone.  Returns PUT, or what was full.
    """
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
            space = np.int64(spaces.item[odometer.place[d]])
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
def split_members(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, predicates, dim, cut
):
    """Split a space; records under its id are copied to the id of the new one."""
    if not has_id(homes, records):
        return IDS_FULL
    place = place_of(spaces, dim, cut)
    left = np.int64(spaces.item[place])
    right = homes.count[FREE] if homes.count[FREE] != NONE else homes.count[HIGH]
    first = spaces.cut[place]
    last = MAX_KEY
    if place + 1 < spaces.start[dim] + spaces.size[dim]:
        last = spaces.cut[place + 1] - 1
    attr = dim >> 1
    for i in range(members.size[left]):  # nothing that fails here has been seen by anybody
        ref = np.int64(members.item[members.start[left] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        if meets(predicates, keyed.access[slot, d], cut, last):
            if not insert_id(members, right, np.int32(ref)):
                return MEMBERS_FULL
            status = for_combinations(
                spaces, predicates, keyed, table, groups, odometer, slot, ref, d, right, True
            )
            if status != PUT:
                return HASH_FULL + status
    status = split(spaces, records, homes, entries, predicates, dim, cut)
    if status != DONE:
        return status
    place = place_of(spaces, dim, cut)
    for i in range(members.size[left] - 1, -1, -1):
        ref = np.int64(members.item[members.start[left] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        pred = keyed.access[slot, d]
        spaces.uses[place] += has_end(predicates, pred, cut)
        if not meets(predicates, pred, first, cut - 1):
            for_combinations(
                spaces, predicates, keyed, table, groups, odometer, slot, ref, d, left, False
            )
            remove_id(members, left, np.int32(ref))
    return DONE


@part
def _undo_join(
    spaces, entries, keyed, members, table, groups, odometer, predicates, attr, left, right,
    first, last,
):  # fmt: skip
    for i in range(members.size[right]):
        ref = np.int64(members.item[members.start[right] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        if not meets(predicates, keyed.access[slot, d], first, last):
            for_combinations(
                spaces, predicates, keyed, table, groups, odometer, slot, ref, d, left, False
            )
            remove_id(members, left, np.int32(ref))


@part
def join_members(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, predicates, dim,
    place,
):  # fmt: skip
    """Join the space at a place to the one before it, unless there is no room for that."""
    left, right = np.int64(spaces.item[place - 1]), np.int64(spaces.item[place])
    first, last = spaces.cut[place - 1], spaces.cut[place] - 1
    attr, is_done = dim >> 1, True
    for i in range(members.size[right]):
        ref = np.int64(members.item[members.start[right] + i])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        if not meets(predicates, keyed.access[slot, d], first, last):
            is_done = insert_id(members, left, np.int32(ref)) and PUT == for_combinations(
                spaces, predicates, keyed, table, groups, odometer, slot, ref, d, left, True
            )
            if not is_done:
                break
    if not is_done or not join(spaces, records, homes, entries, predicates, dim, place):
        _undo_join(
            spaces, entries, keyed, members, table, groups, odometer, predicates, attr, left,
            right, first, last,
        )  # fmt: skip
        return
    while members.size[right] > 0:
        ref = np.int64(members.item[members.start[right] + members.size[right] - 1])
        slot = slot_of(entries, ref)
        d = part_on(keyed, predicates, slot, attr)
        for_combinations(
            spaces, predicates, keyed, table, groups, odometer, slot, ref, d, right, False
        )
        remove_id(members, right, np.int32(ref))


# ── insertion ───────────────────────────────────────────────────────────────────────────────────


@part
def choose_keys(
    spaces, homes, known, known_seen, statistics, keyed, odometer, expressions, predicates, limits,
    slot,
):  # fmt: skip
    """The access predicates of an expression: the least likely first, as many as fit.

    A predicate that would make more than max_records combinations is left to verification.
    `known` are the spaces whose event counters are known: another division when all is made anew.
    """
    begin, size = expressions.start[slot], np.int64(expressions.size[slot])
    for k in range(size):
        odometer.cost[k] = cost_of(
            statistics, known, known_seen, predicates, expressions.code[begin + k], limits.ranking
        )  # fmt: skip
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
    else:
        homes.access[slot] = best


@part
def _cut_ends(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, statistics,
    predicates, limits, dim, pred,
):  # fmt: skip
    """Open a dimension and cut it at the ends of a predicate, which may be repeated."""
    if not is_open(spaces, dim):
        if not has_id(homes, records):
            return IDS_FULL
        space = take_id(homes, records)
        if not open_dimension(spaces, dim, space):
            give_id(homes, records, space)
            return SPACES_FULL
    most = COARSE if dim & 1 else limits.max_spaces
    for i in range(2 * predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i >> 1)
        if spaces.size[dim] >= most:
            break
        if (i & 1 == 0 and lo == MIN_KEY) or (i & 1 and hi == MAX_KEY):
            continue
        cut = hi + 1 if i & 1 else lo
        place = place_of(spaces, dim, cut)
        space = np.int64(spaces.item[place])
        held = records.size[space] + members.size[space]
        if spaces.cut[place] == cut or held < limits.space_size:
            continue
        status = split_members(
            spaces, records, homes, entries, keyed, members, table, groups, odometer, predicates,
            dim, cut,
        )  # fmt: skip
        if status != DONE:
            return status
        statistics.values[dim >> 1] = max(statistics.values[dim >> 1], np.int64(spaces.size[dim]))
    return DONE


@part
def _join_ends(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, predicates, dim, pred
):
    for i in range(2 * predicates.n_intervals[pred]):
        place = idle_cut(spaces, dim, predicates, pred, i)
        if place >= 0:
            join_members(
                spaces, records, homes, entries, keyed, members, table, groups, odometer,
                predicates, dim, place,
            )  # fmt: skip


@part
def _in_members(spaces, members, predicates, pred, ref, is_put):
    """Put a ref into the member list of every space that a predicate meets, or take it out."""
    dim, last = 2 * np.int64(predicates.attr[pred]), np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        first = max(place_of(spaces, dim, lo), last + 1)
        last = max(place_of(spaces, dim, hi), last)
        for place in range(first, last + 1):
            if not is_put:
                remove_id(members, spaces.item[place], np.int32(ref))
            elif not insert_id(members, spaces.item[place], np.int32(ref)):
                return False
    return True


@part
def settle_keyed(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, statistics,
    expressions, predicates, limits, slot, cutting,
):  # fmt: skip
    """Put an expression with chosen access predicates under its spaces; may be repeated."""
    if homes.ref[slot] == NONE:
        if not has_room(entries, expressions.size[slot]):
            return ENTRIES_FULL
        for d in range(keyed.arity[slot]):
            pred = np.int64(keyed.access[slot, d])
            if not cutting and is_open(spaces, 2 * np.int64(predicates.attr[pred])):
                continue
            status = _cut_ends(
                spaces, records, homes, entries, keyed, members, table, groups, odometer,
                statistics, predicates, limits, 2 * np.int64(predicates.attr[pred]), pred,
            )  # fmt: skip
            if status != DONE:
                return status
        n_skipped = np.int64(0)
        for d in range(keyed.arity[slot]):
            pred = np.int64(keyed.access[slot, d])
            if is_whole(spaces, 2 * np.int64(predicates.attr[pred]), predicates, pred):
                entries.skipped[n_skipped] = pred
                n_skipped += 1
        homes.ref[slot] = put_entry(
            entries, expressions, predicates, slot, n_skipped, statistics.uses
        )
    ref = np.int64(homes.ref[slot])
    status = for_combinations(
        spaces, predicates, keyed, table, groups, odometer, slot, ref, np.int64(-1),
        np.int64(-1), True,
    )  # fmt: skip
    if status != PUT:
        return HASH_FULL + status
    for d in range(keyed.arity[slot]):
        if not _in_members(spaces, members, predicates, keyed.access[slot, d], ref, True):
            return MEMBERS_FULL
    for d in range(keyed.arity[slot]):
        pred = np.int64(keyed.access[slot, d])
        use_cuts(spaces, 2 * np.int64(predicates.attr[pred]), predicates, pred, 1)
    keyed.by_arity[keyed.arity[slot]] += 1
    return DONE


@kernel
def insert_keyed(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, signatures,
    statistics, expressions, predicates, limits, slots, done, chosen, cutting,
):  # fmt: skip
    """Insert slots[done:]; returns how many are done and what is full."""
    while done < len(slots):
        slot = slots[done]
        if not chosen and keyed.arity[slot] == 0 and homes.access[slot] == NO_ACCESS:
            begin = expressions.start[slot]
            for k in range(begin, begin + expressions.size[slot]):
                note_predicate(statistics, predicates, expressions.code[k], 1)
            choose_keys(
                spaces, homes, spaces, homes.space_seen, statistics, keyed, odometer, expressions,
                predicates, limits, slot,
            )  # fmt: skip
        if keyed.arity[slot] > 0:
            status = settle_keyed(
                spaces, records, homes, entries, keyed, members, table, groups, odometer,
                statistics, expressions, predicates, limits, slot, cutting,
            )  # fmt: skip
        else:
            pred = access_of(homes, slot)
            if homes.access[slot] >= 0 and is_wide(spaces, predicates, pred, limits):
                homes.access[slot] = ~pred
            status = _cut_ends(
                spaces, records, homes, entries, keyed, members, table, groups, odometer,
                statistics, predicates, limits, dimension_of(homes, predicates, slot), pred,
            )  # fmt: skip
            if status == DONE:  # what is to be cut is cut, so this cuts no more
                status = settle(
                    spaces, records, homes, entries, signatures, statistics, expressions,
                    predicates, limits, slot,
                )  # fmt: skip
                if status == DONE:
                    keyed.by_arity[1] += 1
        if status != DONE:
            return done, status
        done += 1
    return done, DONE


@kernel
def choose_all_keys(
    spaces, homes, known, known_seen, statistics, keyed, odometer, expressions, predicates, limits,
    slots,
):  # fmt: skip
    for slot in slots:
        choose_keys(
            spaces, homes, known, known_seen, statistics, keyed, odometer, expressions, predicates,
            limits, slot,
        )  # fmt: skip


@kernel
def first_places(spaces, keyed, predicates, slots, first_place):
    """The first place of each keyed slot."""
    for i in range(len(slots)):
        pred = keyed.access[slots[i], 0]
        dim = 2 * np.int64(predicates.attr[pred])
        if is_open(spaces, dim):
            first_place[i] = place_of(spaces, dim, predicates.lo[pred])


# ── deletion ────────────────────────────────────────────────────────────────────────────────────


@kernel
def delete_keyed(
    spaces, records, homes, entries, keyed, members, table, groups, odometer, statistics,
    expressions, predicates, slots,
):  # fmt: skip
    for slot in slots:
        n = np.int64(keyed.arity[slot])
        keyed.by_arity[max(n, 1)] -= 1
        if n == 0:
            pred, dim = access_of(homes, slot), dimension_of(homes, predicates, slot)
            take_out(spaces, records, homes, entries, predicates, slot)
            _join_ends(
                spaces, records, homes, entries, keyed, members, table, groups, odometer,
                predicates, dim, pred,
            )  # fmt: skip
        else:
            ref = np.int64(homes.ref[slot])
            for_combinations(
                spaces, predicates, keyed, table, groups, odometer, slot, ref, np.int64(-1),
                np.int64(-1), False,
            )  # fmt: skip
            for d in range(n):
                pred = np.int64(keyed.access[slot, d])
                _in_members(spaces, members, predicates, pred, ref, False)
                use_cuts(spaces, 2 * np.int64(predicates.attr[pred]), predicates, pred, -1)
            give_entry(entries, ref)
            for d in range(n):
                pred = np.int64(keyed.access[slot, d])
                _join_ends(
                    spaces, records, homes, entries, keyed, members, table, groups, odometer,
                    predicates, 2 * np.int64(predicates.attr[pred]), pred,
                )  # fmt: skip
        homes.ref[slot], homes.access[slot], keyed.arity[slot] = NONE, NO_ACCESS, 0
        begin = expressions.start[slot]
        for k in range(begin, begin + expressions.size[slot]):
            note_predicate(statistics, predicates, expressions.code[k], -1)
