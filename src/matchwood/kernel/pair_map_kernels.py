"""A hash table from pairs of ids to an id: open addressing, linear probing, no tombstones.

Layout   (2^k places, at most half of them taken)
         key    int64[2^k]   first id << 32 | second id
         value  int32[2^k]   ABSENT where the place is free
         count  int64[1]     pairs held
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part

ABSENT = -1


class PairMap(NamedTuple):
    """See the module's docstring for the arrays."""

    key: np.ndarray
    value: np.ndarray
    count: np.ndarray


def new_pair_map(places: int = 16) -> PairMap:
    return PairMap(
        np.zeros(places, np.int64), np.full(places, ABSENT, np.int32), np.zeros(1, np.int64)
    )


@part
def pair(first, second):
    return np.int64(first) << 32 | np.int64(second)


@part
def _home(pairs, key):
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    return np.int64(h & np.uint64(len(pairs.key) - 1))


@part
def find_pair(pairs, key):
    """The value of a pair, or ABSENT."""
    mask = len(pairs.key) - 1
    at = _home(pairs, key)
    while pairs.value[at] != ABSENT and pairs.key[at] != key:
        at = (at + 1) & mask
    return np.int64(pairs.value[at])


@part
def has_places(pairs, n):
    """Whether n more pairs leave half of the table free."""
    return 2 * (pairs.count[0] + n) <= len(pairs.key)


@part
def put_pair(pairs, key, value):
    """Add a pair that is not there yet; there is a place for it."""
    mask = len(pairs.key) - 1
    at = _home(pairs, key)
    while pairs.value[at] != ABSENT:
        at = (at + 1) & mask
    pairs.key[at], pairs.value[at] = key, value
    pairs.count[0] += 1


@part
def remove_pair(pairs, key):
    """Take out a pair that is there; later ones of its run move up."""
    mask = len(pairs.key) - 1
    hole = _home(pairs, key)
    while pairs.key[hole] != key or pairs.value[hole] == ABSENT:
        hole = (hole + 1) & mask
    nearby = (hole + 1) & mask
    while pairs.value[nearby] != ABSENT:
        if ((nearby - _home(pairs, pairs.key[nearby])) & mask) >= ((nearby - hole) & mask):
            pairs.key[hole], pairs.value[hole] = pairs.key[nearby], pairs.value[nearby]
            hole = nearby
        nearby = (nearby + 1) & mask
    pairs.value[hole] = ABSENT
    pairs.count[0] -= 1


@kernel
def move_pairs(pairs, fresh):
    """Copy all pairs to an empty table with places enough."""
    for at in range(len(pairs.key)):
        if pairs.value[at] != ABSENT:
            put_pair(fresh, pairs.key[at], pairs.value[at])


@kernel
def put_pairs(pairs, keys, values):
    """Add pairs that are not there yet; there are places for them."""
    for i in range(len(keys)):
        put_pair(pairs, keys[i], values[i])
