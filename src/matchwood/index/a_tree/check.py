"""What an A-Tree of a snapshot must be, and the stabbing tree below it, to be taken as they are."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.a_tree.blocks import (
    FREED,
    HAS_TOPS,
    HIGH,
    LEAF,
    MAX_LEVEL,
    N_CLASSES,
    N_LEAVES,
    NOTHING,
    TOP,
    ATreeLayout,
)
from matchwood.index.a_tree.check_layout import (
    check_children,
    check_free,
    check_parents,
    check_predicates,
    check_slots,
)
from matchwood.index.stabbing.check_kernels import (
    check_held,
    check_pending,
    check_sorted,
)
from matchwood.index.stabbing.predicate_kernels import LAST, N_HELD, NOT_PENDING, Stabbing
from matchwood.index.stabbing.segment_kernels import Segments
from matchwood.kernel.arrays import restored
from matchwood.kernel.checks import Column, check, check_offsets, do_ascend, expect
from matchwood.kernel.id_list_kernels import IdLists
from matchwood.kernel.id_lists import check_lists
from matchwood.kernel.interval_kernels import MIN_KEY

Layout = Mapping[str, np.ndarray]

_COLUMNS = {
    "hot": Column("int32", ("M", 2)),
    "node": Column("int32", ("M", 3)),
    "level": Column("int16", "M", 0),
    "op": Column("int8", "M"),
    "rarity": Column("uint8", "M"),
    "leaf_of": Column("int32", "p", NOTHING, "M"),
    "root_of": Column("int32", "s", NOTHING, "M"),
    "word": Column("int32", "W"),
    "free": Column("int32", N_CLASSES),
    "count": Column("int64", 9),
    "hull": Column("int64", ("a", 2)),
}
_STABBING = {
    "uses": Column("int32", "p", 0, 2),
    "pending_head": Column("int32", "a", LAST),
    "pending_next": Column("int32", "p", NOT_PENDING),
    "count": Column("int64", 2, 0),
    "attr_start": Column("int64", "n"),
    "cut": Column("int64", "C"),
}
_MOST_LEVELS = 2**15 - 1


def check_a_tree(table: ExpressionTable, slots: np.ndarray, layout: Layout) -> np.ndarray:
    """Raise a FormatError unless a layout holds these slots; returns which predicates it tests."""
    sizes = check(layout, _COLUMNS, "a_tree_")
    given = table.needed_by(slots)
    expect(sizes["p"] >= given["P"], "a_tree_leaf_of", "an item for each predicate")
    expect(sizes["a"] >= given["A"], "a_tree_hull", "an item for each attribute")
    fields = {name: layout[f"a_tree_{name}"] for name in ATreeLayout._fields if name != "table"}
    x = ATreeLayout(**fields, table=np.empty(0, np.int32))
    expect(x.count[HIGH] == sizes["M"], "a_tree_count", f"{sizes['M']} nodes")
    expect(x.count[TOP] == sizes["W"], "a_tree_count", f"{sizes['W']} words")
    expect(0 <= x.count[FREED] <= x.count[TOP], "a_tree_count", "some of them free")
    expect(0 <= x.count[MAX_LEVEL] <= _MOST_LEVELS, "a_tree_count", "levels")
    is_held = np.zeros(sizes["s"], bool)
    expect(int(slots.max(initial=-1)) < sizes["s"], "a_tree_root_of", "these expressions")
    is_held[slots] = True
    expect(((x.root_of != NOTHING) == is_held).all(), "a_tree_root_of", "these expressions")
    _check_graph(table, slots, x)
    is_leaf: np.ndarray = x.leaf_of >= 0
    return is_leaf


def _check_graph(table: ExpressionTable, slots: np.ndarray, x: ATreeLayout) -> None:
    n = int(x.count[HIGH])
    seen = np.full(n, NOTHING, np.int32)
    links = np.zeros(n, np.uint64)
    blocks = np.empty((3 * n, 2), np.int64)
    seed = np.int64(secrets.randbits(63))
    n_blocks = check_children(x, seed, seen, links, blocks)
    expect(n_blocks >= 0, "a_tree_node", "children below their parents")
    n_leaves = int((x.leaf_of >= 0).sum())
    has_leaf = x.op[x.leaf_of[x.leaf_of >= 0]] == LEAF
    expect(has_leaf.all() and n_leaves == x.count[N_LEAVES], "a_tree_leaf_of", "leaves")
    n_blocks = check_parents(x, seed, bool(x.count[HAS_TOPS]), links, blocks, n_blocks)
    expect(n_blocks >= 0, "a_tree_node", "parents above their children")
    listed = np.zeros(len(x.root_of), bool)
    n_blocks = check_slots(x, listed, blocks, n_blocks)
    expect(n_blocks >= 0, "a_tree_hot", "expressions at their roots")
    expect(int(listed.sum()) == len(slots), "a_tree_hot", "each expression")
    expect(check_free(x, np.full(n, NOTHING, np.int32)), "a_tree_node", "free nodes")
    blocks = blocks[:n_blocks][np.argsort(blocks[:n_blocks, 0], kind="stable")]
    is_apart = blocks[:-1].sum(axis=1) <= blocks[1:, 0]
    expect(is_apart.all(), "a_tree_word", "blocks apart")
    marked = np.full(len(x.leaf_of), NOTHING, np.int32)
    seen = np.full(n, NOTHING, np.int32)
    stack = np.empty(n + 1, np.int32)
    is_same = check_predicates(x, table.layout, slots, marked, seen, stack)
    expect(is_same, "a_tree_node", "the predicates of each expression")


def check_stabbing(table: ExpressionTable, is_leaf: np.ndarray, layout: Layout) -> None:
    """Raise a FormatError unless a stabbing tree finds these predicates, each once."""
    sizes = check(layout, _STABBING, "stabbing_")
    given = table.needed_for(np.flatnonzero(is_leaf))
    expect(sizes["p"] >= given["P"], "stabbing_uses", "an item for each predicate")
    expect(sizes["a"] >= given["A"], "stabbing_pending_head", "an item for each attribute")
    check_lists(layout, "stabbing_node_")
    n_lists = len(layout["stabbing_node_size"])
    expect(n_lists == 2 * sizes["C"], "stabbing_node_size", "two nodes for each cut")
    check_offsets("stabbing_attr_start", layout["stabbing_attr_start"], sizes["C"])
    stabbing, segments = (
        restored(Stabbing, layout, "stabbing_"),
        restored(Segments, layout, "stabbing_"),
    )
    lists, p = restored(IdLists, layout, "stabbing_node_"), table.predicates.layout
    held = np.flatnonzero(stabbing.uses)
    expect(np.array_equal(held, np.flatnonzero(is_leaf)), "stabbing_uses", "the leaves")
    expect(stabbing.count[N_HELD] == len(held), "stabbing_count", f"{len(held)} predicates")
    is_cut = do_ascend(segments.cut, segments.attr_start, int(MIN_KEY))
    expect(is_cut, "stabbing_cut", "cuts that ascend")
    expect(check_sorted(lists, given["P"]), "stabbing_node_item", "predicates that ascend")
    expect(check_pending(stabbing, p, given["P"]), "stabbing_pending_next", "predicates that wait")
    n = check_held(stabbing, segments, lists, p, held)
    expect(n == int(lists.size.sum(dtype=np.int64)), "stabbing_node_item", "predicates in place")
