"""The A-Tree paper's worked examples: Figures 4 and 6, sections 4.2 and 3.1, Table 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from encode.world import World, found
from index.a_tree_checks import check, live_nodes, parents_of, told_by
from index.a_tree_samples import FIGURE_4, FIGURE_6, P123, built, leaf, node, p, shape
from index.three_valued import ThreeValuedATree
from inside import graph_of, visit_tops
from matchwood.index.a_tree.blocks import AND, OR, TELL, TO_TOP
from matchwood.index.a_tree.config import MATCHING
from matchwood.index.a_tree.draw import children_of
from matchwood.index.a_tree.index import ATree
from matchwood.index.a_tree.levels import FALSE, NOT, TRUE, UNDEFINED, XNOR, XOR, evaluate
from matchwood.index.a_tree.match import (
    Matching,
    _evaluate,
    _make_ready,
    _open,
    _propagate,
    next_signature,
)
from matchwood.index.a_tree.memory import new_matching
from matchwood.lang import parse
from matchwood.lang.nodes import And, Or
from searching import scratch_of, search, work_of


def test_figure_4_two_expressions_share_a_node():
    world, index = built(FIGURE_4)
    x = graph_of(index)
    shared = node(x, OR, leaf(world, index, 5), leaf(world, index, 6))
    assert sorted(map(len, parents_of(x, shared)))[-1] >= 1
    assert sum(map(len, parents_of(x, shared))) == 2
    assert len(live_nodes(x)) == 8 + 3 + 2


def test_equal_expressions_in_another_order_are_one_node():
    again = And((Or((p(6), p(5))), p(4), Or((p(3), p(1), p(2)))))
    _, index = built([FIGURE_4[0], again])
    assert len(graph_of(index).node[graph_of(index).op >= AND]) == 3
    assert graph_of(index).root_of[0] == graph_of(index).root_of[1]


def test_reorganisation_reuses_an_existing_or():
    # section 4.2.2: P1 OR P2 OR P3 OR P4 becomes (P1 OR P2 OR P3) OR P4
    world, index = built(FIGURE_4)
    index.insert(world.store([Or((p(1), p(2), p(3), p(4)))]))
    check(index)
    x = graph_of(index)
    inner = node(x, OR, *(leaf(world, index, i) for i in (1, 2, 3)))
    assert set(children_of(x, int(x.root_of[2]))) == {inner, leaf(world, index, 4)}


def test_reorganisation_may_use_an_element_twice():
    # (P1 AND P2 AND P3) AND (P3 AND P4)
    world, index = built([And((p(1), p(2), p(3))), And((p(3), p(4)))])
    index.insert(world.store([And((p(1), p(2), p(3), p(4)))]))
    check(index)
    x = graph_of(index)
    children = set(children_of(x, int(x.root_of[2])))
    assert children in (
        {int(x.root_of[0]), int(x.root_of[1])},
        {int(x.root_of[0]), leaf(world, index, 4)},
    )


def test_self_adjustment_puts_a_new_node_under_one_around_it():
    # section 4.2.3: (P1 OR P2 OR P3) AND P4 becomes a child of S1
    world, index = built(FIGURE_4)
    index.insert(world.store([And((P123, p(4)))]))
    check(index)
    x = graph_of(index)
    assert int(x.root_of[2]) in children_of(x, int(x.root_of[0]))
    assert len(children_of(x, int(x.root_of[0]))) == 2


def test_deletion_hangs_children_on_the_parent_again():
    world, index = built(FIGURE_4)
    before = shape(index)
    new = world.store([And((P123, p(4)))])
    index.insert(new)
    index.delete(new)
    check(index)
    assert shape(index) == before


def figure_6_event(world: World) -> Any:
    """P1, P9 = NOT P7 and P10 = NOT P8 hold, nothing else."""
    return world.events([{"p1": 1, "p7": 0, "p8": 0}])


class Figure6:
    """The optimised index of Figure 6 (c), its nodes by the paper's numbers."""

    def __init__(self) -> None:
        self.world, self.index = built(FIGURE_6)
        visit_tops(self.index)  # no short cut to S3, which is a top
        self.x = x = graph_of(self.index)
        leaves = {i: leaf(self.world, self.index, i) for i in range(1, 9)}
        leaves[9] = leaf(self.world, self.index, 7, False)
        leaves[10] = leaf(self.world, self.index, 8, False)
        s1, s2, s3, s4, s5, s6 = (int(x.root_of[i]) for i in range(6))
        ors = {
            11: node(x, OR, *(leaves[i] for i in (1, 2, 3))),
            12: s5,
            13: node(x, OR, leaves[7], leaves[8]),
        }
        self.n = {**leaves, **ors, 14: s6, 15: s3, 16: s4, 17: s2, 18: s1}

    def names(self, nodes: Any) -> list[int]:
        """The paper's numbers of nodes."""
        number = {v: i for i, v in self.n.items()}
        return [number[int(v)] for v in nodes]

    def told(self, i: int) -> tuple[list[int], list[int]]:
        ors, ands = told_by(self.x, self.n[i])
        return self.names(ors), self.names(ands)


