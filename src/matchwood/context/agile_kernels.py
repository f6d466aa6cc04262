"""Kernels of AGILE: one interface to three structures, and what an update does to an identifier.

    put          K(i) = k(i)                        probe      {i | key in K(i)}
    escalate     K(i) grows until k(i) is in it     deescalate K(i) shrinks towards k(i)

k(i) is always an interval [lo, hi] of keys; an empty one (lo > hi) is in every K(i).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.context.hash_table_kernels import hash_probe, hash_put
from matchwood.context.policy_kernels import AS_PUBLISHED
from matchwood.context.search_tree_kernels import (
    IN_NODE,
    end_of,
    tree_deescalate,
    tree_escalate,
    tree_probe,
    tree_put,
)
from matchwood.context.skip_list_box_kernels import move_boxed, put_boxed
from matchwood.context.skip_list_range_kernels import (
    deescalate_range,
    escalate_range,
)
from matchwood.index.stabbing.interval_skip_list_kernels import (
    MOST_MARKERS,
    every_cell,
    put_exact,
    stab,
    stab_size,
)
from matchwood.index.stabbing.marker_kernels import (
    CELL,
    KIND,
    MAX_KEY,
    MIN_KEY,
    has_room,
    put_everywhere,
    take_out,
)
from matchwood.kernel.jit import part

SKIP_LIST, SEARCH_TREE, HASH_TABLE = range(3)
NO_INDEX, EAGER, PARTIAL, GBU, AGILE = range(5)
"""What an update does to the index; see `update`."""

BOX_LEVEL = 4
"""Leaf boxes of GBU lie between nodes of more than this many levels: about 16 nodes each."""

KEPT, MOVED, FULL = range(3)


class Following(NamedTuple):
    """How indexes follow values that change."""

    mode: int  # NO_INDEX .. AGILE
    scope: np.ndarray  # int64[lists, 2], first and last key that a PARTIAL index holds
    before: np.ndarray  # int64[LEVELS], scratch of the skip list
    is_bottom_up: bool  # GBU: whether boxes are looked for from where an entry is


@part
def put(s, k, i, lo, hi, before):
    """Put identifier i, which is nowhere, exactly; False when there is no room."""
    if lo > hi:
        return True
    if not has_room(s, MOST_MARKERS):
        return False
    if s.count[KIND] == SKIP_LIST:
        return put_exact(s, k, i, lo, hi, before)
    if s.count[KIND] == SEARCH_TREE:
        return tree_put(s, k, i, lo, hi, True)
    return hash_put(s, k, i, lo, hi)


@part
def _every_cell(s, k):
    """The cell that every probe of list k looks at."""
    if s.count[KIND] == SKIP_LIST:
        return every_cell(s, k)
    if s.count[KIND] == SEARCH_TREE:
        return np.int64(1 + 3 * (2 * k) + IN_NODE)
    return np.int64(2 * k + 1)


@part
def is_under_every_key(s, k, i):
    """Whether every probe of list k looks at identifier i."""
    return s.ends[i, 0] >= 0 and s.marker[s.ends[i, 0], CELL] == _every_cell(s, k)


@part
def is_exact(s, k, i, lo, hi):
    """Whether K(i) is [lo, hi], and held by key where the structure can do that."""
    if s.range[i, 0] != lo or s.range[i, 1] != hi:
        return False
    if lo > hi or not is_under_every_key(s, k, i):
        return True
    if s.count[KIND] == SKIP_LIST:
        return lo == MIN_KEY and hi == MAX_KEY
    return lo != hi if s.count[KIND] == HASH_TABLE else not end_of(s, k, lo, hi)[1]


@part
def put_under_every_key(s, k, i, lo, hi):
    """Put identifier i, which is nowhere, where every probe looks whether [lo, hi] has its key."""
    put_everywhere(s, i, _every_cell(s, k), lo, hi)


@part
def escalate(s, k, i, lo, hi):
    """Let K(i) cover [lo, hi]; there must be room for MOST_MARKERS."""
    if s.count[KIND] == SKIP_LIST:
        escalate_range(s, k, i, lo, hi)
    elif s.count[KIND] == SEARCH_TREE:
        tree_escalate(s, k, i, lo, hi)
    else:
        take_out(s, i)
        put_under_every_key(s, k, i, MIN_KEY, MAX_KEY)


@part
def _is_bounded(lo, hi):
    """Whether an interval has a width: half lines have none."""
    return lo != MIN_KEY and hi != MAX_KEY


@part
def widen(s, k, i, lo, hi, growth):
    """Hold identifier i in the cell of every key, with a K(i) of its own.  [lo, hi] is bounded, and
    there must be room for MOST_MARKERS.

    It has k(i) in its middle, because a value that walks about leaves a range soon again when it
    has just reached its end.  It is wider than the old one and k(i) span together, by `growth` of
    that, or, where that is not above 0, than the old one.  Once i is there no marker is moved any
    more: such an escalation writes K(i) and nothing else.
    """
    first, last = s.range[i, 0], s.range[i, 1]
    if first > last or not _is_bounded(first, last):  # nowhere yet, or too wide to begin with
        first, last = lo, hi
    if growth > 0.0:
        first, last = min(lo, first), max(hi, last)
    width = (1.0 + growth) * (np.float64(last) - np.float64(first))
    spare = width - (np.float64(hi) - np.float64(lo))
    more = np.int64(min(max(spare / 2, 0.0), 2.0**62))
    lo = max(lo, MIN_KEY + 1 + more) - more
    hi = min(hi, MAX_KEY - 1 - more) + more
    if is_under_every_key(s, k, i):
        s.range[i, 0], s.range[i, 1] = lo, hi
    else:
        take_out(s, i)
        put_under_every_key(s, k, i, lo, hi)


@part
def deescalate(s, k, i, lo, hi, before, is_whole):
    """Let K(i) shrink towards [lo, hi], or to it if `is_whole`; False, with [lo, hi] in K(i), when
    there is no room.
    """
    if not has_room(s, MOST_MARKERS):
        return False
    if lo > hi:
        take_out(s, i)
        return True
    if s.count[KIND] == SKIP_LIST:
        return deescalate_range(s, k, i, lo, hi, before, is_whole)
    if s.count[KIND] == SEARCH_TREE and not is_whole:
        is_done = tree_deescalate(s, k, i, lo, hi)
    else:
        take_out(s, i)
        is_done = put(s, k, i, lo, hi, before)
    if not is_done:
        put_under_every_key(s, k, i, MIN_KEY, MAX_KEY)
    return is_done


@part
def probe(s, k, key, out, n):
    """Append the identifiers i of list k with key in K(i)."""
    if s.count[KIND] == SKIP_LIST:
        return stab(s, k, key, out, n)
    if s.count[KIND] == SEARCH_TREE:
        return tree_probe(s, k, key, out, n)
    return hash_probe(s, k, key, out, n)


@part
def probe_size(s, k, key):
    """How many identifiers a probe finds; of a tree or a hash table those under every key alone."""
    if s.count[KIND] == SKIP_LIST:
        return stab_size(s, k, key)
    return np.int64(s.cell_size[_every_cell(s, k)])


@part
def update(s, k, i, lo, hi, following, growth):
    """Follow k(i), which is now [lo, hi]; KEPT, MOVED, or FULL with nothing done.

    EAGER    K(i) = k(i), always
    PARTIAL  the same inside the scope, every key outside it
    GBU      nothing while k(i) is in K(i), the boxes around it; else the boxes around the new one
    AGILE    nothing while k(i) is in K(i); else widen by `growth`, or escalate if AS_PUBLISHED
    """
    mode, scope = following.mode, following.scope
    is_inside = s.range[i, 0] <= lo and hi <= s.range[i, 1]
    if mode >= GBU and (is_inside or lo > hi):
        return KEPT
    if mode <= PARTIAL and is_inside and s.range[i, 0] == lo and hi == s.range[i, 1]:
        return KEPT
    is_in_scope = mode != PARTIAL or (scope[k, 0] <= lo and hi <= scope[k, 1])
    if not is_in_scope and s.range[i, 0] == MIN_KEY and s.range[i, 1] == MAX_KEY:
        return KEPT  # outside before, outside now
    if not has_room(s, MOST_MARKERS):
        return FULL
    if mode == AGILE:
        if growth > AS_PUBLISHED and _is_bounded(lo, hi):
            widen(s, k, i, lo, hi, growth)
        else:
            escalate(s, k, i, lo, hi)
        return MOVED
    if mode == GBU and s.count[KIND] == SKIP_LIST and following.is_bottom_up and lo <= hi:
        move_boxed(s, k, i, lo, hi, BOX_LEVEL)
        return MOVED
    take_out(s, i)
    if lo > hi:
        return MOVED
    if not is_in_scope:
        put_under_every_key(s, k, i, MIN_KEY, MAX_KEY)
        return MOVED
    if mode == GBU and s.count[KIND] == SKIP_LIST:
        put_boxed(s, k, i, lo, hi, BOX_LEVEL)
        return MOVED
    return MOVED if put(s, k, i, lo, hi, following.before) else FULL
