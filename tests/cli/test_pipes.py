"""`matchwood match` as people type it: positions, pipes, compressed files, where it runs."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from commands import call
from matchwood import cli
from matchwood.cli import match_choice, match_spark, standard_input

ROOT = Path(__file__).parents[2]
WAIT = 300.0
"""Seconds after which a command hangs: far more than it takes beside other tests."""
WISHES = "id,expr\ncheap,price < 20\ndear,price >= 20\n"
OFFERS = '{"event_id": 7, "price": 5}\n{"event_id": "x", "price": 50}\n'
LINES = [
    '{"event": 7, "subscription": "cheap"}',
    '{"event": "x", "subscription": "dear"}',
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wishes.csv").write_text(WISHES)
    (tmp_path / "offers.jsonl").write_text('{"price": 5}\n{"price": 50}\n')
    return tmp_path


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-m", "matchwood", *words], env=env, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()  # type: ignore[union-attr]


def test_positions_and_options_say_the_same(folder: Path) -> None:
    first = call("match", "wishes.csv", "offers.jsonl")
    second = call("match", "--subscriptions", "wishes.csv", "--events", "offers.jsonl")
    mixed = call("match", "wishes.csv", "--events", "offers.jsonl", "--out", "-")
    assert first.exit_code == 0, first.stderr
    assert first.stdout == second.stdout == mixed.stdout
    rows = [json.loads(line) for line in first.stdout.splitlines()]
    assert rows == [{"event": 0, "subscription": "cheap"}, {"event": 1, "subscription": "dear"}]
    assert call("match", "wishes.csv").exit_code == 2
    assert call("match", "wishes.csv", "offers.jsonl", "--events", "offers.jsonl").exit_code == 2


def test_lists_on_standard_output_have_a_line_per_event(folder: Path) -> None:
    found = call("match", "wishes.csv", "offers.jsonl", "--lists")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["subscriptions"] for row in rows] == [["cheap"], ["dear"]]


def test_ids_on_a_pipe_are_as_they_are(folder: Path) -> None:
    (folder / "wishes.jsonl").write_text(
        '{"id": 7, "expr": "price < 20"}\n{"id": "7", "expr": "price < 30"}\n'
    )
    found = call("match", "wishes.jsonl", "-", input=OFFERS)
    assert [json.loads(line) for line in found.stdout.splitlines()] == [
        {"event": 7, "subscription": 7},
        {"event": 7, "subscription": "7"},
    ]


def test_standard_input_holds_events_or_subscriptions_but_not_both(folder: Path) -> None:
    assert call("match", "wishes.csv", "-", input=OFFERS).stdout.splitlines() == LINES
    assert call("match", "-", "offers.jsonl", input="price < 20\n").stdout.splitlines() == [
        '{"event": 0, "subscription": 1}'
    ]
    rules = '{"id": "a", "expr": "price < 20"}\n'
    assert '"subscription": "a"' in call("match", "-", "offers.jsonl", input=rules).stdout
    assert call("match", "-", "-", input=rules).exit_code == 2


def test_bad_rows_of_a_pipe_are_told_on_standard_error_and_stop_nothing(folder: Path) -> None:
    lines = '\n{"price": NaN}\nno json\n\n[1]\n{"price": 5}'
    found = call("match", "wishes.csv", "-", input=lines)
    assert found.exit_code == 0
    assert found.stdout == '{"event": 3, "subscription": "cheap"}\n'
    told = found.stderr.splitlines()[1:]
    assert told[0].startswith("matchwood: event 0, line 2: expected a JSON object")
    assert told[1].startswith("matchwood: event 1, line 3: expected a JSON object")
    assert told[2].startswith("matchwood: event 2, line 5: expected a JSON object")
    assert call("match", "wishes.csv", "-", "--strict", input=lines).exit_code == 1


def test_a_summary_beside_a_pipe_goes_to_standard_error(folder: Path) -> None:
    found = call("match", "wishes.csv", "-", "--json", input=OFFERS)
    assert found.stdout.splitlines() == LINES
    assert json.loads(found.stderr.partition("\n")[2])["matches"] == 2


@pytest.mark.slow
def test_every_line_of_a_pipe_is_answered_before_the_next_is_written(folder: Path) -> None:
    with started("match", "wishes.csv", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, answer in zip(OFFERS.splitlines(), LINES, strict=True):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode().strip() == answer
        process.stdin.close()
        assert process.wait(timeout=WAIT) == 0


@pytest.mark.slow
def test_an_interrupt_ends_with_130_and_a_closed_reader_with_141(folder: Path) -> None:
    with started("match", "wishes.csv", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(OFFERS.encode())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT) == 130
        assert b"Traceback" not in process.stderr.read()  # type: ignore[union-attr]
    with started("match", "wishes.csv", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(OFFERS.encode())
        process.stdin.close()
        assert process.wait(timeout=WAIT) == 141
        assert b"Traceback" not in process.stderr.read()  # type: ignore[union-attr]


class _Stdin:
    def __init__(self, descriptor: int) -> None:
        self.buffer = os.fdopen(descriptor, "rb")


def test_a_signal_that_came_before_the_wait_for_input_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python sees a signal before it waits or when one interrupts the wait, and not in between."""
    reading, writing = os.pipe()
    stdin = _Stdin(reading)
    monkeypatch.setattr(sys, "stdin", stdin)
    waits: list[int] = []

    real = standard_input.wait_for_any

    def spied(waited: list[int]) -> list[int]:
        found = real(waited)
        waits.append(len(found))
        if len(waits) == 1:
            os.write(writing, b"line")
        return found

    monkeypatch.setattr(standard_input, "wait_for_any", spied)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with stdin.buffer, standard_input.standard_input() as file:
            signal.raise_signal(signal.SIGUSR1)
            assert file.read1(100) == b"line"
            assert waits == [1, 1]
            os.close(writing)
            assert file.read() == b""
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert signal.set_wakeup_fd(-1) == -1


