"""The baselines of the A-Tree: their encodings of the paper's example, and their limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from encode.world import World, found
from index.a_tree_samples import p
from inside import built_of
from matchwood.errors import ExpansionError, IndexBuildError
from matchwood.index.baselines.bdd import BDD
from matchwood.index.baselines.bop import BoP
from matchwood.index.baselines.dewey_id import DeweyId
from matchwood.index.baselines.interval_id import IntervalId
from matchwood.index.baselines.translation import Translation
from matchwood.index.core.protocol import Index
from matchwood.lang.nodes import And, Comparison, Expr, Or
from searching import search, work_of

EXAMPLE = And((Or((p(1), p(2), p(3))), p(4), Or((p(5), p(6)))))
"""Figures 1 to 3."""


def world_with(*exprs: Expr) -> tuple[World, np.ndarray]:
    world = World(dict.fromkeys([f"p{i}" for i in range(1, 7)], "int"))
    return world, world.store(list(exprs))


def words(index: Any) -> list[int]:
    """The words of the only expression of an index."""
    return list(built_of(index).words.item.tolist())


def by_name(world: World, values: list[Any]) -> dict[str, Any]:
    """What belongs to the leaves of the example, by the names of their attributes."""
    code = world.table.code_of(0)
    attrs = world.table.predicates.layout.attr[code[code >= 0]]
    names = {each.id: name for name, each in world.attributes.by_name.items()}
    return {names[attr]: value for attr, value in zip(attrs.tolist(), values, strict=True)}


def test_interval_ids_of_figure_1_in_the_order_of_the_normal_form():
    # P4 stands first there: leaves come before operators
    world, slots = world_with(EXAMPLE)
    index = IntervalId.build(world.table, slots)
    ends = [(word >> 16, word & 0xFFFF) for word in words(index)[1::2]]
    assert by_name(world, ends) == {
        "p4": (1, 1),
        "p1": (2, 5),
        "p2": (2, 5),
        "p3": (2, 5),
        "p5": (6, 10),
        "p6": (6, 10),
    }


def test_dewey_ids_of_figure_1_in_the_order_of_the_normal_form():
    world, slots = world_with(EXAMPLE)
    all_words = words(DeweyId.build(world.table, slots))
    paths = []
    for offset in all_words[1:12:2]:
        components = all_words[offset + 1 : offset + 1 + all_words[offset]]
        paths.append(".".join(f"{each >> 1}{'*' * (each & 1)}" for each in components))
    assert by_name(world, paths) == {
        "p4": "1",
        "p1": "2.1",
        "p2": "2.2",
        "p3": "2.3",
        "p5": "3*.1",
        "p6": "3*.2",
    }


def test_operands_of_an_or_are_not_mixed_up():
    either = Or((And((p(1), p(2))), And((p(3), p(4)))))
    nested = And((either, Or((p(5), And((p(6), p(1)))))))
    world, slots = world_with(either, nested)
    raw = [{f"p{i}": (k >> (i - 1)) & 1 for i in range(1, 7)} for k in range(64)]
    expected = []
    for e in raw:
        first = (e["p1"] and e["p2"]) or (e["p3"] and e["p4"])
        second = first and (e["p5"] or (e["p6"] and e["p1"]))
        expected.append([0] * bool(first) + [1] * bool(second))
    for cls in (IntervalId, DeweyId, BoP, BDD, Translation):
        index: Index = cls.build(world.table, slots)
        assert found(search(index, world.events(raw))) == expected


def test_bop_needs_three_predicates_and_may_err_about_a_candidate():
    world, slots = world_with(EXAMPLE)
    index = BoP.build(world.table, slots)
    assert words(index)[0] == 3
    hits = search(index, world.events([{"p1": 1, "p2": 1, "p3": 1}, {"p1": 1, "p4": 1}]))
    assert found(hits) == [[], []]
    assert work_of(hits)["candidates"] == 1  # P1, P2 and P3 make a candidate in vain


def test_bop_counts_a_repeated_predicate_once():
    world, slots = world_with(And((Or((p(1), p(2))), Or((p(1), p(3))))))
    index = BoP.build(world.table, slots)
    assert found(search(index, world.events([{"p1": 1}, {"p2": 1}]))) == [[0], []]


def test_translation_makes_six_conjunctions_of_the_example_and_holds_equal_ones_once():
    world, slots = world_with(EXAMPLE, Or((And((p(1), p(4), p(5))), p(2))))
    index = Translation.build(world.table, slots)
    assert index.stats()["conjunctions"] == 6 + 1
    index.delete(slots[:1])
    assert index.stats()["conjunctions"] == 2
    assert found(search(index, world.events([{"p2": 1}]))) == [[1]]


@pytest.mark.parametrize("base", ["be_tree", "counting"])
def test_translation_works_with_any_conjunctive_index(base):
    world, slots = world_with(EXAMPLE)
    index = Translation.build(world.table, slots, base=base)
    raw = [{"p3": 1, "p4": 1, "p6": 1}, {"p3": 1, "p4": 1}]
    assert found(search(index, world.events(raw))) == [[0], []]


def test_translation_refuses_what_would_explode():
    wide = And(tuple(Or(tuple(Comparison(f"a{i}_{k}", "=", 1) for k in range(4)))
                     for i in range(8)))  # fmt: skip
    world = World()
    slots = world.store([wide])
    with pytest.raises(ExpansionError, match="65,536"):
        Translation.build(world.table, slots)
    with pytest.raises(IndexBuildError, match="conjunctions for base"):
        Translation.build(world.table, slots, base="a_tree")


def test_bdd_holds_equal_functions_as_one_diagram():
    # P1 OR (P1 AND P2) is P1
    world, slots = world_with(Or((p(1), And((p(1), p(2))))), p(1), And((p(3), Or((p(3), p(4))))))
    d = built_of(BDD.build(world.table, slots)).diagrams
    assert d.root_of[slots[0]] == d.root_of[slots[1]]


def test_bdd_refuses_more_nodes_than_its_limit_and_stays_as_it_was():
    world, slots = world_with(p(1), EXAMPLE)
    index = BDD.build(world.table, slots[:1], node_limit=5)
    with pytest.raises(IndexBuildError, match="at most 5 nodes"):
        index.insert(slots[1:])
    assert found(search(index, world.events([{"p1": 1, "p4": 1, "p5": 1}]))) == [[0]]
