"""A hash table from pairs of ids to an id.

Layout   (2^k places, at most half of them in use)
         key    int64[2^k]   first id << 32 | second id
         value  int32[2^k]   the id, EMPTY where the place is free; see id_table_kernels
         count  int64[1]     N_PAIRS, pairs held

Ids and keys are apart, other than in `word_map_kernels`: most lookups of `vcr` find nothing and
read four bytes.  With both side by side a search on its hash took 10 to 14 % longer on a busy
machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.id_table_kernels import EMPTY, first_cell, next_cell
from matchwood.kernel.jit import kernel, part

ABSENT = EMPTY
N_PAIRS = 0
_LEAST = 16


class PairMap(NamedTuple):
    """See the module's docstring for the arrays."""

    key: np.ndarray
    value: np.ndarray
    count: np.ndarray


def new_pair_map(n_pairs: int = 0) -> PairMap:
    """An empty table with places for that many pairs."""
    size = _LEAST
    while size < 2 * n_pairs:
        size *= 2
    return PairMap(np.zeros(size, np.int64), np.full(size, EMPTY, np.int32), np.zeros(1, np.int64))


def with_room(pairs: PairMap, n_more: int) -> PairMap:
    """The same pairs in a table with places for that many more."""
    fresh = new_pair_map(int(pairs.count[N_PAIRS]) + n_more)
    put_pairs(fresh, *keys_and_ids(pairs))
    return fresh


def renumber_ids(pairs: PairMap, fresh: np.ndarray) -> None:
    """Replace every id by its new number, `fresh[id]`."""
    used = pairs.value != EMPTY
    pairs.value[used] = fresh[pairs.value[used]]


def keys_and_ids(pairs: PairMap) -> tuple[np.ndarray, np.ndarray]:
    """All pairs and their ids, in no order."""
    used = pairs.value != EMPTY
    return pairs.key[used], pairs.value[used].astype(np.int64)


@part
def pair(first, second):
    return np.int64(first) << 32 | np.int64(second)


@part
def _home(pairs, key):
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return first_cell(pairs.value, h ^ (h >> np.uint64(32)))


@part
def find_pair(pairs, key):
    """The id of a pair, or ABSENT."""
    at = _home(pairs, key)
    while pairs.value[at] != EMPTY and pairs.key[at] != key:
        at = next_cell(pairs.value, at)
    return np.int64(pairs.value[at])


@part
def has_places(pairs, n):
    """Whether n more pairs leave half of the table free."""
    return 2 * (pairs.count[N_PAIRS] + n) <= len(pairs.key)


@part
def put_pair(pairs, key, id_):
    """Add a pair that is not there yet; there is a place for it."""
    at = _home(pairs, key)
    while pairs.value[at] != EMPTY:
        at = next_cell(pairs.value, at)
    pairs.key[at], pairs.value[at] = key, id_
    pairs.count[N_PAIRS] += 1


@part
def remove_pair(pairs, key):
    """Remove a pair that is there; later ones of its run move back."""
    mask = np.uint64(len(pairs.key) - 1)
    hole = _home(pairs, key)
    while pairs.key[hole] != key or pairs.value[hole] == EMPTY:
        hole = next_cell(pairs.value, hole)
    nearby = next_cell(pairs.value, hole)
    while pairs.value[nearby] != EMPTY:
        home = _home(pairs, pairs.key[nearby])
        if ((nearby - home) & mask) >= ((nearby - hole) & mask):
            pairs.key[hole], pairs.value[hole] = pairs.key[nearby], pairs.value[nearby]
            hole = nearby
        nearby = next_cell(pairs.value, nearby)
    pairs.value[hole] = EMPTY
    pairs.count[N_PAIRS] -= 1


@kernel
def put_pairs(pairs, keys, ids):
    """Add pairs that are not there yet; there are places for them."""
    for i in range(len(keys)):
        put_pair(pairs, keys[i], ids[i])
