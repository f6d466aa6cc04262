"""Arrow columns of kinds that few writers make: unions, runs, narrow decimals, odd dictionaries."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import matchwood as mw


def test_runs_in_a_struct_are_null_where_the_struct_is():
    runs = pc.run_end_encode(pa.array([5, 5, 5]))
    column = pa.StructArray.from_arrays([runs], ["v"], mask=pa.array([False, True, False]))
    _says_what_its_rows_say(pa.table({"u": column}))
    _says_what_its_rows_say(pa.table({"u": column}).slice(1))


@pytest.mark.parametrize("is_dense", [False, True])
def test_a_union_says_what_its_values_say(is_dense):
    codes, parts = pa.array([0, 1, 0, 1], pa.int8()), [[1, 2, 5, 4], ["a", "a", "c", None]]
    children = [pa.array(part) for part in parts]
    union = pa.UnionArray.from_sparse(codes, children)
    if is_dense:
        union = pa.UnionArray.from_dense(codes, pa.array(range(4), pa.int32()), children)
    mask = pa.array([False, False, True, False])
    struct = pa.StructArray.from_arrays([union], ["v"], mask=mask)
    for table in (pa.table({"v": union}), pa.table({"u": struct}), pa.table({"v": union}).slice(1)):
        _says_what_its_rows_say(table)


def test_chunks_whose_dictionaries_hold_nulls():
    codes = pa.array([0, 1])
    chunks = [
        pa.DictionaryArray.from_arrays(codes, pa.array(words))
        for words in (["a", None], ["b", "a"])
    ]
    _says_what_its_rows_say(pa.table({"v": pa.chunked_array(chunks)}))


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(9, 2)])
def test_narrow_types_of_decimals(kind):
    _says_what_its_rows_say(pa.table({"v": pa.array([1, None, 5], kind)}))


def test_structs_in_a_dictionary_and_in_runs():
    structs = pa.StructArray.from_arrays([pa.array([1, 5])], ["v"])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None]), structs)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), structs)
    for column in (coded, runs):
        _says_what_its_rows_say(pa.table({"u": column}))


def _says_what_its_rows_say(table: pa.Table) -> None:
    m = mw.Matcher()
    for name in ("v", "u.v"):
        for test in ("> 1", "<= 1", "= 'a'", "IS NULL", "IS NOT NULL", "IS DISTINCT FROM 5"):
            m.add(f"{name} {test}", f"{name} {test}")
    m.add("computed", "u.v * 2 = 10 OR v * 2 = 10")
    found = m.match_many(table)
    assert not found.errors
    assert list(found) == list(m.match_many(table.to_pylist()))
