"""What a filter needs to know before its indexes are filled: which structure, and which nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matchwood.context.agile import STRUCTURES, new_structure
from matchwood.context.agile_kernels import SEARCH_TREE
from matchwood.context.profile_kernels import EQ, GE, GT, RELATION, Profiles
from matchwood.context.profiles import Compiled
from matchwood.context.update_kernels import entry_ranges
from matchwood.encode.keys import INT_MAX, INT_MIN
from matchwood.index.stabbing.marker_kernels import Structure


def structure_for(compiled: Compiled, attrs: np.ndarray, name: str) -> Structure:
    """Empty indexes for the chosen attributes; `auto` chooses by what the profiles ask of them."""
    mine = np.isin(compiled.index_attr, attrs)
    what = compiled.leaf[mine, 0]
    ops = np.where(what & 7 == RELATION, (what >> 3) & 7, -1)
    is_point = compiled.leaf[mine, 1] == compiled.leaf[mine, 2]
    if name == "auto":
        is_equality = bool(((ops == EQ) | ((ops == -1) & is_point)).all())
        name = "hash_table" if is_equality else "interval_skip_list"
    kind = STRUCTURES[name]
    mirrored = np.zeros(len(attrs), np.int64)
    if kind == SEARCH_TREE:
        for k, attr in enumerate(attrs.tolist()):
            own = ops[compiled.index_attr[mine] == attr]
            mirrored[k] = int(np.isin(own, (GE, GT)).mean() > 0.5)
    return new_structure(kind, len(attrs), mirrored)


def ends_of(
    profiles: Profiles, cells: np.ndarray, n_profiles: int, n_indexes: int
) -> Iterator[np.ndarray]:
    """By index, the ends of all ranges, to be nodes before any range is marked: none is split."""
    for k in range(n_indexes):
        entries = np.arange(n_profiles, dtype=np.int64) * n_indexes + k
        entries = entries[profiles.entry[entries, 1] > 0]
        lo, hi = np.empty(len(entries), np.int64), np.empty(len(entries), np.int64)
        entry_ranges(profiles, cells, entries, n_indexes, lo, hi)
        known = lo <= hi
        low, high = lo[known & (lo != INT_MIN)], hi[known & (hi != INT_MAX)] + 1
        yield np.unique(np.concatenate([low, high]))
