"""What a row of `matchwood match` is: counts, and events whose ids look like numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from commands import call

COUNTS = [1, 2, 0, 1]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl"])
@pytest.mark.parametrize("shape", ["count", "exists"])
def test_counts_have_a_row_per_event_in_every_format(
    shape: str, ending: str, tmp_path: Path
) -> None:
    (tmp_path / "wishes.txt").write_text("price < 20\nprice < 10\n")
    events = [{"event_id": n, "price": price} for n, price in enumerate([15, 5, 50, 12])]
    lines = [json.dumps(each) for each in events]
    (tmp_path / "offers.jsonl").write_text("\n".join([*lines, "nonsense"]))
    out = tmp_path / f"m.{ending}"
    words = ("match", tmp_path / "wishes.txt", tmp_path / "offers.jsonl", "--out", out, "--json")
    done = call(*words, f"--{shape}")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["matches"] == sum(COUNTS)
    expected = COUNTS if shape == "count" else [bool(each) for each in COUNTS]
    if ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    elif ending == "csv":
        rows = pyarrow.csv.read_csv(out).to_pylist()
    else:
        read = pq.read_table if ending == "parquet" else pyarrow.feather.read_table
        rows = read(out).to_pylist()
    assert rows == [{"event": n, shape: each} for n, each in enumerate(expected)]


def test_counts_of_a_pipe_are_answered_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "wishes.txt").write_text("price < 20\nprice < 10\n")
    events = '{"price": 5}\n{"price": 50}\n'
    found = call("match", tmp_path / "wishes.txt", "-", "--count", input=events)
    assert found.stdout == '{"event": 0, "count": 2}\n{"event": 1, "count": 0}\n'
    found = call("match", tmp_path / "wishes.txt", "-", "--exists", input=events)
    assert found.stdout == '{"event": 0, "exists": true}\n{"event": 1, "exists": false}\n'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--count --exists", "--pairs, --lists, --count and --exists, found --count and --exists"),
        ("--lists --count", "found --lists and --count"),
        ("--pairs --exists", "found --pairs and --exists"),
        ("--count --limit 3", "expected --limit with pairs or lists, found --count"),
        ("--exists --payload", "expected --payload with pairs, found --exists"),
        ("--lists --payload", "expected --payload with pairs, found --lists"),
    ],
)
def test_a_row_is_one_thing(options: str, said: str) -> None:
    found = call("match", "wishes.csv", "offers.jsonl", *options.split())
    assert found.exit_code == 2
    assert said in found.stderr


@pytest.mark.parametrize("odd", ["--5", "-", "\u0665", "007", "-0"])
def test_event_ids_that_are_nearly_numbers_are_texts(odd: str, tmp_path: Path) -> None:
    (tmp_path / "wishes.txt").write_text("price < 20\n")
    ids = ["5", odd]
    text = "".join(json.dumps({"event_id": each, "price": 5}) + "\n" for each in ids)
    (tmp_path / "offers.jsonl").write_text(text)
    out = tmp_path / "m.parquet"
    done = call("match", tmp_path / "wishes.txt", tmp_path / "offers.jsonl", "--out", out)
    assert done.exit_code == 0, done.output
    assert pq.read_table(out)["event"].to_pylist() == ids
