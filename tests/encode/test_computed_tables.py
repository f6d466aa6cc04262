"""Computed attributes of tables: each formula once per distinct combination, as for dicts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.encode.arrow import computed

TEXTS = [
    "lower(s) = 'a'",
    "upper(concat(s, '-', t)) IN ('A-B', 'B-')",
    "upper(concat(s, '-', t)) IS NULL",
    "length(s) > 1 AND x IS NOT NULL",
    "10 / i > 2",
    "10 / i IS NULL",
    "i + k > 3",
    "i * k IS NULL OR s = 'a'",
    "x / y < 0.5",
    "x + y > 1",
    "sqrt(x) IS NULL",
    "cast(s AS int) = 1",
    "cast(s AS int) IS NULL",
    "coalesce(x, i) > 0",
    "year(d) = 2020",
    "year(d) IS NULL",
    "hour(w) = 3 AND minute(w) < 30",
    "date_trunc('DAY', w) > TIMESTAMP '2020-01-01 00:00:00Z'",
    "p + 1 > 2",
    "cast(p AS string) = '1.50'",
    "size(tags) = 2",
    "tags[0] = 'a'",
    "u.v + 1 = 2",
    "m['k'] * 2 > 3",
    "big + 1 > 5",
    "b = (x > 0)",
    "b AND x > y",
    "missing + i > 1",
    "concat(s, '') LIKE '%b%'",
    "concat(s, '') = 5",
    "i = k",
    "nothing + 1 > 2",
]
KINDS = {
    "s": pa.string(), "t": pa.string(), "i": pa.int64(), "k": pa.int32(), "x": pa.float64(),
    "y": pa.float32(), "d": pa.date32(), "w": pa.timestamp("us", "UTC"), "p": pa.decimal128(6, 2),
    "tags": pa.list_(pa.string()), "u": pa.struct([("v", pa.int64())]),
    "m": pa.map_(pa.string(), pa.int64()), "big": pa.uint64(), "b": pa.bool_(),
    "nothing": pa.null(),
}  # fmt: skip


def rows(rng: Random, n: int) -> list[dict[str, Any]]:
    days = [date(2020, 1, 1) + timedelta(days=i) for i in range(0, 900, 100)]
    moments = [datetime(2020, 1, 1, h, 15 * h % 60, tzinfo=UTC) for h in range(5)]
    values: dict[str, list[Any]] = {
        "s": ["a", "A", "b", "1", "", "äß", "ab"], "t": ["b", "", "B"],
        "i": [0, 1, 2, -5, 2**63 - 1], "k": [0, 1, 2, 2**31 - 1],
        "x": [0.0, -0.0, 1.5, float("nan"), float("inf"), -2.0], "y": [0.0, 0.5, 3.0],
        "d": days, "w": moments, "p": [Decimal("1.50"), Decimal("2.00")],
        "tags": [[], ["a"], ["a", "b"], [None]], "u": [{"v": 1}, {"v": None}],
        "m": [[("k", 2)], [("z", 1)], []], "big": [1, 2**64 - 1], "b": [True, False],
        "nothing": [None],
    }  # fmt: skip
    return [
        {name: None if rng.random() < 0.15 else rng.choice(each) for name, each in values.items()}
        for _ in range(n)
    ]


def matcher() -> mw.Matcher:
    m = mw.Matcher()
    m.add_many(list(enumerate(TEXTS)))
    return m


def answers(m: mw.Matcher, events: Any) -> Any:
    found = m.match_many(events)
    warnings = {row: sorted(map(str, each)) for row, each in found.warnings.items() if each}
    return found.to_pylist(), warnings


def as_dicts(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {k: dict(v) if k == "m" and v is not None else v for k, v in row.items()
         if v is not None or k == "s"}
        for row in made
    ]  # fmt: skip


@pytest.mark.parametrize("few", [0, 3, computed.FEW])
def test_a_table_is_what_its_rows_are(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(computed, "FEW", few)
    by_table, by_dict = matcher(), matcher()
    for seed in range(4):  # later ones find values that are known
        made = rows(Random(seed), 150)
        table = pa.table({name: pa.array([r[name] for r in made], k) for name, k in KINDS.items()})
        assert answers(by_table, table) == answers(by_dict, as_dicts(made))
        table_stats, dict_stats = by_table.stats(), by_dict.stats()
        for name in ("unknown", "failed"):
            assert table_stats[name] == dict_stats[name], name


def test_what_fails_is_counted_and_reported_for_every_row() -> None:
    m = mw.Matcher()
    m.add("a", "10 / q > 2")
    m.add("b", "q = 0")
    found = m.match_many(pa.table({"q": [0, 2, 0, None, 9, 0]}))
    assert sorted(found.warnings) == [0, 2, 5]
    assert found.to_pylist() == [["b"], ["a"], ["b"], [], [], ["b"]]
    assert m.stats()["failed"] == {"10 / q": 3}


def test_values_that_python_cannot_hold_leave_only_their_own_rows_unknown() -> None:
    m = mw.Matcher()
    m.add_many([("text", "lower(s) = 'a'"), ("null", "lower(s) IS NULL"), ("year", "year(d) > 0")])
    texts = pa.array([b"A", b"\xff", None, b"A"]).view(pa.string())
    days = pa.array([0, 2**31 - 1, None, 0], pa.int32()).view(pa.date32())
    found = m.match_many(pa.table({"s": texts, "d": days}))
    assert found.to_pylist() == [["text", "year"], [], ["null"], ["text", "year"]]


def test_maps_of_tables_are_those_of_dicts_empty_ones_and_those_inside_of_values_too() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    kinds = {
        "m": kind, "s": pa.string(), "mm": pa.map_(pa.string(), kind), "maps": pa.list_(kind),
        "u": pa.struct([("m", kind), ("n", pa.int64())]),
    }  # fmt: skip
    texts = [
        "NOT map_contains_key(m, 'z')", "map_contains_key(m, s) IS NULL", "m[s] IS NULL",
        "element_at(m, s) IS NULL", "size(m) = 0", "mm['a']['b'] = 1", "size(mm['e']) = 0",
        "NOT map_contains_key(mm['e'], 'b')", "element_at(mm['a'], 'b') = 1", "maps[0]['b'] = 1",
        "NOT map_contains_key(maps[1], 'b')", "u.m['b'] = 1", "NOT map_contains_key(u.m, 'z')",
    ]  # fmt: skip
    pairs = [("b", 1)]
    row: dict[str, Any] = {
        "m": [], "s": None, "mm": [("a", pairs), ("e", [])], "maps": [pairs, []],
        "u": {"m": pairs, "n": 1},
    }  # fmt: skip
    table = pa.table({name: pa.array([row[name], None], kinds[name]) for name in row})
    full: dict[str, int] = {"b": 1}
    empty: dict[str, int] = {}
    dicts: list[dict[str, Any]] = [
        {"m": empty, "mm": {"a": full, "e": empty}, "maps": [full, empty],
         "u": {"m": full, "n": 1}},
        {},
    ]  # fmt: skip
    m = mw.Matcher()
    assert m.add_many([(text, text) for text in texts]).errors == []
    expected = m.match_many(dicts).to_pylist()
    assert expected[0] == texts
    assert m.match_many(table).to_pylist() == expected
    assert m.match_many(pa.concat_tables([table] * 700))[1398] == texts


@pytest.mark.parametrize("order", [("v", "v.k"), ("v.k", "v")])
def test_a_formula_reads_a_name_of_two_columns_as_in_a_dict(order):
    m = mw.Matcher()
    m.add(1, "v.k + 0 = 5")
    rows = [{"v": {"k": 5}, "v.k": None}, {"v": {"k": None}, "v.k": 5}, {"v": {"k": 4}, "v.k": 5}]
    columns = {"v": pa.array([row["v"] for row in rows]), "v.k": pa.array([None, 5, 5])}
    table = pa.table({name: columns[name] for name in order})
    assert list(m.match_many(table)) == list(m.match_many(rows)) == [[1], [1], [1]]
