"""Laws of the planner: what goes where, and that nothing is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood.bench.answers import pairs
from matchwood.encode.attributes import Attributes
from matchwood.encode.expression_kernels import ALWAYS, NEVER, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.encode.resolve import resolve
from matchwood.engine.input.loading import load_batches
from matchwood.engine.segments.planner import (
    FEW,
    MOST_ATTRIBUTES,
    MOST_SLOTS,
    Plan,
    plan,
)
from matchwood.index.blocks import words
from matchwood.index.core.registry import find_index
from matchwood.index.core.scratch import Scratch
from matchwood.index.terms.conjunctions import FEW_BESIDE, ONE_IN, SHARE, for_blocks
from matchwood.index.vcr import lists
from matchwood.workload.loading import load_events, load_subscriptions
from matchwood.workload.registry import find_workload

MIXED = ("abegen", "ad_trees", "begen", "pstree", "skew2d:figure-7", "skew2d:figure-9")


def names(found: Plan) -> dict[str, int]:
    return {each.name: len(each.slots) for each in found.choices}


def table_of(texts: list[str]) -> ExpressionTable:
    attributes, table = Attributes(None), ExpressionTable()
    first = 0
    for chunk in load_batches([(str(i), text) for i, text in enumerate(texts)], None):
        batch = chunk.batch
        table.encode(
            resolve(batch, attributes, table),
            np.asarray(batch.expr_start, np.int64),
            np.asarray(batch.code, np.int32),
            np.arange(first, first + len(batch), dtype=np.int32),
        )
        first += len(batch)
    return table


@pytest.mark.parametrize("workload", MIXED)
@pytest.mark.parametrize("n", [40, 5_000])
def test_the_indexes_of_a_plan_find_together_what_scan_finds(workload, n):
    generator = find_workload(workload, n_subscriptions=n, n_events=20)
    loaded = load_subscriptions(generator)
    events, table = load_events(generator, loaded.attributes), loaded.table
    chosen, scratch = plan(table, loaded.slots), Scratch()
    held = np.concatenate([each.slots for each in chosen.choices])
    assert np.array_equal(np.sort(held), loaded.slots)
    hits = [each.build(table).search(events, scratch) for each in chosen.choices]
    assert not any(
        for_blocks(table, each.slots).any() for each in chosen.choices if each.name == "terms"
    )  # nothing is divided again
    found = np.sort(np.concatenate([pairs(each, 20) for each in hits]))
    scan = find_index("scan").build(table, loaded.slots).search(events, scratch)
    assert np.array_equal(found, pairs(scan, 20))


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["abegen", "ad_trees", "begen", "pstree", "uniform", "ads"])
def test_a_plan_does_little_more_work_than_the_best_single_index(workload):
    """By counters, whatever the machine: nodes, candidates and predicates of the same events."""
    generator = find_workload(workload, n_subscriptions=5_000, n_events=20)
    loaded = load_subscriptions(generator)
    events, table, scratch = load_events(generator, loaded.attributes), loaded.table, Scratch()
    has_trees = bool((table.layout.kind[loaded.slots] == TREE).any())

    def work(indexes):
        return sum(int(each.search(events, scratch).counters[1:4].sum()) for each in indexes)

    planned = work([each.build(table) for each in plan(table, loaded.slots).choices])
    names = ("terms", "a_tree") if has_trees else ("blocks", "terms", "pst_bloom", "be_tree")
    singles = [find_index(name).build(table, loaded.slots) for name in names]
    assert planned <= 1.2 * min([work([each]) for each in singles])


def test_the_order_of_slots_does_not_change_a_plan():
    loaded = load_subscriptions(find_workload("ad_trees", n_subscriptions=2_000, n_events=1))
    one, other = plan(loaded.table, loaded.slots), plan(loaded.table, loaded.slots[::-1])
    assert one.rows() == other.rows()
    assert all(
        map(np.array_equal, [c.slots for c in one.choices], [c.slots for c in other.choices])
    )


def test_expressions_that_need_no_index_are_in_none():
    table = table_of(["x = 1", "TRUE", "x > 3 AND x < 2", "y = 2 OR x = 1"])
    found = plan(table, np.arange(4, dtype=np.int32))
    assert found.always.tolist() == np.flatnonzero(table.layout.kind == ALWAYS).tolist() == [1]
    assert found.never.tolist() == np.flatnonzero(table.layout.kind == NEVER).tolist() == [2]
    assert names(found) == {"scan": 2}
    assert [row["index"] for row in found.rows()] == ["scan", None, None]


def test_what_is_bound_to_a_context_goes_to_the_index_for_contexts():
    table = table_of(["x = 1", "x = 2", "x = 3 OR y = 1"])
    linked = np.array([False, True, True])
    found = plan(table, np.arange(3, dtype=np.int32), linked)
    assert names(found) == {"agile": 2, "scan": 1}


def test_many_expressions_go_to_the_index_that_serves_their_kind():
    n = FEW_BESIDE + FEW
    table = table_of(
        [f"x = {i} AND y = {i}" for i in range(n)] + [f"x = {i} OR y = {i}" for i in range(n)]
    )
    slots = np.arange(2 * n, dtype=np.int32)
    assert names(plan(table, slots)) == {"blocks": n, "terms": n}
    assert names(plan(table, slots[:n])) == {"blocks": n}
    assert names(plan(table, slots[n:])) == {"terms": n}
    assert names(plan(table, slots[FEW:])) == {"terms": n + FEW_BESIDE}
    assert names(plan(table, slots[FEW - 1 :])) == {"blocks": FEW_BESIDE + 1, "terms": n}
    assert "2,000 conjunctions beside them" in plan(table, slots[FEW:]).rows()[0]["reason"]
    assert names(plan(table, slots[: n + 10])) == {"blocks": n, "terms": 10}
    assert names(plan(table, slots[:FEW])) == {"scan": FEW}


def test_single_predicates_go_to_terms_where_they_are_many_or_trees_are_there():
    n = 3_000
    table = table_of(
        [f"x = {i} AND y > {i}" for i in range(n)]
        + [f"z = {i % 40}" for i in range(n)]
        + [f"x = {i} OR y = {i}" for i in range(10)]
    )
    slots = np.arange(len(table.layout.kind), dtype=np.int32)
    several, single, trees = slots[:n], slots[n : 2 * n], slots[2 * n : 2 * n + 10]
    assert names(plan(table, single)) == {"terms": n}
    few = np.concatenate([several, single[: n // ONE_IN]])
    assert sum(names(plan(table, few)).values()) == len(few)
    assert "terms" not in names(plan(table, few))
    many = plan(table, np.concatenate([several, single]))
    assert names(many)["terms"] == n
    assert "3,000 single predicates: nothing to test" in many.rows()[-1]["reason"]
    assert names(plan(table, np.concatenate([few, trees])))["terms"] == len(few) - n + 10


def test_an_eighth_of_conjunctions_stays_with_trees_and_more_do_not():
    n_trees = SHARE * (FEW_BESIDE + 50)
    table = table_of(
        [f"x = {i} OR y = {i}" for i in range(n_trees)]
        + [f"x = {i} AND y = {i}" for i in range(FEW_BESIDE + 51)]
    )
    slots = np.arange(n_trees + FEW_BESIDE + 51, dtype=np.int32)
    assert names(plan(table, slots[:-1])) == {"terms": len(slots) - 1}
    assert names(plan(table, slots)) == {"blocks": FEW_BESIDE + 51, "terms": n_trees}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "n", "index"),
    [
        ("uniform", 3_000, "blocks"),
        ("begen", 3_000, "pst_bloom"),
        ("begen", 40_000, "blocks"),
        ("pstree", 3_000, "pst_bloom"),
        ("pstree", 40_000, "pst_bloom"),
        ("pstree", 70_000, "blocks"),
    ],
)
def test_conjunctions_with_little_in_common_are_in_blocks_from_some_number_on(workload, n, index):
    loaded = load_subscriptions(find_workload(workload, n_subscriptions=n, n_events=1))
    (row,) = plan(loaded.table, loaded.slots).rows()
    assert row["index"] == index
    assert "an event reaches" in row["reason"]
    assert "on the same attribute" in row["reason"]


def test_equalities_alone_are_in_blocks():
    table = table_of([f"x = {i} AND y = {i % 7}" for i in range(3_000)])
    assert names(plan(table, np.arange(3_000, dtype=np.int32))) == {"blocks": 3_000}


def test_a_plan_knows_what_indexes_refuse():
    assert (MOST_ATTRIBUTES, MOST_SLOTS) == (words.MOST_ATTRIBUTES, lists.MOST_SLOTS)


def test_an_empty_plan_has_no_rows():
    assert plan(ExpressionTable(), np.empty(0, np.int32)).rows() == []


def test_a_plan_says_how_many_went_where_and_why():
    loaded = load_subscriptions(find_workload("skew2d:figure-7", n_subscriptions=5_000, n_events=1))
    (row,) = plan(loaded.table, loaded.slots).rows()
    assert row["index"] == "vcr"
    assert row["subscriptions"] == 5_000
    assert "two ranges" in row["reason"]
