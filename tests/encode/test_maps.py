"""Maps in columns: what dicts say of them, whatever columns stand beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import matchwood as mw
from matchwood.encode.arrow.values import plain_values
from matchwood.lang.parser import parse
from naive import matches

SCALARS = {
    pa.int64(): (1, 5, 2**53 + 1),
    pa.float64(): (5.0, 3.5, math.inf),
    pa.string(): ("a", "ab", "2026-01-01"),
    pa.string_view(): ("a", "b"),
    pa.dictionary(pa.int8(), pa.string()): ("a", "ab"),
    pa.bool_(): (True, False),
    pa.uint64(): (5, 2**63),
    pa.null(): (None,),
}
KEYS = ("k", "j", "a", "k.j")
PATHS = ("v", "w", "v.k", "w.k", "v.j", "v.k.j", "w.k.j", "v.a", "v.`1`", "u.v.k")
TESTS = (
    "= 5", "> 3.5", "<> 1", "= 'a'", "LIKE 'a%'", "IS NULL", "IS NOT NULL", "IN (1, 5)", "= TRUE",
    "IS DISTINCT FROM 'a'", ">= DATE '2025-06-01'",
)  # fmt: skip
COMPUTED = (
    "v.k + 1 > 5", "upper(w.k) = 'A'", "v.k = w.k", "size(v) > 1", "v['k'] = 5", "w['k'].j = 5",
    "v.k['j'] = 'a'", "size(v.k) = 1", "coalesce(u.v.k, 5) = 5", "map_contains_key(w, 'j')",
)  # fmt: skip


def kind_of(draw: Random, depth: int) -> pa.DataType:
    """A type that is often a map, and at times a struct."""
    if depth == 0 or draw.random() < 0.3:
        return draw.choice(list(SCALARS))
    if draw.random() < 0.3:
        names = draw.sample(KEYS[:3], draw.randint(1, 2))
        return pa.struct([(name, kind_of(draw, depth - 1)) for name in names])
    keys = draw.choice((pa.string(), pa.string(), pa.string(), pa.string_view(), pa.int64()))
    return pa.map_(keys, kind_of(draw, depth - 1))


def value_of(draw: Random, kind: pa.DataType, nulls: float) -> Any:
    if draw.random() < nulls:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value_of(draw, field.type, nulls) for field in kind}
    if pa.types.is_map(kind):
        pool = (1, 2) if pa.types.is_integer(kind.key_type) else KEYS
        keys = draw.sample(pool, draw.randint(0, 2))
        return [(key, value_of(draw, kind.item_type, nulls)) for key in keys]
    return draw.choice(SCALARS[kind])


def column_of(draw: Random, n: int) -> pa.Array:
    """A column that begins somewhere in its buffers."""
    kind, nulls, ahead = kind_of(draw, 3), draw.choice((0, 0.2)), draw.choice((0, 3))
    return pa.array([value_of(draw, kind, nulls) for _ in range(n + ahead)], kind).slice(ahead)


def union_of(draw: Random, n: int) -> pa.Array:
    """A column of numbers and maps."""
    maps = [value_of(draw, pa.map_(pa.string(), pa.int64()), 0) for _ in range(n)]
    parts = [pa.array([5] * n), pa.array(maps, pa.map_(pa.string(), pa.int64()))]
    codes = pa.array([draw.randint(0, 1) for _ in range(n)], pa.int8())
    return pa.UnionArray.from_sparse(codes, parts)


def named(value: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of an event by dotted names, what is in a mapping beside it."""
    for name, each in value.items():
        if each is not None:
            yield f"{prefix}{name}", each
        if isinstance(each, Mapping):
            yield from named(each, f"{prefix}{name}.")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    columns = zip(*map(plain_values, table.columns), strict=True)
    return [dict(zip(table.column_names, row, strict=True)) for row in columns]


