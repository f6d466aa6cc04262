"""Matching in SQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match_udf, register_sql
from spark.bookshop_frames import events_frame, shop

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(1500, 120)


def test_the_table_function_gives_the_local_answer(spark, tmp_path: Path) -> None:
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(TEXTS)))
    matcher.save(tmp_path / "snapshot")
    register_sql(spark)
    expected = dict(enumerate(matcher.match_many(EVENTS)))
    assert sum(map(len, expected.values())) > 20
    for shape in ("wide", "arrays"):
        events_frame(spark, EVENTS, shape).createOrReplaceTempView("offers")
        asked = f"SELECT * FROM matchwood_match(TABLE(offers), '{tmp_path / 'snapshot'}')"
        found = {row.event_id: row.subscription_ids for row in spark.sql(asked).collect()}
        assert found == expected


def test_a_bad_event_has_a_row_with_its_error(spark, tmp_path: Path) -> None:
    matcher = mw.Matcher(schema={"price": "number"})
    matcher.add("cheap", "price < 3")
    matcher.save(tmp_path / "snapshot")
    register_sql(spark, subscription_id="string")
    table = pa.table({"event_id": [1, 2], "attributes": ['{"price": 1}', '{"price": "x"}']})
    spark.createDataFrame(table).createOrReplaceTempView("offers")
    asked = f"SELECT * FROM matchwood_match(TABLE(offers), '{tmp_path / 'snapshot'}')"
    found = {row.event_id: row for row in spark.sql(asked).collect()}
    assert found[1].subscription_ids == ["cheap"]
    assert found[1].error is None
    assert "'price': expected number" in found[2].error
    same = spark.sql(asked.replace("'/", "'file:///")).collect()
    assert {row.event_id: row for row in same} == found
    with pytest.raises(Exception, match="expected the path of a snapshot, found NULL"):
        spark.sql("SELECT * FROM matchwood_match(TABLE(offers), NULL)").collect()


def test_the_column_function_gives_lists_and_null_for_bad_events(spark, tmp_path: Path) -> None:
    from pyspark.sql.functions import struct

    matcher = mw.Matcher(schema={"price": "number"})
    matcher.add(7, "price < 3")
    matcher.save(tmp_path / "snapshot")
    found = match_udf(str(tmp_path / "snapshot"))
    table = pa.table(
        {"n": [1, 2, 3], "attributes": [["price"]] * 3, "values": [["1"], ["5"], ["x"]]}
    )
    frame = spark.createDataFrame(table)
    rows = frame.select("n", found(struct("attributes", "values")).alias("ids")).collect()
    assert {row.n: row.ids for row in rows} == {1: [7], 2: [], 3: None}


def test_the_scalar_says_what_spark_says(spark) -> None:
    register_sql(spark)
    found = spark.sql(
        "SELECT x, matchwood_holds(e, struct(x)) AS ours, x BETWEEN 2 AND 3 OR x IS NULL AS theirs "
        "FROM VALUES (1), (2), (3), (NULL) AS t(x), VALUES ('x BETWEEN 2 AND 3 OR x IS NULL') u(e)"
    ).collect()
    assert len(found) == 4
    assert [row.ours for row in found] == [row.theirs for row in found]
    with pytest.raises(Exception, match="ParseError"):
        spark.sql("SELECT matchwood_holds('x <', struct(1 AS x))").collect()
    absent = spark.sql("SELECT matchwood_holds(e, NULL) FROM VALUES ('x IS NULL'), ('x = 1') u(e)")
    assert [row[0] for row in absent.collect()] == [True, False]
