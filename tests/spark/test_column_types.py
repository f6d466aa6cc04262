"""Types of attributes are those of the events' columns, whatever subscriptions say; Spark SQL is
the oracle."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match, match_sharded, register_sql
from spark.bookshop_frames import lists

pytestmark = pytest.mark.spark

EVENTS = """
SELECT CAST(id AS BIGINT) AS event_id,
       TIMESTAMP '2025-12-30 12:00:00' + id * INTERVAL '6' HOUR AS created_at,
       TIMESTAMP_NTZ '2025-12-30 12:00:00' + id * INTERVAL '6' HOUR AS local,
       date_add(DATE '2025-12-28', CAST(id AS INT)) AS day,
       CAST(id AS INT) AS n,
       CAST(id % 7 AS TINYINT) AS small,
       9007199254740990 + id AS big,
       IF(id % 5 = 0, NULL, id / 4D) AS price,
       CAST(id / 10D AS FLOAT) AS rate,
       CAST(id / 10D AS DECIMAL(10, 2)) AS cost,
       IF(id % 2 = 0, 'art', 'law') AS genre,
       id % 3 = 0 AS used,
       named_struct('age', CAST(id AS INT), 'seen', DATE '2026-01-01',
                    'home', named_struct('city', IF(id % 4 = 0, 'Ulm', NULL))) AS user,
       IF(id % 2 = 0, array('a', 'b'), NULL) AS tags,
       map('a', id) AS extra,
       CAST('x' AS BINARY) AS raw,
       NULL AS nothing,
       id AS `filter`
