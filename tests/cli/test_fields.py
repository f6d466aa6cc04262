"""`matchwood match` in this process: priority, expires, attributes, payload and contexts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchwood as mw
from commands import call

ROWS = [
    {"id": 1, "expr": "price < 9", "priority": 1, "attributes": {"city": "Rome"}, "payload": [1]},
    {"id": 2, "expr": "price < 9", "priority": 5, "attributes": {"city": "Oslo"}},
    {"id": 3, "expr": "price < ctx.budget", "context": "ann", "priority": 3, "payload": "note"},
    {"id": 4, "expr": "price < 9", "priority": 7, "expires": "2020-01-01"},
    {"id": 5, "expr": "price < 9", "priority": 2, "expires": "9000-01-01T00:00:00+02:00"},
    {"id": 6, "expr": "price < 9", "priority": "much"},
    {"id": 7, "expr": "price < 9", "expires": "soon"},
    {"id": 8, "expr": "price < 9", "expires": 1},
    {"id": 9, "expr": "price <", "priority": 1},
]
EVENTS = [
    {"event_id": 1, "price": 5},
    {"event_id": 2, "price": 5, "filter": "city > 'P'"},
    {"event_id": 3, "price": 5, "filter": "city >"},
    {"event_id": 4, "price": 5, "filter": 7},
    {"event_id": 5, "price": 50},
]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wishes.jsonl").write_text(lines(ROWS))
    (tmp_path / "offers.jsonl").write_text(lines(EVENTS))
    (tmp_path / "values.jsonl").write_text(lines([{"context": "ann", "budget": 8}]))
    return tmp_path


def subscriptions(text: str) -> dict[Any, list[Any]]:
    return {row["event"]: row["subscriptions"] for row in parsed(text)}


OPTIONS = ("--contexts", "values.jsonl", "--lists")


def test_fields_in_json_lines_are_those_of_the_library(folder: Path) -> None:
    done = call("match", "wishes.jsonl", "offers.jsonl", *OPTIONS, "--out", "m.jsonl")
    assert done.exit_code == 0, done.stderr
    assert subscriptions((folder / "m.jsonl").read_text()) == {1: [1, 2, 3, 5], 2: [1], 5: []}
    problems = parsed((folder / "m.jsonl.errors.jsonl").read_text())
    found = {(each["of"], each["id"]): each["message"] for each in problems}
    assert set(found) == {
        ("subscription", 6), ("subscription", 7), ("subscription", 9), ("event", 3), ("event", 4),
    }  # fmt: skip
    assert found["subscription", 6] == "priority: expected a whole number, found 'much'"
    rows = {each["id"]: (each["row"], each.get("file_line")) for each in problems}
    assert rows[9] == (8, 9)


def test_a_limit_takes_the_highest_priorities(folder: Path) -> None:
    done = call("match", "wishes.jsonl", "offers.jsonl", *OPTIONS, "--limit", 3)
    assert subscriptions(done.stdout) == {1: [2, 3, 5], 2: [1], 5: []}


def test_where_asks_for_own_attributes_beside_the_filters_of_events(folder: Path) -> None:
    done = call("match", "wishes.jsonl", "offers.jsonl", *OPTIONS, "--where", "city < 'P'")
    assert subscriptions(done.stdout) == {1: [2], 2: [], 5: []}
    wrong = call("match", "wishes.jsonl", "offers.jsonl", "--where", "city <")
    assert wrong.exit_code == 1
    assert "expected" in wrong.stderr
    (folder / "plain.txt").write_text("price < 9\n")
    none = call("match", "plain.txt", "offers.jsonl", "--where", "city < 'P'")
    assert none.exit_code == 2
    assert "expected subscriptions with attributes" in none.stderr


def test_payloads_stand_beside_pairs(folder: Path) -> None:
    call_ = ("match", "wishes.jsonl", "offers.jsonl", "--contexts", "values.jsonl", "--payload")
    done = call(*call_)
    expected = {1: [1], 2: None, 3: "note", 5: None}
    pairs = [row for row in parsed(done.stdout) if row["event"] == 1]
    assert {row["subscription"]: row["payload"] for row in pairs} == expected
    assert call(*call_, "--out", "m.csv").exit_code == 0
    with (folder / "m.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["event"] == "1"]
    assert {row["subscription"]: row["payload"] for row in rows} == {
        "1": "[1]", "2": "", "3": '"note"', "5": "",
    }  # fmt: skip
    call(*call_, "--out", "m.parquet")
    table = pq.read_table(folder / "m.parquet").to_pylist()
    found = {row["subscription"]: row["payload"] for row in table if row["event"] == 1}
    assert found == {1: "[1]", 2: None, 3: '"note"', 5: None}
    assert call(*call_, "--lists").exit_code == 2
    assert call(*call_, "--spark", "--out", "m.json").exit_code == 2


def test_fields_in_csv_are_texts(folder: Path) -> None:
    with (folder / "wishes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "expr", "priority", "attributes", "expires"])
        writer.writeheader()
        for row in ROWS[:2] + ROWS[3:5]:
            kept = {name: value for name, value in row.items() if name in writer.fieldnames}
            if "attributes" in kept:
                kept["attributes"] = json.dumps(kept["attributes"])
            writer.writerow(kept)
    with (folder / "offers.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([("event_id", "price", "filter"), (1, 5, ""), (2, 5, "city > 'P'")])
    done = call("match", "wishes.csv", "offers.csv", "--lists", "--limit", 2)
    assert subscriptions(done.stdout) == {1: [2, 5], 2: [1]}


@pytest.mark.parametrize("shape", ["wide", "struct", "map", "json", "arrays"])
def test_tables_of_any_shape_have_filters(folder: Path, shape: str) -> None:
    matcher = mw.Matcher()
    matcher.add_many([row for row in ROWS[:5] if row["id"] in (1, 2)])
    pq.write_table(matcher.to_arrow(), folder / "wishes.parquet")
    values = [{"price": 5}, {"price": 5}, {"price": 5}]
    columns = {
        "wide": {"price": pa.array([5, 5, 5])},
        "struct": {"attributes": pa.array(values)},
        "map": {"attributes": pa.array([[("price", 5)]] * 3, pa.map_(pa.string(), pa.int64()))},
        "json": {"attributes": pa.array([json.dumps(each) for each in values])},
        "arrays": {"attributes": pa.array([["price"]] * 3), "values": pa.array([[5]] * 3)},
    }[shape]
    filters = pa.array([None, "city > 'P'", "city >"], pa.string())
    table = pa.table({"event_id": ["a", "b", "c"], **columns, "filter": filters})
    pq.write_table(table, folder / "offers.parquet")
    done = call("match", "wishes.parquet", "offers.parquet", "--lists", "--out", "m.jsonl")
    assert done.exit_code == 0, done.stderr
    assert subscriptions((folder / "m.jsonl").read_text()) == {"a": [1, 2], "b": [1]}


def test_contexts_come_from_tables_too_and_each_once(folder: Path) -> None:
    (folder / "wishes.jsonl").write_text(lines(ROWS[2:3]))
    (folder / "offers.jsonl").write_text('{"price": 5}\n')
    pq.write_table(pa.table({"context": ["ann"], "budget": [8]}), folder / "values.parquet")
    found = call("match", "wishes.jsonl", "offers.jsonl", "--contexts", "values.parquet")
    assert parsed(found.stdout) == [{"event": 0, "subscription": 3}]
    found = call("match", "wishes.jsonl", "offers.jsonl")
    assert found.stdout == ""
    for text, problem in (
        (
            '{"context": "ann", "budget": 8}\n{"context": "ann", "budget": 9}\n',
            "every context once",
        ),
        ('{"name": "ann"}\n', "expected the key context, found name"),
        ("nonsense\n", "line 1"),
    ):
        (folder / "twice.jsonl").write_text(text)
        found = call("match", "wishes.jsonl", "offers.jsonl", "--contexts", "twice.jsonl")
        assert found.exit_code in (1, 2)
        assert problem in found.stderr
    assert call("match", "wishes.jsonl", "offers.jsonl", "--contexts", "no.csv").exit_code == 2


def test_a_filter_that_could_mean_an_attribute_is_refused(folder: Path) -> None:
    (folder / "wishes.jsonl").write_text(lines([{**ROWS[0], "expr": "filter = 'x'"}]))
    found = call("match", "wishes.jsonl", "offers.jsonl")
    assert found.exit_code == 1
    assert "rename it" in found.stderr


def test_other_commands_take_fields_contexts_and_standard_input(folder: Path) -> None:
    rows = lines(ROWS)
    found = call("explain", "--subscriptions", "-", "--id", 3, "--contexts", "values.jsonl",
                 "--event", '{"price": 7}', input=rows)  # fmt: skip
    assert found.exit_code == 0, found.stderr
    assert "3 matches" in found.stdout
    found = call("verify", "-", "offers.jsonl", "--contexts", "values.jsonl", "--json", input=rows)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["difference"] is None
    found = call("verify", "wishes.jsonl", "-", input=lines(EVENTS))
    assert "indexes and scan agree" in found.stdout
    found = call("stats", "-", "--json", input=rows)
    assert json.loads(found.stdout)["subscriptions"] == 6
    found = call("validate", "-", "--json", input=rows)
    assert found.exit_code == 1
    assert [each["id"] for each in json.loads(found.stdout)["errors"]] == [6, 7, 9]


def test_standard_input_may_hold_csv(folder: Path) -> None:
    text = 'id,expr,priority\n1,"price < 9 AND x IN (1, 2)",5\n2,price <,1\n3,price < 7,9\n'
    found = call("match", "-", "offers.jsonl", "--limit", 1, input=text)
    assert parsed(found.stdout)[0] == {"event": 1, "subscription": 3}
    found = call("validate", "-", "--json", input=text)
    assert [(each["id"], each["file_line"]) for each in json.loads(found.stdout)["errors"]] == [
        (2, 3)
    ]
    assert call("validate", "-", input="price < 9\nid = 3\n").exit_code == 0