def test_figure_6_nodes_and_links():
    figure = Figure6()
    x, n = figure.x, figure.n
    assert sorted(live_nodes(x)) == sorted(n.values())
    levels = {i: int(x.level[v]) for i, v in n.items() if i > 10}
    assert levels == {11: 2, 12: 2, 13: 2, 14: 2, 15: 3, 16: 3, 17: 3, 18: 4}
    # child-to-parent links of an AND come from its access child alone
    assert figure.told(1) == ([11], [])
    assert figure.told(9) == ([], [14])
    assert figure.told(10) == ([], [])
    assert figure.told(11) == ([15], [])
    assert figure.told(4) == ([15], [16])
    # and there are parent-to-child links
    assert figure.names(children_of(x, n[14])) == [9, 10]
    assert figure.names(children_of(x, n[16])) == [4, 11]
    assert sorted(figure.names(children_of(x, n[18]))) == [12, 16]


def test_figure_6_step_by_step():
    figure = Figure6()
    x, n = figure.x, figure.n
    m, out = new_matching(x), np.empty(8, np.int32)
    now, truth = next_signature.py_func(m), m.truth[len(x.root_of) :]
    for i, leaf_number in enumerate((1, 9, 10)):
        m.queue[i], truth[n[leaf_number]] = n[leaf_number], now
    # level 1: node 1 tells node 11 alone, node 9 node 14; node 10 keeps its result
    n_out, n_sole, n_pending, n_opened = _open.py_func(x, m, 0, 3, out, 0, 0)
    assert (n_out, n_opened) == (0, 0)
    assert figure.names(m.sole[:n_sole]) == [11]
    assert figure.names(m.pending[:n_pending]) == [14]
    assert truth[n[10]] == now
    tail, n_pending, n_out = _propagate.py_func(x, m, n_sole, n_opened, 3, n_pending, out, n_out)
    assert figure.names(m.queue[3:tail]) == [11]
    # level 2: node 11 is an OR, true at once, and tells node 15 alone
    n_out, n_sole, n_pending, n_opened = _open.py_func(x, m, 3, tail, out, n_out, n_pending)
    assert (n_out, n_opened, figure.names(m.sole[:n_sole])) == (0, 0, [15])
    head = tail
    tail, n_pending, n_out = _propagate.py_func(x, m, n_sole, n_opened, tail, n_pending, out, n_out)
    assert figure.names(m.queue[head:tail]) == [15]
    # level 3, already: only ANDs have to wait for their level.  Node 15 is an OR, true, and S3's
    n_out, n_sole, n_pending, n_opened = _open.py_func(x, m, head, tail, out, n_out, n_pending)
    assert out[:n_out].tolist() == [2]
    assert (n_sole, n_opened) == (0, 0)
    # level 2: node 14 asks node 10 for its result, and is satisfied
    n_ready, n_pending = _make_ready.py_func(x, m, n_pending)
    assert (figure.names(m.ready[:n_ready]), n_pending) == ([14], 0)
    head = tail
    tail, in_vain = _evaluate.py_func(x, m, now, n_ready, tail)
    assert (figure.names(m.queue[head:tail]), in_vain) == ([14], 0)
    n_out, n_sole, n_pending, n_opened = _open.py_func(x, m, head, tail, out, n_out, n_pending)
    assert out[:n_out].tolist() == [2, 5]  # S3 and S6
    # nothing is queued for level 4
    assert (n_sole, n_pending, n_opened) == (0, 0, 0)


