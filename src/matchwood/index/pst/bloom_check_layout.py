"""Kernels that check a `pst_bloom` of a snapshot: spaces, ids, entries, and lists of members."""

from __future__ import annotations

import numpy as np

from matchwood.index.pst.bloom_change import access_of, dimension_of
from matchwood.index.pst.entries import _room
from matchwood.index.pst.records import FREE, HIGH, NO_ACCESS, NONE
from matchwood.index.pst.spaces import end_of, n_met
from matchwood.kernel.cell_check_kernels import entry_end, has_predicate
from matchwood.kernel.interval_kernels import MIN_KEY
from matchwood.kernel.jit import kernel
from matchwood.kernel.posting_kernels import entry_slot
from matchwood.kernel.verify_kernels import meets

FREE_ID = -2
"""The owner of a space id that waits to be used again."""


@kernel
def check_spaces(spaces, homes, owner, first, last):
    """Whether cuts ascend and every space has an id of its own; notes whose it is, and its keys."""
    for dim in range(len(spaces.size)):
        start, n = spaces.start[dim], np.int64(spaces.size[dim])
        for position in range(start, start + n):
            space, cut = spaces.item[position], spaces.cut[position]
            is_first = position == start
            if is_first != (cut == MIN_KEY) or not (is_first or spaces.cut[position - 1] < cut):
                return False
            if space < 0 or space >= homes.count[HIGH] or owner[space] != NONE:
                return False
            owner[space] = dim
            first[space], last[space] = cut, end_of(spaces, dim, position)
    return True


@kernel
def check_free_ids(records, homes, owner):
    """Whether free ids are those that no space has, each once."""
    n = np.int64(0)
    space = homes.count[FREE]
    while space != NONE:
        if space < 0 or space >= homes.count[HIGH] or owner[space] != NONE:
            return False
        owner[space] = FREE_ID
        space = records.start[space]
        n += 1
    for other in range(len(owner)):
        if owner[other] < 0 and records.size[other] > 0:
            return False
        if other < homes.count[HIGH] and owner[other] == NONE:
            return False
        if other >= homes.count[HIGH] and owner[other] != NONE:
            return False
    return True


@kernel
def check_homes(spaces, homes, word, expressions, predicates, n_attributes, slots, room):
    """The records that slots must have, or -1 if one has no entry or no way to it.

    room gets the words of entries.
    """
    n, top = np.int64(0), len(word)
    for i in range(len(slots)):
        slot = slots[i]
        if homes.access[slot] == NO_ACCESS:
            return np.int64(-1)
        pred = access_of(homes, slot)
        if not has_predicate(expressions, slot, pred):
            return np.int64(-1)
        dim = dimension_of(homes, predicates, slot)
        if spaces.size[dim] == 0:
            return np.int64(-1)
        ref = np.int64(homes.ref[slot])
        end = entry_end(word, ref, top, n_attributes, expressions, predicates)
        if end < 0 or entry_slot(word[ref]) != slot:
            return np.int64(-1)
        room[i] = _room(end - ref)
        n += n_met(spaces, dim, predicates, pred, np.int64(2**62))
    return n


@kernel
def check_records(records, homes, word, predicates, owner, first, last, listed):
    """How many records there are, or -1 if one is in a space that its expression does not meet."""
    n = np.int64(0)
    for space in range(len(owner)):
        if owner[space] < 0:
            continue
        for i in range(records.start[space], records.start[space] + records.size[space]):
            ref = np.int64(records.item[i])
            if ref < 0 or ref >= len(word):
                return np.int64(-1)
            slot = np.int64(entry_slot(word[ref]))
            if (
                slot < 0
                or slot >= len(homes.ref)
                or homes.ref[slot] != ref
                or listed[slot] == space
            ):
                return np.int64(-1)
            listed[slot] = space
            pred = access_of(homes, slot)
            if dimension_of(homes, predicates, slot) != owner[space]:
                return np.int64(-1)
            if not meets(predicates, pred, first[space], last[space]):
                return np.int64(-1)
            n += 1
    return n
