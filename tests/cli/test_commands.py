"""validate, explain, bench, errors and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import call

SRC = Path(__file__).parents[2] / "src"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    code = "from matchwood.cli import main; main()"
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_validate_shows_line_column_and_caret(tmp_path: Path) -> None:
    path = tmp_path / "wishes.txt"
    path.write_text("price < 20\n\nprice BETWEEN 20\nprice IN (1, 'x')\n")
    result = call("validate", path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{path}:3: column 17: expected AND")
    assert lines[1:3] == ["  price BETWEEN 20", " " * 18 + "^"]
    assert lines[3].startswith(f"{path}:4: column 1: expected constants of one kind")
    assert "3 expressions: 1 fine, 2 not" in lines


def test_validate_reads_standard_input() -> None:
    result = call("validate", "-", "--json", input="price < 20\nnonsense here\n")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["texts"], found["fine"]) == (2, 1)
    assert found["errors"][0]["file_line"] == 2
    assert found["schema"] == {"price": "number"}


def test_validate_checks_against_a_schema(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"price": "string", "user": {"age": "int"}}')
    assert call("validate", "--expr", "price < 20", "--schema", schema).exit_code == 1
    assert (
        call("validate", "--expr", "price < '2' AND user.age > 3", "--schema", schema).exit_code
        == 0
    )
    schema.write_text('{"price": "colour"}')
    assert call("validate", "--expr", "price < 20", "--schema", schema).exit_code == 2
    schema.write_text("[1]")
    assert call("validate", "--expr", "price < 20", "--schema", schema).exit_code == 2
    assert call("validate", "--expr", "a", "--schema", tmp_path / "none").exit_code == 2


def test_validate_wants_one_source() -> None:
    assert call("validate").exit_code == 2
    assert call("validate", "a.txt", "--expr", "a").exit_code == 2
    assert call("validate", "no-such-file.txt").exit_code == 2


def test_explain_shows_the_tree_and_the_reason() -> None:
    result = call("explain", "--expr", "price < 20 OR used", "--event", '{"price": 30}')
    assert result.exit_code == 0
    assert "├── FALSE   price < 20" in result.stdout
    assert "UNKNOWN used" in result.stdout
    found = call("explain", "--expr", "price < 20", "--event", '{"price": 3}', "--json")
    assert json.loads(found.stdout)["matches"] is True


def test_explain_finds_ids_of_both_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("price < 20\nat >= TIMESTAMP '2026-01-01 00:00:00'\n")
    (tmp_path / "b.jsonl").write_text('{"id": "2", "expr": "price > 20"}\n')
    event = '{"price": 30, "at": "2026-03-01 12:00:00"}'
    for name in ("a.txt", "b.jsonl"):
        source = ("--subscriptions", tmp_path / name, "--id", 2)
        result = call("explain", *source, "--event", event, "--json")
        assert json.loads(result.stdout)["matches"] is True
    missing = call("explain", "--subscriptions", tmp_path / "a.txt", "--id", 9, "--event", "{}")
    assert missing.exit_code == 1
    assert "9" in missing.stderr


@pytest.mark.parametrize("event", ["nonsense", "[1]"])
def test_explain_wants_an_object(event: str) -> None:
    result = call("explain", "--expr", "a", "--event", event)
    assert result.exit_code == 2
    assert "--event" in result.stderr


def test_explain_wants_an_expression_or_an_id() -> None:
    assert call("explain", "--event", "{}").exit_code == 2
    assert call("explain", "--event", "{}", "--id", 1).exit_code == 2
    assert call("explain", "--event", "{}", "--id", 1, "--expr", "a").exit_code == 2


@pytest.mark.slow
def test_an_error_is_one_message_without_a_traceback() -> None:
    done = run("explain", "--expr", "price <", "--event", "{}")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("matchwood: line 1, column 8: expected")
    assert "Traceback" not in done.stderr


def test_unknown_options_and_commands_end_with_2() -> None:
    assert call("validate", "--nope").exit_code == 2
    assert call("nope").exit_code == 2


def test_a_folder_without_a_snapshot_ends_with_2(tmp_path: Path) -> None:
    result = call("stats", tmp_path)
    assert result.exit_code == 2
    assert "snapshot" in result.stderr


def test_version_and_help_load_nothing_heavy() -> None:
    assert call("--version").stdout.startswith("matchwood")
    code = (
        "import sys; from matchwood.cli.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: print(*{'numba', 'pyarrow', 'pandas', 'pyspark'} & set(sys.modules))"
    )
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.slow
def test_bench_lists_and_runs(tmp_path: Path) -> None:
    suites = json.loads(call("bench", "list", "--json").stdout)
    assert "scan" in [each["name"] for each in suites]
    assert "scan" in call("bench", "list").stdout
    out = tmp_path / "result.json"
    words = ("bench", "run", "--suite", "scan", "--preset", "smoke", "--out", out)
    result = call(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["suite"] == "scan"
    assert json.loads(out.read_text())["preset"] == "smoke"
    assert call("bench", "run", "--suite", "nope").exit_code == 2


def test_what_is_listed_instead_of_a_wrong_name_is_all_that_is_there() -> None:
    suites = [each["name"] for each in json.loads(call("bench", "list", "--json").stdout)]
    told = call("bench", "run", "--suite", "nope").stderr
    assert f"expected a suite among {', '.join(suites)}, or a .toml file, found 'nope'" in told
    for suite in suites:
        told = call("bench", "run", "--suite", suite, "--preset", "nope").stderr
        assert "expected a preset among" in told
        assert "found 'nope'" in told


CODES = [
    (0, "validate wishes.csv"),
    (0, "match wishes.csv offers.jsonl"),
    (0, "match wishes.csv bad.jsonl"),
    (1, "match wishes.csv bad.jsonl --strict"),
    (1, "validate --expr price<"),
    (1, "explain --subscriptions wishes.csv --id nope --event {}"),
    (1, "stats damaged"),
    (1, "match damaged offers.jsonl"),
    (2, "match wishes.csv"),
    (2, "match wishes.csv offers.jsonl --nope"),
    (2, "match wishes.csv offers.jsonl --index nope"),
    (2, "match nowhere.csv offers.jsonl"),
    (2, "match wishes.csv offers.jsonl --out nowhere/m.csv"),
    (2, "match wishes.csv offers.jsonl --out m.txt"),
    (2, "verify wishes.csv offers.jsonl --index nope"),
    (2, "explain --expr a=1 --event nonsense"),
    (2, "stats nowhere"),
    (1, "duplicates twice.txt --strict"),
    (0, "duplicates twice.txt"),
    (1, "overlaps wishes.csv --id nope"),
    (2, "near wishes.csv"),
    (2, "verify wishes.csv offers.jsonl --sample 0"),
    (2, "validate wishes.csv --schema wishes.csv"),
    (2, "bench run --suite nope"),
    (2, "bench run --suite scan --preset nope"),
    (2, "generate nope --out x"),
    (2, "generate begen:nope --out x"),
    (2, "kernels --compile --baseline nope"),
    (2, "nope"),
]


@pytest.mark.parametrize(("code", "line"), CODES)
def test_exit_codes_are_those_of_the_page(
    code: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wishes.csv").write_text("id,expr\ncheap,price < 20\n")
    (tmp_path / "offers.jsonl").write_text('{"price": 5}\n')
    (tmp_path / "twice.txt").write_text("price < 20\nprice < 20\n")
    (tmp_path / "bad.jsonl").write_text('{"price": 5}\nnonsense\n')
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.json").write_text("nonsense")
    result = call(*line.split())
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, (SystemExit, type(None)))
    if code and "Usage:" not in result.stderr and not line.startswith("validate --expr"):
        told = [each for each in result.stderr.splitlines() if "matching in this" not in each]
        assert all(each.startswith("matchwood: ") for each in told)


def test_verify_reads_snapshots_and_tells_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matchwood as mw
    from matchwood.engine.answers import proof

    matcher = mw.Matcher()
    matcher.add("cheap", "price < 20")
    matcher.save(tmp_path / "books")
    (tmp_path / "offers.jsonl").write_text('{"price": 5}\n{"price": 50}\n')
    words = ("verify", tmp_path / "books", tmp_path / "offers.jsonl")
    assert call(*words).stdout == "1 subscriptions, 2 events, 1 matches: indexes and scan agree\n"
    assert call(*words, "--index", "scan").exit_code == 2
    monkeypatch.setattr(proof, "_scanned", lambda _store, encoded: [set(), set()])
    found = call(*words, "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["event"] == 0
    assert found.stderr.startswith("matchwood: event 0: 'cheap' matches by the index")
    assert len(found.stderr.splitlines()) == 1


def test_a_difference_in_a_sample_names_the_event_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matchwood.engine.answers import proof
    from matchwood.engine.formats import files

    monkeypatch.setattr(files, "BATCH", 3)
    (tmp_path / "wishes.csv").write_text("id,expr\ncheap,price < 20\n")
    (tmp_path / "offers.jsonl").write_text('{"price": 50}\n' * 9 + '{"price": 5}\n')
    monkeypatch.setattr(proof, "_scanned", lambda _store, encoded: [set()] * 10)
    words = ("verify", tmp_path / "wishes.csv", tmp_path / "offers.jsonl", "--json")
    for more in ((), ("--sample", 10)):
        found = call(*words, *more)
        assert found.exit_code == 1
        assert json.loads(found.stdout)["event"] == 9
        assert json.loads(found.stdout)["difference"].startswith("event 9: 'cheap' matches by")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_sample_is_drawn_from_all_events(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matchwood.engine.formats import files

    monkeypatch.setattr(files, "BATCH", 7)
    (tmp_path / "wishes.csv").write_text("id,expr\ncheap,price < 50\n")
    source = tmp_path / f"offers.{ending}"
    if ending == "jsonl":
        source.write_text("".join(f'{{"price": {n}}}\n' for n in range(100)))
    else:
        pq.write_table(pa.table({"price": range(100)}), source)
    words = ("verify", tmp_path / "wishes.csv", source, "--json")

    def checked(*more: object) -> Any:
        found = call(*words, *more)
        assert found.exit_code == 0, found.stderr
        return json.loads(found.stdout)

    whole = {"subscriptions": 1, "events": 100, "read": 100, "matches": 50, "difference": None}
    assert checked() == checked("--sample", 100) == checked("--sample", 1000) == whole
    some = [checked("--sample", 20, "--seed", seed) for seed in range(12)]
    assert {(each["events"], each["read"]) for each in some} == {(20, 100)}
    counts = [each["matches"] for each in some]
    assert len(set(counts)) > 1
    assert 60 < sum(counts) < 180
    assert checked("--sample", 20, "--seed", 3) == some[3]
    shown = call(*words[:-1], "--sample", 20).stdout
    assert shown.startswith("1 subscriptions, 20 of 100 events, ")
    assert call(*words, "--sample", 0).exit_code == 2


def test_verify_tells_how_much_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "wishes.csv").write_text("id,expr\ncheap,price < 20\nbad,price <\n")
    (tmp_path / "offers.jsonl").write_text('{"price": 5}\nnonsense\n5\n')
    found = call("verify", tmp_path / "wishes.csv", tmp_path / "offers.jsonl")
    assert found.stdout == "1 subscriptions, 3 events, 1 matches: indexes and scan agree\n"
    assert found.stderr == "matchwood: 3 subscriptions or events were left out: match names them\n"
