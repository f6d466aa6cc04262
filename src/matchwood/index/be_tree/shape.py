"""Reading a `be_tree` as Python objects: for statistics, drawings and checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.index.be_tree.nodes import (
    C_HIGH,
    CAP,
    HEAD,
    LEFT,
    NEXT,
    OWNER,
    RIGHT,
    ROOT,
    TOP_BUCKET,
    TreeLayout,
)
from matchwood.kernel.posting_cell_kernels import INTERVAL, PAST, WIDE, WIDE_SET
from matchwood.kernel.posting_kernels import START, USED, N

_FREE = -2


def in_use(tree: TreeLayout) -> np.ndarray:
    """All c-nodes of the tree."""
    return np.flatnonzero(tree.c[: tree.count[C_HIGH], OWNER] != _FREE)


def p_nodes(tree: TreeLayout, c: int) -> list[int]:
    """The p-directory of a c-node, oldest first."""
    found = []
    p = int(tree.c[c, HEAD])
    while p >= 0:
        found.append(p)
        p = int(tree.p[p, NEXT])
    return found[::-1]


def buckets(tree: TreeLayout, c: int) -> list[int]:
    """The halves of a bucket that exist, the lower first."""
    return [int(child) for child in tree.c[c, [LEFT, RIGHT]] if child >= 0]


def held(tree: TreeLayout, c: int) -> dict[int, list[int]]:
    """The l-node of a c-node: for each slot the attributes of its predicates, in order."""
    start, used = (int(tree.postings.lists[c, column]) for column in (START, USED))
    word = tree.postings.word[start : start + used].tolist()
    found: dict[int, list[int]] = {}
    entry = 0
    while entry < used:
        end = entry + (word[entry] >> 32)
        slot = word[entry] & 0xFFFFFFFF
        at, attributes = entry + 1, []
        while at < end:
            w, kind = word[at], word[at] >> 61
            is_wide = kind in (WIDE, WIDE_SET)
            attributes.append(w & 0xFFFFFFFF if is_wide else w >> 46 & 0x7FFF)
            is_long = is_wide or (w & PAST) - (w >> 23 & PAST) >= 64
            at += 1 if kind == INTERVAL else 3 if is_long else 2
        found[slot] = attributes
        entry = end
    return found


def shape(tree: TreeLayout) -> dict[str, Any]:
    """Depth in p-nodes and in buckets, and how full l-nodes are."""
    depth = n_buckets = 0
    waiting = [(int(ROOT), 0, 0)]
    while waiting:
        c, above, deep = waiting.pop()
        depth, n_buckets = max(depth, above), max(n_buckets, deep)
        waiting += [(child, above, deep + 1) for child in buckets(tree, c)]
        waiting += [(int(tree.p[p, TOP_BUCKET]), above + 1, 1) for p in p_nodes(tree, c)]
    used = in_use(tree)
    sizes = tree.postings.lists[used, N]
    full = sizes > 0
    return {
        "depth": depth,
        "bucket_depth": n_buckets,
        "largest_leaf": int(sizes.max(initial=0)),
        "fill": round(float(sizes[full].sum() / max(1, tree.c[used[full], CAP].sum())), 3),
    }
