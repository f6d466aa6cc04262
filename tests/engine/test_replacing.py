"""Many subscriptions are replaced at once, in their places; what a row does not give stays."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import matchwood as mw
from engine.invariants import check


def test_many_are_replaced_in_their_places() -> None:
    m = mw.Matcher()
    m.add_many([(i, "x = 1") for i in range(5)])
    rows = [(3, "x = 2"), ("new", "x = 2"), (1, "x ="), (3, "x = 9"), (0, "x = 2 OR y = 2")]
    report = m.replace_many(rows)
    assert report.count == 3
    assert [(each.row, each.id) for each in report.errors] == [(2, 1), (3, 3)]
    assert m.match({"x": 2}) == [0, 3, "new"]
    assert m.match({"x": 1}) == [1, 2, 4]
    check(m)


@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize(
    "beside",
    [{}, {"priority": 1, "payload": 1, "attributes": {"b": 1}, "expires": 9e9}],
    ids=["alone", "beside"],
)
def test_a_row_keeps_the_fields_that_it_does_not_give_whatever_others_give(index, beside) -> None:
    fields = {"priority": 5, "payload": "p", "attributes": {"a": 2}, "expires": 4e9}
    m = mw.Matcher(index=index)
    m.add_many([{"id": i, "expr": "x = 1", **fields} for i in range(3)])
    before = m[0]
    rows = [
        {"id": 0, "expr": "x = 2"},
        {"id": 1, "expr": "x = 2", **dict.fromkeys(fields)},
        {"id": 2, "expr": "x = 2", **beside},
    ]
    assert m.replace_many(rows).count == 3
    assert m[0] == dataclasses.replace(before, text="x = 2")
    cleared = m[1]
    assert (cleared.priority, cleared.payload, cleared.expires) == (0, None, None)
    assert m.match({"x": 2}, where="a = 2") == ([0] if beside else [0, 2])
    assert m[2].priority == (1 if beside else 5)
    check(m)


def test_a_table_of_predicates_replaces_too() -> None:
    m = mw.Matcher()
    m.add_many([(1, "x = 9"), (2, "x = 2")])
    table = pa.table({"id": [1, 3, 1], "attribute": ["x", "x", "y"], "operator": ["="] * 3,
                      "value": [1, 1, 1], "priority": [4, 5, 4]})  # fmt: skip
    report = m.replace_many(table)
    assert (report.count, report.errors) == (2, [])
    assert m.match({"x": 1, "y": 1}) == [1, 3]
    assert (m.ids(), m[1].priority, m[2].priority) == ([1, 2, 3], 4, 0)
    refused = m.replace_many([(True, "x = 5"), (None, "x = 5"), (2, "x = 5")])
    assert (refused.count, [each.row for each in refused.errors]) == (1, [0, 1])
    assert m.match({"x": 5}) == [2]
    check(m)
