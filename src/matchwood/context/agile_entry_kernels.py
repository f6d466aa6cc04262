"""Entry points from Python to the kernels of `agile`: one identifier at a time, or all of them."""

from __future__ import annotations

import numpy as np

from matchwood.context.agile_kernels import (
    deescalate,
    is_under_every_key,
    probe,
    put,
    put_under_every_key,
    update,
)
from matchwood.context.hash_table_kernels import hash_rebuild
from matchwood.context.search_tree_kernels import open_tree
from matchwood.index.stabbing.interval_skip_list_kernels import MOST_MARKERS
from matchwood.index.stabbing.marker_kernels import has_room, take_out
from matchwood.kernel.jit import kernel


@kernel
def open_trees(s, n, is_mirrored):
    for k in range(n):
        open_tree(s, k, is_mirrored[k])


@kernel
def rebuild_hash(s, first):
    hash_rebuild(s, first)


@kernel
def put_one(s, k, i, lo, hi, before):
    return put(s, k, i, lo, hi, before)


@kernel
def update_one(s, k, i, lo, hi, following, growth):
    return update(s, k, i, lo, hi, following, growth)


@kernel
def deescalate_one(s, k, i, lo, hi, before):
    return deescalate(s, k, i, lo, hi, before, False)


@kernel
def take_out_one(s, i):
    take_out(s, i)


@kernel
def probe_one(s, k, key, out):
    return probe(s, k, key, out, np.int64(0))


@kernel
def put_again(old, s, listed, first, last, before):
    """Put identifiers from `first` on where they were; returns how far it came."""
    for i in range(first, last):
        lo, hi = old.range[i, 0], old.range[i, 1]
        k = np.int64(listed[i])
        if lo > hi or s.ends[i, 0] >= 0:
            continue
        if not is_under_every_key(old, k, i):
            if not put(s, k, i, lo, hi, before):
                return i
        elif has_room(s, MOST_MARKERS):
            put_under_every_key(s, k, i, lo, hi)
        else:
            return i
    return last


@kernel
def under_every_key(s, listed, found):
    """Which identifiers every probe of their list looks at."""
    for i in range(len(found)):
        found[i] = is_under_every_key(s, np.int64(listed[i]), i)
