"""Equal events of a batch are searched once, and each gets its matches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood import Matcher
from matchwood.encode.event_batch import batch_of
from matchwood.engine.segments import tiers
from matchwood.engine.segments.repeats import repeats_of

EVENTS = st.lists(
    st.dictionaries(st.integers(0, 3), st.sampled_from([-1, 0, 2**40, 2**63 - 1]), max_size=3),
    max_size=40,
)


def batch(events):
    rows = [sorted(each.items()) for each in events]
    start = np.cumsum([0, *map(len, rows)]).tolist()
    pairs = [pair for row in rows for pair in row]
    return batch_of(start, [attr for attr, _ in pairs], [key for _, key in pairs])


@given(EVENTS)
def test_each_event_is_one_of_the_distinct_ones(events):
    found = repeats_of(batch(events))
    distinct = len({tuple(sorted(each.items())) for each in events})
    n = len(events)
    assert (found is not None) == (n >= 8 and distinct <= n - n // 8)
    if found is None:
        return
    assert found.batch.n_events == distinct
    expected = batch(events)
    for e in range(n):
        one = slice(*expected.start[e : e + 2])
        other = slice(*found.batch.start[found.number[e] : found.number[e] + 2])
        assert expected.attr[one].tolist() == found.batch.attr[other].tolist()
        assert expected.lo[one].tolist() == found.batch.lo[other].tolist()


def test_many_events_are_sampled_first():
    distinct = batch([{0: i} for i in range(5_000)])
    assert repeats_of(distinct) is None
    found = repeats_of(batch([{0: i % 50} for i in range(5_000)]))
    assert found is not None
    assert found.batch.lo.tolist() == list(range(50))
    assert found.number.tolist() == [i % 50 for i in range(5_000)]


@pytest.fixture
def matcher(monkeypatch) -> Matcher:
    monkeypatch.setattr(tiers, "HEAD_MOST", 10)
    m = Matcher(schema={"x": "int"})
    texts = ["x > {}", "x IN ({}, 3) OR y = 'a'", "TRUE", "x IS NULL"]
    m.add_many([(i, texts[i % 4].format(i)) for i in range(60)])
    return m


def test_a_batch_with_repeats_equals_one_by_one(matcher):
    some = [{"x": 3}, {"x": 30}, {}, {"y": "a"}, {"x": 30, "y": "a"}, {"x": None}]
    events = some * 5
    found = matcher.match_many(events)
    assert found.to_pylist() == [matcher.match(event) for event in events]
    assert found.counters["events"] == len(events)
    assert found.counters["matches"] == len(found.ids)
    assert matcher.match_many(events, limit=2).to_pylist() == [
        matcher.match(event, limit=2) for event in events
    ]


def test_events_in_error_have_no_matches_though_others_are_equal(matcher):
    events = [{"x": 3}, {"x": "no number"}, {}] * 6
    found = matcher.match_many(events)
    assert sorted(found.errors) == list(range(1, 18, 3))
    good, nothing = matcher.match({"x": 3}), matcher.match({})
    assert found.to_pylist() == [good, [], nothing] * 6
