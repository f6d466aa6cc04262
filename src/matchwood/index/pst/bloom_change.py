"""Kernels of `pst_bloom`: put expressions into spaces, split and join spaces, take them out.

What must hold.  An entry may leave out its access predicate (`is_whole`: reaching one of its spaces
proves it) only while the cuts at all its ends stand.  `Spaces.uses` keeps them: it counts, for each
cut, the ends of access predicates of all expressions held, whether they left theirs out or not, and
`join` takes away only cuts that have none (`idle_cut`).  `settle`, `take_out` and `split` keep the
count; `tests/index/pst_checks.py` counts again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.encode.expression_kernels import ExpressionLayout
from matchwood.encode.predicate_kernels import PredicateLayout
from matchwood.index.pst.access import choose, note_expression
from matchwood.index.pst.entries import Entries, give_entry, has_room, put_entry, slot_of
from matchwood.index.pst.records import (
    NO_ACCESS,
    NONE,
    Homes,
    Records,
    copy_records,
    drop_ref,
    give_id,
    has_id,
    reserve_records,
    take_id,
)
from matchwood.index.pst.signatures import sign
from matchwood.index.pst.spaces import (
    Spaces,
    drop_cut,
    end_of,
    has_end,
    is_open,
    is_whole,
    make_cut_room,
    n_met,
    next_places,
    open_dimension,
    position_of,
    put_cut,
    use_cuts,
)
from matchwood.index.stabbing.segment_kernels import interval
from matchwood.kernel.id_list_kernels import NO_BLOCK, give_block, room_for, take_block
from matchwood.kernel.interval_kernels import MAX_KEY, MIN_KEY
from matchwood.kernel.jit import kernel, part
from matchwood.kernel.verify_kernels import meets

DONE, ENTRIES_FULL, SPACES_FULL, IDS_FULL, RECORDS_FULL = range(5)
"""Why an insertion stopped: what has to grow."""

COARSE = 16
"""Spaces of the second division of an attribute, for predicates that meet many of the first."""


class Division(NamedTuple):
    """Attributes that are cut into spaces, and where expressions are in them."""

    spaces: Spaces
    records: Records
    homes: Homes
    entries: Entries


class Tables(NamedTuple):
    """What expressions and predicates are."""

    expressions: ExpressionLayout
    predicates: PredicateLayout


class Limits(NamedTuple):
    """The settings as kernels take them."""

    space_size: int
    max_spaces: int
    max_records: int
    ranking: int


# ── splitting and joining spaces ────────────────────────────────────────────────────────────────


@part
def access_of(homes, slot):
    """The access predicate of an expression."""
    access = np.int64(homes.access[slot])
    return access if access >= 0 else ~access


@part
def dimension_of(homes, predicates, slot):
    """Twice the attribute, and one more for its coarse division."""
    access = np.int64(homes.access[slot])
    return 2 * np.int64(predicates.attr[access_of(homes, slot)]) + (access < 0)


@part
def split(division, predicates, dim, cut):
    """Split the space that a cut falls into; records go to the parts that they meet.

    The new cut counts the ends of all these records, of those that meet only the left part, too.
    Nothing is done, and what is full returned, when there is no room.
    """
    spaces, records, homes, entries = division
    if not make_cut_room(spaces, dim):
        return SPACES_FULL
    if not has_id(homes, records):
        return IDS_FULL
    position = position_of(spaces, dim, cut)
    left = np.int64(spaces.item[position])
    n = np.int64(records.size[left])
    start = np.int64(0)
    if n > 0:
        start = take_block(records, room_for(n))
        if start < 0:
            return RECORDS_FULL
    right = take_id(homes, records)
    first, last = spaces.cut[position], end_of(spaces, dim, position)
    put_cut(spaces, dim, position, cut, right)
    homes.space_seen[left] = homes.space_seen[right] = homes.space_seen[left] // 2
    if n == 0:
        return DONE
    records.start[right], records.room[right] = start, room_for(n)
    i = np.int64(records.start[left])
    end = i + n
    while i < end:
        pred = access_of(homes, slot_of(entries, records.item[i]))
        spaces.uses[position + 1] += has_end(predicates, pred, cut)
        if meets(predicates, pred, cut, last):
            copy_records(records, i, start + records.size[right], 1)
            records.size[right] += 1
        if meets(predicates, pred, first, cut - 1):
            i += 1
        else:
            end -= 1
            copy_records(records, end, i, 1)
    gone = n - (end - records.start[left])
    records.size[left] -= gone
    if records.size[right] == 0:
        give_block(records, start, records.room[right])
        records.start[right], records.room[right] = 0, NO_BLOCK
    if records.size[left] == 0:
        give_block(records, records.start[left], records.room[left])
        records.start[left], records.room[left] = 0, NO_BLOCK
    return DONE


@part
def join(division, predicates, dim, position):
    """Join the space at a position to the one before it; False: no room, nothing done.

    Both spaces list what meets them, so a record of the right one goes over only if it does not
    meet the left one, whose last key is the one before the cut.  Only cuts where no predicate that
    is held begins or ends are joined (`idle_cut`).  The first pass counts, so that room can be
    made; the second copies.
    """
    spaces, records, homes, entries = division
    left, right = np.int64(spaces.item[position - 1]), np.int64(spaces.item[position])
    first, last = spaces.cut[position - 1], spaces.cut[position] - 1
    for is_copying in range(2):
        n = np.int64(records.size[left])
        for i in range(records.start[right], records.start[right] + records.size[right]):
            pred = access_of(homes, slot_of(entries, records.item[i]))
            if not meets(predicates, pred, first, last):
                if is_copying:
                    copy_records(records, i, records.start[left] + n, 1)
                n += 1
        if is_copying:
            records.size[left] = n
        elif not reserve_records(records, left, n):
            return False
    homes.space_seen[left] += homes.space_seen[right]
    drop_cut(spaces, dim, position)
    give_id(homes, records, right)
    return True


# ── insertion ───────────────────────────────────────────────────────────────────────────────────


@part
def _cut_at(division, predicates, statistics, limits, dim, cut):
    """Make a cut where it is worth while: the space holds enough, the attribute not too many."""
    spaces, records = division.spaces, division.records
    position = position_of(spaces, dim, cut)
    if spaces.cut[position] == cut:
        return DONE
    most = COARSE if dim & 1 else limits.max_spaces
    if spaces.size[dim] >= most or records.size[spaces.item[position]] < limits.space_size:
        return DONE
    status = split(division, predicates, dim, cut)
    if status == DONE and dim & 1 == 0:
        attr = dim >> 1
        statistics.values[attr] = max(statistics.values[attr], np.int64(spaces.size[dim]))
    return status


@part
def opened(division, dim):
    """Give a dimension its first space, if it has none; DONE, or what is full."""
    spaces, records, homes = division.spaces, division.records, division.homes
    if is_open(spaces, dim):
        return DONE
    if not has_id(homes, records):
        return IDS_FULL
    space = take_id(homes, records)
    if open_dimension(spaces, dim, space):
        return DONE
    give_id(homes, records, space)
    return SPACES_FULL


@part
def cut_ends(division, predicates, statistics, limits, dim, pred):
    """Open a dimension and cut it at the ends of a predicate, which may be repeated."""
    spaces = division.spaces
    status = opened(division, dim)
    if status != DONE:
        return status
    for i in range(predicates.n_intervals[pred]):
        lo, hi = interval(predicates, pred, i)
        if spaces.size[dim] >= (COARSE if dim & 1 else limits.max_spaces):
            break
        status = DONE
        if lo != MIN_KEY:
            status = _cut_at(division, predicates, statistics, limits, dim, lo)
        if status == DONE and hi != MAX_KEY:
            status = _cut_at(division, predicates, statistics, limits, dim, hi + 1)
        if status != DONE:
            return status
    return DONE


@part
def reserve_all(spaces, records, predicates, dim, pred):
    """Room for a record in every space that a predicate meets."""
    last = np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        for position in range(first, last + 1):
            space = spaces.item[position]
            if not reserve_records(records, space, np.int64(records.size[space]) + 1):
                return False
    return True


@part
def record_all(division, signatures, expressions, predicates, dim, pred, slot):
    """A record in every space that a predicate meets; there is room."""
    spaces, records, homes = division.spaces, division.records, division.homes
    last = np.int64(-1)
    signed = np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        for position in range(first, last + 1):
            space = spaces.item[position]
            at = records.start[space] + records.size[space]
            records.item[at] = homes.ref[slot]
            if signed < 0:
                sign(signatures, expressions, predicates, slot, pred, records.mark, at)
                signed = at
            else:
                for w in range(records.mark.shape[1]):
                    records.mark[at, w] = records.mark[signed, w]
            records.size[space] += 1


@part
def list_expression(division, signatures, expressions, predicates, slot):
    """Write the entry of an expression, and list it in its spaces; there is room."""
    spaces, _, homes, entries = division
    pred, dim = access_of(homes, slot), dimension_of(homes, predicates, slot)
    entries.skipped[0] = pred
    n_skipped = np.int64(is_whole(spaces, dim, predicates, pred))
    homes.ref[slot] = put_entry(entries, expressions, predicates, slot, n_skipped)
    record_all(division, signatures, expressions, predicates, dim, pred, slot)
    use_cuts(spaces, dim, predicates, pred, 1)


@part
def is_wide(spaces, predicates, pred, limits):
    """Whether a predicate would have too many records in the fine division of its attribute."""
    dim = 2 * np.int64(predicates.attr[pred])
    if predicates.n_intervals[pred] > limits.max_records:
        return True
    most = limits.max_records
    return is_open(spaces, dim) and n_met(spaces, dim, predicates, pred, most) > most


@part
def settle(division, signatures, statistics, expressions, predicates, limits, slot):
    """Put an expression with a chosen access predicate into its spaces; may be repeated."""
    spaces, records, homes, entries = division
    if not has_room(entries, expressions.size[slot]):
        return ENTRIES_FULL
    pred = access_of(homes, slot)
    if homes.access[slot] >= 0 and is_wide(spaces, predicates, pred, limits):
        homes.access[slot] = ~pred
    dim = dimension_of(homes, predicates, slot)
    status = cut_ends(division, predicates, statistics, limits, dim, pred)
    if status != DONE:
        return status
    if not reserve_all(spaces, records, predicates, dim, pred):
        return RECORDS_FULL
    list_expression(division, signatures, expressions, predicates, slot)
    return DONE


@kernel
def insert_more(division, signatures, statistics, tables, limits, slots, done, chosen):
    """Insert slots[done:]; returns how many are done and what is full.

    `chosen` says whether homes.access already holds the access predicate of every slot.
    """
    spaces, homes = division.spaces, division.homes
    expressions, predicates = tables.expressions, tables.predicates
    while done < len(slots):
        slot = slots[done]
        if not chosen and homes.access[slot] == NO_ACCESS:
            note_expression(statistics, expressions, predicates, slot, 1)
            homes.access[slot], _ = choose(
                statistics, spaces, homes.space_seen, expressions, predicates, slot, limits.ranking
            )
        status = settle(division, signatures, statistics, expressions, predicates, limits, slot)
        if status != DONE:
            return done, status
        done += 1
    return done, DONE


# ── deletion ────────────────────────────────────────────────────────────────────────────────────


@part
def take_out(division, predicates, slot):
    """Take an expression out of its spaces; its entry is free, its access predicate still there."""
    spaces, records, homes, entries = division
    pred, dim = access_of(homes, slot), dimension_of(homes, predicates, slot)
    last = np.int64(-1)
    for i in range(predicates.n_intervals[pred]):
        first, last = next_places(spaces, dim, predicates, pred, i, last)
        for position in range(first, last + 1):
            drop_ref(records, spaces.item[position], homes.ref[slot])
    use_cuts(spaces, dim, predicates, pred, -1)
    give_entry(entries, homes.ref[slot])
    homes.ref[slot] = NONE


@part
def idle_cut(spaces, dim, predicates, pred, i):
    """The position of a cut at the i-th end of a predicate that tells nothing apart, or -1."""
    lo, hi = interval(predicates, pred, i >> 1)
    cut = lo
    if i & 1:
        if hi == MAX_KEY:
            return np.int64(-1)
        cut = hi + 1
    position = position_of(spaces, dim, cut)
    if cut == MIN_KEY or spaces.cut[position] != cut or spaces.uses[position] > 0:
        return np.int64(-1)
    return position


@part
def unsettle(division, predicates, slot):
    """Take an expression out, and join spaces that nothing tells apart any more."""
    spaces, homes = division.spaces, division.homes
    pred, dim = access_of(homes, slot), dimension_of(homes, predicates, slot)
    take_out(division, predicates, slot)
    for i in range(2 * predicates.n_intervals[pred]):
        position = idle_cut(spaces, dim, predicates, pred, i)
        if position >= 0:
            join(division, predicates, dim, position)
    homes.access[slot] = NO_ACCESS


@kernel
def delete_all(division, statistics, expressions, predicates, slots):
    for slot in slots:
        unsettle(division, predicates, slot)
        note_expression(statistics, expressions, predicates, slot, -1)
