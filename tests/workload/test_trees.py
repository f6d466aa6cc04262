"""ABE-Gen and ad trees: what their papers' numbers say, and the two forms of a row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from matchwood.encode.merge_kernels import and_token, or_token
from matchwood.errors import MatchwoodError
from matchwood.index.scan.index import Scan
from matchwood.lang import parse
from matchwood.lang.nodes import Expr
from matchwood.workload import (
    ABEGen,
    AdTrees,
    Workload,
    event_dicts,
    find_workload,
    load_events,
    load_subscriptions,
)
from matchwood.workload.abegen_presets import SWEEPS
from matchwood.workload.ad_trees import SHARING
from matchwood.workload.loading import Loaded
from matchwood.workload.tree_kernels import NOT, XNOR, XOR
from naive import matches
from searching import search


def drawn(workload: ABEGen | AdTrees, n: int) -> list[tuple[Any, ...]]:
    """Trees as drawn: (token, *operands), a leaf being (attribute, operator, values)."""
    rows = workload.trees(0, n)
    code, starts = rows.code.tolist(), rows.code_start.tolist()

    def read(at: int) -> tuple[tuple[Any, ...], int]:
        token = code[at]
        if token >= 0:
            values = rows.values[rows.start[token] : rows.start[token + 1]].tolist()
            return (int(rows.attr[token]), int(rows.op[token]), tuple(values)), at + 1
        operands, end = [], at + 1
        n_operands = {NOT: 1, XOR: 2, XNOR: 2}.get(token, (-token - 1) // 2)
        for _ in range(n_operands):
            operand, end = read(end)
            operands.append(operand)
        return (token, *operands), end

    return [read(starts[i])[0] for i in range(n)]


def leaves(tree: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    if tree[0] >= 0:
        return [tree]
    return [leaf for operand in tree[1:] for leaf in leaves(operand)]


def depth(tree: tuple[Any, ...]) -> int:
    """Levels of a tree; a predicate is one."""
    return 1 if tree[0] >= 0 else 1 + max(map(depth, tree[1:]))


def trees(workload: Workload, n: int) -> list[Expr]:
    return [parse(text) for text in workload.subscriptions(0, n).column("expr").to_pylist()]


def answers(workload: Workload, loaded: Loaded) -> list[list[int]]:
    hits = search(Scan.build(loaded.table, loaded.slots), load_events(workload, loaded.attributes))
    ends = hits.offsets.tolist()
    return [sorted(hits.slots[begin:end].tolist()) for begin, end in pairwise(ends)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload",
    [
        ABEGen(n_subscriptions=300, n_events=30, n_attributes=30, cardinality=6),
        ABEGen(n_subscriptions=40, n_events=30, depth=5, children=2, n_attributes=40),
        ABEGen(n_subscriptions=300, n_events=30, depth=1, n_attributes=30),
        AdTrees(n_subscriptions=300, n_events=30, population=1_000),
    ],
)
def test_leaf_rows_and_texts_are_the_same_expressions(workload):
    exprs = trees(workload, workload.n_subscriptions)
    events = event_dicts(workload.events(0, 30), 0, 30)
    expected = [[i for i, expr in enumerate(exprs) if matches(expr, e)] for e in events]
    assert answers(workload, load_subscriptions(workload)) == expected
    assert any(expected)


@pytest.mark.parametrize("workload", [ABEGen(), AdTrees()])
def test_leaf_rows_do_not_depend_on_chunks(workload):
    whole, part = workload.leaf_rows(0, 200), workload.leaf_rows(150, 200)
    cut = whole.part(150, 200)
    assert list(part.code) == list(cut.code)
    assert list(part.attr) == list(cut.attr)
    assert list(part.op) == list(cut.op)
    assert list(part.values) == list(cut.values)


def test_abegen_has_the_operators_and_the_depth_it_is_told():
    drawn_trees = drawn(ABEGen(), 2_000)
    kinds = [tree[0] for tree in drawn_trees]
    expected = [0.4, 0.4, 0.1, 0.05, 0.05]
    tokens = (and_token(4), or_token(4), NOT, XOR, XNOR)
    assert [kinds.count(each) / len(kinds) for each in tokens] == pytest.approx(expected, abs=0.03)
    assert {depth(each) for each in drawn_trees} == {3}
    # 0.8 * 4 + 0.1 * 1 + 0.1 * 2 children on average, twice
    n_leaves = [len(leaves(each)) for each in drawn_trees]
    assert np.mean(n_leaves) == pytest.approx(3.5**2, rel=0.05)


@pytest.mark.parametrize("asked", [1, 2, 4])
def test_abegen_trees_are_as_deep_as_asked(asked):
    assert {depth(each) for each in drawn(ABEGen(depth=asked), 50)} == {asked}


def subexpression_sharing(workload: ABEGen, n: int) -> float:
    """Occurrences of a root's children, by different ones among them."""
    children = [child for tree in drawn(workload, n) for child in tree[1:]]
    return len(children) / len(set(children))


def test_abegen_shares_subexpressions_as_the_paper_says():
    # 4.33 at a million expressions with a pool of 890,000; both a 500th of that here
    assert subexpression_sharing(ABEGen(pool=1_780), 2_000) == pytest.approx(4.33, rel=0.1)
    sharings = [
        subexpression_sharing(ABEGen(pool=1_780, exponent=exponent), 2_000)
        for exponent in (0, 0.6, 1.0)
    ]
    assert sharings[0] < 1.01 < sharings[1] < sharings[2]


@pytest.mark.slow
def test_abegen_shares_predicates_about_as_the_paper_says():
    # a hundredth of everything: expressions, subexpressions and dimensions
    found = [leaf for tree in drawn(ABEGen(pool=8_900, n_attributes=10, event_size=5), 10_000)
             for leaf in leaves(tree)]  # fmt: skip
    assert len(found) / len(set(found)) == pytest.approx(18.35, rel=0.1)


def test_abegen_knows_the_points_of_table_3():
    assert find_workload("abegen:default").n_subscriptions == 1_000_000
    for name, points in SWEEPS.items():
        for point in points:
            assert find_workload("abegen:default", **point).parameters().items() >= point.items()
        assert len(points) == 6, name


def test_abegen_refuses_shares_that_do_not_add_up():
    with pytest.raises(MatchwoodError, match="add up to 1"):
        ABEGen(operators=(0.5, 0.5, 0.5, 0, 0))


@pytest.mark.slow
def test_ad_trees_have_the_shape_of_section_6_2():
    drawn_trees = drawn(find_workload("ad_trees:small"), 6_000)
    n_leaves = [len(leaves(each)) for each in drawn_trees]
    assert {depth(each) for each in drawn_trees} == set(range(1, 10))
    assert min(n_leaves) == 1
    assert 36 < max(n_leaves) <= 56
    assert {leaf[0] for tree in drawn_trees for leaf in leaves(tree)} == set(range(122))


@pytest.mark.slow
def test_ad_trees_share_as_figure_7_says():
    workload = find_workload("ad_trees:small")
    assert workload.sharing() == pytest.approx(SHARING, rel=0.1)
    assert pytest.approx([68.76, 2.88]) == [SHARING[0], SHARING[-1]]


@pytest.mark.slow
def test_ad_trees_share_their_predicates_once_encoded():
    workload = find_workload("ad_trees:small", n_subscriptions=30_000, population=30_000)
    loaded = load_subscriptions(workload)
    rows = workload.trees(0, 30_000)
    assert len(rows.attr) / len(loaded.table.predicates) == pytest.approx(68.76, rel=0.15)
