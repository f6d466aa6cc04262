"""Kernel of `gates`: a subscription with every test of the event taken to be TRUE."""

from __future__ import annotations

import numpy as np

from matchwood.context.leaf_kernels import (
    ABSENT,
    BAND,
    KEY,
    NEVER,
    RELATION,
    STATIC,
    WHAT,
    context_leaf_holds,
    leaf_col,
    leaf_kind,
)
from matchwood.context.member_kernels import FAIL, MATCH
from matchwood.kernel.jit import kernel, part


@part
def _can_hold(leaf, at, row, cells, predicates):
    what = leaf[at, WHAT]
    kind = leaf_kind(what)
    if kind == STATIC:
        return True
    if kind == NEVER or row < 0:
        return False
    if kind == RELATION or kind == BAND:
        return cells[row, leaf_col(what), KEY] != ABSENT
    return context_leaf_holds(leaf, at, row, cells, predicates)


@kernel
def open_gates(members, chosen, cells, predicates, found):
    """Whether each of the chosen subscriptions (-1: none) is open."""
    for i in range(len(chosen)):
        if chosen[i] < 0:
            continue
        p = np.int64(chosen[i])
        first = members.start[p]
        at = first
        while True:  # conjunctions have jumps too
            holds = _can_hold(members.leaf, at, members.row[p], cells, predicates)
            to = members.jump[at, 0 if holds else 1]
            if to == MATCH or to == FAIL:
                found[i] = to == MATCH
                break
            at = first + to
