"""`matchwood import`: every file of rules becomes a file of subscriptions that match takes."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from commands import call

PATTERN = {"source": ["aws.ec2"], "detail": {"state": [{"anything-but": "running"}]}}
SHORT = ("--no-arrays", "--typed")
TEXT = "source = 'aws.ec2' AND detail.state <> 'running'"


def table(rows: list[list[str]]) -> str:
    import io

    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue()


FILES = {
    "map.json": json.dumps({"r": PATTERN}),
    "list.json": json.dumps([{"id": "r", "pattern": PATTERN}], indent=1),
    "aws.json": json.dumps({"Rules": [{"Name": "r", "EventPattern": json.dumps(PATTERN)}]}),
    "one.jsonl": json.dumps({"id": "r", "rule": PATTERN}) + "\n",
    "rules.csv": table([["id", "rule"], ["r", json.dumps(PATTERN)]]),
}


@pytest.mark.parametrize("name", FILES)
def test_rules_are_read_as_people_keep_them(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(FILES[name].encode()))
    for each in (name, f"{name}.gz"):
        found = call("import", tmp_path / each, *SHORT)
        assert found.exit_code == 0, found.stderr
        assert json.loads(found.stdout) == {"id": "r", "expr": TEXT}


def test_standard_input_holds_rules_too() -> None:
    found = call("import", "-", *SHORT, input=FILES["map.json"])
    assert json.loads(found.stdout)["expr"] == TEXT
    found = call("import", "-", input="a = 1\nb IN (2,3)\n")
    assert json.loads(found.stdout.splitlines()[1]) == {"id": 2, "expr": "b IN (2, 3)"}


@pytest.mark.parametrize("out", ["rules.csv", "rules.jsonl", "rules.csv.gz"])
def test_what_is_written_is_what_match_takes(out: str, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(FILES["map.json"])
    found = call("import", tmp_path / "map.json", "--out", tmp_path / out)
    assert found.exit_code == 0, found.stderr
    event = '{"source": "aws.ec2", "detail": {"state": "stopped"}}\n'
    matched = call("match", tmp_path / out, "-", input=event)
    assert json.loads(matched.stdout) == {"event": 0, "subscription": "r"}


def test_a_refused_rule_is_told_and_ends_with_1_only_when_strict(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"r": PATTERN, "bad": {"ip": [{"cidr": "10.0.0.0/8"}]}}))
    found = call("import", path)
    assert found.exit_code == 0
    assert found.stderr.startswith("matchwood: rule 'bad': cidr at ip[0].cidr: expected at most")
    assert call("import", path, "--strict").exit_code == 1
    report = json.loads(call("import", path, "--json").stdout)
    assert report["format"] == "eventbridge"
    assert [each["id"] for each in report["subscriptions"]] == ["r"]
    assert report["errors"][0]["construct"] == "cidr"


def test_wrong_calls_of_import_end_with_2(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"a": 1')
    assert call("import", path).exit_code == 2
    assert call("import", tmp_path / "none.json").exit_code == 2
    path.write_text(FILES["map.json"])
    assert call("import", path, "--format", "drools").exit_code == 2
    assert call("import", path, "--out", tmp_path / "rules.parquet").exit_code == 2
    logic = json.dumps([{"==": [{"var": "a"}, 1]}])
    assert call("import", "-", "--strict", input=logic).exit_code == 1
    assert call("import", "-", "--strict", "--typed", input=logic).exit_code == 0
