"""An event that matches a subscription has one of its home keys: a shard is never missed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchwood as mw
from matchwood.encode.entry_events import EntryEvents
from matchwood.lang.cells import read_cell
from matchwood.spark.shapes import JsonEvents, read_events
from matchwood.spark.shards.home_keys import ANY, event_keys, hashes_of, name_key
from matchwood.spark.shards.homes import MOST_COPIES, Costs, homes_of_predicates, homes_of_text
from matchwood.spark.shards.plan import (
    BUCKETS,
    HOME,
    SOURCE,
    joined,
    look_at,
    make_plan,
    weigh,
    with_homes,
)
from matchwood.workload import find_workload, plain_tables
from spark.bookshop_frames import flat, shop, text
from strategies import workload

NO_COSTS = Costs(np.empty(0, np.uint64), np.empty(0))


def home_of_text(text: str, types: dict[str, str] | None = None) -> int:
    """The home of an expression that has one."""
    (home,) = homes_of_text(text, NO_COSTS, types or {})
    assert home.branch is None
    return home.key


def homes_of(text: str, types: dict[str, str] | None = None) -> dict[int, list[str | None]]:
    """What lives at each of its homes."""
    found: dict[int, list[str | None]] = {}
    for key, branch in homes_of_text(text, NO_COSTS, types or {}):
        found.setdefault(key, []).append(None if branch is None else str(branch))
    return found


def keys_by_event(events, n: int, types: dict[str, str], used=None) -> list[set[int]]:
    found: list[set[int]] = [{int(ANY)} for _ in range(n)]
    for rows, keys in event_keys(events, types, types.keys() if used is None else used):
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            found[row].add(key)
    return found


def test_keys_of_a_map_are_names() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    events = pa.table({"m": pa.array([[("k", 5)], None, [("j", 5)]], kind)})
    found = keys_by_event(events, 3, {}, {"m.k"})
    assert [home_of_text("m.k = 5") in each for each in found] == [True, False, False]
    assert [int(name_key("m.k")) in each for each in found] == [True, False, False]


def test_a_home_is_never_a_value_of_the_context() -> None:
    rows = [(1, "ctx.a", "=", 5), (1, "b", "<", 9), (2, "ctx.a", "=", 5), (2, "ctx.b", "<", 5),
            (3, "ctx.a", "=", 5), (3, "c", "=", 7)]  # fmt: skip
    names = ("id", "attribute", "operator", "value")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    found, code = homes_of_predicates(table, NO_COSTS, {})
    homes = dict(zip(code.tolist(), found.tolist(), strict=True))
    texts = ["ctx.a = 5 AND b < 9", "ctx.a = 5 AND ctx.b < 5", "ctx.a = 5 AND c = 7"]
    assert list(homes.values()) == [home_of_text(each) for each in texts]
    assert list(homes.values())[:2] == [int(name_key("b")), int(ANY)]
    for each in ("b < ctx.a", "b = ctx.a + 1", "NOT b = ctx.a"):
        assert home_of_text(each) == name_key("b")
    assert home_of_text("ctx.b < ctx.a AND ctx.c") == ANY


@pytest.mark.slow
def test_every_match_of_a_text_is_reached_through_its_home() -> None:
    texts, events = shop(3000, 300)
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    types = dict(matcher.schema)
    homes = [{home.key for home in homes_of_text(each, NO_COSTS, types)} for each in texts]
    assert len(set.union(*homes)) > 300
    wide = pa.Table.from_struct_array(pa.array(events))
    cells = [[(n, name, text(v)) for name, v in flat(e).items()] for n, e in enumerate(events)]
    entries = [entry for each in cells for entry in each]
    as_texts = EntryEvents(
        len(events),
        np.array([n for n, _, _ in entries]),
        pa.array([name for _, name, _ in entries]),
        pa.array([value for _, _, value in entries]),
        read_cell,
    )
    forms = [keys_by_event(form, len(events), types) for form in (wide, as_texts)]
    n = 0
    for event, ids in enumerate(matcher.match_many(events)):
        for id_ in ids:
            assert all(homes[id_] & keys[event] for keys in forms), texts[id_]
            n += 1
    assert n > 100
    reached = sum(not home.isdisjoint(keys) for home in homes for keys in forms[0])
    assert reached < 0.2 * len(homes) * len(events)  # and most others are not


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_every_match_of_any_expression_is_reached_where_its_branch_lives(seed: int) -> None:
    schema, subscriptions, events = workload(Random(seed), 30, 20, 8)
    texts = [str(expr) for _, expr in subscriptions]
    table = pa.table({"id": range(len(texts)), "expr": texts})
    types = dict(schema)
    sampled = look_at(table, "scan", None, mw.Schema(types))
    rows = with_homes(table, sampled)
    parts = mw.Matcher(schema=types)
    parts.add_many(list(enumerate(rows.column("expr").to_pylist())))
    ids, homes = (rows.column(name).to_numpy() for name in ("id", HOME))
    matcher = mw.Matcher(schema=types)
    assert matcher.add_many(table).errors == []
    for event in events:
        known = {name: value for name, value in event.items() if value is not None}
        (keys,) = keys_by_event(pa.Table.from_pylist([known]), 1, types)
        held = [n for n in parts.match(event) if int(homes.view(np.uint64)[n]) in keys]
        assert sorted({int(ids[n]) for n in held}) == matcher.match(event)


def test_branches_of_an_or_live_apart_and_values_of_a_list_too() -> None:
    five, six = home_of_text("a = 5"), home_of_text("b = 6")
    assert homes_of("a = 5 OR b = 6 AND c > 1") == {five: ["a = 5"], six: ["b = 6 AND c > 1"]}
    assert homes_of("(a = 5 OR b = 6) AND c > 1") == {five: [None], six: [None]}
    assert homes_of("a IN (5, 7) AND c > 1") == {five: [None], home_of_text("a = 7"): [None]}
    assert homes_of("NOT (a <> 5 AND b <> 6)") == {five: [None], six: [None]}
    assert homes_of("a = 5 AND c > 1 OR a = 5 AND c < 0") == {five: [None]}
    assert homes_of("a = 5 OR b = 6 OR c IS NULL") == {int(ANY): [None]}
    assert homes_of("NOT (a = 1 AND b = 2)") == {
        int(name_key("a")): [None],
        int(name_key("b")): [None],
    }
    many = ", ".join(map(str, range(MOST_COPIES + 1)))
    assert homes_of(f"a IN ({many})") == {int(name_key("a")): [None]}


def test_branches_of_one_text_in_one_shard_are_one_row() -> None:
    names = ("id", "expr", SOURCE)
    rows = [(1, "a = 5", 7), (1, "b = 6", 7), (1, "b = 6", 7), (2, "c", None), (2, "d", None),
            (3, "e", 8), (None, "f", None)]  # fmt: skip
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    found = joined(table).to_pylist()
    assert [(row["id"], row["expr"]) for row in found] == [
        (1, "(a = 5) OR (b = 6)"), (2, "c"), (2, "d"), (3, "e"), (None, "f"),
    ]  # fmt: skip


@pytest.mark.slow
def test_an_event_visits_few_shards() -> None:
    """An OR or a list was "every shard" or "every event that has the attribute": 11.2 of 16."""
    texts, events = shop(3000, 200)
    texts += [f"{a} OR {b}" for a, b in zip(texts[:500], texts[500:1000], strict=True)]
    table = pa.table({"id": range(len(texts)), "expr": texts})
    wide = pa.Table.from_struct_array(pa.array(events))
    sampled = look_at(table, "scan", None, mw.Schema({}))
    weights = np.zeros(BUCKETS, np.int64)
    (told,) = weigh(sampled, iter(table.to_batches()))
    weights[told.column("bucket").to_numpy()] = told.column("weight").to_numpy()
    rows = with_homes(table, sampled)
    homes = rows.column(HOME).to_numpy().view(np.uint64)
    shards = make_plan(weights, 0, 16).shards_of(homes, rows.column("id"))
    of_key: dict[int, set[int]] = {}
    for key, shard in zip(homes.tolist(), shards.tolist(), strict=True):
        of_key.setdefault(key, set()).add(shard)
    keys = keys_by_event(wide, len(events), sampled.types)
    visits = [len(set().union(*[of_key.get(key, ()) for key in each])) for each in keys]
    assert sum(visits) / len(visits) < 4.5
    assert len(rows) < 2.2 * len(texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["begen:smoke", "qgrams:smoke", "uniform:smoke"])
def test_every_match_of_a_predicate_table_is_reached_through_its_home(name: str) -> None:
    workload = find_workload(name)
    table = plain_tables.predicates(workload, 0, 2000)
    types = dict(workload.schema())
    home, code = homes_of_predicates(table, NO_COSTS, types)
    assert (np.diff(code) >= 0).all()
    by_id = dict(zip(table.column("id").to_pylist(), home.tolist(), strict=True))
    matcher = mw.Matcher()
    matcher.add_many(table)
    wide = plain_tables.wide(workload, 0, 100)
    keys = keys_by_event(wide, 100, types)
    found = matcher.match_many(wide)
    assert len(found.ids) > 0
    for event, ids in enumerate(found):
        assert {by_id[id_] for id_ in ids} <= keys[event]


def test_equal_numbers_have_one_key_whatever_their_type() -> None:
    same = [
        pa.array([5], pa.int8()),
        pa.array([5], pa.int64()),
        pa.array([5.0]),
        pa.array([5.0], pa.float32()),
        pa.array([Decimal("5.00")]),
        pa.array([5], pa.uint64()),
    ]
    assert len({int(hashes_of(each)[0]) for each in same}) == 1
    assert hashes_of(pa.array([0.0]))[0] == hashes_of(pa.array([-0.0]))[0]
    assert hashes_of(pa.array([2**53 + 1]))[0] != hashes_of(pa.array([2.0**53]))[0]
    (_, keys) = list(event_keys(pa.table({"x": [2.0**63]}), {"x": "number"}, {"x"}))[1]
    assert home_of_text("x = 9223372036854775808") == keys[0]
    assert hashes_of(pa.array([float("nan")]))[0] == hashes_of(pa.array([-float("nan")]))[0]


def test_what_only_compares_across_types_has_no_key_of_its_value() -> None:
    assert hashes_of(pa.array([date(2024, 1, 1)])) is None
    assert hashes_of(pa.array([datetime(2024, 1, 1, tzinfo=UTC)])) is None
    key = name_key("x")
    assert home_of_text("x = '2024-01-01'", {"x": "timestamp"}) == key
    assert home_of_text("x IS NOT NULL") == key
    assert home_of_text("NOT (x IS NULL)") == key
    for asks_nothing in ("x IS NULL", "x = 1 OR y IS NULL", "TRUE", "x <", "x XOR y"):
        assert home_of_text(asks_nothing) == ANY


def test_exact_decimals_are_reached_through_their_homes() -> None:
    texts = ["0.1", "0.10000000000000000001", "0.10000000000000001", "18446744073709551615", "5"]
    values = [Decimal(each) for each in texts]
    numbers = pa.array(values, pa.decimal256(60, 20))
    table = pa.table({
        "id": range(5), "attribute": ["x"] * 5, "operator": ["="] * 5, "value": numbers,
    })  # fmt: skip
    found, _ = homes_of_predicates(table, NO_COSTS, {"x": "number"})
    homes = [home_of_text(f"x = {each}") for each in texts]
    matcher = mw.Matcher()
    matcher.add_many([(n, f"x = {each}") for n, each in enumerate(texts)])
    doubles = pa.array([float(each) for each in texts])
    n = 0
    for column in (numbers, doubles):
        events = pa.table({"x": column})
        keys = keys_by_event(events, 5, {"x": "number"})
        for row, ids in enumerate(matcher.match_many(events)):
            for id_ in ids:
                assert {int(homes[id_]), int(found[id_])} <= keys[row]
                n += 1
    assert n > 10


def test_an_attribute_of_several_kinds_is_reached_through_each() -> None:
    """It has no type: texts of maps stand for a value of every kind that is asked for."""
    texts = ["x = 5 AND z > 0", "x = '5' AND z > 0", "x = TRUE AND z > 0", "x IN (1.5, 7)"]
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    types = dict(matcher.schema)
    assert types == {"z": "number"}
    homes = [{home.key for home in homes_of_text(each, NO_COSTS, types)} for each in texts]
    values = [5, "5", True, 1.5, "7", "true", "1.50", 5.0]
    objects = JsonEvents([json.dumps({"x": value, "z": 1}) for value in values])
    cells = [("x" if i % 2 else "z", text(values[i // 2]) if i % 2 else "1") for i in range(16)]
    names, strings = (pa.array(each) for each in zip(*cells, strict=True))
    as_texts = EntryEvents(8, np.arange(16) // 2, names, strings, read_cell)
    n = 0
    for events in (objects, as_texts):
        keys = keys_by_event(events, len(values), types, {"x", "z"})
        for event, ids in enumerate(matcher.match_many(events)):
            assert all(homes[id_] & keys[event] for id_ in ids)
            n += len(ids)
    assert n == 15


def test_a_nested_object_is_reached_through_its_presence() -> None:
    home = home_of_text("a.b IS NOT NULL")
    nested = [{"a": {"b": {"c": 1}}}, {"a": {"b": {"c": None}}}, {"a": None}]
    for events in (
        pa.table({"a": pa.array([each["a"] for each in nested])}),
        JsonEvents([json.dumps(each) for each in nested]),
    ):
        reached = {
            row
            for rows, keys in event_keys(events, {}, {"a.b"})
            for row, key in zip(rows.tolist(), keys.tolist(), strict=True)
            if key == home
        }
        assert reached == {0, 1}


def test_rows_with_structs_are_read_as_nested_objects() -> None:
    """The shape in which events with a struct of attributes come from Spark."""
    inner = pa.array([{"brand": {"name": "Acme"}}, {"brand": None}, {"brand": {"name": None}}])
    batch = pa.RecordBatch.from_pydict({"event_id": [1, 2, 3], "attributes": inner})
    matcher = mw.Matcher()
    matcher.add_many([(each, each) for each in ("brand IS NULL", "brand.name IS NULL")])
    found = matcher.match_many(read_events(batch, "struct"))
    assert list(found) == [[], ["brand IS NULL", "brand.name IS NULL"], ["brand.name IS NULL"]]
