from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from matchwood import Matcher, Schema
from matchwood.encode.events import encode_events
from matchwood.errors import MatchwoodError
from matchwood.index.scan.index import Scan
from matchwood.workload import Uniform, Workload, event_dicts, load_events, load_subscriptions
from matchwood.workload.loading import encode_entries
from matchwood.workload.tables import coded, entry_table
from searching import search


@dataclass(frozen=True, kw_only=True)
class Shop(Workload):
    """Trees as text, two types of values, an absence and a pattern."""

    name: ClassVar[str] = "shop"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    texts: tuple[str, ...] = (
        "price < 20 OR genre = 'classics'",
        "genre IS NULL",
        "genre LIKE '%i_s' AND price >= 5",
    )

    def schema(self) -> Schema:
        return Schema(price="int", genre="string")

    def subscriptions(self, first: int, last: int) -> pa.Table:
        n = len(self.texts)
        ids = list(range(first, last))
        return pa.table({"id": ids, "expr": [self.texts[i % n] for i in ids]})

    def events(self, first: int, last: int) -> pa.Table:
        assert (first, last) == (0, 3)
        value = pa.array(
            [{"n": 7, "s": None}, {"n": None, "s": "classics"}, {"n": 30, "s": None}],
            pa.struct({"n": pa.int64(), "s": pa.string()}),
        )
        names = coded(np.array([1, 0, 1]), ["genre", "price"])
        return entry_table(np.array([0, 2, 2]), names, value)


def test_the_loaded_table_gives_the_matchers_answers() -> None:
    workload = Uniform(n_subscriptions=3_000, n_events=30)
    loaded = load_subscriptions(workload)
    hits = search(Scan.build(loaded.table, loaded.slots), load_events(workload, loaded.attributes))
    matcher = Matcher(schema=workload.schema())
    assert matcher.add_many(workload.subscriptions(0, 3_000)).errors == []
    for e, event in enumerate(event_dicts(workload.events(0, 30), 0, 30)):
        mine = np.sort(hits.slots[hits.offsets[e] : hits.offsets[e + 1]])
        assert mine.tolist() == matcher.match(event)


def test_entries_encode_as_mappings_do() -> None:
    workload = Uniform(n_subscriptions=100, n_events=50)
    attributes = load_subscriptions(workload).attributes
    mine = load_events(workload, attributes)
    theirs = encode_events(attributes, event_dicts(workload.events(0, 50), 0, 50)).batch
    for name in ("start", "attr", "lo", "hi"):
        assert (getattr(mine, name) == getattr(theirs, name)).all()


def test_trees_absences_patterns_and_mixed_types_load() -> None:
    workload = Shop(n_subscriptions=3, n_events=3)
    loaded = load_subscriptions(workload)
    batch = load_events(workload, loaded.attributes)
    hits = search(Scan.build(loaded.table, loaded.slots), batch)
    ends = pairwise(hits.offsets.tolist())
    found = [sorted(hits.slots[first:last].tolist()) for first, last in ends]
    assert found == [[0, 1], [1], [0, 2]]


def test_mixed_types_encode_without_derived_attributes() -> None:
    workload = Shop(n_subscriptions=1, n_events=3)
    loaded = load_subscriptions(workload)
    batch = load_events(workload, loaded.attributes)
    dicts = event_dicts(workload.events(0, 3), 0, 3)
    assert dicts == [{"price": 7}, {}, {"genre": "classics", "price": 30}]
    theirs = encode_events(loaded.attributes, dicts).batch
    for name in ("start", "attr", "lo"):
        assert (getattr(batch, name) == getattr(theirs, name)).all()


def test_attributes_that_no_subscription_knows_are_left_out() -> None:
    loaded = load_subscriptions(Uniform(n_subscriptions=10, n_attributes=5, event_size=5))
    batch = encode_entries(loaded.attributes, Uniform(n_attributes=40).events(0, 20), 0, 20)
    assert batch.n_events == 20
    assert set(batch.attr.tolist()) <= {0, 1, 2, 3, 4}


def test_a_faulty_workload_is_refused() -> None:
    with pytest.raises(MatchwoodError, match="expected a workload without faults, found in row 1"):
        load_subscriptions(Shop(n_subscriptions=2, n_events=0, texts=("price = 1", "price = ")))
