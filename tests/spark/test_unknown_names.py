"""Subscriptions that test a column which the events do not have are refused, each alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match, match_sharded
from matchwood.spark.column_types import types_of_events
from matchwood.spark.indexes import open_index, used_columns
from matchwood.spark.streams.changes import Decider
from matchwood.spark.streams.start import first_replica
from matchwood.spark.unknown_names import parse_known, without_unknown

KNOWN = frozenset({"price", "genre", "user", "user.age", "odd name"})
BAD = {
    "prise < 20": "found 'prise', which is none: did you mean 'price'?",
    "PRICE < 20": "write 'price', names are case-sensitive",
    "price < 5 OR abs(prise) > 1": "did you mean 'price'?",
    "genre < zzz": "add the column, or declare it with schema=",
    "user.home IS NULL": "found 'user.home'",
    "(prise > 20) IS UNKNOWN": "found 'prise', which is none: did you mean 'price'?",
}
GOOD = [
    "price < 20", "lower(genre) = 'a' AND user.age > 3", "`odd name` = 1", "ctx.x > price",
    "(price > 20) IS UNKNOWN", "price IS DISTINCT FROM 4", "lower(genre) IS DISTINCT FROM 'a'",
]  # fmt: skip


def test_texts_with_unknown_names_are_refused_and_no_others() -> None:
    texts = [*BAD, *GOOD, "price <"]
    leaves, rows, refused = parse_known(texts, KNOWN)
    assert [texts[row] for row in rows] == GOOD
    assert len(leaves) == len(GOOD)
    assert {texts[row] for row in refused} == {*BAD, "price <"}
    for row, text in enumerate(BAD):
        assert BAD[text] in str(refused[row])
    assert len(parse_known(texts, None)[1]) == len(texts) - 1


def test_rows_of_predicates_with_unknown_names_refuse_their_subscription() -> None:
    table = pa.table({"id": [1, 1, 2, 3], "attribute": ["price", "prise", "price", "ctx.x"]})
    for rows in (table, table.set_column(1, "attribute", table["attribute"].dictionary_encode())):
        good, errors = without_unknown(rows, KNOWN)
        assert good.column("id").to_pylist() == [2, 3]
        assert [(row["of"], row["id"]) for row in errors] == [("subscription", "1")]
        assert without_unknown(rows, None)[0] is rows


def test_records_of_a_log_with_unknown_names_are_refused() -> None:
    # before: the subscription was taken, and never matched
    records = pa.table(
        {"offset": [1, 2, 3, 4], "kind": ["subscribe"] * 4, "id": [7, 8, 9, 10],
         "expr": ["price < 20", "prise < 20", "price <", "price > 1"]}
    )  # fmt: skip
    for known, good in ((KNOWN, [7, 10]), (None, [7, 8, 10])):
        replica = first_replica(None, None, "auto", None, None, "bigint")
        changes = Decider(replica, {}, "struct", "bigint", True, known).decide(records, None)
        assert changes.rows.column("id").to_pylist() == good
        assert [row["id"] for row in changes.errors] == [
            str(id_) for id_ in (7, 8, 9, 10) if id_ not in good
        ]
        assert replica.matcher.match_count({"price": 2, "prise": 2}) == len(good)


TESTED = {
    "price < 20": {"price"},
    "tags IS NULL": {"tags"},
    "gap IS NOT NULL AND n = 1": {"gap", "n"},
    "price + n > 5": {"price", "n"},
    "n < small": {"n", "small"},
    "lower(genre) = concat(genre, 'x') OR n = 3": {"genre", "n"},
    "user.age + n > 3": {"user", "n"},
    "user IS NULL": {"user"},
    "NOT (n < small AND used)": {"n", "small", "used"},
    "price < ctx.x": {"price"},
    "CASE WHEN n > 3 THEN price ELSE small END > 2": {"n", "price", "small"},
    "price = 0.1 AND genre LIKE '%a%b'": {"price", "genre"},
    "nothing = 5 OR `a.b` = 1": {"nothing", "a.b"},
    "day >= DATE '2026-01-01'": {"day"},
}


@pytest.mark.slow
def test_every_column_that_a_subscription_tests_is_used_and_no_other(tmp_path: Path) -> None:
    from pyspark.sql.types import StructType

    kinds = {
        "price": "double", "n": "integer", "small": "byte", "genre": "string", "used": "boolean",
        "day": "date", "nothing": "void", "a.b": "long", "gap": "interval day to second",
        "tags": {"type": "array", "elementType": "string", "containsNull": True},
        "user": {"type": "struct", "fields": [
            {"name": "age", "type": "integer", "nullable": True, "metadata": {}}]},
    }  # fmt: skip
    events = StructType.fromJson(
        {"fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}
                    for name, kind in kinds.items()]}
    )  # fmt: skip
    types = types_of_events(events, "wide")
    for number, (text, expected) in enumerate(TESTED.items()):
        matcher = mw.Matcher(column_types=types)
        matcher.add(1, text, context="u" if "ctx." in text else None)
        matcher.save(tmp_path / str(number))
        index = open_index(str(tmp_path / str(number)))
        assert set(used_columns(index, events, ())) == expected, text
        assert set(used_columns(index, events, ("used",))) == expected | {"used"}


@pytest.mark.spark
def test_an_unknown_column_is_an_error_row_unless_it_is_declared(spark, tmp_path: Path) -> None:
    # before: no row of errors, and no match: the job was green
    events = spark.sql("SELECT id AS event_id, CAST(id AS INT) AS price FROM range(3)")
    texts = {1: "prise < 20", 2: "price < 2", 3: "Price = 0", 4: "discount IS NULL"}
    rules = spark.createDataFrame(pa.table({"id": list(texts), "expr": list(texts.values())}))
    found = match(events, rules, schema={"discount": "number"})
    rows = {row.event_id: row.subscription_ids for row in found.matches.collect()}
    assert rows == {0: [2, 4], 1: [2, 4], 2: [4]}
    assert {row.id: row.error for row in found.errors.collect()} == {
        "1": "SchemaError", "3": "SchemaError",
    }  # fmt: skip
    shards = match_sharded(events, rules, str(tmp_path), shards=1, schema={"discount": "number"})
    rows = {row.event_id: row.subscription_ids for row in shards.matches.collect()}
    assert rows == {0: [2, 4], 1: [2, 4], 2: [4]}
    assert sorted(row.id for row in shards.errors.collect()) == ["1", "3"]
    nested = events.selectExpr("event_id", "struct(price) AS attributes")
    assert sorted(row.id for row in match(nested, rules).errors.collect()) == ["1", "3", "4"]
