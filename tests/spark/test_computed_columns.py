"""Computed attributes that Spark computes, and those that workers compute and report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from matchwood.lang.functions.evaluate import Formula
from matchwood.lang.functions.registry import FUNCTIONS
from matchwood.lang.functions.total import Column, sql_of
from matchwood.lang.general import read_scalar
from matchwood.lang.lower import settled
from matchwood.spark import computed_columns, match

COLUMNS = {
    "s": Column("`s`", "string"), "t": Column("`t`", "string"), "n": Column("`n`", "bigint"),
    "x": Column("`x`", "double"), "b": Column("`b`", "boolean"), "d": Column("`d`", "date"),
    "w": Column("`w`", "timestamp"),
}  # fmt: skip
TOTAL = [
    "lower(s)", "upper(concat(s, '-', t))", "length(s)", "trim(s) = t", "ltrim(s)", "rtrim(s)",
    "substr(s, 2, 3)", "substr(s, -2)", "left(s, 2)", "right(s, 2)", "s || t", "reverse(s)",
    "startswith(s, t)", "endswith(s, t)", "contains(s, t)", "instr(s, 'b')", "locate('b', s)",
    "year(d)", "quarter(d)", "month(w)", "day(d)", "dayofweek(d)", "weekday(w)", "dayofyear(d)",
    "weekofyear(d)", "hour(w)", "minute(w)", "second(w)", "unix_seconds(w)", "datediff(d, d)",
    "x + 1", "x * 2", "x - 0.5D", "negative(x)", "abs(x)", "sqrt(x)", "sign(x)", "isnan(x)",
    "greatest(x, 1)", "least(n, 3)", "greatest(s, t)", "coalesce(n, 0)", "coalesce(s, t, 'none')",
    "CASE WHEN x < 2 THEN 'low' WHEN n > 2 THEN 'many' ELSE t END", "if(b, s, t)",
    "s = t", "s < t", "n = 3 AND NOT b", "x <=> 1.5D", "(n > 1 OR b) AND (s IS NULL) = FALSE",
    "cast(n AS string)", "cast(d AS string)", "(n IN (1, 2)) = b", "d = DATE '2020-02-29'",
    "w > TIMESTAMP '2020-02-29 12:00:00Z'",
]  # fmt: skip
NOT_TOTAL = [
    "10 / n", "n + 1", "n * n", "abs(n)", "floor(x)", "cast(s AS int)", "try_cast(s AS int)",
    "cast(x AS int)", "round(x, 1)", "repeat(s, 3)", "lpad(s, 5, ' ')", "replace(s, 'a', 'b')",
    "x > 0.5", "n > x", "s LIKE 'a%'", "s RLIKE 'a+'", "s = 'it''s'", "s = '\\\\n'", "u.v + 1.0D",
    "date_add(d, 3)", "last_day(d)", "missing = s", "concat(s, n)", "s = d", "array_contains(l, 1)",
    "w - w > INTERVAL '1' DAY", "n = 5000000000000000000000",
]  # fmt: skip


@contextmanager
def workers_only() -> Iterator[None]:
    """Workers compute everything."""
    most, computed_columns.MOST_COLUMNS = computed_columns.MOST_COLUMNS, 0
    try:
        yield
    finally:
        computed_columns.MOST_COLUMNS = most


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def tree(text: str) -> Any:
    return Formula(settled(read_scalar(text))).tree


@pytest.mark.parametrize("text", TOTAL)
def test_a_formula_that_cannot_fail_has_a_text_for_spark(text: str) -> None:
    assert sql_of(tree(text), COLUMNS) is not None


@pytest.mark.parametrize("text", NOT_TOTAL)
def test_what_may_fail_or_is_in_doubt_has_none(text: str) -> None:
    assert sql_of(tree(text), COLUMNS) is None


def test_every_function_that_is_stated_as_total_is_among_those_compared() -> None:
    used = {name for name, each in FUNCTIONS.items() if each.total}
    infix = {"+", "-", "*", "||"}
    texts = " ".join(TOTAL)
    assert [name for name in used - infix if f"{name}(" not in texts] == []


def frame(spark: Any, n: int = 240) -> Any:
    rng = Random(7)
    words = [
        "",
        "a",
        " b ",
        "ab",
        "B",
        "äß",
        "İx",
        "ΑΣ",
        "日本",
        "x" * 30,
        "\U0001f600b",
        "\U00010d50",
        "ƛ",
    ]
    days = [date(1, 1, 1), date(1582, 10, 10), date(2020, 2, 29), date(9999, 12, 31)]
    moments = [datetime(2020, 2, 29, 13, 5, 59, 999999, UTC), datetime(1900, 1, 1, tzinfo=UTC)]
    values: dict[str, tuple[list[Any], Any]] = {
        "s": (words, pa.string()), "t": (words, pa.string()),
        "n": ([0, 1, 2, 3, -7, 2**31 - 1], pa.int32()),
        "x": ([0.0, -0.0, 1.5, -2.5, 1e308, float("nan"), float("inf")], pa.float64()),
        "b": ([True, False], pa.bool_()), "d": (days, pa.date32()),
        "w": (moments, pa.timestamp("us", "UTC")),
    }  # fmt: skip
    columns = {
        name: pa.array([None if rng.random() < 0.1 else rng.choice(each) for _ in range(n)], kind)
        for name, (each, kind) in values.items()
    }
    return spark.createDataFrame(pa.table({"event_id": list(range(n)), **columns}))


def rules(spark: Any, texts: list[str]) -> Any:
    return spark.createDataFrame(list(enumerate(texts)), "id long, expr string")


def subscriptions() -> list[str]:
    found = []
    for text in TOTAL:
        found.append(f"({text}) IS NULL")
        is_truth = any(f" {op} " in f" {text} " for op in ("=", "<", ">", "<=>", "AND"))
        for constant in ("TRUE",) if is_truth else ("1", "2", "'a'", "'low'", "0.5"):
            found.append(f"({text}) = {constant}")
            found.append(f"({text}) <> {constant}")
    found += [
        "10 / n > 2",
        "cast(s AS int) IS NULL",
        "s = 'ab' AND length(s) > 1",
        "lower(s) > 'a'",
    ]
    return found


def answers(events: Any, table: Any) -> dict[Any, Any]:
    rows = match(events, table).matches.collect()
    return {row.event_id: sorted(row.subscription_ids) for row in rows}


@pytest.mark.spark
@pytest.mark.slow
def test_the_result_is_equal_with_and_without(spark: Any) -> None:
    events, table = frame(spark), rules(spark, subscriptions())
    with workers_only():
        expected = answers(events, table)
    assert sum(map(len, expected.values())) > 5_000
    assert answers(events, table) == expected
    for name, value in {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
    }.items():
        with setting(spark, name, value):
            assert answers(events, table) == expected, name


@pytest.mark.spark
def test_rows_that_python_cannot_hold_are_left_to_workers(spark: Any) -> None:
    events = spark.sql(
        "SELECT 1 AS event_id, 'A' AS s, DATE '2020-01-01' AS d UNION ALL "
        "SELECT 2, cast(X'ff' AS string), DATE '2020-01-01' UNION ALL "
        "SELECT 3, 'A', date_add(DATE '9999-12-31', 5) UNION ALL SELECT 4, NULL, NULL"
    )
    table = rules(spark, ["lower(s) = 'a'", "lower(s) IS NULL", "year(d) > 0", "year(d) IS NULL"])
    with workers_only():
        expected = answers(events, table)
    assert expected == {1: [0, 2], 2: [2], 3: [0], 4: [1, 3]}
    assert answers(events, table) == expected


@pytest.mark.spark
def test_what_fails_is_reported_and_fails_no_job(spark: Any) -> None:
    events = spark.createDataFrame(
        [(1, 0, "A"), (2, 5, "a"), (3, None, "b")], "event_id int, q int, s string"
    )
    table = rules(spark, ["10 / q > 1", "lower(s) = 'a'", "q = 0"])
    found = match(events, table)
    for each in (found, found.persist()):
        lists = {row.event_id: row.subscription_ids for row in each.matches.collect()}
        assert lists == {1: [1, 2], 2: [0, 1], 3: []}
        errors = each.errors.collect()
        assert [(row["of"], row["id"]) for row in errors] == [("attribute", "1")]
        assert "10 / q" in errors[0].message
        assert "division by zero" in errors[0].message
    found.unpersist()


@pytest.mark.spark
def test_a_function_of_the_session_does_not_replace_spark_s_own(spark: Any) -> None:
    events, table = frame(spark, 20), rules(spark, ["lower(s) = 'ab'", "length(s) = 2"])
    expected = answers(events, table)
    spark.udf.register("lower", lambda text: "ab")
    try:
        assert answers(events, table) == expected
    finally:
        spark.sql("DROP TEMPORARY FUNCTION IF EXISTS lower")


@pytest.mark.spark
def test_spark_computes_what_cannot_fail_and_inputs_stay_behind(spark: Any) -> None:
    events = frame(spark, 10)
    table = rules(spark, ["lower(s) = 'ab'", "10 / n > 2", "t = 'a'"])
    plan = match(events, table).rows._jdf.queryExecution().toString()
    assert "lower(s" in plan
    built = match(events, table).index
    selected, columns = computed_columns.with_computed(
        events.select("event_id", "s", "t", "n"), built.matcher, ["event_id"]
    )
    assert columns.attributes == (("matchwood_computed_0", "\0lower(s)"),)
    row = selected.where("t IS NOT NULL").first()
    assert row["s"] is None
    assert row["t"] is not None


@pytest.mark.spark
def test_columns_with_dots_in_their_names_are_computed_by_workers(spark: Any) -> None:
    """Two columns may then have one name: such a table is read row by row, where inputs are asked
    for."""
    rows = [(1, "A", 5, (6,)), (2, "a", None, (7,)), (3, "b", 8, None)]
    events = spark.createDataFrame(rows, "event_id int, s string, `v.k` int, v struct<k: int>")
    table = rules(spark, ["lower(s) = 'a'", "v.k + 0 IN (5, 7)", "length(s) = 1"])
    with_values = answers(events, table)
    with workers_only():
        assert with_values == answers(events, table)
    assert [0 in with_values[n] for n in (1, 2, 3)] == [True, True, False]
    assert all(2 in each for each in with_values.values())
