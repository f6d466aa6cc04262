"""A table gives what its rows give as dicts, whatever kinds of columns and predicates it meets."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import matchwood as mw

TEXTS = (
    "x IS NULL", "x IS NOT NULL", "x = 5", "x > 3.5", "x = 'a'", "x LIKE 'a%'", "x", "NOT x",
    "(x = 5) IS NULL", "(x = 'a') IS NULL", "x <=> NULL", "x > y", "y IS NULL", "x IN (5, 7)",
    "(x > 3) IS NOT TRUE", "x IS DISTINCT FROM 'a'", "x IS DISTINCT FROM 5", "x + 1 > 5",
    "coalesce(x, 3) = 3", "x >= DATE '2026-01-01'", "x IS TRUE", "y = 5", "y > x",
    "(y = 'a') IS NULL", "(x + y) IS NULL", "x = ctx.v", "(x < ctx.v) IS NULL", "u.z = 5",
    "u.z IS NULL", "u IS NULL", "x LIKE '_b%'", "y NOT LIKE '%b'", "(x LIKE '%b%') IS NULL",
    "x = 9007199254740993", "x >= 9007199254740992", "x = 18446744073709551615",
    "x > 12345678901234567890123", "x = 0.1", "x > 0.10000000000000000001",
    "x <= 0.10000000000000000001", "x BETWEEN 0.1 AND 0.3", "x = double('NaN')",
    "x < double('Infinity')", "x = -0.0", "(x > 0.10000000000000000001) IS NULL",
    "x >= TIMESTAMP '2026-01-01 10:00:00'", "(x > DATE '2026-01-01') IS NULL",
    "x < DATE '1970-01-01'", "y IN (9007199254740993, 0.1)", "y = 12345678901234567890123",
    "x * 2 > 10", "abs(x) = 5", "upper(x) = 'A'", "year(x) = 2026", "x = y", "size(l) > 1",
    "array_contains(l, 5)", "exists(l, each -> each > 5)", "l IS NULL", "z IS NULL OR y > 3",
    "z <> 7", "x > 1 AND y > 1 AND z > 1",
)  # fmt: skip

PLAIN = {
    pa.int64(): (5, 7, 0, -3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    pa.int32(): (5, 7, 0, -3, 2**31 - 1, -(2**31)),
    pa.float64(): (5.0, 3.5, float("nan"), -0.0, 0.1, float("inf"), 2.0**53, 5e-324, -3.5),
}
"""Columns that compiled code reads where they are."""

VALUES = {
    **PLAIN,
    pa.int8(): (5, 7),
    pa.uint64(): (5, 7, 2**63 - 1, 2**63, 2**64 - 1),
    pa.float32(): (5.0, 3.5, float("nan")),
    pa.decimal128(5, 2): (Decimal("0.10"), Decimal("5.00"), Decimal("-3.25")),
    pa.decimal128(38, 20): (Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal(5)),
    pa.decimal256(60, 25): (Decimal("0.1"), Decimal("12345678901234567890123"), Decimal(5)),
    pa.string(): ("a", "ab", "5", "2026-01-01", "2026-01-01T10:00:00Z", "2026-02-30", "bb"),
    pa.string_view(): ("a", "ab", "2026-01-02"),
    pa.dictionary(pa.int8(), pa.string()): ("a", "ab", "2026-01-01"),
    pa.dictionary(pa.int32(), pa.int64()): (5, 7, 2**53 + 1),
    pa.bool_(): (True, False),
    pa.date32(): (date(2026, 1, 1), date(2025, 12, 31), date(1969, 12, 31)),
    pa.timestamp("us"): (datetime(2026, 1, 1), datetime(2026, 1, 1, 10), datetime(1969, 1, 1)),
    pa.timestamp("s", "UTC"): (datetime(2026, 1, 1, 10, tzinfo=UTC),),
}
LISTS = (None, [5], [5, 6], [], [None, 7])


def matcher(draw: random.Random) -> mw.Matcher:
    declared = {"x": draw.choice(["int", "float", "number"]), "y": "int"}
    m = mw.Matcher(schema=mw.Schema(declared) if draw.random() < 0.3 else None)
    for text in draw.sample(TEXTS, draw.randint(1, 8)):
        try:
            m.add(text, text, context="c" if "ctx" in text else None)
        except mw.MatchwoodError:
            continue  # not of the declared type, or of several types with `ctx.v`
    if any("ctx" in text for text in m.ids()):
        m.set_context("c", {"v": 5})
    return m


def column(draw: random.Random, kind: pa.DataType, n: int) -> pa.Array:
    """A column that begins somewhere in its buffers."""
    nulls, ahead = draw.choice((0, 0.1, 0.5, 1)), draw.choice((0, 0, 1, 7, 8, 13, 64))
    values = [
        None if draw.random() < nulls else draw.choice(VALUES[kind]) for _ in range(n + ahead)
    ]
    return pa.array(values, kind).slice(ahead)


def cut(draw: random.Random, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same column in other chunks."""
    at = draw.randint(0, len(column))
    return pa.chunked_array([*column.slice(0, at).chunks, *column.slice(at).chunks], column.type)


