"""Spark SQL and the naive evaluator give every pair of expression and event the same truth."""

from __future__ import annotations

import pytest

from matchwood.lang.nodes import Comparison
from oracle.agreement import LONG, Verdict, agree, judge
from oracle.spark_oracle import SparkSQL

pytestmark = pytest.mark.spark


def test_spark_agrees_on_every_pair(spark_sql):
    verdict = agree(spark_sql, n_tables=6)
    assert not verdict.differences, verdict.report()
    assert verdict.pairs.total() >= (400_000 if LONG else 20_000)
    assert min(verdict.pairs[truth] for truth in (True, False, None)) >= 2_000


def test_ansi_mode_changes_no_answer(spark):
    verdict = Verdict()
    judge(SparkSQL(spark, ansi=False), seed=2024, verdict=verdict)
    assert not verdict.differences, verdict.report()
    assert verdict.pairs.total() >= 4_000


def test_dotted_names_reach_into_structs(spark_sql):
    columns = {"user.age": "int", "user.home.city": "string"}
    events = [{"user.age": 30, "user.home.city": "Ulm"}, {"user.age": 17}, {}]
    exprs = [Comparison("user.age", ">=", 18), Comparison("user.home.city", "=", "Ulm")]
    assert spark_sql.truths(columns, events, exprs) == [[True, False, None], [True, None, None]]
