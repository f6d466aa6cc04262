"""Arrow columns of kinds that few writers make: unions, runs, narrow decimals, odd dictionaries."""

from __future__ import annotations

from uuid import UUID

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


BYTES = pa.array([b"aaa", None, b"c d", b"aaa", b"\xff\xfe\xfd"], pa.binary())


@pytest.mark.parametrize(
    "column",
    [
        BYTES,
        BYTES.cast(pa.large_binary()),
        BYTES.cast(pa.binary_view()),
        pa.array(BYTES.to_pylist(), pa.binary(3)),
        pc.dictionary_encode(BYTES),
        pc.dictionary_encode(BYTES.cast(pa.large_binary())),
        pc.dictionary_encode(pa.array(BYTES.to_pylist(), pa.binary(3))),
        pc.run_end_encode(BYTES.cast(pa.large_binary())),
    ],
    ids=lambda column: str(column.type)[:40],
)
def test_bytes_are_texts_as_far_as_they_are_utf_8(column):
    rules = ("v = 'aaa'", "v < 'c'", "v LIKE '%d'", "upper(v) = 'AAA'", "v IS NULL", "v = 7")
    m = mw.Matcher()
    for name in ("v", "u.v"):
        for rule in rules:
            m.add(f"{name} {rule}", rule.replace("v", name, 1) if "(" not in rule else rule)
    _says_as_rows(m, pa.table({"v": column}))
    _says_as_rows(m, pa.table({"v": column}).slice(2, 2))
    _says_as_rows(m, pa.table({"u": pa.StructArray.from_arrays([column], ["v"])}))


@pytest.mark.parametrize("is_coded", [False, True])
def test_uuids_are_their_texts(is_coded):
    ids = [UUID(int=i * 2**90 + i) for i in range(1, 7)]
    column = pa.array([each.bytes for each in ids[:3]] + [None, ids[4].bytes], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), column)
    if is_coded:
        column = pa.DictionaryArray.from_arrays(pa.array([4, 3, None, 2, 0]), column)
    m = mw.Matcher()
    m.add_many([(str(each), f"v = '{each}'") for each in ids])
    m.add("half", f"v < '{ids[3]}'")
    m.add("absent", "v IS NULL")
    _says_as_rows(m, pa.table({"v": column}))
    _says_as_rows(m, pa.table({"v": column}).slice(1, 3))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("impossible", [[], ["2021-02-30", "2021-02-30 00:00:00"]])
def test_texts_of_many_forms_are_moments(kind, impossible):
    days = ("2021-03-04", "1000-01-01", "0999-12-31", "2024-02-29", "9999-12-31", "2021-3-4")
    clocks = ("", "T10:20:30", " 10:20:30Z", " 10:20:30.5", " 23:59:59.123456Z",
              " 10:20:30.1234567", " 24:00:00", " 10:20", " 10:20:30+01:00", " 10:20:30 ",
              " 10:20:30\n", " noon",
              "T10:20:30ZZ", " 10:20:30.Z", "\n", " ß")  # fmt: skip
    texts = [day + clock for day in days for clock in clocks]
    texts += [*impossible, "0000-01-01", "epoch", "", "word", "+2021-03-04 10:20:30"]
    m = mw.Matcher()
    for day in ("2021-03-04", "2024-02-29", "1000-01-01"):
        for clock in ("10:20:30", "10:20:30.5", "23:59:59.123456", "00:00:00"):
            for op in ("=", "<"):
                m.add(f"{op} {day} {clock}", f"v {op} TIMESTAMP '{day} {clock}'")
        m.add(f"day {day}", f"v = DATE '{day}'")
        m.add(f"before {day}", f"w < DATE '{day}'")
    column = pa.array([None, *texts, *texts[::-1]], kind)
    _says_as_rows(m, pa.table({"v": column, "w": column}))
    _says_as_rows(m, pa.table({"v": column, "w": pc.dictionary_encode(column.cast("string"))}))
    broken = pa.array([b"2021-03-04 10:20:30", b"2021-03-04 \xff", b"\xff"]).view(pa.string())
    _says_as_rows(m, pa.table({"v": broken.cast(pa.binary())}))


def test_bool8_is_bool():
    storage = pa.array([0, 1, None, -3, 127], pa.int8())
    column = pa.ExtensionArray.from_storage(pa.bool8(), storage)
    m = mw.Matcher()
    for rule in ("v = TRUE", "v", "NOT v", "v IS NULL", "v > 0", "v <> FALSE"):
        m.add(rule, rule)
    for declared in (m, mw.Matcher(schema={"v": "bool"})):
        if not len(declared):
            declared.add_many([("yes", "v"), ("no", "NOT v")])
        _says_as_rows(declared, pa.table({"v": column}))
        _says_as_rows(declared, pa.table({"v": column}).slice(2))


def _says_as_rows(m: mw.Matcher, table: pa.Table) -> None:
    found, rows = m.match_many(table), m.match_many(table.to_pylist())
    assert list(found) == list(rows)
    assert found.errors.keys() == rows.errors.keys()
    assert any(list(found))


def _says_what_its_rows_say(table: pa.Table) -> None:
    m = mw.Matcher()
    for name in ("v", "u.v"):
        for test in ("> 1", "<= 1", "= 'a'", "IS NULL", "IS NOT NULL", "IS DISTINCT FROM 5"):
            m.add(f"{name} {test}", f"{name} {test}")
    m.add("computed", "u.v * 2 = 10 OR v * 2 = 10")
    found = m.match_many(table)
    assert not found.errors
    assert list(found) == list(m.match_many(table.to_pylist()))