def table(draw: random.Random) -> pa.Table:
    n = draw.choice((1, 2, 9, 55, 56, 57, 64, 65, 113, 200))
    columns = {
        name: column(draw, draw.choice(list(draw.choice((PLAIN, VALUES)))), n)
        for name in "xyz"
        if draw.random() < 0.85
    }
    if draw.random() < 0.3:
        columns["l"] = pa.array([draw.choice(LISTS) for _ in range(n)], pa.list_(pa.int64()))
    if draw.random() < 0.3:
        inside = column(draw, draw.choice((pa.int64(), pa.float64())), n)
        mask = pa.array([draw.random() < 0.3 for _ in range(n)])
        columns["u"] = pa.StructArray.from_arrays([inside], ["z"], mask=mask)
    whole = pa.table(columns or {"q": pa.array([1] * n)})
    some = whole.slice(draw.randint(0, n - 1))
    if draw.random() < 0.3:
        return pa.concat_tables([some, whole])
    if draw.random() < 0.2:
        return pa.table([cut(draw, each) for each in some.columns], names=some.column_names)
    return some


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary_view()]
)
def test_nulls_of_texts_are_null_for_computed_attributes(kind: pa.DataType) -> None:
    m = mw.Matcher()
    m.add_many([(text, text) for text in ("x <=> y", "coalesce(x, 'a') = 'a'", "length(x) = 0")])
    column = pa.array([None, "", None, "a"], kind)
    found = m.match_many(pa.table({"x": column, "y": pa.nulls(4)})).to_pylist()
    absent = ["x <=> y", "coalesce(x, 'a') = 'a'"]
    assert found == [absent, ["length(x) = 0"], absent, absent[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize("seed", range(40))
def test_a_table_gives_what_its_rows_give_as_dicts(seed: int, threads: int | None) -> None:
    draw = random.Random(seed)
    m = matcher(draw)
    for events in (table(draw), table(draw)):
        found = m.match_many(events, threads=threads)
        for at, row in enumerate(events.to_pylist()):
            try:
                alone: list[str] | None = m.match(row)
            except mw.EventError:
                alone = None
            given = None if at in found.errors else list(found[at])
            assert given == alone, (m.ids(), row, events.schema)


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_beside_a_day_of_the_context_are_read_as_days(kind: pa.DataType) -> None:
    m = mw.Matcher()
    m.add("later", "x > ctx.day", context="c")
    m.set_context("c", {"day": date(2026, 1, 1)})
    texts = ["2026-01-02", "2026-01-01T10:00:00", "2025-12-31", "soon", "2026-1-5", None]
    found = m.match_many(pa.table({"x": pa.array(texts, kind)}))
    assert found.to_pylist() == [m.match({"x": text}) for text in texts]
    assert found.to_pylist() == [["later"], [], [], [], ["later"], []]
