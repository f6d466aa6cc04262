"""Kernels of `vcr` that find the list of an activated VCR: by a table, a hash, or chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchwood.kernel.jit import kernel, part
from matchwood.kernel.pair_map_kernels import find_pair, put_pair, remove_pair

HIGH, FREE, N_INEXACT = range(3)
"""Positions in `Active.count`: lists ever handed out, the first free one or -1, expressions among
the first ones whose ranges do not end on grid lines."""


class Active(NamedTuple):
    """Activated VCRs, apart from their hash and their lists; see the page of this folder."""

    table: np.ndarray
    chain: np.ndarray
    owner: np.ndarray
    count: np.ndarray
    home: np.ndarray
    box: np.ndarray


@part
def list_of(active, pairs, id_):
    """The list of a VCR, -1 when it is not activated."""
    if len(active.chain) > 0:
        which = np.int64(active.table[_chain_of(active, id_)]) - 1
        while which >= 0 and active.owner[which] != id_:
            which = np.int64(active.chain[which]) - 1
        return which
    if len(active.table) > 0:
        return np.int64(active.table[id_]) - 1
    return find_pair(pairs, id_)


@part
def _chain_of(active, id_):
    """The place of a VCR in the paper's hash (2.2.3): randomised, then divided by a prime."""
    h = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) % np.uint64(len(active.table)))


@part
def _enter(active, pairs, id_, which):
    """Let a VCR lead to its list."""
    if len(active.chain) > 0:
        at = _chain_of(active, id_)
        active.chain[which] = active.table[at]
        active.table[at] = which + 1
    elif len(active.table) > 0:
        active.table[id_] = which + 1
    else:
        put_pair(pairs, id_, which)


@part
def _forget(active, pairs, id_, which):
    """Let a VCR lead to nothing."""
    if len(active.chain) > 0:
        at = _chain_of(active, id_)
        if active.table[at] == which + 1:
            active.table[at] = active.chain[which]
            return
        before = np.int64(active.table[at]) - 1
        while active.chain[before] != which + 1:
            before = np.int64(active.chain[before]) - 1
        active.chain[before] = active.chain[which]
    elif len(active.table) > 0:
        active.table[id_] = 0
    else:
        remove_pair(pairs, id_)


@kernel
def enter_all(active, pairs):
    """Enter all lists into an emptied table of chains."""
    for which in range(active.count[HIGH]):
        _enter(active, pairs, active.owner[which], which)


@part
def activate(active, pairs, id_):
    """The list of a VCR, which has one from now on; there is room for it."""
    which = list_of(active, pairs, id_)
    if which >= 0:
        return which
    which = active.count[FREE]
    if which >= 0:
        active.count[FREE] = ~active.owner[which]
    else:
        which = active.count[HIGH]
        active.count[HIGH] += 1
    active.owner[which] = id_
    _enter(active, pairs, id_, which)
    return which


@part
def deactivate(active, pairs, id_, which):
    _forget(active, pairs, id_, which)
    active.owner[which] = ~active.count[FREE]
    active.count[FREE] = which
