"""Kernels for updates: entries are added and removed, and follow the values of contexts."""

from __future__ import annotations

import numpy as np

from matchwood.context.agile_kernels import (
    FULL,
    MOVED,
    PARTIAL,
    deescalate,
    is_exact,
    put,
    put_under_every_key,
    update,
)
from matchwood.context.leaf_kernels import (
    ABSENT,
    KEY,
    LINK,
    SAFE_HI,
    SAFE_LO,
)
from matchwood.context.member_kernels import (
    ENTRY,
    NEXT_LINK,
    entry_range,
)
from matchwood.context.policy_kernels import AS_PUBLISHED, growth_of
from matchwood.context.safe_range_kernels import (
    link_entry,
    refresh,
    refresh_entry,
    tighten,
    unlink_entry,
)
from matchwood.context.skip_list_box_kernels import put_boxed
from matchwood.index.stabbing.interval_skip_list_kernels import (
    MOST_MARKERS,
    add_node,
    levels_of,
)
from matchwood.index.stabbing.marker_kernels import MAX_KEY, MIN_KEY, has_room, take_out
from matchwood.kernel.jit import kernel, part, prefetch

ESCALATED, DEESCALATED, UPDATES, FALSE_POSITIVES, WIDENED = range(5)
"""Positions in `work`, what the indexes have done; WIDENED are escalations, too."""

AHEAD = 16
"""How many keys before its turn the cell of one is asked for."""


@kernel
def make_nodes(s, k, keys, first, before):
    """Nodes of an interval skip list before anything is on it, so that no full range is split."""
    for i in range(first, len(keys)):
        if add_node(s, k, keys[i], levels_of(s, keys[i]), before) < 0:
            return i
    return len(keys)


@kernel
def enter(x, first, last):
    """Put the entries of subscriptions first..last into the indexes.

    Returns the subscription at which the structure was full, or `last`.
    """
    members, s, cells, n_indexes = x.members, x.s, x.cells, x.n_indexes
    mode, scope = x.following.mode, x.following.scope
    for p in range(first, last):
        for e in range(p * n_indexes, (p + 1) * n_indexes):
            if members.entry[e, 1] == 0:
                continue
            k = np.int64(members.listed[e])
            lo, hi = entry_range(members, e, n_indexes, cells)
            take_out(s, e)
            if not has_room(s, MOST_MARKERS):
                return p
            if mode == PARTIAL and lo <= hi and (lo < scope[k, 0] or hi > scope[k, 1]):
                put_under_every_key(s, k, e, MIN_KEY, MAX_KEY)
            elif not put(s, k, e, lo, hi, x.following.before):
                return p
        for e in range(p * n_indexes, (p + 1) * n_indexes):
            if members.entry[e, 1] > 0 and members.entry[e, 2] < 0:
                link_entry(members, cells, e, members.row[p])
                refresh_entry(x, e)
    return last


@kernel
def box_entries(x, first, last, level):
    """GBU: move entries, all of which are in the indexes, to the boxes around them.

    Returns the subscription at which the structure was full, or `last`.
    """
    members, s, n_indexes = x.members, x.s, x.n_indexes
    for p in range(first, last):
        for e in range(p * n_indexes, (p + 1) * n_indexes):
            if members.entry[e, 1] == 0:
                continue
            k = np.int64(members.listed[e])
            if not has_room(s, MOST_MARKERS):
                return p
            lo, hi = entry_range(members, e, n_indexes, x.cells)
            if lo <= hi:
                take_out(s, e)
                put_boxed(s, k, e, lo, hi, level)
            refresh_entry(x, e)
    return last


@kernel
def leave(x, chosen):
    """Remove subscriptions from the indexes."""
    members = x.members
    for p in chosen:
        for k in range(x.n_indexes):
            e = np.int64(p) * x.n_indexes + k
            if members.entry[e, 1] > 0:
                take_out(x.s, e)
                unlink_entry(x, e)
        members.slot[p] = -1


@part
def _follow(x, row, col, policy, work):
    """Bring all entries of a cell up to date; False when there is no room."""
    members, has_moved = x.members, False
    at = x.cells[row, col, LINK]
    while at >= 0:
        e = np.int64(members.link[at, ENTRY])
        lo, hi = entry_range(members, e, x.n_indexes, x.cells)
        growth = growth_of(policy, members.spent[e])
        done = update(x.s, np.int64(members.listed[e]), e, lo, hi, x.following, growth)
        if done == FULL:
            return False
        if done == MOVED:
            members.wrong[e] = 0
            members.spent[e] = 0
            work[ESCALATED] += 1
            work[WIDENED] += growth > AS_PUBLISHED
            refresh_entry(x, e)  # this cell, too
            has_moved = True
        elif lo > hi and members.entry[e, 1] > 1:
            tighten(x, e)
        at = np.int64(members.link[at, NEXT_LINK])
    if not has_moved:
        refresh(x, row, col)
    return True


@part
def _write(cells, n_set, rows, cols, keys, i):
    """Write key i into its cell, and count whether a value appears or vanishes.

    The cell of a later key is asked for: which ones come is known, and each is a cache miss.
    """
    later = min(i + AHEAD, len(keys) - 1)
    prefetch(cells, 4 * (rows[later] * cells.shape[1] + cols[later]))
    row, col, key = rows[i], cols[i], keys[i]
    was_absent = cells[row, col, KEY] == ABSENT
    if was_absent != (key == ABSENT):
        n_set[col] += 1 if was_absent else -1
    cells[row, col, KEY] = key


@kernel
def write_cells(cells, n_set, rows, cols, keys):
    """Write keys into cells that no index follows."""
    for i in range(len(keys)):
        _write(cells, n_set, rows, cols, keys, i)


@kernel
def update_cells(x, n_set, rows, cols, keys, first, policy, work):
    """Write keys into cells from `first` on, and bring the indexes up to date.

    Returns the number of the key at which the structure was full, or how many keys there are.  A
    stopped update is repeated: its key is written already, and entries that followed it stay.
    """
    cells, n = x.cells, len(keys)
    for i in range(first, n):
        row, col, key = rows[i], cols[i], keys[i]
        is_safe = cells[row, col, SAFE_LO] <= key and key <= cells[row, col, SAFE_HI]
        _write(cells, n_set, rows, cols, keys, i)
        if not is_safe and not _follow(x, row, col, policy, work):
            # Entries that did follow have made the new key look safe: the others have to, too.
            cells[row, col, SAFE_LO], cells[row, col, SAFE_HI] = MAX_KEY, MIN_KEY
            work[UPDATES] += i - first
            return i
    work[UPDATES] += n - first
    return n


@kernel
def deescalate_entries(x, chosen, first, is_whole, work):
    """Deescalate entries chosen[first:], to k(e) itself if `is_whole`; returns where the structure
    was full, or their number.
    """
    members, s = x.members, x.s
    for i in range(first, len(chosen)):
        e = np.int64(chosen[i])
        if members.entry[e, 1] == 0 or members.slot[e // x.n_indexes] < 0:
            continue
        lo, hi = entry_range(members, e, x.n_indexes, x.cells)
        k, before = np.int64(members.listed[e]), x.following.before
        if is_exact(s, k, e, lo, hi):
            continue
        if not deescalate(s, k, e, lo, hi, before, is_whole):
            return i
        work[DEESCALATED] += 1
        refresh_entry(x, e)
    return len(chosen)
