"""Index: counts, existence, samples that are verified, and the library's verbs in the driver."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.functions import struct

import matchwood as mw
from matchwood.errors import MatchwoodError
from matchwood.spark import Index
from spark.bookshop_frames import events_frame, shop, texts_frame

pytestmark = pytest.mark.spark

TEXTS, EVENTS = shop(1500, 60)


def test_counts_and_existence_are_those_of_the_library(spark) -> None:
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(TEXTS)))
    offers = events_frame(spark, EVENTS, "wide")
    index = Index.build(texts_frame(spark, TEXTS), offers)
    event = struct(*[name for name in offers.columns if name != "event_id"])
    rows = offers.select(
        "event_id",
        index.match_count(event).alias("n"),
        index.exists(event).alias("any"),
    ).collect()
    expected = {row: matcher.match_count(event) for row, event in enumerate(EVENTS)}
    assert {row.event_id: row.n for row in rows} == expected
    assert {row.event_id: row.any for row in rows} == {row: n > 0 for row, n in expected.items()}
    assert sum(expected.values()) > 0


def test_bad_events_have_no_count_and_missing_fields_fail(spark) -> None:
    texts = ["broken", '{"price": 1}', '{"price": 9}']
    events = spark.createDataFrame(pa.table({"n": [0, 1, 2], "attributes": texts}))
    rules = spark.createDataFrame(pa.table({"id": ["cheap"], "expr": ["price < 3"]}))
    index = Index.build(rules, schema={"price": "number"})
    event = struct("attributes")
    asked = events.select("n", index.match_count(event), index.exists(event))
    assert sorted(map(tuple, asked.collect())) == [(0, None, None), (1, 1, True), (2, 0, False)]
    found = index.verify(events, sample=2)
    assert found
    assert found.events + len(found.errors) >= 2
    typed = Index.build(rules, spark.createDataFrame(pa.table({"price": [1]})))
    with pytest.raises(Exception, match="found no 'price'"):
        events.select(typed.match_count(struct("n"))).collect()


def test_the_driver_has_the_verbs_of_the_library_and_verifies_samples(spark) -> None:
    offers = events_frame(spark, EVENTS, "wide")
    index = Index.build(texts_frame(spark, TEXTS), offers)
    proof = index.verify(offers, sample=40)
    assert proof
    assert proof.events == 40
    assert proof.matches > 0
    matcher = index.matcher()
    assert matcher[7].text == TEXTS[7]
    assert {miss.id for miss in matcher.near(EVENTS[0], 5)} <= set(range(len(TEXTS)))
    assert isinstance(matcher.duplicates(), list)
    matcher.clear()
    assert len(index.matcher()) == len(index) == len(TEXTS)
    with pytest.raises(MatchwoodError, match="expected sample to be a whole number from 1"):
        index.verify(offers, sample=0)
