"""The judges are judged: the generators reach everything, and a wrong answer does not pass."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given

import strategies
from matchwood.lang.nodes import (
    And,
    Between,
    Comparison,
    Const,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Xnor,
    Xor,
    children,
    predicates,
)
from naive import Truth, compare
from oracle.agreement import N_EVENTS, N_EXPRESSIONS, Verdict, judge
from oracle.columns import as_columns
from oracle.duckdb_oracle import DuckDB
from oracle.shared import is_shared
from strategies import TYPES, Event, Schema


class LyingDuckDB(DuckDB):
    """Changes one answer of a whole table."""

    def __init__(self, turn: dict[Truth, Truth]) -> None:
        super().__init__()
        self.turn = turn

    def truths(self, columns: Schema, events: list[Event], exprs: list[Expr]) -> list[list[Truth]]:
        found = super().truths(columns, events, exprs)
        row = next(truths for truths in found if None in truths)
        place = row.index(None)
        row[place] = self.turn[None]
        return found


@pytest.mark.slow
def test_one_wrong_answer_in_a_table_is_found():
    for turn in ({None: False}, {None: True}):
        verdict = Verdict()
        judge(LyingDuckDB(turn), seed=1, verdict=verdict)
        assert verdict.pairs.total() == N_EXPRESSIONS * N_EVENTS
        assert len(verdict.differences) == 1
        assert f"expected None, found {turn[None]}" in verdict.report()


def test_workloads_use_every_node_operator_and_type():
    seen: Counter[object] = Counter()
    for seed in range(40):
        attributes, subscriptions, _ = strategies.workload(Random(seed), n_events=0)
        seen.update(attributes.values())
        for _, tree in subscriptions:
            stack = [tree]
            while stack:
                node = stack.pop()
                stack += children(node)
                negated = getattr(node, "negated", None)
                detail = (
                    node.op if isinstance(node, Comparison) else getattr(node, "value", negated)
                )
                seen[type(node), detail] += 1
    wanted = [(kind, negated) for kind in (Between, In, Like, IsNull) for negated in (True, False)]
    wanted += [(kind, None) for kind in (And, Or, Not, Xor, Xnor)]
    wanted += [(Comparison, op) for op in ("=", "<>", "<", "<=", ">", ">=")]
    wanted += [(Const, constant) for constant in (True, False, None)]
    assert [key for key in [*wanted, *TYPES] if seen[key] < 5] == []


def test_constants_swap_bounds_hold_null_and_come_back():
    seen: Counter[str] = Counter()
    for seed in range(40):
        _, subscriptions, _ = strategies.workload(Random(seed), n_events=0)
        for _, tree in subscriptions:
            leaves = list(predicates(tree))
            seen["repeated"] += len(set(map(repr, leaves))) < len(leaves)
            for leaf in leaves:
                if isinstance(leaf, Between):
                    seen["swapped"] += compare(leaf.low, leaf.high) > 0
                if isinstance(leaf, In):
                    seen["null"] += None in leaf.values
                if isinstance(leaf, Like):
                    seen["prefix"] += leaf.pattern.endswith("%")
                    seen["escape"] += "\\" in leaf.pattern
    assert min(seen[kind] for kind in ("repeated", "swapped", "null", "prefix", "escape")) >= 20


def test_few_predicates_are_left_out_of_the_shared_language():
    rng = Random(3)
    for number in ("int", "float"):
        attributes = strategies.schema(rng)
        columns = as_columns(attributes, number)
        drawn = [strategies.predicate(rng, attributes) for _ in range(3_000)]
        left_out = [predicate for predicate in drawn if not is_shared(predicate, columns)]
        assert 0 < len(left_out) < 0.1 * len(drawn)
        assert {attributes[predicate.name] for predicate in left_out} <= {"int", "float", "number"}


@given(strategies.workloads(n_expressions=3, n_events=5))
def test_events_carry_only_attributes_of_their_schema_and_some_are_absent(workload):
    attributes, subscriptions, events = workload
    assert len({identifier for identifier, _ in subscriptions}) == 3
    assert all(set(event) <= set(attributes) for event in events)
    assert all(p.name in attributes for _, tree in subscriptions for p in predicates(tree))


@given(strategies.schemas().flatmap(lambda s: strategies.expressions(s, max_leaves=4)))
def test_expressions_keep_to_their_number_of_leaves(tree):
    assert len(list(predicates(tree))) <= 4
