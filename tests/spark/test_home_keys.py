"""An event that matches a subscription has its home key: a shard is never missed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.encode.entry_events import EntryEvents
from matchwood.lang.cells import read_cell
from matchwood.spark.home_keys import (
    ANY,
    Costs,
    event_keys,
    hashes_of,
    home_of_text,
    homes_of_predicates,
    name_key,
)
from matchwood.spark.shapes import JsonEvents, read_events
from matchwood.workload import find_workload, plain_tables
from spark.bookshop_frames import flat, shop, text

NO_COSTS = Costs(np.empty(0, np.uint64), np.empty(0))


def keys_by_event(events, n: int, types: dict[str, str]) -> list[set[int]]:
    found: list[set[int]] = [{int(ANY)} for _ in range(n)]
    for rows, keys in event_keys(events, types):
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            found[row].add(key)
    return found


def test_a_home_is_never_a_value_of_the_context() -> None:
    rows = [(1, "ctx.a", "=", 5), (1, "b", "<", 9), (2, "ctx.a", "=", 5), (2, "ctx.b", "<", 5),
            (3, "ctx.a", "=", 5), (3, "c", "=", 7)]  # fmt: skip
    names = ("id", "attribute", "operator", "value")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    found, code = homes_of_predicates(table, NO_COSTS, {})
    homes = dict(zip(code.tolist(), found.tolist(), strict=True))
    texts = ["ctx.a = 5 AND b < 9", "ctx.a = 5 AND ctx.b < 5", "ctx.a = 5 AND c = 7"]
    assert list(homes.values()) == [int(home_of_text(each, NO_COSTS, {})) for each in texts]
    assert list(homes.values())[:2] == [int(name_key("b")), int(ANY)]
    for each in ("b < ctx.a", "b = ctx.a + 1", "NOT b = ctx.a"):
        assert home_of_text(each, NO_COSTS, {}) == name_key("b")
    assert home_of_text("ctx.b < ctx.a AND ctx.c", NO_COSTS, {}) == ANY


def test_every_match_of_a_text_is_reached_through_its_home() -> None:
    texts, events = shop(3000, 300)
    matcher = mw.Matcher()
    matcher.add_many(list(enumerate(texts)))
    types = dict(matcher.schema)
    homes = [int(home_of_text(each, NO_COSTS, types)) for each in texts]
    assert len(set(homes)) > 300
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
            assert all(homes[id_] in keys[event] for keys in forms), texts[id_]
            n += 1
    assert n > 100
    reached = sum(home in keys for home in homes for keys in forms[0])
    assert reached < 0.5 * len(homes) * len(events)  # and most others are not


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
    (_, keys) = list(event_keys(pa.table({"x": [2.0**63]}), {"x": "number"}))[1]
    assert home_of_text("x = 9223372036854775808", NO_COSTS, {}) == keys[0]
    assert hashes_of(pa.array([float("nan")]))[0] == hashes_of(pa.array([-float("nan")]))[0]


def test_what_only_compares_across_types_has_no_key_of_its_value() -> None:
    assert hashes_of(pa.array([date(2024, 1, 1)])) is None
    assert hashes_of(pa.array([datetime(2024, 1, 1, tzinfo=UTC)])) is None
    key = name_key("x")
    assert home_of_text("x = '2024-01-01'", NO_COSTS, {"x": "timestamp"}) == key
    assert home_of_text("x IS NOT NULL", NO_COSTS, {}) == key
    assert home_of_text("NOT (x IS NULL)", NO_COSTS, {}) == key
    for asks_nothing in ("x IS NULL", "x = 1 OR y = 2", "TRUE", "x <", "NOT (x = 1 AND y = 2)"):
        assert home_of_text(asks_nothing, NO_COSTS, {}) == ANY


def test_exact_decimals_are_reached_through_their_homes() -> None:
    texts = ["0.1", "0.10000000000000000001", "0.10000000000000001", "18446744073709551615", "5"]
    values = [Decimal(each) for each in texts]
    numbers = pa.array(values, pa.decimal256(60, 20))
    table = pa.table({
        "id": range(5), "attribute": ["x"] * 5, "operator": ["="] * 5, "value": numbers,
    })  # fmt: skip
    found, _ = homes_of_predicates(table, NO_COSTS, {"x": "number"})
    homes = [home_of_text(f"x = {each}", NO_COSTS, {}) for each in texts]
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


def test_a_nested_object_is_reached_through_its_presence() -> None:
    home = int(home_of_text("a.b IS NOT NULL", NO_COSTS, {}))
    nested = [{"a": {"b": {"c": 1}}}, {"a": {"b": {"c": None}}}, {"a": None}]
    homes = np.array([home], np.uint64)
    for events in (
        pa.table({"a": pa.array([each["a"] for each in nested])}),
        JsonEvents([json.dumps(each) for each in nested]),
    ):
        reached = {
            row
            for rows, keys in event_keys(events, {}, homes)
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
