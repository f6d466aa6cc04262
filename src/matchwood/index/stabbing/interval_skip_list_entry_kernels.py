"""Entry points from Python to the kernels of one `interval_skip_list`."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.interval_skip_list_kernels import (
    add_node,
    open_list,
    put_exact,
    stab,
)
from matchwood.index.stabbing.marker_kernels import take_out
from matchwood.kernel.jit import kernel


@kernel
def open_one(s, k):
    open_list(s, k)


@kernel
def insert_all(s, ids, lo, hi, first, before):
    """Insert intervals from `first` on; returns how many are in."""
    for at in range(first, len(ids)):
        if not put_exact(s, 0, ids[at], lo[at], hi[at], before):
            return at
    return len(ids)


@kernel
def remove_one(s, i):
    take_out(s, i)


@kernel
def make_node(s, key, levels, before):
    return add_node(s, 0, key, levels, before)


@kernel
def stab_one(s, key, out):
    return stab(s, 0, key, out, np.int64(0))
