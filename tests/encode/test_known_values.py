"""What values of inputs became is known the next time they come; which are kept, and how many."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from encode.test_computed import General
from inside import view_of
from matchwood.encode.computing import computing
from matchwood.encode.dicts.events import LONGEST, MOST_VALUES
from matchwood.encode.events import AT_ONCE
from matchwood.encode.json.events import JsonLines


def test_equal_values_of_two_types_are_computed_apart():
    m = mw.Matcher()
    m.add("text", "concat(x, '') = 'true'")
    m.add("number", "x + 0 = 1")
    m.add("half", "x / 2 = 0.5")
    m.add("list", "size(x) = 1")
    events = [{"x": 1}, {"x": True}, {"x": 1.0}, {"x": "true"}, {"x": [1]}, {}, {"x": 2**70}]
    expected = [["number", "half"], ["text"], ["number", "half"], ["text"], ["list"], [], []]
    for _ in range(3):  # then most are known
        assert [m.match(each) for each in events] == expected
        assert list(m.match_many(events)) == expected
    assert m.stats()["unknown"]["size(x)"] == 6 * 5


def test_equal_decimals_of_different_digits_are_computed_apart():
    m = mw.Matcher()
    m.add(1, "cast(x AS string) = '1.0'")
    assert [m.match({"x": Decimal(each)}) for each in ("1.0", "1.00", "1.0")] == [[1], [], [1]]


@pytest.mark.slow
def test_values_that_do_not_come_again_are_not_kept():
    m = mw.Matcher()
    m.add(1, "x + 1 > 5")
    m.add(2, "x + y > 5")
    m.add(3, "y + 1 = 3")
    m.add(4, "lower(name) = 'a'")
    few = [{"x": i, "y": i % 10, "name": "A" * (1 + i % 2 * LONGEST)} for i in range(100)]
    expected = [list(each) for each in m.match_many(few)]
    plan = computing(view_of(m).searched[0].store.attributes)
    known = {each.attribute.label: each for each in plan.known}
    assert len(known["x + 1"].by_value[int]) == 100
    assert len(known["x + y"].by_values) == 100
    assert len(known["y + 1"].by_value[int]) == 10
    assert list(known["lower(name)"].by_value[str]) == ["A"]
    m.match_many([{"x": i, "y": i % 10} for i in range(3 * MOST_VALUES)])
    assert not any(known["x + 1"].by_value.values())
    assert not known["x + y"].by_values
    assert len(known["y + 1"].by_value[int]) == 10
    assert [list(each) for each in m.match_many(few)] == expected


@pytest.mark.slow
def test_values_that_hardly_come_again_give_each_computed_attribute_one_entry():
    m = mw.Matcher()
    m.add(1, "substr(sku, 1, 2) = '12' AND x + 1 > 100")
    m.add(2, "cast(sku AS int) = 4097 OR cast(x AS decimal(5,0)) IS NULL")
    m.add(3, "upper(sku) IS NULL")
    events: list[dict[str, Any]] = [{"sku": str(i), "x": i} for i in range(3 * MOST_VALUES)]
    events += [{"sku": None}, {"sku": "abc", "x": 2**70}, {"sku": ["1"]}, {"sku": 12.5}]
    scan = mw.Matcher("scan")
    for id_, each in m.items():
        scan.add(id_, each.text)
    general = scan.match_many(list(map(General, events)))
    for _ in range(2):
        batch = m.encode(events).batch
        for first, last in itertools.pairwise(batch.start.tolist()):
            assert (np.diff(batch.attr[first:last]) > 0).all()
        found = m.match_many(events)
        assert found.to_pylist() == general.to_pylist()
        assert found.warnings.keys() == general.warnings.keys()
    assert [m.match(each) for each in events[-200:]] == general.to_pylist()[-200:]


@pytest.mark.slow
@pytest.mark.parametrize("is_json", [False, True])
def test_a_batch_computes_as_one_event_does_and_names_the_events_that_fail(is_json):
    m = mw.Matcher()
    m.add(1, "a / b > 2 AND lower(s) = 'x'")
    m.add(2, "a * b = 6 OR upper(s) IS NULL")
    m.add(3, "user.m['k'] + a > 3 AND size(tags) = 1")
    m.add(4, "a + b > 1000000 OR coalesce(a, b, 7) = 7")
    odd: list[dict[str, Any]] = [
        {"b": 0}, {"a": "3"}, {"s": 7}, {"tags": "x"}, {"a": None}, {"user": {"m": {"k": 2.5}}},
        {"a": [1]}, {"a": 2**70}, {"user": {"m": None}}, {"b": 1.5}, {"a": True}, {},
    ]  # fmt: skip
    plain = {"a": 4, "b": 1, "s": "X", "tags": ["t"], "user": {"m": {"k": 1}}}
    events = [{**plain, **odd[i * 7 % 12], "n": i} for i in range(2 * AT_ONCE + 100)]
    events += [{**plain, "a": i, "b": i // 2} for i in range(3 * MOST_VALUES)]  # hardly come again
    events += [{**plain, "a": i, "b": float(i)} for i in range(40)]
    if not is_json:
        events[5] = events[AT_ONCE + 5] = General(events[5])  # left by compiled code
    scan = mw.Matcher("scan")
    for id_, each in m.items():
        scan.add(id_, each.text)
    general = scan.match_many(list(map(General, events)))
    for _ in range(2):
        given: Any = JsonLines(map(json.dumps, events)) if is_json else events
        found = m.match_many(given)
        assert found.to_pylist() == general.to_pylist()
        assert {n: sorted(map(str, each)) for n, each in found.warnings.items()} == {
            n: sorted(map(str, each)) for n, each in general.warnings.items()
        }
    counted, once = m.stats(), scan.stats()
    assert counted["failed"] == {name: 2 * n for name, n in once["failed"].items()}
    assert counted["unknown"] == {name: 2 * n for name, n in once["unknown"].items()}