@pytest.mark.parametrize("has_union", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_table_with_maps_says_what_its_rows_say_and_what_is_right(seed, has_union):
    draw = Random(seed)
    for _ in range(8):
        n = draw.choice((1, 4, 9))
        columns = {"v": column_of(draw, n), "w": column_of(draw, n)}
        if has_union:
            columns[draw.choice("wq")] = union_of(draw, n)
        if draw.random() < 0.3:
            mask = pa.array([draw.random() < 0.3 for _ in range(n)])
            whole = pa.concat_arrays([columns["v"]])
            columns["u"] = pa.StructArray.from_arrays([whole], ["v"], mask=mask)
        table = pa.table(columns)
        plain = [f"{draw.choice(PATHS)} {draw.choice(TESTS)}" for _ in range(8)]
        m = mw.Matcher()
        m.add_many([(text, text) for text in {*plain, *draw.sample(COMPUTED, 3)}])
        found = m.match_many(table)
        for number, row in enumerate(rows_of(table)):
            try:
                alone = m.match(row)
            except mw.EventError:
                assert number in found.errors
                continue
            assert found[number] == alone, (row, table.schema)
            known = dict(named(row))
            for text in set(plain):
                assert (text in alone) == matches(parse(text), known), (text, row)


def maps(values: list[Any], kind: pa.DataType, keys: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, pa.map_(keys or pa.string(), kind))


@pytest.mark.parametrize("is_beside_a_union", [False, True])
def test_a_key_of_a_map_is_a_name_beside_a_union_or_not(is_beside_a_union):
    m = mw.Matcher()
    for text in ("v.k = 1", "v['k'] = 1", "v.k + 0 = 1", "v.k IS NULL", "v IS NULL"):
        m.add(text, text)
    table = pa.table({"v": maps([[("k", 1)], None, [("k", None)], []], pa.int64())})
    if is_beside_a_union:
        union = pa.UnionArray.from_sparse(pa.array([0] * 4, pa.int8()), [pa.array([7] * 4)])
        table = table.append_column("q", union)
    absent = ["v.k IS NULL"]
    true = ["v.k = 1", "v['k'] = 1", "v.k + 0 = 1"]
    assert list(m.match_many(table)) == [true, [*absent, "v IS NULL"], absent, absent]


def test_of_entries_with_one_key_the_last_counts_and_hidden_ones_do_not():
    entries = maps([[("k", 1), ("j", 2), ("k", 3)], [("k", 4)], [("k", 5)]], pa.int64())
    hidden = pa.MapArray.from_arrays(
        pa.array([0, 3, 4, 5], pa.int32()), entries.keys, entries.items,
        mask=pa.array([False, True, False]),
    )  # fmt: skip
    m = mw.Matcher()
    m.add_many([(n, f"v.k = {n}") for n in range(6)])
    assert list(m.match_many(pa.table({"v": hidden}))) == [[3], [], [5]]
    assert list(m.match_many(pa.table({"v": hidden.slice(1)}))) == [[], [5]]


def test_maps_in_maps_in_dictionaries_and_with_keys_of_other_types():
    inner = maps([[("a", 5)], None, [("b", 7)]], pa.int64())
    outer = maps([[("k", [("a", 5)])], None, [("k", [("b", 7)])]], inner.type)
    coded = pa.DictionaryArray.from_arrays(pa.array([2, 0, None]), outer)
    numbers = maps([[(1, "x")], None, [(12, "x")]], pa.string(), pa.int64())
    words = maps([[("1", "x")], None, [("12", "x")]], pa.string(), pa.dictionary("int8", "string"))
    m = mw.Matcher()
    texts = ("v.k.a = 5", "v.k.b > 5", "v.k IS NULL", "w.`1` = 'x'", "w.`12` = 'x'")
    m.add_many([(text, text) for text in texts])
    found = [["v.k.a = 5", "w.`1` = 'x'"], ["v.k IS NULL"], ["v.k.b > 5", "w.`12` = 'x'"]]
    for keys in (numbers, words):
        assert list(m.match_many(pa.table({"v": outer, "w": keys}))) == found
    assert [row[:1] for row in m.match_many(pa.table({"v": coded}))] == [
        ["v.k.b > 5"], ["v.k.a = 5"], ["v.k IS NULL"],
    ]  # fmt: skip


def test_a_name_in_a_map_and_a_column_of_that_name_fail_where_a_row_has_both():
    m = mw.Matcher()
    m.add_many([(1, "v.k = 1"), (2, "v.k = 2"), (3, "x = 3")])
    maps_ = maps([[("k", 1)], [("k", 1)], []], pa.int64())
    for name in ("v.k", "x"):
        numbers = pa.array([None, 2, 2])
        found = m.match_many(pa.table({"v": maps_, name: numbers}))
        if name == "v.k":
            assert list(found) == [[1], [], [2]]
            assert found.errors.keys() == {1}
        else:
            assert list(found) == [[1], [1], []]


def test_errors_show_a_map_as_a_dict():
    m = mw.Matcher(schema={"v": "int"})
    m.add(1, "v = 1")
    (error,) = m.match_many(pa.table({"v": maps([[("k", 1)]], pa.int64())})).errors.values()
    with pytest.raises(mw.EventError) as alone:
        m.match({"v": {"k": 1}})
    assert str(error) == str(alone.value)


@pytest.mark.parametrize("test", ["v IS NULL", "v = 1", "v.t = 'a'", "v > DATE '2026-01-01'"])
def test_nulls_beside_values_that_arrow_cannot_take(test):
    """A struct or a map with string views inside: `take` and `drop_null` have no kernel for it."""
    views = pa.array(["a", None, "b"], pa.string_view())
    struct = pa.StructArray.from_arrays([views], ["t"], mask=pa.array([False, True, False]))
    with pytest.raises(pa.ArrowNotImplementedError):
        struct.drop_null()
    entries = maps([[("t", "a")], None, [("t", "b")]], pa.string_view())
    m = mw.Matcher()
    m.add(1, test)
    for column in (struct, entries):
        table = pa.table({"v": column})
        assert list(m.match_many(table)) == list(m.match_many(rows_of(table)))
