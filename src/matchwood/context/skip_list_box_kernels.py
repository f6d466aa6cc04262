"""Boxes of `gbu` in an interval skip list: ranges that begin and end at nodes of many levels."""

from __future__ import annotations

import numpy as np

from matchwood.index.stabbing.interval_skip_list_kernels import (
    LEVELS,
    N_LEVELS,
    SOURCE,
    back_of,
    mark_path,
    target_of,
)
from matchwood.index.stabbing.marker_kernels import CELL, VISITED, take_out
from matchwood.kernel.jit import part


@part
def put_boxed(s, k, i, lo, hi, level):
    """Put identifier i on ranges that begin and end at nodes of more than `level` levels: the
    leaf boxes of GBU.
    """
    a = _below(s, k, np.int64(2 * k), LEVELS - 1, level, lo)
    b = _below(s, k, np.int64(2 * k), LEVELS - 1, level, hi)
    mark_path(s, k, i, a, target_of(s, b, level))


@part
def _below(s, k, x, high, low, key):
    """From node x, which is not above a key, down from level `high`: the last node of level `low`
    that is not above it.  Counts the nodes on the way.
    """
    nil = 2 * k + 1
    for level in range(high, low - 1, -1):
        while True:
            s.count[VISITED] += 1
            y = target_of(s, x, level)
            if y == nil or s.node_key[y] > key:
                break
            x = y
    return x


@part
def _neighbours(s, k, x, low, key):
    """The same from any node of level `low`: up to the first range that holds the key, down again.

    As many steps as levels between here and there, however long the list is.
    """
    nil = 2 * k + 1
    while s.node_key[x] > key:
        s.count[VISITED] += 1
        level = np.int64(s.node[x, N_LEVELS]) - 1
        x = back_of(s, x, level)
        if s.node_key[x] <= key:
            return _below(s, k, x, level, low, key)
    while True:
        s.count[VISITED] += 1
        level = np.int64(s.node[x, N_LEVELS]) - 1
        y = target_of(s, x, level)
        if y == nil or s.node_key[y] > key:
            return _below(s, k, x, level, low, key)
        x = y


@part
def move_boxed(s, k, i, lo, hi, level):
    """What `take_out` and `put_boxed` do, but found from where identifier i is: the bottom-up
    update of GBU.
    """
    first = s.ends[i, 0]
    if first < 0:
        put_boxed(s, k, i, lo, hi, level)
        return
    x = np.int64(s.edge[s.marker[first, CELL] - 1, SOURCE])
    if s.node[x, N_LEVELS] <= level:  # it was put exactly: its range begins between two boxes
        x = np.int64(2 * k)
    a = _neighbours(s, k, x, level, lo)
    b = _neighbours(s, k, a, level, hi)
    take_out(s, i)
    mark_path(s, k, i, a, target_of(s, b, level))
