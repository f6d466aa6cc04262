"""Types of columns: what a schema means, for the attributes that subscriptions test."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given

import matchwood as mw
from faults import fault_at
from naive import matches
from strategies import workloads

TYPES = {"at": "timestamp", "day": "date", "n": "int", "x": "float", "s": "string", "b": "bool",
         "ctx.n": "number", "ctx.s": "string", "tags": "array<string>"}  # fmt: skip
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.slow
@given(workloads())
def test_types_of_columns_mean_what_a_schema_means(made) -> None:
    schema, subscriptions, events = made
    declared, by_column = mw.Matcher(schema=schema), mw.Matcher(column_types=schema)
    for each in (declared, by_column):
        assert not each.add_many(subscriptions).errors
    known = dict(by_column.schema)
    assert known == {name: kind for name, kind in schema.items() if name in known}
    for event in events:
        found = by_column.match(event)
        assert found == declared.match(event)
        assert found == [id_ for id_, expr in subscriptions if matches(expr, event)]


@pytest.mark.parametrize("odd", [0, 99])
def test_a_constant_of_another_type_is_read_as_the_column(odd: int) -> None:
    m = mw.Matcher(column_types=TYPES)
    m.add_many([(1, "at > TIMESTAMP '2026-01-01 00:00:00'")] if odd else [])
    m.add(odd, "at >= DATE '2026-01-01'")
    assert m.match({"at": MIDNIGHT}) == [odd]
    assert m.schema == {"at": "timestamp"}
    m.add(7, "n > 1.5")
    assert m.match({"n": 2}) == [7]
    assert m.match({"n": 1}) == []


def test_a_subscription_that_does_not_fit_is_refused_alone() -> None:
    bad = ["s = 5", "n = 'x'", "at > 5", "b LIKE 'a'", "x = TRUE", "tags = 'a'", "tags LIKE 'a%'"]
    good = ["s = 'a'", "n = 1", "at > DATE '2025-12-31'", "b", "x < 1", "tags IS NOT NULL"]
    m = mw.Matcher(column_types=TYPES)
    report = m.add_many(list(enumerate([*bad, *good])))
    assert [each.row for each in report.errors] == list(range(len(bad)))
    assert all(isinstance(each.error, mw.SchemaError) for each in report.errors)
    assert "'tags' is of type array<string>: expected IS NULL" in str(report.errors[5].error)
    columns = {"s": ["a"], "n": [1], "at": [MIDNIGHT], "b": [True], "x": [0.5], "tags": [["a"]]}
    (found,) = m.match_many(pa.table(columns))
    assert found == list(range(len(bad), len(bad) + len(good)))


def test_columns_that_nothing_tests_are_not_read() -> None:
    m = mw.Matcher(column_types=TYPES)
    m.add(1, "n = 1")
    m.add(2, "s IS NULL")
    encoded = m.encode(pa.table({"n": [1], "day": [date(2026, 1, 1)], "x": ["no number"]}))
    assert not encoded.errors
    assert len(encoded.batch.attr) == 2  # n, and the absence of s


def test_a_declared_type_wins() -> None:
    m = mw.Matcher(schema={"n": "string"}, column_types=TYPES)
    m.add(1, "n = 'x'")
    assert m.match({"n": "x"}) == [1]


def test_names_that_are_compared_with_a_context_have_the_types_of_their_columns() -> None:
    m = mw.Matcher(column_types=TYPES)
    for id_, text in enumerate(["x < ctx.s", "tags = ctx.s", "at < ctx.n", "tags < ctx.other"]):
        with pytest.raises(mw.SchemaError):
            m.add(id_, text, context="c")
    m.add(8, "x < ctx.n", context="c")
    m.add(9, "at < ctx.when", context="c")  # no column says what it is: that of the other side
    m.set_context("c", {"n": 3, "s": "a", "when": datetime(2026, 1, 2, tzinfo=UTC)})
    assert m.match({"x": 2.5, "at": MIDNIGHT}) == [8, 9]
    assert m.schema["ctx.when"] == "timestamp"


def test_a_matcher_that_was_built_again_after_a_fault_knows_its_columns() -> None:
    for step in range(0, 2000, 97):
        m = mw.Matcher("scan", column_types=TYPES)
        m.add(1, "n = 1")
        with fault_at(step, KeyboardInterrupt) as fault:
            m.add(2, "s = 'a'")
        if not fault.happened:
            break
        m.add(3, "at >= DATE '2026-01-01'")
        assert m.match({"at": MIDNIGHT}) == [3]
