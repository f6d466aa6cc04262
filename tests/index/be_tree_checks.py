"""What is true of a BE-Tree after every change: Figure 1, section 4.3, and our own bookkeeping."""

from __future__ import annotations

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.be_tree.index import BETree
from matchwood.index.be_tree.nodes import (
    ATTR,
    BELOW,
    CAP,
    HOME,
    N_C,
    N_DIR,
    N_P,
    N_PENDING,
    N_TODO,
    OWNER,
    P_HIGH,
    ROOT,
    SPLIT,
    TOP_BUCKET,
    UP,
    TreeLayout,
)
from matchwood.index.be_tree.shape import buckets, held, in_use, p_nodes
from matchwood.kernel.posting_kernels import FREED, ROOM, TOP, N


def path(tree: TreeLayout, c: int) -> list[int]:
    """The p-nodes above a c-node, from the root down."""
    above = []
    p = int(tree.c[c, OWNER])
    while p >= 0:
        above.append(p)
        p = int(tree.c[tree.p[p, HOME], OWNER])
    return above[::-1]


def check(index: BETree) -> None:
    check_properties(index.tree)
    check_buckets(index.tree)
    check_invariance(index.tree, index._table)
    check_counts(index)


def check_properties(tree: TreeLayout) -> None:
    """Figure 1: the five properties, walking from the root; nothing else is in use."""
    assert tree.c[ROOT, OWNER] == -1  # (1) the root is a c-node
    seen_c, seen_p = set(), set()
    waiting = [int(ROOT)]
    while waiting:
        c = waiting.pop()
        assert c not in seen_c
        seen_c.add(c)
        assert 0 <= c < len(tree.postings.lists)  # (2) its l-node: the list of its number
        below = p_nodes(tree, c)
        assert len(below) == tree.c[c, N_DIR]
        assert len({int(tree.p[p, ATTR]) for p in below}) == len(below)
        for p in below:  # (3) all other children of a c-node are p-nodes
            assert tree.p[p, HOME] == c
            assert tree.p[p, ATTR] >= 0
            top = int(tree.p[p, TOP_BUCKET])
            assert top >= 0  # (5) a p-node has at least one c-node
            assert tree.c[top, OWNER] == p  # (4) all children of a p-node are c-nodes
            assert tree.c[top, UP] == -1
            seen_p.add(p)
            waiting.append(top)
        for child in buckets(tree, c):
            assert tree.c[child, OWNER] == tree.c[c, OWNER]
            assert tree.c[child, UP] == c
            waiting.append(child)
    assert sorted(seen_c) == in_use(tree).tolist()
    assert sorted(seen_p) == np.flatnonzero(tree.p[: tree.count[P_HIGH], ATTR] >= 0).tolist()
    assert (len(seen_c), len(seen_p)) == (tree.count[N_C], tree.count[N_P])
    assert sorted(p for p in tree.directory.tolist() if p >= 0) == sorted(seen_p)


def check_buckets(tree: TreeLayout) -> None:
    """Halves are disjoint, inside their bucket, on either side of its middle."""
    for c in in_use(tree).tolist():
        children = buckets(tree, c)
        if children:
            assert tree.c[c, SPLIT] == 1
        lo, hi = tree.span[c].tolist()
        for child in children:
            low, high = tree.span[child].tolist()
            assert lo <= low <= high <= hi
            assert (low, high) != (lo, hi)
        if len(children) == 2:
            assert tree.span[children[0], 1] < tree.span[children[1], 0]


def is_atomic(tree: TreeLayout, c: int) -> bool:
    lo, hi = tree.span[c].tolist()
    first, last = tree.grid[tree.c[c, OWNER]].tolist()
    return max(lo, first) >= min(hi, last)


def check_invariance(tree: TreeLayout, table: ExpressionTable) -> None:
    """Section 4.3: every expression is in the smallest bucket that encloses it; the c-node of a
    non-atomic leaf bucket is never partitioned; each attribute at most once on a path."""
    for c in in_use(tree).tolist():
        above = path(tree, c)
        used = [int(tree.p[p, ATTR]) for p in above]
        assert len(set(used)) == len(used)
        if c != ROOT and tree.c[c, SPLIT] == 0 and not is_atomic(tree, c):
            assert tree.c[c, N_DIR] == 0
        bucket_of = {}
        bucket = c
        for attr in reversed(used):
            bucket_of[attr] = bucket
            bucket = int(tree.p[tree.c[bucket, OWNER], HOME])
        for slot, inline in held(tree, c).items():
            check_expression(tree, table, slot, inline, bucket_of)


def check_expression(
    tree: TreeLayout,
    table: ExpressionTable,
    slot: int,
    inline: list[int],
    bucket_of: dict[int, int],
) -> None:
    sets = {
        int(table.predicates.layout.attr[pred]): table.predicates.intervals(pred)
        for pred in table.code_of(slot).tolist()
    }
    subsumed = set()
    for attr, bucket in bucket_of.items():
        lo, hi = sets[attr][0][0], sets[attr][-1][1]
        first, last = tree.span[bucket].tolist()
        assert first <= lo <= hi <= last
        for child in buckets(tree, bucket):
            assert not (tree.span[child, 0] <= lo and hi <= tree.span[child, 1])
        if sets[attr] == ((first, last),):
            subsumed.add(attr)
    assert sorted(inline) == sorted(sets.keys() - subsumed)


def check_counts(index: BETree) -> None:
    tree = index.tree
    assert tree.count[N_TODO] == tree.count[N_PENDING] == 0
    where = {}
    for c in in_use(tree).tolist():
        slots = held(tree, c)
        assert len(slots) == tree.postings.lists[c, N] <= tree.c[c, CAP]
        assert not (slots.keys() & where.keys())
        where.update(dict.fromkeys(slots, c))
    assert len(where) == len(index)
    assert {slot: c for slot, c in enumerate(tree.leaf_of.tolist()) if c >= 0} == where
    below: dict[int, int] = {}
    for c in where.values():
        for p in path(tree, c):
            below[p] = below.get(p, 0) + 1
    for p in np.flatnonzero(tree.p[: tree.count[P_HIGH], ATTR] >= 0).tolist():
        assert tree.p[p, BELOW] == below.get(p, 0)
    used = in_use(tree)
    words = int(tree.postings.lists[used, ROOM].sum())
    assert words + tree.postings.count[FREED] == tree.postings.count[TOP]