FROM range(40)
"""

GOOD = [
    "created_at >= TIMESTAMP '2026-01-01 00:00:00'",
    "created_at >= '2026-01-01'",
    "created_at BETWEEN DATE '2026-01-01' AND TIMESTAMP '2026-01-03 06:00:00'",
    "created_at = DATE '2026-01-02'",
    "created_at <> DATE '2026-01-02' AND n < 20",
    "local < DATE '2026-01-01'",
    "local IN (DATE '2026-01-01', DATE '2026-01-02')",
    "day > TIMESTAMP '2026-01-02 00:00:01'",
    "day = '2026-01-02'",
    "day >= DATE '2026-01-05'",
    "n > 1.5",
    "n = 3.0",
    "n = 2.5",
    "n <= 7.5 AND NOT n < 2.5",
    "n BETWEEN 0.5 AND 3.5",
    "small > -0.5 AND small < 2",
    "small = 300",
    "big = 9007199254740993",
    "big > 9007199254740992",
    "price > 2",
    "price = 3",
    "price IS NULL",
    "price < 1e1 OR price > 8",
    "rate = 0.5",
    "rate > 1",
    "cost = 1",
    "cost > 0.3 AND cost < 2",
    "genre = 'art'",
    "genre LIKE 'l%'",
    "used",
    "NOT used AND n < 9",
    "user.age > 17.5",
    "user.seen >= TIMESTAMP '2025-12-31 23:59:59' AND n < 4",
    "user.home.city = 'Ulm'",
    "user.home.city IS NULL AND n < 5",
    "tags IS NULL",
    "tags IS NOT NULL AND n > 30",
    "extra IS NOT NULL AND n = 7",
    "raw IS NOT NULL AND n = 8",
    "nothing = 5",
    "event_id < 3.5",
    "filter = 4",
]
ODD = "created_at >= DATE '2026-01-01'"
CLASHES = {
    "n = 'five'": "'n' is of type int",
    "genre = 5": "'genre' is of type string",
    "used > DATE '2026-01-01'": "'used' is of type bool",
    "price LIKE 'a%'": "'price' is of type float",
    "user.age = TRUE": "'user.age' is of type int",
    "user.home.city < 3": "'user.home.city' is of type string",
    "created_at > 5": "'created_at' is of type timestamp",
    "created_at > 'soon'": "'created_at' is of type timestamp",
    "cost = 'x'": "'cost' is of type number",
    "tags = 'a'": "'tags' is of type array<string>",
    "extra > 1": "'extra' is of type map<string,bigint>",
    "raw LIKE 'a%'": "'raw' is of type binary",
    "user = 5": "'user' is of type struct",
    "event_id = 'one'": "'event_id' is of type int",
}


@pytest.fixture(scope="module")
def events(spark):
    return spark.sql(EVENTS).cache()


def in_spark_sql(events, texts: dict[int, str]) -> dict[Any, list[int]]:
    """What Spark SQL says of every text."""
    from pyspark.sql import functions as f

    asked = [f.expr(text).alias(f"s{id_}") for id_, text in texts.items()]
    rows = events.select("event_id", *asked).collect()
    return {row.event_id: [id_ for id_ in sorted(texts) if row[f"s{id_}"]] for row in rows}


def frame(spark, texts: dict[int, str]):
    rows = {"id": list(texts), "expr": list(texts.values())}
    return spark.createDataFrame(pa.table(rows)).repartition(3)


def run(door: str, events, subscriptions, folder: Path, **options: Any) -> Any:
    if door == "match":
        return match(events, subscriptions, **options)
    return match_sharded(events, subscriptions, str(folder), shards=4, **options)


@pytest.mark.parametrize(
    ("door", "odd"),
    [("match", -1), pytest.param("match", 1000, marks=pytest.mark.long), ("match_sharded", -1)],
)
def test_a_date_beside_a_timestamp_column_costs_no_match(
    spark, events, door: str, odd: int, tmp_path: Path
) -> None:
    texts = dict(enumerate(GOOD)) | {odd: ODD}
    expected = in_spark_sql(events, texts)
    assert sum(map(len, expected.values())) > 300
    assert sum(odd in ids for ids in expected.values()) > 20
    found = run(door, events, frame(spark, texts), tmp_path)
    assert [row.message for row in found.errors.collect()] == []
    assert lists(found.matches) == expected


def test_events_that_workers_read_from_files_have_the_types_of_columns(
    spark, events, tmp_path: Path
) -> None:
    texts = dict(enumerate([*GOOD, "n = 'five'"])) | {-1: ODD}
    del texts[GOOD.index("nothing = 5")]  # the files lack the column
    events.drop("nothing").write.parquet(str(tmp_path / "events"))
    found = match(str(tmp_path / "events"), frame(spark, texts))
    assert [row.id for row in found.errors.collect()] == [str(len(GOOD))]
    del texts[len(GOOD)]
    assert lists(found.matches) == in_spark_sql(events, texts)


@pytest.mark.parametrize("door", ["match", "match_sharded"])
def test_a_subscription_that_does_not_fit_its_column_is_refused_alone(
    spark, events, door: str, tmp_path: Path
) -> None:
    good = {100 + number: text for number, text in enumerate(GOOD)}
    bad = dict(enumerate(CLASHES))
    found = run(door, events, frame(spark, bad | good), tmp_path)
    refused = {row.id: row for row in found.errors.collect()}
    assert {row.of for row in refused.values()} == {"subscription"}
    assert sorted(refused, key=int) == [str(id_) for id_ in bad]
    for id_, text in bad.items():
        assert CLASHES[text] in refused[str(id_)].message
        assert text in refused[str(id_)].excerpt
    assert lists(found.matches) == in_spark_sql(events, good)


CONSTANT = pa.struct([("s", pa.string()), ("x", pa.float64()), ("d", pa.date32())])
PREDICATES = [
    (0, "created_at", ">=", {"d": date(2026, 1, 1)}),
    (1, "n", ">", {"x": 1.5}),
    (1, "created_at", "<", {"s": "2026-01-02"}),
    (2, "genre", "=", {"x": 5.0}),
    (3, "user.age", "<=", {"x": 8.0}),
    (4, "created_at", "=", {"s": "2026-01-02"}),
    (4, "n", ">", {"x": 1.0}),
]


@pytest.mark.parametrize("door", ["match", pytest.param("match_sharded", marks=pytest.mark.long)])
def test_predicates_of_a_table_get_the_types_of_columns(
    spark, events, door: str, tmp_path: Path
) -> None:
    ids, names, operators, values = zip(*PREDICATES, strict=True)
    table = pa.table({"id": ids, "attribute": names, "operator": operators,
                      "value": pa.array(values, CONSTANT)})  # fmt: skip
    found = run(door, events, spark.createDataFrame(table), tmp_path)
    assert [(row.of, row.id) for row in found.errors.collect()] == [("subscription", "2")]
    texts = {
        0: ODD,
        1: "n > 1.5 AND created_at < '2026-01-02'",
        3: "user.age <= 8",
        4: "created_at = '2026-01-02' AND n > 1",
    }
    assert lists(found.matches) == in_spark_sql(events, texts)


def test_the_schema_of_the_user_wins_over_columns(spark, events) -> None:
    texts = {0: "n > 1.5", 1: "genre = 'art'", 2: "day = DATE '2026-01-02'"}
    found = match(events, frame(spark, texts), schema={"n": "number", "day": "timestamp"})
    assert lists(found.matches) == in_spark_sql(events, texts)
    bad = match(events, frame(spark, texts), schema={"genre": "int"})
    rows = bad.errors.collect()
    assert [row.id for row in rows if row.of == "subscription"] == ["1"]
    assert len([row for row in rows if row.of == "event"]) == 40  # as declared, and all are told


@pytest.mark.parametrize("door", ["match", pytest.param("match_sharded", marks=pytest.mark.long)])
def test_other_types_of_columns_are_another_index(spark, events, door: str, tmp_path: Path) -> None:
    texts = {0: "n = 3", 1: "created_at >= '2026-01-02'"}
    wishes, folder = frame(spark, texts), tmp_path / "kept"
    kept = {"snapshots": str(folder)} if door == "match" else {}
    first = run(door, events, wishes, folder, **kept)
    assert lists(first.matches) == in_spark_sql(events, texts)
    others = events.withColumn("created_at", events.day)
    second = run(door, others, wishes, folder, **kept)
    assert lists(second.matches) == in_spark_sql(others, texts)
    again = run(door, events, wishes, folder, **kept)
    assert lists(again.matches) == in_spark_sql(events, texts)
    reused = [each.index.reused if door == "match" else each.reused
              for each in (first, second, again)]  # fmt: skip
    assert reused == [False, False, True]


def test_shards_of_a_name_refuse_events_with_columns_of_other_types(
    spark, events, tmp_path: Path
) -> None:
    texts = {0: "n = 3", 1: "created_at >= '2026-01-02'"}
    wishes = frame(spark, texts)
    found = match_sharded(events, wishes, str(tmp_path), shards=2, name="mine")
    assert lists(found.matches) == in_spark_sql(events, texts)
    more = events.withColumn("more", events.n)  # no subscription tests it
    again = match_sharded(more, wishes, str(tmp_path), shards=2, name="mine")
    assert again.reused
    others = events.withColumn("created_at", events.genre)
    with pytest.raises(mw.EventError, match=r"'created_at' to be timestamp, .* found string"):
        match_sharded(others, wishes, str(tmp_path), shards=2, name="mine")


CONTEXTS = """
SELECT context, budget, level, since, day, list FROM VALUES
    ('a', 5, 'gold', TIMESTAMP '2026-01-01 00:00:00', DATE '2026-01-02', 1D),
    ('b', 2, 'iron', TIMESTAMP '2026-01-05 00:00:00', DATE '2026-01-03', 2D)
    AS t(context, budget, level, since, day, list)
