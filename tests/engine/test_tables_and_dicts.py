"""A table gives what its rows give as dicts, whatever kinds of columns and predicates it meets."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import matchwood as mw

TEXTS = (
    "x IS NULL", "x IS NOT NULL", "x = 5", "x > 3.5", "x = 'a'", "x LIKE 'a%'", "x", "NOT x",
    "(x = 5) IS NULL", "(x = 'a') IS NULL", "x <=> NULL", "x > y", "y IS NULL", "x IN (5, 7)",
    "(x > 3) IS NOT TRUE", "x IS DISTINCT FROM 'a'", "x IS DISTINCT FROM 5", "x + 1 > 5",
    "coalesce(x, 3) = 3", "x >= DATE '2026-01-01'", "x IS TRUE", "y = 5", "y > x",
    "(y = 'a') IS NULL", "(x + y) IS NULL", "x = ctx.v", "(x < ctx.v) IS NULL", "u.z = 5",
    "u.z IS NULL", "u IS NULL",
)  # fmt: skip

VALUES = {
    pa.int64(): (5, 7, 0, -3, 2**60),
    pa.int32(): (5, 7, 0, 3),
    pa.float64(): (5.0, 3.5, float("nan"), -0.0),
    pa.int8(): (5, 7),
    pa.string(): ("a", "ab", "5"),
    pa.bool_(): (True, False),
}


def matcher(draw: random.Random) -> mw.Matcher:
    declared = {"x": draw.choice(["int", "float"]), "y": "int"}
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
    nulls = draw.choice((0, 0.3, 1))
    values = [None if draw.random() < nulls else draw.choice(VALUES[kind]) for _ in range(n)]
    return pa.array(values, kind)


def table(draw: random.Random) -> pa.Table:
    n = draw.choice((1, 2, 3, 9, 70, 200))
    columns = {
        name: column(draw, draw.choice(list(VALUES)), n) for name in "xyz" if draw.random() < 0.8
    }
    if draw.random() < 0.3:
        inside = column(draw, draw.choice((pa.int64(), pa.float64())), n)
        mask = pa.array([draw.random() < 0.3 for _ in range(n)])
        columns["u"] = pa.StructArray.from_arrays([inside], ["z"], mask=mask)
    whole = pa.table(columns or {"q": pa.array([1] * n)})
    some = whole.slice(draw.randint(0, n - 1))
    return pa.concat_tables([some, whole]) if draw.random() < 0.3 else some


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