def test_a_descriptor_beyond_1023_and_a_file_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """select(2) takes no such descriptor."""
    (tmp_path / "lines").write_bytes(b"line")
    opened = os.open(tmp_path / "lines", os.O_RDONLY)
    try:
        high = fcntl.fcntl(opened, fcntl.F_DUPFD, 1_500)
    except OSError:
        pytest.skip("no such descriptor may be opened")
    finally:
        os.close(opened)
    stdin = _Stdin(high)
    monkeypatch.setattr(sys, "stdin", stdin)
    with stdin.buffer, standard_input.standard_input() as file:
        assert file.read() == b"line"


@pytest.mark.slow
@pytest.mark.parametrize("events", ["-", "offers.jsonl"])
def test_an_interrupt_that_a_callback_of_compiled_code_drops_ends_the_command(
    folder: Path, events: str
) -> None:
    code = (
        "import ctypes, os, signal, sys\n"
        "from matchwood import Matcher, cli\n"
        "add = Matcher.add_many\n"
        "def interrupted(self, *rows, **more):\n"
        "    call = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "    call()\n"
        "    return add(self, *rows, **more)\n"
        "Matcher.add_many = interrupted\n"
        f"sys.argv = ['matchwood', 'match', 'wishes.csv', {events!r}]\n"
        "cli.main()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", code], env=env, **pipes) as process:
        try:
            assert process.wait(timeout=WAIT) == 130
            errors = process.stderr.read().decode().splitlines()  # type: ignore[union-attr]
            assert errors[-1] == "matchwood: interrupted"
            assert not any("ignored" in line for line in errors)
        finally:
            process.kill()


def test_an_interrupt_while_the_command_is_imported_ends_with_130_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Imported:
        @property
        def app(self) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "matchwood.cli.app", Imported())  # type: ignore[arg-type]
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "matchwood: interrupted\n"


def packed(path: Path, text: str) -> None:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write(text.encode())


def unpacked(path: Path) -> str:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    with pa.input_stream(str(path), compression="zstd") as file:
        return bytes(file.read()).decode()


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_files_say_the_same(ending: str, folder: Path) -> None:
    packed(folder / f"wishes.csv.{ending}", WISHES)
    packed(folder / f"offers.jsonl.{ending}", OFFERS)
    packed(folder / f"offers.csv.{ending}", "event_id,price\n7,5\nx,50\n")
    for events in (f"offers.jsonl.{ending}", f"offers.csv.{ending}"):
        for out in ("m.jsonl", "m.csv"):
            found = call("match", f"wishes.csv.{ending}", events, "--out", f"{out}.{ending}")
            assert found.exit_code == 0, found.stderr
            assert call("match", "wishes.csv", events, "--out", out).exit_code == 0
            assert unpacked(folder / f"{out}.{ending}") == (folder / out).read_text()
            assert "cheap" in (folder / out).read_text()
    assert call("validate", f"wishes.csv.{ending}").exit_code == 0
    assert call("stats", f"wishes.csv.{ending}").exit_code == 0
    assert call("verify", f"wishes.csv.{ending}", f"offers.csv.{ending}").exit_code == 0
    explained = call(
        "explain", "--subscriptions", f"wishes.csv.{ending}", "--id", "cheap",
        "--event", '{"price": 5}',
    )  # fmt: skip
    assert explained.exit_code == 0