"""


@pytest.mark.parametrize("door", ["match", "match_sharded"])
def test_values_of_contexts_have_the_types_of_their_columns(
    spark, events, door: str, tmp_path: Path
) -> None:
    texts = {
        0: "ctx.level = 5",  # refused: of type string
        1: "price < ctx.level",  # refused
        2: "ctx.since > 5",  # refused
        3: "created_at >= DATE '2026-01-01' AND ctx.level = 'iron'",
        4: "price < ctx.budget",
        5: "n < ctx.budget + 1 AND ctx.since >= DATE '2026-01-01'",
        6: "n > ctx.list",
        7: "created_at < ctx.since",
        8: "created_at >= ctx.day",
        9: "cost <= ctx.budget",
    }
    rows = {"id": list(texts), "expr": list(texts.values()), "context": ["a", "b"] * 5}
    wishes = spark.createDataFrame(pa.table(rows))
    values = spark.sql(CONTEXTS)
    found = run(door, events, wishes, tmp_path, contexts=values)
    errors = {row.id: row.message for row in found.errors.collect()}
    assert sorted(errors) == ["0", "1", "2"]
    assert "'ctx.level' is of type string" in errors["0"]
    of = {row.context: row.asDict() for row in values.collect()}
    plain = {}
    for id_, text in texts.items():
        for name, value in of["ab"[id_ % 2]].items():
            is_text = name in ("context", "level", "since", "day")
            text = text.replace(f"ctx.{name}", f"{_TYPED.get(name, '')}'{value}'" if is_text
                                else str(value))  # fmt: skip
        plain[id_] = text
    expected = in_spark_sql(events, {id_: plain[id_] for id_ in range(3, 10)})
    assert len({id_ for ids in expected.values() for id_ in ids}) == 7
    assert lists(found.matches) == expected


_TYPED = {"since": "TIMESTAMP ", "day": "DATE "}


def test_fields_of_a_struct_of_attributes_have_types_too(spark, events) -> None:
    texts = {0: "created_at >= DATE '2026-01-01'", 1: "n = 'x'", 2: "created_at < '2026-01-03'"}
    nested = events.selectExpr("event_id", "struct(created_at, n) AS attributes")
    found = match(nested, frame(spark, texts))
    assert [row.id for row in found.errors.collect()] == ["1"]
    del texts[1]
    assert lists(found.matches) == in_spark_sql(events, texts)


def test_columns_that_no_subscription_tests_are_not_read(spark, events) -> None:
    found = match(events, frame(spark, {0: "n = 3", 1: "user.age = 4"}))
    known = mw.Matcher.load(found.index.folder).schema
    assert dict(known) == {"n": "int", "user.age": "int"}


def test_holds_reads_constants_by_the_types_of_the_struct(spark, events) -> None:
    register_sql(spark)
    texts = [ODD, "created_at < '2026-01-02'", "n > 1.5", "user.age = 3"]
    for text in texts:
        asked = f"matchwood_holds({text!r}, struct(created_at, n, user))".replace("\\'", "'")
        rows = events.selectExpr(f"{asked} AS ours", f"{text} AS theirs").collect()
        assert [row.ours for row in rows] == [row.theirs for row in rows]
        assert any(row.ours for row in rows)


COLLATED = """
SELECT id AS event_id, CAST(id AS INT) AS n,
       element_at(array('Art', 'art', NULL), CAST(id % 3 + 1 AS INT)) COLLATE UTF8_LCASE AS genre,
       named_struct('name', 'Ann' COLLATE UNICODE_CI) AS user
