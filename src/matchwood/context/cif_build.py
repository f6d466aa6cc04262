"""What a filter needs to know before its indexes are filled: which structure, and which nodes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from matchwood.context.agile import STRUCTURES, new_structure
from matchwood.context.agile_kernels import SEARCH_TREE
from matchwood.context.choice import Choice
from matchwood.context.leaf_kernels import EQ, GE, GT, HIGH, LOW, RELATION, WHAT, word_kind, word_op
from matchwood.context.member_kernels import Members, entry_ranges
from matchwood.context.members import Compiled
from matchwood.encode.keys import INT_MAX, INT_MIN
from matchwood.index.stabbing.marker_kernels import Structure


def structure_for(compiled: Compiled, choice: Choice, name: str) -> Structure:
    """Empty indexes; `auto` chooses by what the subscriptions ask of them."""
    lists = choice.lists_of(compiled.index_attr)
    mine = lists >= 0
    what = compiled.leaf[mine, WHAT]
    ops = np.where(word_kind(what) == RELATION, word_op(what), -1)
    is_point = compiled.leaf[mine, LOW] == compiled.leaf[mine, HIGH]
    if name == "auto":
        is_equality = bool(((ops == EQ) | ((ops == -1) & is_point)).all())
        name = "hash_table" if is_equality else "interval_skip_list"
    kind = STRUCTURES[name]
    mirrored = np.zeros(choice.n_lists, np.int64)
    if kind == SEARCH_TREE:
        n = np.bincount(lists[mine], minlength=choice.n_lists)
        upward = np.bincount(lists[mine], np.isin(ops, (GE, GT)), minlength=choice.n_lists)
        mirrored[2 * upward > n] = 1
    return new_structure(kind, choice.n_lists, mirrored)


def ends_of(
    members: Members, cells: np.ndarray, n_members: int, n_indexes: int, n_lists: int
) -> Iterator[np.ndarray]:
    """By index, the ends of all ranges, to be nodes before any range is marked: none is split."""
    held = np.flatnonzero(members.entry[: n_members * n_indexes, 1] > 0)
    held = held[np.argsort(members.listed[held], kind="stable")]
    ends = np.searchsorted(members.listed[held], np.arange(n_lists + 1))
    for first, last in pairwise(ends.tolist()):
        entries = held[first:last]
        lo, hi = np.empty(len(entries), np.int64), np.empty(len(entries), np.int64)
        entry_ranges(members, cells, entries, n_indexes, lo, hi)
        known = lo <= hi
        low, high = lo[known & (lo != INT_MIN)], hi[known & (hi != INT_MAX)] + 1
        yield np.unique(np.concatenate([low, high]))
