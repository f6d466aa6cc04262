"""Matching: results as arrays and tables, events that carry predicates, and threads."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from engine.invariants import check
from naive import can_hold, holds_interval, matches
from strategies import workloads

EVENTS = [{"x": 1}, {"x": 2}, {}, {"x": "bad"}, {"x": 1}]


def two(*ids: int | str) -> mw.Matcher:
    m = mw.Matcher(schema={"x": "number"})
    for id_ in ids:
        m.add(id_, "x = 1")
    return m


# ── Matches ─────────────────────────────────────────────────────────────────────────────────────


def test_offsets_and_ids_are_arrays():
    found = two(7, 8).match_many(EVENTS)
    assert found.offsets.dtype == np.int64
    assert found.offsets.tolist() == [0, 2, 2, 2, 2, 4]
    assert found.ids.dtype == np.int64
    assert found.ids.tolist() == [7, 8, 7, 8]
    assert list(found.errors) == [3]


BOTH = pa.struct([("int", pa.int64()), ("str", pa.string())])
"""How Arrow has ids that are not all ints and not all strings."""


def test_a_result_is_a_sequence_of_lists():
    found = two("a", 8).match_many(EVENTS)
    rows = [["a", 8], [], [], [], ["a", 8]]
    assert list(found) == rows
    assert [found[e] for e in range(5)] == rows
    assert [found[-e] for e in range(1, 6)] == rows[::-1]
    assert found[1:] == rows[1:]
    assert found[::-2] == rows[::-2]
    assert (len(found), rows[0] in found, list(reversed(found))) == (5, True, rows[::-1])
    for outside in (5, -6):
        with pytest.raises(IndexError):
            found[outside]
    assert found[np.int64(0)] == rows[0]


@pytest.mark.parametrize(
    ("ids", "kind"), [((7, 8), pa.int64()), (("a", "b"), pa.string()), ((7, "7"), BOTH)]
)
def test_tables_of_matches_and_of_events(ids, kind):
    found = two(*ids).match_many(EVENTS)
    names = list(ids)
    if kind == BOTH:
        names = [{"int": 7, "str": None}, {"int": None, "str": "7"}]
    pairs = found.to_arrow()
    assert pairs.column_names == ["event", "subscription"]
    assert pairs.schema.field("subscription").type == kind
    assert pairs.column("event").to_pylist() == [0, 0, 4, 4]
    assert pairs.column("subscription").to_pylist() == names * 2
    lists = found.to_lists()
    assert lists.column_names == ["event", "subscriptions"]
    assert lists.column("event").to_pylist() == [0, 1, 2, 3, 4]
    assert lists.column("subscriptions").to_pylist() == [names, [], [], [], names]


def test_a_result_of_nothing():
    for m in (mw.Matcher(), two(1)):
        for events in ([], pa.table({"x": pa.array([], pa.int64())})):
            found = m.match_many(events)
            assert (len(found), list(found), found.ids.tolist()) == (0, [], [])
            assert (found.to_arrow().num_rows, found.to_lists().num_rows) == (0, 0)
    assert list(mw.Matcher().match_many([{"x": 1}, {}])) == [[], []]


def test_a_result_does_not_change_when_the_matcher_does():
    m = two(1, 2)
    found = m.match_many(EVENTS)
    m.remove(1)
    m.add("other", "x = 1")
    assert found[0] == [1, 2]


@pytest.mark.parametrize("kind", [int, str])
def test_ids_that_are_looked_up_later_are_those_of_the_search(kind):
    """In one segment: whatever changes afterwards, in one piece, by event, and pickled."""
    m = mw.Matcher()
    m.add_many([(kind(3 * i), f"x >= {i % 5}") for i in range(5_000)])
    m.compact()
    events = [{"x": 2}, {"x": -1}, {"x": 0}]
    expected = [[kind(3 * i) for i in range(5_000) if i % 5 <= x] for x in (2, -1, 0)]
    together = list(chain(*expected))
    results = [m.match_many(events) for _ in range(4)]
    sent = pickle.dumps(m.match_many(events))
    m.remove_many([kind(3 * i) for i in range(4_000)])
    m.replace(kind(3 * 4_500), "x = 77")
    m.add_many([(kind(-1 - i), "x >= 0") for i in range(5_000)])
    m.compact()
    assert results[0].ids.tolist() == together
    assert [results[1][e] for e in range(3)] == expected
    assert results[2].to_arrow()["subscription"].to_pylist() == together
    assert repr(results[3]) == f"<Matches: 3 events, {len(together)} matches>"
    assert pickle.loads(sent).to_pylist() == results[3].to_pylist() == expected


def test_a_result_has_no_object_for_a_match_until_it_is_asked_for():
    m = mw.Matcher()
    ids = [f"rule {i}" for i in range(5_000)]
    m.add_many([(id_, "x >= 0") for id_ in ids])
    m.compact()
    m.match_many([{"x": 1}])
    counts = [sys.getrefcount(ids[7])]
    found = m.match_many([{"x": 1}, {"x": 2}])
    counts.append(sys.getrefcount(ids[7]))
    first = found[0]
    counts.append(sys.getrefcount(ids[7]))
    assert first == ids
    assert len(found.ids) == 10_000
    counts.append(sys.getrefcount(ids[7]))
    assert np.diff(counts).tolist() == [0, 1, 2]


@pytest.mark.slow
@given(workload=workloads(n_expressions=20, n_events=8))
def test_counters_agree_with_the_result_and_add_up(workload):
    types, subscriptions, events = workload
    m = mw.Matcher(schema=types)
    m.add_many((id_, str(expr)) for id_, expr in subscriptions)
    first, second = m.match_many(events), m.match_many(events)
    assert first.counters == second.counters
    assert first.counters["events"] == len(events)
    assert first.counters["matches"] == len(first.ids)
    total = m.stats()["work"]
    assert total == {name: 2 * count for name, count in first.counters.items()}


def test_more_matches_than_slots_in_a_word_and_in_a_buffer():
    m = mw.Matcher()
    m.add_many((i, f"x >= {i % 10}") for i in range(10_000))
    m.add_many((f"tree {i}", f"x >= {i % 10} OR y = 1") for i in range(3_000))
    m.add("always", "TRUE")
    for x in (0, 4, 9):
        expected = [i for i in range(10_000) if i % 10 <= x]
        expected += [f"tree {i}" for i in range(3_000) if i % 10 <= x]
        assert m.match({"x": x}) == [*expected, "always"]


# ── events that carry predicates ────────────────────────────────────────────────────────────────


def of(sub: str, event: str, **schema: str) -> bool:
    m = mw.Matcher(schema=schema)
    m.add(1, sub)
    return m.match(mw.parse(event)) == [1]


@pytest.mark.parametrize(
    ("sub", "event", "holds"),
    [
        ("x > 5 AND x < 6", "x NOT BETWEEN 5.5 AND 7.5", True),
        ("x > 5 AND x < 6", "x NOT BETWEEN 4.5 AND 7.5", False),
        ("x > 5 AND x < 6", "x > 5.5", True),
        ("x > 5 AND x < 6", "x <> 5.5", True),
        ("x > 5 AND x < 6", "x = 5.5", True),
        ("x > 5 AND x < 6", "x = 6.5", False),
        ("x > 5 AND x < 6", "x BETWEEN 5.9 AND 100", True),
        ("x > 5 AND x < 6", "x BETWEEN 6 AND 100", False),
        ("x = 5", "x <> 5", False),
        ("x <> 5", "x = 5", False),
        ("x IN (1, 5, 9)", "x BETWEEN 2 AND 4", False),
        ("x IN (1, 5, 9)", "x BETWEEN 2 AND 5", True),
        ("x IN (1, 5, 9)", "x IN (2, 4) OR x > 8", True),
        ("x NOT IN (1, 5)", "x IN (1, 5)", False),
        ("x IS NULL", "y = 1", True),
        ("x IS NULL", "x > 1", False),
        ("x IS NOT NULL", "x > 1", True),
        ("x IS NULL", "x IS NULL AND y = 1", True),
        ("x > 1 AND y > 1", "x > 0", False),
        ("x > 1 OR y > 1", "x > 0", True),
        ("s LIKE 'ab%'", "s LIKE 'abc%'", True),
        ("s LIKE 'ab%'", "s LIKE 'b%'", False),
        ("s LIKE 'ab%'", "s NOT LIKE 'abc%'", True),
        ("s NOT LIKE 'ab%'", "s LIKE 'abc%'", False),
        ("s LIKE '%a%'", "s = 'zzz'", False),
        ("s LIKE '%a%'", "s = 'banana'", True),
        ("s NOT LIKE '%a%'", "s = 'zzz'", True),
        ("s LIKE '%a%'", "s IN ('zzz', 'banana')", True),
        ("s NOT LIKE '%a%' AND s > 'b'", "s = 'banana'", False),
        ("s LIKE '%a%'", "s > 'b'", True),
        ("flag", "flag", True),
        ("NOT flag", "flag", False),
        ("d > DATE '2024-01-01'", "d = '2024-01-02'", True),
        ("TRUE", "x = 1", True),
    ],
)
def test_an_event_of_predicates_matches_what_it_allows(sub, event, holds):
    assert of(sub, event) is holds


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ("x > 5.7 AND x < 5.5", "contradiction"),
        ("x = 1 AND x = 2", "contradiction"),
        ("FALSE", "contradiction"),
        ("x = 1 OR y = 1", "OR over several"),
        ("s LIKE '%a%'", "LIKE pattern"),
        ("x = 'text'", "number"),
        ("s > 5", "string"),
    ],
)
def test_an_event_of_predicates_that_cannot_be_is_refused(event, problem):
    m = mw.Matcher(schema={"x": "number", "s": "string"})
    m.add(1, "x > 5 AND x < 6 AND s = 'a' AND y = 1")
    before = m.stats()["attributes"], dict(m.schema)
    with pytest.raises(mw.EventError, match=problem):
        m.match(mw.parse(event))
    found = m.match_many([mw.parse(event), {"x": 5.5, "s": "a", "y": 1}])
    assert list(found.errors) == [0]
    assert found[1] == [1]
    assert (m.stats()["attributes"], dict(m.schema)) == before


def test_an_event_of_predicates_teaches_nothing():
    m = mw.Matcher()
    m.add(1, "x > 5 AND z IS NOT NULL")
    before = m.stats()["attributes"], m.stats()["constants"]
    m.match(mw.parse("x = 77 AND unknown = 'a' AND z = 3"))
    assert dict(m.schema) == {"x": "number"}
    assert (m.stats()["attributes"], m.stats()["constants"]) == before
    m.add(2, "z = 'a string now'")


VALUES = range(-1, 5)


@given(data=st.data())
def test_events_of_predicates_are_as_good_as_their_values(data):
    """On ints, a set of values is known exactly: between what can be TRUE and what seems to be."""
    names = ("a", "b")
    small = st.sampled_from(VALUES)
    ops = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))

    def leaf(name: str) -> mw.Expr:
        low, high, op = data.draw(small), data.draw(small), data.draw(ops)
        comparison = mw.parse(f"{name} {op} {low}")
        between = mw.attr(name).between(low, high)
        listed = mw.attr(name).isin(low, high)
        return data.draw(st.sampled_from([comparison, between, listed, ~between, ~listed]))

    event = mw.attr("a").between(VALUES[0], VALUES[-1]) & leaf("a")
    sub = data.draw(st.sampled_from([leaf("a"), leaf("a") & leaf("b"), leaf("a") | leaf("b")]))
    allowed = {"a": tuple(v for v in VALUES if matches(event, {"a": v}))}
    m = mw.Matcher(schema=dict.fromkeys(names, "int"))
    m.add(1, sub)
    if not allowed["a"]:
        with pytest.raises(mw.EventError, match="contradiction"):
            m.match(event)
        return
    found = m.match(event) == [1]
    assert can_hold(sub, allowed) <= found <= holds_interval(sub, allowed)


# ── threads ─────────────────────────────────────────────────────────────────────────────────────


def test_threads_that_add_match_and_remove_end_consistent():
    m = mw.Matcher()
    m.add("anchor", "x >= 0")
    barrier = threading.Barrier(4)

    def change(worker: int) -> None:
        barrier.wait()
        for i in range(60):
            m.add(f"{worker}-{i}", f"x >= {i} AND s <> 'w{worker}-{i}'")
            if i % 3 == 0:
                m.replace(f"{worker}-{i}", f"x >= {i} OR s = 'v{i}'")
            if i % 2:
                m.remove(f"{worker}-{i}")

    def match(_: int) -> None:
        barrier.wait()
        for i in range(60):
            found = m.match({"x": i, "s": "q"})
            assert found[0] == "anchor"
            assert len(set(found)) == len(found)
            numbers = [int(id_.split("-")[1]) for id_ in found[1:]]
            assert all(number <= i for number in numbers)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(change, 0), pool.submit(change, 1), pool.submit(match, 0),
                     pool.submit(match, 1)]:  # fmt: skip
            done.result()
    check(m)
    kept = [f"{w}-{i}" for w in (0, 1) for i in range(0, 60, 2)]
    found = m.match({"x": 100, "s": "q"})
    assert sorted(found) == sorted(["anchor", *kept])
    for worker in "01":
        mine = [int(id_.split("-")[1]) for id_ in found[1:] if id_.startswith(worker)]
        assert all(a < b for a, b in pairwise(mine))


def test_an_add_that_returned_is_seen_by_every_thread():
    m = mw.Matcher()
    added = threading.Event()
    seen: list[list] = []

    def watch() -> None:
        added.wait()
        seen.append(m.match({"x": 1}))

    thread = threading.Thread(target=watch)
    thread.start()
    m.add("new", "x = 1")
    added.set()
    thread.join()
    assert seen == [["new"]]


# ── making one ──────────────────────────────────────────────────────────────────────────────────


def test_settings_that_no_index_has_are_refused():
    with pytest.raises(mw.IndexBuildError, match="expected one of"):
        mw.Matcher(index="nonsense")
    with pytest.raises(mw.IndexBuildError, match="scan: expected no settings, found max_cap"):
        mw.Matcher(index="scan", max_cap=20)


def test_a_schema_is_a_mapping_of_types():
    m = mw.Matcher(schema={"price": "float", "user": {"age": "int"}})
    assert dict(m.schema) == {"price": "float", "user.age": "int"}
    with pytest.raises(mw.SchemaError, match="expected one of"):
        mw.Matcher(schema={"price": "money"})
    schema = mw.Schema.from_arrow(pa.schema({"a": pa.int8(), "b": pa.struct({"c": pa.string()})}))
    assert dict(schema) == {"a": "int", "b.c": "string"}