FROM range(6)
"""


def test_a_column_with_a_collation_is_not_compared_by_its_bytes(spark, tmp_path: Path) -> None:
    """`genre = 'ART'` held for no event, without a sign; in Spark it holds for four of six."""
    texts = ["n >= 0", "genre IS NULL", "genre = 'ART'", "genre IN ('ART')", "genre LIKE 'AR%'"]
    texts += ["genre > 'b'", "lower(genre) = 'ART'", "user.name = 'ANN'", "genre = user.name"]
    texts += ["n < 0 OR NOT genre = 'ART'"]
    events = spark.sql(COLLATED)
    rules = spark.createDataFrame(list(enumerate(texts)), "id BIGINT, expr STRING")
    for found in (match(events, rules), match_sharded(events, rules, str(tmp_path), shards=2)):
        assert lists(found.matches) == {n: [0, 1] if n % 3 == 2 else [0] for n in range(6)}
        errors = {int(row.id): row.message for row in found.errors.collect()}
        assert sorted(errors) == list(range(2, len(texts)))
        assert all("collat" in message for message in errors.values())
    plain = events.selectExpr("event_id", "n", "genre COLLATE UTF8_BINARY AS genre", "user")
    assert lists(match(plain, rules.where("id = 2")).matches) == {n: [] for n in range(6)}
