"""Keys that were chosen against a known hash do not make the structures under AGILE slow."""

from __future__ import annotations

import numpy as np

from matchwood.context.agile import AgileIndex
from matchwood.index.stabbing.interval_skip_list import IntervalSkipList
from matchwood.index.stabbing.interval_skip_list_kernels import N_LEVELS

MASK = 2**64 - 1
ODD, MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
N = 600


def is_low(key: int) -> bool:
    """Whether a node has one level only, by a hash without seed."""
    h = (key * ODD) & MASK
    h ^= h >> 32
    h = (h * MIX) & MASK
    h ^= h >> 29
    return h & 1 == 1


def test_a_skip_list_of_chosen_keys_has_its_levels():
    low = [key for key in range(0, 40 * N, 2) if is_low(key) and is_low(key + 1)][:N]
    skip_list = IntervalSkipList()
    for i, key in enumerate(low):
        skip_list.insert(i, key, key)
    levels = skip_list.structure.node[2 : 2 + 2 * N, N_LEVELS]
    assert levels.min() >= 1
    assert (levels > 1).sum() > N // 2  # half of 2 N, if nobody chose


def test_a_hash_table_of_chosen_keys_is_spread():
    back = pow(ODD, -1, 2**64)
    keys = []
    for i in range(1, N + 1):
        place = i << 24
        key = ((place ^ (place >> 31) ^ (place >> 62)) * back) & MASK
        keys.append(key - 2**64 if key >= 2**63 else key)
    table = AgileIndex("hash_table")
    for i, key in enumerate(keys):
        table.insert(i, key, key)
    is_taken = table.structure.edge[:, 0] != 0
    assert is_taken.sum() == N
    gaps = np.flatnonzero(~np.concatenate([is_taken, is_taken]))
    assert np.diff(gaps).max() < 60
