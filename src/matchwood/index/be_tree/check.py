"""What a BE-Tree of a snapshot must be, so that its kernels can take it as it is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matchwood.encode.expressions import ExpressionTable
from matchwood.index.be_tree.check_layout import check_leaves, check_nodes
from matchwood.index.be_tree.memory import tree_of
from matchwood.index.be_tree.nodes import (
    C_HIGH,
    C_WIDTH,
    N_COUNTS,
    N_HELD,
    N_PENDING,
    N_TODO,
    P_HIGH,
    P_WIDTH,
)
from matchwood.kernel.checks import Column, check, expect
from matchwood.kernel.posting_kernels import FREED, N_CLASSES, ROOM, START, TOP

Layout = Mapping[str, np.ndarray]

_COLUMNS = {
    "c": Column("int32", ("C", C_WIDTH)),
    "span": Column("int64", ("C", 2)),
    "p": Column("int32", ("P", P_WIDTH)),
    "grid": Column("int64", ("P", 2)),
    "attr_span": Column("int64", ("a", 2)),
    "attr_n": Column("int64", "a"),
    "leaf_of": Column("int32", "s", -1, "C"),
    "todo": Column("int32", 0),
    "pending": Column("int32", 0),
    "count": Column("int64", N_COUNTS, -1),
    "posting_word": Column("int64", "W"),
    "posting_lists": Column("int32", ("C", 4), 0),
    "posting_free": Column("int64", N_CLASSES),
    "posting_origin": Column("int64", "o"),
    "posting_count": Column("int64", 2, 0),
}


def check_tree(table: ExpressionTable, slots: np.ndarray, layout: Layout) -> None:
    """Raise a FormatError unless a layout holds these slots, and nothing else."""
    sizes = check(layout, _COLUMNS)
    needed = table.needed_by(slots)
    expect(sizes["C"] > 0, "c", "a root")
    expect(sizes["a"] >= needed["A"], "attr_n", "an item for each attribute")
    expect(sizes["o"] >= needed["A"], "posting_origin", "an item for each attribute")
    count, n = layout["count"], len(slots)
    expected = {C_HIGH: sizes["C"], P_HIGH: sizes["P"], N_TODO: 0, N_PENDING: 0, N_HELD: n}
    is_same = all(count[at] == value for at, value in expected.items())
    expect(is_same, "count", f"{sizes['C']} and {sizes['P']} nodes, {n} expressions")
    top, freed = layout["posting_count"][[TOP, FREED]].tolist()
    expect(freed <= top <= sizes["W"], "posting_count", f"{top} of {sizes['W']} words")
    is_held = np.zeros(sizes["s"], bool)
    expect(int(slots.max(initial=-1)) < sizes["s"], "leaf_of", "an item for each expression")
    is_held[slots] = True
    expect(((layout["leaf_of"] >= 0) == is_held).all(), "leaf_of", "these expressions")
    _check_links(table, layout, n, top)


def _check_links(table: ExpressionTable, layout: Layout, n: int, top: int) -> None:
    tree = tree_of(layout)
    postings = tree.postings
    n_c, n_p = len(tree.c), len(tree.p)
    seen, seen_p = np.zeros(n_c, bool), np.zeros(n_p, bool)
    stack = np.zeros(n_c + 1, np.int32)
    expect(check_nodes(tree, len(tree.attr_n), seen, seen_p, stack), "c", "a tree of nodes")
    listed, below = np.zeros(len(tree.leaf_of), bool), np.zeros(n_p, np.int64)
    p, x = table.predicates.layout, table.layout
    n_attributes = min(table.n_attributes, len(tree.attr_n), len(postings.origin))
    found = check_leaves(tree, x, p, n_attributes, top, listed, below)
    expect(found == n, "posting_word", "each expression in its leaf")
    lists = postings.lists[postings.lists[:, ROOM] > 0].astype(np.int64)
    lists = lists[np.argsort(lists[:, START], kind="stable")]
    ends = lists[:, START] + lists[:, ROOM]
    expect((ends[:-1] <= lists[1:, START]).all(), "posting_lists", "lists apart")
