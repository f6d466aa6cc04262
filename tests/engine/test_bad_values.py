"""One bad value names its row and stops nothing else: bytes that are no UTF-8, odd Arrow columns,
long cells, numbers beyond 64 bits.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchwood as mw
from commands import call
from matchwood.encode.entry_events import EntryEvents
from matchwood.lang.cells import read_cell

GOOD, BAD = b"good", b"b\xffd"


def shortened(value: object) -> bytes | None:
    """What names a content of a file among parameters: its beginning."""
    return value[:40] if isinstance(value, bytes) else None


def strings(*values: bytes | None, kind: pa.DataType | None = None) -> pa.Array:
    """A column of strings that nothing has checked."""
    kind = pa.string() if kind is None else kind
    large = kind == pa.large_string()
    made = pa.array(values, pa.large_binary() if large else pa.binary())
    if kind == pa.string_view():
        made = made.cast(pa.binary_view())
    return pa.Array.from_buffers(kind, len(values), made.buffers(), made.null_count)


def matcher() -> mw.Matcher:
    m = mw.Matcher(schema={"s": "string"})
    m.add("good", "s = 'good'")
    m.add("like", "s LIKE '%oo%'")
    m.add("absent", "s IS NULL")
    return m


KINDS = [pa.string(), pa.large_string(), pa.string_view()]


# ── events ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("coded", [False, True])
def test_a_string_that_is_no_utf8_spoils_its_event_alone(kind, coded):
    column = strings(GOOD, BAD, None, GOOD, kind=kind)
    if coded:
        column = column.dictionary_encode()
    found = matcher().match_many(pa.table({"s": column, "other": column}))
    assert list(found) == [["good", "like"], [], ["absent"], ["good", "like"]]
    assert list(found.errors) == [1]
    assert isinstance(found.errors[1], mw.EventError)
    assert "'s': expected string, found bytes b'b\\xffd'" in str(found.errors[1])


def test_a_bad_word_that_no_row_has_does_no_harm():
    words = pa.DictionaryArray.from_arrays(pa.array([0, 0, None]), strings(GOOD, BAD))
    found = matcher().match_many(pa.table({"s": words}))
    assert found.errors == {}
    assert list(found) == [["good", "like"], ["good", "like"], ["absent"]]


def test_a_bad_string_where_only_presence_is_asked_for_is_present():
    m = mw.Matcher()
    m.add("there", "s IS NOT NULL")
    assert list(m.match_many(pa.table({"s": strings(BAD, None)}))) == [["there"], []]


def test_a_bad_string_of_another_type_is_described():
    m = mw.Matcher(schema={"s": "number"})
    m.add("n", "s = 1")
    found = m.match_many(pa.table({"s": strings(GOOD, BAD)}))
    assert ["bytes" in str(each) for each in found.errors.values()] == [False, True]


def test_bad_strings_in_entries_spoil_their_events_alone():
    names = strings(b"s", b"s", b"\xff", b"s")
    values = strings(GOOD, BAD, GOOD, GOOD)
    events = EntryEvents(4, np.arange(4), names, values, read_cell)
    found = matcher().match_many(events)
    assert list(found) == [["good", "like"], [], [], ["good", "like"]]
    assert sorted(found.errors) == [1, 2]
    m = mw.Matcher(schema={"n": "number"})
    m.add("n", "n = 5")
    events = EntryEvents(2, np.arange(2), strings(b"n", b"n"), strings(b"5", BAD), read_cell)
    found = m.match_many(events)
    assert list(found) == [["n"], []]
    assert list(found.errors) == [1]


class Kelvin(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.float64(), "test.kelvin")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Kelvin:
        return cls()


def extended(kind: pa.ExtensionType, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


def test_a_column_of_an_extension_type_is_read_as_what_it_is_stored_as():
    m = mw.Matcher()
    m.add("warm", "t > 280")
    m.add("absent", "t IS NULL")
    m.add("inner", "in.t > 280")
    column = extended(Kelvin(), pa.array([300.0, None, 3.0]))
    struct = pa.StructArray.from_arrays([column], ["t"])
    found = m.match_many(pa.table({"t": column, "in": struct}))
    assert found.errors == {}
    assert list(found) == [["warm", "inner"], ["absent"], []]


def test_an_extension_type_of_another_kind_spoils_the_events_that_have_it():
    m = mw.Matcher(schema={"u": "string"})
    m.add("s", "u = 'x'")
    m.add("absent", "u IS NULL")
    column = extended(Kelvin(), pa.array([300.0, None]))
    found = m.match_many(pa.table({"u": column}))
    assert list(found) == [[], ["absent"]]
    assert list(found.errors) == [0]


# ── subscriptions ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bad_ids_and_texts_of_a_table_are_refused_by_row(kind):
    ids = strings(b"a", BAD, b"c", b"d", kind=kind)
    texts = strings(b"x = 1", b"x = 1", b"x = '\xff'", b"x = 1", kind=kind)
    m = mw.Matcher()
    report = m.add_many(pa.table({"id": ids, "expr": texts}))
    assert [each.row for each in report.errors] == [1, 2]
    assert all(isinstance(each.error, mw.MatchwoodError) for each in report.errors)
    assert m.match({"x": 1}) == ["a", "d"]


def test_bad_contexts_of_a_table_are_refused_by_row():
    m = mw.Matcher()
    table = pa.table({
        "id": [1, 2], "expr": ["x = ctx.y"] * 2, "context": strings(BAD, b"c"),
    })  # fmt: skip
    report = m.add_many(table)
    assert [each.row for each in report.errors] == [0]
    m.set_context("c", {"y": 5})
    assert m.match({"x": 5}) == [2]


def predicates(**columns: Any) -> pa.Table:
    n = len(next(iter(columns.values())))
    usual = {"id": list(range(n)), "attribute": ["x"] * n, "operator": ["="] * n}
    return pa.table({**usual, **columns})


def rows_of(report: Any) -> list[int]:
    assert all(isinstance(each.error, mw.MatchwoodError) for each in report.errors)
    return [each.row for each in report.errors]


@pytest.mark.parametrize("column", ["id", "attribute", "operator", "value", "context"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_bad_string_in_any_column_of_a_predicate_table_is_refused_by_row(column, kind):
    plain = {
        "id": [b"a", b"b", b"c"],
        "attribute": [b"x"] * 3,
        "operator": [b"="] * 3,
        "value": [GOOD] * 3,
        "context": [b"c"] * 3,
    }
    plain[column] = [plain[column][0], BAD, plain[column][2]]
    table = pa.table({name: strings(*each, kind=kind) for name, each in plain.items()})
    m = mw.Matcher()
    assert rows_of(m.add_many(table)) == [1]
    assert m.match({"x": "good"}) == ["a", "c"]


def test_unsigned_constants_beyond_64_bits_are_exact():
    values = pa.array([2**63, 2**64 - 1, 5], pa.uint64())
    m = mw.Matcher()
    assert m.add_many(predicates(value=values)).errors == []
    assert [m.match({"x": Decimal(each)}) for each in (2**63, 2**64 - 1, 5)] == [[0], [1], [2]]
    assert m.match({"x": Decimal(2**64)}) == []
    lists = pa.array([[1, 2**64 - 1], [5], None], pa.list_(pa.uint64()))
    m = mw.Matcher()
    table = predicates(values=lists, value=pa.array([None, None, 2**63], pa.uint64()))
    table = table.set_column(2, "operator", pa.array(["IN", "IN", "="]))
    assert m.add_many(table).errors == []
    assert [m.match({"x": Decimal(each)}) for each in (1, 2**64 - 1, 5, 2**63)] == [
        [0], [0], [1], [2],
    ]  # fmt: skip


def test_unsigned_ids_beyond_64_bits_are_refused_by_row():
    m = mw.Matcher()
    table = predicates(value=[1, 1, 1]).set_column(0, "id", pa.array([7, 2**63, 8], pa.uint64()))
    assert rows_of(m.add_many(table)) == [1]
    assert m.match({"x": 1}) == [7, 8]
    texts = pa.table({"id": pa.array([9, 2**63], pa.uint64()), "expr": ["x = 1"] * 2})
    assert rows_of(m.add_many(texts)) == [1]


def test_constants_that_python_cannot_hold_are_refused_by_row():
    for column in (
        pa.array([0, 110_000_000, 1], pa.date32()),
        pa.array([0, 2**62, 1], pa.timestamp("us")),
    ):
        m = mw.Matcher()
        assert rows_of(m.add_many(predicates(value=column))) == [1]
        assert len(m) == 2


def test_extension_columns_of_predicate_tables_are_what_they_are_stored_as():
    m = mw.Matcher()
    column = extended(Kelvin(), pa.array([1.5, 2.5]))
    assert m.add_many(predicates(value=column)).errors == []
    assert m.match({"x": 2.5}) == [1]


def test_uuids_in_predicate_tables_are_texts_and_bytes_are_refused():
    ids = [UUID(int=5), UUID(int=7)]
    column = extended(pa.uuid(), pa.array([each.bytes for each in ids], pa.binary(16)))
    m = mw.Matcher()
    assert m.add_many(predicates(value=column)).errors == []
    assert m.match({"x": ids[1]}) == m.match({"x": str(ids[1])}) == [1]
    for kind in (pa.binary(), pa.large_binary(), pa.binary(3)):
        refused = mw.Matcher().add_many(predicates(value=pa.array([b"abc", b"abd"], kind)))
        assert rows_of(refused) == [0, 1]


def test_a_context_table_with_a_bad_value_says_which_row():
    m = mw.Matcher()
    m.add("s", "x = ctx.y", context="a")
    for column in (strings(GOOD, BAD), pa.array([0, 2**62], pa.timestamp("us"))):
        table = pa.table({"context": ["a", "b"], "y": column})
        if pa.types.is_timestamp(column.type):
            m = mw.Matcher()
            m.add("s", "x > ctx.y", context="a")
            m.set_context_many(table)  # the order of moments needs no datetime
            continue
        with pytest.raises(mw.EventError, match="row 1"):
            m.set_context_many(table)


# ── files ───────────────────────────────────────────────────────────────────────────────────────


def run(folder: Path, subscriptions: str, events: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """The matches, as (event, subscription), and the problems, of `matchwood match --local`."""
    out = folder / "out.jsonl"
    words = ["match", "--local", "--subscriptions", subscriptions, "--events", events]
    words += ["--out", out]
    result = call(*(folder / w if "." in str(w) else w for w in words))
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    problems = folder / "out.jsonl.errors.jsonl"
    found = problems.read_text().splitlines() if problems.exists() else []
    return [(row["event"], row["subscription"]) for row in rows], [json.loads(x) for x in found]


@pytest.fixture
def wishes(tmp_path: Path) -> Path:
    (tmp_path / "wishes.csv").write_text("id,expr\n1,s = 'good'\n2,s IS NULL\n")
    return tmp_path


LONG = b"x" * 140_000


@pytest.mark.parametrize(
    ("name", "content", "matches", "line"),
    [
        ("e.csv", b"s,n\ngood,1\nb\xffd,1\ngood,1\n", [(0, 1), (2, 1)], 3),
        ("e.csv", b"s,n\ngood,1\n" + LONG + b",1\ngood,1\n", [(0, 1), (2, 1)], 3),
        ("e.csv", b's,n\ngood,1\n"a\nb' + LONG + b'\ngood,1\n",1\ngood,1\n', [(0, 1), (2, 1)], 6),
        ("e.csv", b'\xef\xbb\xbfs,n\ngood,1\n"b\xff\nd",1\ngood,1\n', [(0, 1), (2, 1)], 4),
        ("e.jsonl", b'{"s":"good"}\n{"s":"b\xffd"}\n{"s":"good"}\n', [(0, 1), (2, 1)], 2),
        ("e.jsonl", b'\xef\xbb\xbf{"s":"good"}\n{"s":"\x00"}\n{"s":"good"}', [(0, 1), (2, 1)], 2),
        ("e.json", b'[{"s":"good"},\n{"s":"b\xffd"},\n{"s":"good"}]', [(0, 1), (2, 1)], 0),
        ("e.jsonl", b'{"s":"good"}\n{"s":"\\ud800"}\n{"s":"good"}\n', [(0, 1), (2, 1)], None),
        ("e.jsonl", b'{"s":"good"}\n' + b"[" * 100_000 + b'\n{"s":"good"}', [(0, 1), (2, 1)], 2),
    ],
    ids=shortened,
)
def test_a_bad_row_of_an_event_file_is_reported_and_the_rest_goes_on(
    wishes, name, content, matches, line
):
    (wishes / name).write_bytes(content)
    found, problems = run(wishes, "wishes.csv", name)
    assert found == matches
    # a lone surrogate is no line that cannot be read: of an open attribute it is another kind
    assert [each["row"] for each in problems] == ([] if line is None else [1])
    assert [each.get("file_line") for each in problems] == ([] if line is None else [line])


def test_a_null_byte_in_a_cell_is_a_character(wishes):
    (wishes / "e.csv").write_bytes(b"s,n\ngood,1\ngo\x00d,1\n")
    assert run(wishes, "wishes.csv", "e.csv") == ([(0, 1)], [])


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("w.csv", b"id,expr\n1,s = 'good'\n2,s = '\xff'\n3,s = 'good'\n", 3),
        ("w.csv", b"id,expr\n1,s = 'good'\n2,s = '" + LONG + b"'\n3,s = 'good'\n", 3),
        (
            "w.jsonl",
            b"\n".join(
                b'{"id":%d,"expr":"s = \'%s\'"}' % (n, text)
                for n, text in ((1, GOOD), (2, BAD), (3, GOOD))
            ),
            2,
        ),
        ("w.txt", b"\xef\xbb\xbfs = 'good'\ns = '\xff'\ns = 'good'\n", 2),
    ],
    ids=shortened,
)
def test_a_bad_row_of_a_subscription_file_is_reported_and_the_rest_goes_on(
    tmp_path, name, content, line
):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "e.jsonl").write_text('{"s":"good"}\n')
    found, problems = run(tmp_path, name, "e.jsonl")
    assert found == [(0, 1), (0, 3)]
    assert [each["file_line"] for each in problems] == [line]


def test_bad_ids_of_events_in_parquet_are_reported(wishes):
    ids, s = strings(b"a", BAD, b"c"), strings(GOOD, GOOD, GOOD)
    pq.write_table(pa.table({"event_id": ids, "s": s}), wishes / "e.parquet")
    found, problems = run(wishes, "wishes.csv", "e.parquet")
    assert found == [("a", 1), ("c", 1)]
    assert [each["row"] for each in problems] == [1]


def test_a_lone_surrogate_in_an_event_id_is_reported(wishes):
    lines = [{"event_id": "a", "s": "good"}, {"event_id": "\ud800", "s": "good"}]
    (wishes / "e.jsonl").write_text("\n".join(json.dumps(each) for each in lines))
    found, problems = run(wishes, "wishes.csv", "e.jsonl")
    assert found == [("a", 1)]
    assert [each["row"] for each in problems] == [1]


def test_bad_bytes_in_text_files_on_spark_workers_are_bad_events(tmp_path):
    from matchwood.spark.text_events import _csv_batches, _json_batches

    csv, lines = tmp_path / "e.csv", tmp_path / "e.jsonl"
    csv.write_bytes(b"event_id,s\n1,good\n\xff,b\xffd\n3,good\n")
    lines.write_bytes(b'{"event_id":"1"}\n{"event_id":"\\ud800"}\n{"s":"\xff"}\n')
    files = [pa.RecordBatch.from_pydict({"file": [str(path)]}) for path in (csv, lines)]
    [batch] = _csv_batches("event_id", iter(files[:1]))
    assert [len(each) for each in batch.column("values").to_pylist()] == [2, 1, 2]
    [batch] = _json_batches("event_id", iter(files[1:]))
    assert batch.column("event_id").to_pylist() == ["1", None, None]
