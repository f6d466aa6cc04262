"""A hash table from words to words: open addressing, linear probing, no tombstones.

Layout   (H places, any number; at most 5 of 8 are in use)
         place  int64[H, 2]  KEY; HELD, what is kept under it, 0 where the place is free

A key and what it holds lie side by side: a lookup reads one cache line.  The number of keys in use
is the owner's, see `fits`.  Places are uint64, so that an index needs no test for negative values.
"""

from __future__ import annotations

import numpy as np

from matchwood.kernel.jit import kernel, part

KEY, HELD = range(2)
_ODD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@part
def fits(place, n_keys):
    """Whether that many keys leave 3 of 8 places free."""
    return 8 * n_keys <= 5 * len(place)


@part
def home_of(place, key):
    """The place where the search for a key begins."""
    h = np.uint64(key) * _ODD
    h ^= h >> np.uint64(32)
    h *= _MIX
    return ((h >> np.uint64(32)) * np.uint64(len(place))) >> np.uint64(32)


@part
def _after(place, at):
    at += np.uint64(1)
    return at if at < np.uint64(len(place)) else np.uint64(0)


@part
def find_place(place, key):
    """The place of a key, or the free one where it would be."""
    at = home_of(place, key)
    while place[at, HELD] != 0 and place[at, KEY] != key:
        at = _after(place, at)
    return at


@part
def close_place(place, hole):
    """Free a place that is in use; later ones of its run move back."""
    n = np.uint64(len(place))
    place[hole, HELD] = 0
    nearby = _after(place, hole)
    while place[nearby, HELD] != 0:
        home = home_of(place, place[nearby, KEY])
        from_home = nearby - home if nearby >= home else nearby + n - home
        from_hole = nearby - hole if nearby >= hole else nearby + n - hole
        if from_home >= from_hole:
            place[hole, KEY], place[hole, HELD] = place[nearby, KEY], place[nearby, HELD]
            place[nearby, HELD] = 0
            hole = nearby
        nearby = _after(place, nearby)


@kernel
def move_places(place, fresh):
    """Copy all that is in use to an empty table in which it fits."""
    for i in range(len(place)):
        if place[i, HELD] != 0:
            at = find_place(fresh, place[i, KEY])
            fresh[at, KEY], fresh[at, HELD] = place[i, KEY], place[i, HELD]