@pytest.mark.parametrize("name", ["offers.jsonl.gz", "offers.jsonl.zst", "offers.csv.gz"])
def test_a_damaged_compressed_file_ends_with_2(name: str, folder: Path) -> None:
    packed(folder / name, OFFERS * 100)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    found = call("match", "wishes.csv", name, "--out", "m.csv")
    assert found.exit_code == 2
    assert found.stderr.splitlines()[-1].startswith("matchwood: cannot read")
    assert not (folder / "m.csv").exists()


def test_parquet_compresses_itself(folder: Path) -> None:
    found = call("match", "wishes.csv", "offers.jsonl", "--out", "m.parquet.gz")
    assert found.exit_code == 2


# -- where it runs ---------------------------------------------------------------------------------


@pytest.fixture
def spark_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been matched on Spark."""
    calls: list[Any] = []

    def run(*words: Any) -> dict[str, Any]:
        calls.append(words)
        part = {"used": 0, "refused": 0, "bad": 0, "seconds": 0.0, "per_second": 0.0}
        return {"subscriptions": part, "events": part, "matches": 0, "out": words[2],
                "problems": 0, "errors": None, "compile_seconds": 0.0}  # fmt: skip

    monkeypatch.setattr(match_spark, "run", run)
    return calls


def first_line(found: Any) -> str:
    return str(found.stderr.splitlines()[0])


def test_small_files_are_matched_in_this_process_and_a_line_says_so(
    folder: Path, spark_calls: list[Any]
) -> None:
    found = call("match", "wishes.csv", "offers.jsonl", "--out", "m.csv")
    assert first_line(found) == (
        "matchwood: matching in this process: 69 bytes to read, Spark is for 1 GiB and more"
    )
    assert spark_calls == []


def test_large_files_are_matched_on_spark_where_it_is_installed(
    folder: Path, spark_calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_choice, "SPARK_FROM", 60)
    found = call("match", "wishes.csv", "offers.jsonl", "--out", "m.csv")
    assert first_line(found) == "matchwood: matching on Spark: 69 bytes to read"
    assert len(spark_calls) == 1
    call("match", "wishes.csv", "offers.jsonl", "--out", "m.csv", "--local")
    call("match", "wishes.csv", "offers.jsonl")
    monkeypatch.setattr(match_choice, "has_spark", lambda: False)
    found = call("match", "wishes.csv", "offers.jsonl", "--out", "m.csv")
    assert first_line(found) == "matchwood: matching in this process: Spark is not installed"
    assert len(spark_calls) == 1


@pytest.mark.parametrize("option", [["--spark"], ["--master", "local[1]"], ["--snapshots", "s"]])
def test_spark_is_used_when_it_is_asked_for(
    option: list[str], folder: Path, spark_calls: list[Any]
) -> None:
    found = call("match", "wishes.csv", "offers.jsonl", "--out", "m.csv", *option)
    assert first_line(found) == f"matchwood: matching on Spark: {option[0]}"
    assert len(spark_calls) == 1
    for more in (["--local", "--out", "m.csv"], []):
        found = call("match", "wishes.csv", "offers.jsonl", *more, *option)
        assert found.exit_code == 2
        assert option[0] in found.stderr
    assert len(spark_calls) == 1


def test_no_field_of_subscriptions_needs_spark(folder: Path, spark_calls: list[Any]) -> None:
    (folder / "wishes.csv").write_text("id,expr,priority\na,price < 20,1\n")
    found = call("match", "wishes.csv", "offers.jsonl", "--out", "m.csv", "--limit", "1")
    assert found.exit_code == 0
    assert spark_calls == []


@pytest.mark.slow
def test_matching_some_events_loads_nothing_that_it_does_not_need(folder: Path) -> None:
    code = (
        "import sys; from matchwood.cli.app import app\n"
        "try: app(['match', 'wishes.csv', 'offers.jsonl'])\n"
        "except SystemExit: pass\n"
        "print([n for n in ('pandas', 'pyspark', 'matplotlib', 'rich') if n in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


# -- the command around it -------------------------------------------------------------------------


def test_every_command_answers_to_h() -> None:
    for words in ([], ["match"], ["import"], ["bench", "run"]):
        found = call(*words, "-h")
        assert found.exit_code == 0
        assert "--help" in found.stdout


def test_there_is_shell_completion() -> None:
    assert "--install-completion" in call("--help", env={"COLUMNS": "200"}).stdout
