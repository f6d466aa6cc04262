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
    tree_deescalate,
    tree_escalate,
    tree_probe,
    tree_put,
)
from matchwood.context.skip_list_box_kernels import move_boxed, put_boxed
from matchwood.context.skip_list_range_kernels import (
    deescalate_range,
    escalate_range,
    put_around,
)
from matchwood.index.stabbing.interval_skip_list_kernels import (
    MOST_MARKERS,
    every_cell,
    put_exact,
    stab,
    stab_size,
)
from matchwood.index.stabbing.marker_kernels import (
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
    """The cell that every probe of list k emits."""
    if s.count[KIND] == SKIP_LIST:
        return every_cell(s, k)
    if s.count[KIND] == SEARCH_TREE:
        return np.int64(1 + 3 * (2 * k) + IN_NODE)
    return np.int64(2 * k + 1)


@part
def put_out_of_scope(s, k, i):
    """Put identifier i, which is nowhere, where every probe finds it."""
    put_everywhere(s, i, _every_cell(s, k))


@part
def escalate(s, k, i, lo, hi):
    """Let K(i) cover [lo, hi]; there must be room for MOST_MARKERS."""
    if s.count[KIND] == SKIP_LIST:
        escalate_range(s, k, i, lo, hi)
    elif s.count[KIND] == SEARCH_TREE:
        tree_escalate(s, k, i, lo, hi)
    else:
        take_out(s, i)
        put_out_of_scope(s, k, i)


@part
def widen(s, k, i, lo, hi, growth):
    """Move K(i) to where k(i) is in its middle, and make it larger: by `growth` of what the old one
    and k(i) span together; smaller for one below 0.  There must be room for MOST_MARKERS.

    A value that walks about leaves a range soon again when it has just reached its end.
    """
    first, last = s.range[i, 0], s.range[i, 1]
    if first > last:  # nowhere yet
        first, last = lo, hi
    span = np.float64(max(hi, last)) - np.float64(min(lo, first))
    spare = (1.0 + growth) * span - (np.float64(hi) - np.float64(lo))
    more = np.int64(min(max(spare / 2, 0.0), 2.0**62))
    take_out(s, i)
    if lo != MIN_KEY:
        lo = max(lo, MIN_KEY + 1 + more) - more
    if hi != MAX_KEY:
        hi = min(hi, MAX_KEY - 1 - more) + more
    put_around(s, k, i, lo, hi)


@part
def deescalate(s, k, i, lo, hi, before):
    """Let K(i) shrink towards [lo, hi]; False, with K(i) as it was or exact, without room."""
    if not has_room(s, MOST_MARKERS):
        return False
    if lo > hi:
        take_out(s, i)
        return True
    if s.count[KIND] == SKIP_LIST:
        return deescalate_range(s, k, i, lo, hi, before)
    if s.count[KIND] == SEARCH_TREE:
        return tree_deescalate(s, k, i, lo, hi)
    take_out(s, i)
    return hash_put(s, k, i, lo, hi)


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
        if growth > AS_PUBLISHED and s.count[KIND] == SKIP_LIST:
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
        put_out_of_scope(s, k, i)
        return MOVED
    if mode == GBU and s.count[KIND] == SKIP_LIST:
        put_boxed(s, k, i, lo, hi, BOX_LEVEL)
        return MOVED
    return MOVED if put(s, k, i, lo, hi, following.before) else FULL
