"""`matchwood match --local`: every format in and out, bad rows aside."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import matchwood as mw
from commands import call
from matchwood.engine.formats import files

WISHES = [
    (1, "price < 20"),
    (2, "genre = 'classics' AND price BETWEEN 20 AND 40"),
    (3, "listed_at >= TIMESTAMP '2026-01-01 00:00:00'"),
    (4, "price IS NULL OR used"),
    (5, "zip = '00123'"),
]
OFFERS: list[dict[str, Any]] = [
    {"price": 5, "genre": "classics"},
    {"price": 30.5, "genre": "classics", "used": True},
    {"genre": "crime", "listed_at": datetime(2026, 2, 1, tzinfo=UTC)},
    {"price": 100, "zip": "00123", "used": False},
]
PAIRS = [(0, 1), (1, 2), (1, 4), (2, 3), (2, 4), (3, 5)]


def match(folder: Path, subscriptions: str, events: str, out: str, *more: str) -> Any:
    return call(
        "match", "--local", "--subscriptions", folder / subscriptions,
        "--events", folder / events, "--out", folder / out, *more,
    )  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=merged(rows))
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, table.column_names)
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [json.dumps(row, default=str) for row in rows]
        text = "[" + ",\n".join(lines) + "]" if path.suffix == ".json" else "\n".join(lines)
        path.write_text(text)


def merged(rows: list[dict[str, Any]]) -> pa.Schema:
    names = dict.fromkeys([name for row in rows for name in row])
    return pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in names])


def read_pairs(path: Path) -> list[tuple[Any, Any]]:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    elif path.suffix == ".arrow":
        table = pyarrow.feather.read_table(path)
    elif path.suffix == ".csv":
        table = pyarrow.csv.read_csv(path)
    else:
        table = pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])
    return list(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def wishes(path: Path) -> None:
    write(path, [{"id": id_, "expr": text} for id_, text in WISHES])


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "json", "jsonl"])
def test_every_format_gives_the_same_pairs(ending: str, tmp_path: Path) -> None:
    wishes(tmp_path / f"wishes.{ending}")
    write(tmp_path / f"offers.{ending}", OFFERS)
    result = match(tmp_path, f"wishes.{ending}", f"offers.{ending}", f"matches.{ending}")
    assert result.exit_code == 0, result.stderr
    assert read_pairs(tmp_path / f"matches.{ending}") == PAIRS
    assert not list(tmp_path.glob("*errors*"))
    assert not list(tmp_path.glob(".*"))


def test_small_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BATCH", 1)
    for ending in ("parquet", "csv", "jsonl"):
        wishes(tmp_path / f"wishes.{ending}")
        write(tmp_path / f"offers.{ending}", OFFERS)
        match(tmp_path, f"wishes.{ending}", f"offers.{ending}", "matches.parquet")
        assert read_pairs(tmp_path / "matches.parquet") == PAIRS


def test_lists_have_a_row_per_event(tmp_path: Path) -> None:
    wishes(tmp_path / "wishes.csv")
    write(tmp_path / "offers.csv", [*OFFERS, {"price": 50}])
    assert match(tmp_path, "wishes.csv", "offers.csv", "m.parquet", "--lists").exit_code == 0
    rows = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert [row["subscriptions"] for row in rows] == [[1], [2, 4], [3, 4], [5], []]
    refused = match(tmp_path, "wishes.csv", "offers.csv", "m.csv", "--lists")
    assert refused.exit_code == 2
    assert "lists" in refused.stderr


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("ids", [["a", "b", "c", "d"], [10, 11, 12, 13]])
def test_event_ids_stand_in_the_output(ending: str, ids: list[Any], tmp_path: Path) -> None:
    wishes(tmp_path / "wishes.parquet")
    rows = [{"event_id": id_, **offer} for id_, offer in zip(ids, OFFERS, strict=True)]
    write(tmp_path / f"offers.{ending}", rows)
    match(tmp_path, "wishes.parquet", f"offers.{ending}", "m.parquet")
    assert read_pairs(tmp_path / "m.parquet") == [(ids[event], id_) for event, id_ in PAIRS]


def test_bad_rows_are_described_and_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "wishes.jsonl").write_text(
        '{"id": "a", "expr": "price < 20"}\n'
        '{"id": "b", "expr": "price BETWEEN 20"}\n'
        '{"id": "c", "expr": "price IN (1, \'x\')"}\n'
        '{"id": "d"}\n'
        "not json\n"
        '{"id": "a", "expr": "price IS NULL"}\n'
    )
    (tmp_path / "offers.jsonl").write_text(
        '{"event_id": 7, "price": 5}\n'
        '{"event_id": 8, "price"}\n'
        "\n"
        "not json\n"
        "[1]\n"
        '{"price": 6}\n'
        '{"event_id": "x", "price": 6}\n'
        '{"event_id": 9, "price": 6}\n'
    )
    result = match(tmp_path, "wishes.jsonl", "offers.jsonl", "m.parquet", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["subscriptions"]["refused"] == 5
    assert found["events"]["bad"] == 4
    assert found["matches"] == 3
    assert read_pairs(tmp_path / "m.parquet") == [("7", "a"), ("x", "a"), ("9", "a")]
    lines = (tmp_path / "m.parquet.errors.jsonl").read_text().splitlines()
    problems = [json.loads(line) for line in lines]
    assert len(problems) == found["problems"] == 9
    assert [each["file_line"] for each in problems if each["of"] == "subscription"] == [
        2,
        3,
        4,
        5,
        6,
    ]
    assert [each["row"] for each in problems if each["of"] == "event"] == [1, 2, 3, 4]
    assert (problems[0]["line"], problems[0]["column"]) == (1, 17)
    assert match(tmp_path, "wishes.jsonl", "offers.jsonl", "m.parquet", "--strict").exit_code == 1


def test_the_first_batch_decides_the_type_of_event_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH", 1)
    wishes(tmp_path / "wishes.csv")
    (tmp_path / "offers.csv").write_text("event_id,price\n7,1\nx,1\n07,1\n,1\n8,1\n")
    result = match(tmp_path, "wishes.csv", "offers.csv", "m.parquet", "--json")
    assert json.loads(result.stdout)["events"]["bad"] == 3
    assert read_pairs(tmp_path / "m.parquet") == [(7, 1), (8, 1)]


def test_csv_cells_take_the_types_of_their_attributes(tmp_path: Path) -> None:
    (tmp_path / "wishes.txt").write_text(
        "n = 9007199254740993\nflag\nday = DATE '2026-01-31'\n"
        "code = '007'\nx.y > 1.5\ncode = 'NULL'\n"
    )
    (tmp_path / "offers.csv").write_text(
        "n,flag,day,code,x.y,unused\n"
        "9007199254740993,TRUE,2026-01-31,007,2,\n"
        "9007199254740992,false,2026-02-01,7,1.5,\n"
        ",,,NULL,,\n"
        "1_0,,,,,\n"
        ",maybe,,,,\n"
        ",,2026-31-01,,,\n"
        "too,few\n"
    )
    result = match(tmp_path, "wishes.txt", "offers.csv", "m.csv", "--json")
    assert json.loads(result.stdout)["events"] | {"seconds": 0, "per_second": 0} == {
        "used": 6, "bad": 1, "seconds": 0, "per_second": 0,
    }  # fmt: skip
    assert read_pairs(tmp_path / "m.csv") == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (2, 6)]


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    for name in ("wishes", "offers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_SUCCESS").write_text("")
    write(tmp_path / "wishes" / "0.parquet", [{"id": 1, "expr": WISHES[0][1]}])
    write(tmp_path / "wishes" / "1.parquet", [{"id": 2, "expr": WISHES[1][1]}])
    write(tmp_path / "offers" / "0.parquet", OFFERS[:1])
    write(tmp_path / "offers" / "1.jsonl", OFFERS[1:])
    match(tmp_path, "wishes", "offers", "m.parquet")
    assert read_pairs(tmp_path / "m.parquet") == [(0, 1), (1, 2)]


def test_events_may_have_their_attributes_in_one_column_as_on_spark(tmp_path: Path) -> None:
    write(
        tmp_path / "wishes.csv", [{"id": 1, "expr": "a > 1 AND b < 5"}, {"id": 2, "expr": "a = 1"}]
    )
    rows = [{"a": 2, "b": 3}, {"a": 1, "b": 3}, {"b": 7}]
    columns = {
        "struct": pa.array(rows),
        "map": pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.int64())),
        "json": pa.array([json.dumps(row) for row in rows]),
        "arrays": pa.array([list(row) for row in rows]),
    }
    for shape, column in columns.items():
        table = pa.table({"event_id": ["x", "y", "z"], "attributes": column})
        if shape == "arrays":
            table = table.append_column("values", pa.array([list(row.values()) for row in rows]))
        pq.write_table(table, tmp_path / "offers.parquet")
        result = match(tmp_path, "wishes.csv", "offers.parquet", "m.jsonl")
        assert result.exit_code == 0, result.stderr
        assert read_pairs(tmp_path / "m.jsonl") == [("x", 1), ("y", 2)], shape


def test_no_events_give_an_empty_result(tmp_path: Path) -> None:
    wishes(tmp_path / "wishes.csv")
    (tmp_path / "offers.jsonl").write_text("")
    result = match(tmp_path, "wishes.csv", "offers.jsonl", "m.parquet")
    assert result.exit_code == 0, result.stderr
    assert pq.read_table(tmp_path / "m.parquet").num_rows == 0


def test_ids_of_both_kinds_never_become_one(tmp_path: Path) -> None:
    (tmp_path / "wishes.jsonl").write_text(
        '{"id": 1, "expr": "price < 20"}\n{"id": "1", "expr": "price > 20"}\n'
    )
    (tmp_path / "offers.jsonl").write_text('{"price": 5}\n{"price": 50}\n')
    match(tmp_path, "wishes.jsonl", "offers.jsonl", "m.parquet")
    one, other = {"int": 1, "str": None}, {"int": None, "str": "1"}
    assert read_pairs(tmp_path / "m.parquet") == [(0, one), (1, other)]
    match(tmp_path, "wishes.jsonl", "offers.jsonl", "m.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [row["subscription"] for row in rows] == [1, "1"]


@pytest.mark.parametrize(
    ("subscriptions", "events", "out", "complaint"),
    [
        ("none.csv", "offers.jsonl", "m.csv", "nothing at"),
        ("wishes.csv", "none.jsonl", "m.csv", "nothing at"),
        ("wishes.csv", "offers.jsonl", "m.xls", "ends in"),
        ("wishes.csv", "offers.jsonl", "none/m.csv", "folder"),
        ("wishes.csv", "offers.jsonl", "folder.csv", "folder"),
        ("wishes.csv", "offers.jsonl", "taken.csv", "cannot replace"),
        ("wishes.csv", "offers.jsonl", "offers.jsonl", "input"),
        ("wishes.csv", "broken.parquet", "m.csv", "cannot read"),
        ("offers.csv", "offers.jsonl", "m.csv", "columns id and expr"),
        ("wishes.csv", "lines.txt", "m.csv", "as events"),
    ],
)
def test_wrong_files_end_with_2(
    subscriptions: str, events: str, out: str, complaint: str, tmp_path: Path
) -> None:
    wishes(tmp_path / "wishes.csv")
    write(tmp_path / "offers.jsonl", OFFERS)
    write(tmp_path / "offers.csv", OFFERS)
    (tmp_path / "broken.parquet").write_text("nonsense")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "taken.csv.errors.jsonl").mkdir()
    (tmp_path / "lines.txt").write_text("price < 3\n")
    result = match(tmp_path, subscriptions, events, out)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.glob(".*partial"))


def test_files_are_looked_for_before_spark_is_started(tmp_path: Path) -> None:
    result = call("match", "--subscriptions", "a.csv", "--events", "b.csv", "--out", "c.csv")
    assert result.exit_code == 2
    assert "found nothing at 'a.csv'" in result.stderr


def test_a_file_of_json_lines_without_id_and_expr_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "wishes.jsonl").write_text('{"name": "a", "rule": "price < 20"}\n{"x": 1}\n')
    write(tmp_path / "offers.jsonl", OFFERS)
    result = match(tmp_path, "wishes.jsonl", "offers.jsonl", "m.csv")
    assert result.exit_code == 2
    assert "expected objects with id and expr, found x" in result.stderr
    assert call("validate", tmp_path / "wishes.jsonl").exit_code == 2


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("is_array", [True, False])
def test_constants_that_are_no_json_make_their_event_bad(
    constant: str, is_array: bool, tmp_path: Path
) -> None:
    wishes(tmp_path / "wishes.csv")
    lines = ['{"event_id": 1, "price": 5}', f'{{"event_id": 2, "price": [{constant}]}}']
    text = "[" + ",".join(lines) + "]" if is_array else "\n".join(lines)
    (tmp_path / "offers.json").write_text(text)
    result = match(tmp_path, "wishes.csv", "offers.json", "m.parquet", "--json")
    assert json.loads(result.stdout)["events"]["bad"] == 1
    assert read_pairs(tmp_path / "m.parquet") == [(1, 1)]
    (problem,) = (tmp_path / "m.parquet.errors.jsonl").read_text().splitlines()
    assert f"{constant} is no JSON" in json.loads(problem)["message"]


def test_a_master_is_sparks(tmp_path: Path) -> None:
    wishes(tmp_path / "wishes.csv")
    result = match(tmp_path, "wishes.csv", "wishes.csv", "m.csv", "--master", "local[1]")
    assert result.exit_code == 2
    assert "without --local" in result.stderr


def test_an_unknown_index_ends_with_2(tmp_path: Path) -> None:
    wishes(tmp_path / "wishes.csv")
    write(tmp_path / "offers.jsonl", OFFERS)
    result = match(tmp_path, "wishes.csv", "offers.jsonl", "m.csv", "--index", "nope")
    assert result.exit_code == 2
    assert "expected one of auto, a_tree, agile" in result.stderr
    assert "found 'nope'" in result.stderr


def test_a_snapshot_can_be_matched_and_described(tmp_path: Path) -> None:
    matcher = mw.Matcher()
    matcher.add_many([(1, "price < 20"), (2, "price > 20")])
    matcher.save(tmp_path / "books")
    (tmp_path / "offers.jsonl").write_text('{"price": 5}\n{"price": 50}\n')
    match(tmp_path, "books", "offers.jsonl", "m.parquet")
    assert read_pairs(tmp_path / "m.parquet") == [(0, 1), (1, 2)]
    found = json.loads(call("stats", tmp_path / "books", "--json").stdout)
    assert found["subscriptions"] == 2
    assert found["schema"] == {"price": "number"}
    assert "price number" in call("stats", tmp_path / "books").stdout


def test_an_event_for_which_a_computed_attribute_fails_is_named_and_keeps_its_matches(
    tmp_path: Path,
) -> None:
    (tmp_path / "rules.csv").write_text("id,expr\n1,10 / q > 2\n2,q = 0\n")
    (tmp_path / "events.jsonl").write_text('{"event_id": "a", "q": 0}\n{"event_id": "b", "q": 4}\n')
    out = tmp_path / "matches.jsonl"
    words = ["match", str(tmp_path / "rules.csv"), str(tmp_path / "events.jsonl")]
    found = call(*words, "--out", str(out), "--json")
    assert out.read_text().splitlines() == [
        '{"event": "a", "subscription": 2}', '{"event": "b", "subscription": 1}'
    ]  # fmt: skip
    (line,) = (tmp_path / "matches.jsonl.errors.jsonl").read_text().splitlines()
    problem = json.loads(line)
    assert (problem["of"], problem["id"], problem["row"]) == ("attribute", "a", 0)
    assert "10 / q" in problem["message"]
    assert json.loads(found.stdout)["events"]["bad"] == 0
    piped = call(*words)
    assert "event 'a': computed attribute '10 / q'" in piped.stderr
    assert "left out" not in piped.stderr
