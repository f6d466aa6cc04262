"""Optional columns of subscriptions: context, priority, expiry, own attributes; their errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.spark import match, match_sharded
from matchwood.spark.columns import admit
from spark.bookshop_frames import lists
from spark.own_columns import (
    CONTEXT_TABLE,
    NOW,
    Given,
    events,
    events_table,
    naively,
    predicates_table,
    subscriptions,
    texts_table,
)

pytestmark = pytest.mark.spark


def frames(spark, seed: int, form: str, kind: str):
    random = Random(seed)
    rows, event_rows = subscriptions(random, 60, form == "predicates"), events(random, 25)
    make = predicates_table if form == "predicates" else texts_table
    table, offers = make(rows, kind), events_table(event_rows)
    return rows, event_rows, spark.createDataFrame(table), spark.createDataFrame(offers)


@pytest.mark.parametrize(
    ("form", "kind", "limit"),
    [
        pytest.param("texts", "struct", None, marks=pytest.mark.long),
        ("texts", "json", 2),
        ("predicates", "map", 3),
    ],
)
def test_all_columns_together_give_the_naive_answer(
    spark, form: str, kind: str, limit: int | None, tmp_path: Path
) -> None:
    options = {"contexts": CONTEXT_TABLE, "now": NOW, "limit": limit}
    rows, event_rows, table, offers = frames(spark, len(kind), form, kind)
    expected = naively(rows, event_rows, Given(limit))
    assert sum(map(len, expected.values())) > 20
    for parts in (1, 4):
        found = match(offers.repartition(parts), table.repartition(parts), **options)
        assert lists(found.matches) == expected
    assert found.index.reused
    assert found.errors.count() == 0
    folder = str(tmp_path / "shards")
    sharded = match_sharded(offers, table.repartition(3), folder, shards=3, **options)
    assert lists(sharded.matches) == expected
    n_held = sum(each.count for each in sharded.shards)  # texts may have several homes
    assert n_held == found.index.count if form == "predicates" else n_held >= found.index.count
    if limit == 2:
        for each in (
            match(offers, table, pairs=True, **options),
            match_sharded(offers, table, folder, shards=3, pairs=True, **options),
        ):
            pairs = sorted((row.event_id, row.subscription_id) for row in each.matches.collect())
            assert pairs == sorted((e, s) for e, ids in expected.items() for s in ids)
    if limit is None:  # without filters everyone is asked
        rest = match(offers.drop("filter"), table, **options)
        assert lists(rest.matches) == naively(rows, event_rows, Given(has_filter=False))


@pytest.mark.parametrize(
    "zone", ["Asia/Tokyo", pytest.param("America/New_York", marks=pytest.mark.long)]
)
def test_expiry_is_a_moment_whatever_the_time_zone_of_the_session(spark, zone: str) -> None:
    day, least = datetime(2026, 3, 1, tzinfo=UTC), timedelta(microseconds=1)
    ago = timezone(timedelta(hours=-5))
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", zone)
        for kind, texts in (
            ("TIMESTAMP", ("2026-02-28T19:00:00-05:00", "2026-03-01T00:00:00.000001Z")),
            ("TIMESTAMP_NTZ", ("2026-03-01 00:00:00", "2026-03-01 00:00:00.000001")),
            ("DATE", ("2026-03-01", "2026-03-02")),
        ):
            first, second = (f"CAST('{text}' AS {kind})" for text in texts)
            wishes = spark.sql(
                "SELECT id, 'price = 5' AS expr, expires FROM VALUES "
                f"(0, {first}), (1, {second}), (2, NULL) AS t(id, expires)"
            )
            for now, alive in (
                (day - least, [0, 1, 2]),
                (day.astimezone(ago), [1, 2]),
                (day + timedelta(days=1), [2]),
            ):
                table, refused = admit(wishes, now)
                assert table.columns == ["id", "expr"]
                assert sorted(row.id for row in table.collect()) == alive, (kind, now)
                assert refused.num_rows == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_an_index_is_of_those_that_are_alive(spark, tmp_path: Path) -> None:
    moments = [NOW, NOW + timedelta(hours=1), None]
    table = pa.table({"id": [0, 1, 2], "expr": ["price = 5"] * 3, "expires": moments})
    wishes = spark.createDataFrame(table)
    offers = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    later = spark.createDataFrame(
        table.set_column(2, "expires", pa.array([None, NOW + timedelta(hours=2), None]))
    )
    for frame, hours, alive, reused in (
        (wishes, 0, [1, 2], False),
        (wishes, 0.9, [1, 2], True),
        (wishes, 1, [2], False),
        (later.where("id > 0"), 1, [1, 2], True),  # another expiry, the same that are alive
    ):
        now = NOW + timedelta(hours=hours)
        found = match(offers, frame, now=now, snapshots=str(tmp_path))
        assert (found.index.reused, found.index.count) == (reused, len(alive))
        assert lists(found.matches) == {1: alive}


def test_by_default_now_decides(spark, tmp_path: Path) -> None:
    moments = [datetime.now(UTC) + timedelta(days=n) for n in (-1, 1)]
    wishes = spark.createDataFrame(
        pa.table({"id": ["a", "b"], "expr": ["price > 1"] * 2, "expires": moments})
    )
    offers = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    assert lists(match(offers, wishes).matches) == {1: ["b"]}
    found = match_sharded(offers, wishes, str(tmp_path), shards=2)
    assert lists(found.matches) == {1: ["b"]}
    with pytest.raises(mw.MatchwoodError, match="expected no name beside the column expires"):
        match_sharded(offers, wishes, str(tmp_path), name="mine")


def test_priorities_are_part_of_the_index_and_damage_is_noticed(spark, tmp_path: Path) -> None:
    offers = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    kept = str(tmp_path / "indexes")
    rows = {"id": [1, 2, 3, 4], "expr": ["price > 1", "price <", "price > 2", "price > 3"]}
    wishes = spark.createDataFrame(pa.table({**rows, "priority": [1, 9, 2, 1]}))
    first = match(offers, wishes, limit=2, snapshots=kept)
    assert lists(first.matches) == {1: [3, 1]}
    assert lists(match(offers, wishes, snapshots=kept).matches) == {1: [1, 3, 4]}
    by_path = match(offers, str(first.index.folder), limit=2)
    assert lists(by_path.matches) == {1: [3, 1]}
    other = spark.createDataFrame(pa.table({**rows, "priority": [1, 9, 2, 3]}))
    again = match(offers, other, limit=2, snapshots=kept)
    assert not again.index.reused
    assert lists(again.matches) == {1: [4, 3]}
    (file,) = first.index.folder.rglob("subscription_priority.npy")
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(mw.FormatError, match=r"checksum of subscription_priority\.npy"):
        match(offers, str(first.index.folder), limit=2)
    anew = match(offers, wishes, limit=2, snapshots=kept)
    assert not anew.index.reused
    assert lists(anew.matches) == {1: [3, 1]}
    # a snapshot of one's own has no priorities: the order of adding decides
    matcher = mw.Matcher()
    matcher.add_many([(each, "price > 1") for each in (7, 3, 5)])
    matcher.save(tmp_path / "mine")
    assert lists(match(offers, str(tmp_path / "mine"), limit=2).matches) == {1: [7, 3]}


def test_rows_of_an_id_that_disagree_are_refused(spark, tmp_path: Path) -> None:
    moments = [NOW + timedelta(hours=n) for n in (1, 1, -1, 1, 1, 1, 1, 1)]
    table = pa.table(
        {
            "id": [1, 1, 2, 2, 3, 3, 4, 4],
            "attribute": ["price", "used"] * 4,
            "operator": [">", "="] * 4,
            "value": pa.array([{"n": 1}, {"b": True}] * 4,
                              pa.struct([("n", pa.int64()), ("b", pa.bool_())])),
            "priority": pa.array([None, 0, 1, 1, 1, 2, 1, 1]),
            "expires": pa.array(moments, pa.timestamp("us", "UTC")),
            "attributes": pa.array([[("a", "1")]] * 6 + [[("a", "1")], [("a", "1"), ("b", None)]],
                                   pa.map_(pa.string(), pa.string())),
        }
    )  # fmt: skip
    wishes = spark.createDataFrame(table).repartition(3)
    offers = spark.createDataFrame([(1, 5, False), (2, 5, True)],
                                   "event_id bigint, price int, used boolean")  # fmt: skip
    for found in (
        match(offers, wishes, now=NOW),
        match_sharded(offers, wishes, str(tmp_path), shards=2, now=NOW),
    ):
        assert lists(found.matches) == {1: [], 2: [1, 4]}  # null is 0, and an absent attribute
        errors = sorted(found.errors.collect(), key=lambda row: row.id)
        assert [(row.id, row.of) for row in errors] == [
            ("2", "subscription"),
            ("3", "subscription"),
        ]
        assert "in every row of an id" in errors[0].message


def test_bad_filters_and_bad_attributes_are_rows_of_errors(spark, tmp_path: Path) -> None:
    wishes = pa.table({"id": [1, 1, 2, 3, 4], "expr": ["price < 9"] * 5,
                       "attributes": ['{"a": 1}', "[1]", '{"a": "x"}', "{", None]})  # fmt: skip
    filters = ["a = 1", "a <", None, "a IS NULL", "a = 'x'", "ctx.a = 1"]
    offers = pa.table({"event_id": range(6), "price": [5] * 6, "filter": filters})
    expected = {0: [1], 2: [1, 2, 4], 3: [4], 4: [2]}
    for found in (
        match(spark.createDataFrame(offers), spark.createDataFrame(wishes)),
        match_sharded(spark.createDataFrame(offers), spark.createDataFrame(wishes).repartition(2),
                      str(tmp_path), shards=2),
    ):  # fmt: skip
        assert lists(found.matches) == expected
        rows = {(row.of, row.id): row for row in found.errors.collect()}
        assert set(rows) == {("subscription", "1"), ("subscription", "3"), ("event", "1"),
                             ("event", "5")}  # fmt: skip
        assert "expected a JSON object, found list" in rows["subscription", "1"].message
        bad = rows["event", "1"]
        assert (bad.error, bad.line, bad.column) == ("ParseError", 1, 4)
        assert "a <" in bad.excerpt


def test_filter_is_an_attribute_unless_subscriptions_have_attributes(spark) -> None:
    offers = pa.table({"event_id": [1, 2], "price": [5, 6], "filter": ["a = 1", None]})
    frame = spark.createDataFrame(offers)
    plain = pa.table({"id": [1], "expr": ["filter = 'a = 1'"]})
    assert lists(match(frame, spark.createDataFrame(plain)).matches) == {1: [1], 2: []}
    both = spark.createDataFrame(plain.append_column("attributes", pa.array(['{"a": 1}'])))
    with pytest.raises(mw.EventError, match="test an attribute of this name: rename it"):
        match(frame, both)
    wishes = spark.createDataFrame(
        pa.table({"id": [1], "expr": ["price > 1"], "attributes": ['{"a": 1}']})
    )
    with pytest.raises(mw.EventError, match="expected texts in the events' column filter"):
        match(frame.withColumn("filter", frame.price), wishes)
    mapped = frame.selectExpr("event_id", "map('price', price) AS attributes", "filter")
    assert lists(match(mapped, wishes).matches) == {1: [1], 2: [1]}
    with pytest.raises(mw.EventError, match="expected subscriptions with the column attributes"):
        match(mapped, wishes.drop("attributes"), shape="map")
    with pytest.raises(mw.EventError, match="found filter: drop them"):
        match(mapped, wishes.drop("attributes"))


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ("expires", "string", "expected timestamps or dates in the column expires, found string"),
        ("priority", "double", "expected whole numbers in the column priority, found double"),
        ("attributes", "array<string>", "attributes to be a struct, a map from strings"),
        ("attributes", "map<bigint,string>", "attributes to be a struct, a map from strings"),
        ("attributes", "struct<a:map<string,string>>", "neither with maps inside"),
    ],
)
def test_columns_of_other_types_are_refused(spark, column: str, kind: str, message: str) -> None:
    offers = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    wishes = spark.sql(f"SELECT 1 AS id, 'price > 1' AS expr, CAST(NULL AS {kind}) AS {column}")
    with pytest.raises(mw.SubscriptionError, match=message):
        match(offers, wishes)


def test_limits_and_moments_that_cannot_be_meant_are_refused(spark, tmp_path: Path) -> None:
    offers = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    wishes = spark.createDataFrame([(1, "price > 1")], "id bigint, expr string")
    for limit in (0, -1, True, 1.5):
        with pytest.raises(mw.MatchwoodError, match="whole number from 1"):
            match(offers, wishes, limit=limit)
        with pytest.raises(mw.MatchwoodError, match="whole number from 1"):
            match_sharded(offers, wishes, str(tmp_path), limit=limit)
    with pytest.raises(mw.MatchwoodError, match="a datetime with a time zone"):
        match(offers, wishes, now=datetime(2026, 1, 1))
    with pytest.raises(mw.EventError, match="does not know when they expire"):
        match(offers, "/nowhere", now=NOW)


def test_values_of_contexts_in_shards_are_checked(spark, tmp_path: Path) -> None:
    offers = spark.createDataFrame([(1, 5)], "event_id bigint, price int")
    wishes = spark.createDataFrame(
        [(1, "price < 9 AND ctx.n > 3", "a"), (2, "price < ctx.n", "b"), (3, "price > 1", None)],
        "id bigint, expr string, context string",
    )
    values = pa.table({"context": ["a", "b", "c"], "n": [4, 9, 9]})
    found = match_sharded(offers, wishes, str(tmp_path), shards=2, contexts=values)
    assert lists(found.matches) == {1: [1, 2, 3]}
    assert match_sharded(offers, wishes, str(tmp_path), shards=2, contexts=values).reused
    for wrong, message in (
        (pa.table({"context": ["a", "a"], "n": [1, 2]}), "every context once"),
        (pa.table({"context": [1], "n": [1]}), "named by string"),
    ):
        with pytest.raises(mw.EventError, match=message):
            match_sharded(offers, wishes, str(tmp_path), shards=2, contexts=wrong)
    texts = pa.table({"context": ["a"], "n": ["x"]})  # another type: who compares it is refused
    found = match_sharded(offers, wishes, str(tmp_path), shards=2, contexts=texts)
    assert lists(found.matches) == {1: [3]}
    errors = {row.id: row.message for row in found.errors.collect()}
    assert sorted(errors) == ["1", "2"]
    assert "'ctx.n' is of type string" in errors["1"]
