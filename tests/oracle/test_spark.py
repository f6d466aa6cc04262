"""Spark SQL and the naive evaluator give every pair of expression and event the same truth."""

from __future__ import annotations

import pytest

from matchwood.lang.nodes import Comparison, In, IsNull, Xor
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


def test_a_keyword_of_spark_prints_as_the_name_it_is(spark, spark_sql):
    keywords = [row.keyword.lower() for row in spark.sql("SELECT * FROM sql_keywords()").collect()]
    assert len(keywords) > 400
    columns, event = dict.fromkeys(keywords, "int"), dict.fromkeys(keywords, 1)
    # both predicates stand behind an opening parenthesis, where (SELECT ...) would be a query
    texts = [spark_sql.text(Xor(IsNull(name), In(name, (1,)))) for name in keywords]
    answers = spark_sql.answers(columns, [event], texts)
    assert [text for text, truths in zip(texts, answers, strict=True) if truths != [True]] == []