def matching_of(index: ATree) -> Matching:
    """What the last search has written to."""
    matching: Matching = scratch_of(index).of(index).arrays
    return matching


def test_figure_6_looks_at_six_nodes():
    figure = Figure6()
    hits = search(figure.index, figure_6_event(figure.world))
    assert found(hits) == [[2, 5]]  # S3 and S6
    matching = matching_of(figure.index)
    assert sorted(figure.names(matching.queue[:6])) == [1, 9, 10, 11, 14, 15]
    truth = matching.truth[len(figure.x.root_of) :]
    true = np.flatnonzero(truth[: len(figure.x.node)] == matching.clock[0])
    assert sorted(figure.names(true)) == [1, 9, 10, 11, 14, 15]
    # no candidate in vain
    assert work_of(hits)["candidates"] == work_of(hits)["matches"] == 2


def test_a_top_is_given_out_without_a_look_at_it():
    world, index = built(FIGURE_6)
    x, s3 = graph_of(index), int(graph_of(index).root_of[2])
    inner = node(x, OR, *(leaf(world, index, i) for i in (1, 2, 3)))
    assert (x.hot[inner, TELL], told_by(x, inner)[0]) == (~(1 + 4 * 2 + TO_TOP), [s3])
    hits = search(index, figure_6_event(world))
    assert found(hits) == [[2, 5]]
    assert s3 not in matching_of(index).queue[:5]
    visit_tops(index)
    again = search(index, figure_6_event(world))
    assert (found(again), again.counters.tolist()) == (found(hits), hits.counters.tolist())


@pytest.mark.parametrize("matching", MATCHING)
def test_figure_6_has_one_answer(matching):
    world, index = built(FIGURE_6, matching=matching)
    assert found(search(index, figure_6_event(world))) == [[2, 5]]


def test_figure_6_in_three_values():
    world = World(dict.fromkeys([f"p{i}" for i in range(1, 9)], "int"))
    tree = ThreeValuedATree(world.attributes, FIGURE_6)
    assert len(tree.layout.node) == 8 + 8  # as in (b): no leaves 9 and 10, but a NOT
    hits = search(tree, figure_6_event(world))
    assert found(hits) == [[2, 5]]


def test_a_predicate_may_occur_twice():
    # section 3.1: (P1 AND P2) OR (NOT P2 AND P3)
    expr = parse("(p1 = 1 AND p2 = 1) OR (NOT p2 = 1 AND p3 = 1)")
    raw = [{"p1": 1, "p2": 1}, {"p2": 0, "p3": 1}, {"p3": 1}, {"p1": 1, "p2": 0, "p3": 0}]
    world, index = built([expr])
    assert found(search(index, world.events(raw))) == [[0], [0], [], []]


def test_table_2():
    def result(op: int, *operands: int) -> int:
        known = [each for each in operands if each != UNDEFINED]
        return int(evaluate.py_func(op, len(operands), known.count(FALSE), known.count(TRUE)))

    assert result(AND, UNDEFINED, TRUE) == UNDEFINED
    assert result(AND, UNDEFINED, FALSE) == FALSE
    assert result(OR, UNDEFINED, TRUE) == TRUE
    assert result(OR, UNDEFINED, FALSE) == UNDEFINED
    for op in (XOR, XNOR):
        assert {result(op, UNDEFINED, each) for each in (FALSE, TRUE)} == {UNDEFINED}
        assert [result(op, a, b) for a in (0, 1) for b in (0, 1)] == (
            [0, 1, 1, 0] if op == XOR else [1, 0, 0, 1]
        )
    assert [result(NOT, each) for each in (FALSE, TRUE, UNDEFINED)] == [TRUE, FALSE, UNDEFINED]
