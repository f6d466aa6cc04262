"""DuckDB and the naive evaluator give every pair of expression and event the same truth."""

from __future__ import annotations

import pytest

from matchwood.lang.nodes import Comparison
from oracle.agreement import LONG, agree


@pytest.mark.slow
def test_duckdb_agrees_on_every_pair(duck):
    verdict = agree(duck, n_tables=8)
    assert not verdict.differences, verdict.report()
    assert verdict.pairs.total() >= (400_000 if LONG else 20_000)
    assert min(verdict.pairs[truth] for truth in (True, False, None)) >= 2_000


def test_dotted_names_reach_into_structs(duck):
    columns = {"user.age": "int", "user.home.city": "string"}
    events = [{"user.age": 30, "user.home.city": "Ulm"}, {"user.age": 17}, {}]
    exprs = [Comparison("user.age", ">=", 18), Comparison("user.home.city", "=", "Ulm")]
    assert duck.truths(columns, events, exprs) == [[True, False, None], [True, None, None]]
