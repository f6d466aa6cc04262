"""What is always true of an A-Tree, checked node by node."""

from __future__ import annotations

from inside import graph_of
from matchwood.index.a_tree.blocks import (
    AND,
    DOWN,
    HAS_TOPS,
    HIGH,
    LEAF,
    N_ACTIVE,
    N_ALL,
    N_LEAVES,
    N_NODES,
    N_OR,
    NOTHING,
    OR,
    PARENTS,
    TELL,
    TO_AND,
    TO_TOP,
    UP,
    ATreeLayout,
)
from matchwood.index.a_tree.draw import children_of, slots_of
from matchwood.index.a_tree.index import ATree


def live_nodes(x: ATreeLayout) -> list[int]:
    return [v for v in range(int(x.count[HIGH])) if x.op[v] != 0]


def parents_of(x: ATreeLayout, v: int) -> tuple[list[int], list[int], list[int]]:
    """OR parents, ANDs that the node gives access to, other ANDs."""
    up = int(x.node[v, UP])
    if up == NOTHING:
        return [], [], []
    n_or, n_active, n = (int(x.word[up + i]) for i in (N_OR, N_ACTIVE, N_ALL))
    links = x.word[up + PARENTS : up + PARENTS + n].tolist()
    all_of_them = [link if link >= 0 else int(x.root_of[~link]) for link in links]
    for link, parent in zip(links[:n_or], all_of_them, strict=False):
        assert (link < 0) == (bool(x.count[HAS_TOPS]) and is_top(x, parent))
    return all_of_them[:n_or], all_of_them[n_or:n_active], all_of_them[n_active:]


def is_top(x: ATreeLayout, v: int) -> bool:
    return bool(x.op[v] == OR and x.node[v, UP] == NOTHING and len(slots_of(x, v)) == 1)


def told_by(x: ATreeLayout, v: int) -> tuple[list[int], list[int]]:
    """Whom matching tells when a node becomes true, from its hot row: ORs, and ANDs."""
    tell = int(x.hot[v, TELL])
    if tell == NOTHING:
        return [], []
    if tell < 0:
        link, kind = divmod(~tell - 1, 4)
        if kind == TO_TOP:
            return [int(x.root_of[link])], []
        return ([], [link]) if kind == TO_AND else ([link], [])
    assert tell == x.node[v, UP]
    assert x.word[tell + N_ACTIVE] > 1
    return parents_of(x, v)[:2]


def elements(x: ATreeLayout, v: int) -> frozenset[int]:
    found: set[int] = set()
    for child in children_of(x, v):
        found |= elements(x, child) if x.op[child] == x.op[v] else {child}
    return frozenset(found)


def check(index: ATree) -> None:
    """Levels, links in both directions, uniqueness, uses, the table, the maps."""
    x, share = graph_of(index), index.config.share
    nodes = live_nodes(x)
    assert len(nodes) == x.count[N_NODES]
    assert sum(x.op[v] == LEAF for v in nodes) == x.count[N_LEAVES]
    known: dict[tuple[int, frozenset[int]], int] = {}
    links = set()
    slots: list[int] = []
    for v in nodes:
        ors, access, others = parents_of(x, v)
        assert all(x.op[p] == OR for p in ors)
        assert all(x.op[p] == AND for p in access + others)
        assert all(children_of(x, p)[0] == v for p in access)
        assert all(children_of(x, p)[0] != v for p in others)
        assert told_by(x, v) == (ors, access)
        links |= {(v, p) for p in ors + access + others}
        assert len(set(ors + access + others)) == len(ors + access + others)
        mine = slots_of(x, v)
        assert all(x.root_of[slot] == v for slot in mine)
        slots += mine
        if x.op[v] == LEAF:
            assert x.level[v] == 1
            assert x.leaf_of[x.node[v, DOWN]] == v
            assert mine or ors or access or others
            continue
        children = children_of(x, v)
        assert len(set(children)) == len(children) >= 2
        assert x.level[v] == 1 + max(x.level[c] for c in children)
        key = (int(x.op[v]), elements(x, v))
        assert len(key[1]) >= 2
        if share:
            assert key not in known
            known[key] = v
        structural = access + others if x.op[v] == OR else ors
        kept = index.config.binary or not index.config.rehang
        assert mine or structural or (kept and (ors or access or others))
        assert (x.table == v).sum() == 1
    assert links == {(c, v) for v in nodes for c in children_of(x, v)}
    assert len(slots) == len(set(slots)) == len(index)
    assert (x.table != NOTHING).sum() == len(nodes) - x.count[N_LEAVES]
    assert len(index._found_by) == x.count[N_LEAVES]
