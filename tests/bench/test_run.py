from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from matchwood.bench import Report, Suite, list_suites, run_suite
from matchwood.bench.answers import WrongAnswers
from matchwood.bench.suite import read_suite
from matchwood.encode.events import EventBatch
from matchwood.errors import FormatError, IndexBuildError, MatchwoodError, StorageError
from matchwood.index.core.protocol import CONJUNCTIONS, Hits
from matchwood.index.core.scratch import Scratch
from matchwood.index.scan.index import Scan

FEW = "{n_subscriptions = 2000, n_events = 20}"


def suite(indexes: str = '{index = "scan"}', preset: str = "", cases: str = FEW) -> Suite:
    return read_suite(
        "mine",
        f"indexes = [{indexes}]\n[presets.smoke]\nworkload = 'uniform:smoke'\nrepetitions = 3\n"
        f"cases = [{cases}]\n{preset}",
    )


class Forgetful(Scan):
    """Loses the last match of every batch."""

    name: ClassVar[str] = "forgetful"

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        hits = super().search(events, scratch)
        offsets = np.minimum(hits.offsets, len(hits.slots) - 1)
        return Hits(offsets, hits.slots[:-1], hits.counters)


class Tiring(Scan):
    """Right at first, wrong once it is being timed."""

    calls = 0

    def search(self, events: EventBatch, scratch: Scratch) -> Hits:
        hits = super().search(events, scratch)
        self.calls += 1
        return hits if self.calls < 3 else hits._replace(slots=hits.slots[:-1])


class KeepsDeleted(Scan):
    """Does not delete."""

    def delete(self, slots: np.ndarray) -> None:
        pass


class Choosy(Scan):
    """Takes no workload at all."""

    language: ClassVar[str] = CONJUNCTIONS

    @classmethod
    def build(cls, table: Any, slots: np.ndarray, **config: Any) -> Any:
        raise IndexBuildError("takes equalities only")


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in list_suites()])
def test_the_smoke_preset_of_every_suite_runs_end_to_end(name: str, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    report = run_suite(name, "smoke", tmp_path, lambda *step: told.append(step))
    assert told[-1][1] == told[-1][2] == len(told)
    (path,) = tmp_path.iterdir()
    assert report.path == path
    assert path.name.startswith(f"{name}-smoke-")
    lines = report.table().splitlines()
    assert f"again: matchwood bench run --suite {name} --preset smoke" in lines
    assert max([len(line) for line in lines if not line.startswith("result: ")]) <= 110


@pytest.mark.slow
def test_the_table_shows_what_was_measured_and_checked(tmp_path: Path) -> None:
    text = run_suite("scan", "smoke", tmp_path).table()
    for word in ("scan", "null", "reference", "unchecked", "µs per", "predicates", "compile"):
        assert word in text


def test_the_result_file_tells_everything(tmp_path: Path) -> None:
    chosen = suite('{index = "scan"}, {index = "null"}')
    report = run_suite(chosen, "smoke", tmp_path / "r.json", seed=9, only_indexes=["scan"])
    text = (tmp_path / "r.json").read_text()
    assert str(tmp_path) not in text
    data = json.loads(text)
    assert {"python", "numba", "numpy", "matchwood"} <= data["versions"].keys()
    assert {"cpu", "cores"} <= data["machine"].keys()
    assert {"commit", "started", "seconds", "definition", "format"} <= data.keys()
    assert data["arguments"] == {"suite": "mine", "preset": "smoke", "index": ["scan"], "seed": 9}
    assert data["command"] == report.command
    assert data["command"].endswith("--preset smoke --index scan --seed 9")
    (case,) = data["cases"]
    assert case["parameters"]["seed"] == 9
    assert case["parameters"]["n_subscriptions"] == case["subscriptions"]["conjunctions"] == 2000
    assert {"generate", "read", "resolve", "store", "encode events"} <= case["seconds"].keys()
    assert case["answers"]["events"] == case["n_events"] == 20
    assert len(case["answers"]["sha256"]) == 64
    (row,) = case["indexes"]
    assert len(row["times"]) == 3
    assert row["counters"]["candidates"] == 20 * 2000
    assert row["counters"]["matches"] == case["answers"]["matches"] > 0
    assert row["metrics"]["times_faster_than_scan"] == 1
    assert row["bytes"] > 0
    assert row["build_seconds"] >= 0
    assert Report.read(tmp_path / "r.json").table() == report.table()


@pytest.mark.slow
def test_runs_with_one_seed_have_the_same_answers(tmp_path: Path) -> None:
    def fingerprint(seed: int) -> str:
        data = run_suite(suite(), "smoke", tmp_path, seed=seed).data
        return str(data["cases"][0]["answers"]["sha256"])

    assert fingerprint(1) == fingerprint(1)
    assert fingerprint(1) != fingerprint(2)


def test_a_wrong_answer_ends_the_run_without_a_result(tmp_path: Path) -> None:
    chosen = suite('{index = "scan"}, {index = "forgetful"}', cases="{label = 'c', n_events = 9}")
    with pytest.raises(WrongAnswers, match=r"'forgetful' in case 'c': .* 1 missing, 0 extra"):
        run_suite(chosen, "smoke", tmp_path, extra_indexes={"forgetful": Forgetful})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_answer_that_changes_while_timed_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(WrongAnswers, match="matches in every pass"):
        run_suite(suite('{index = "tiring"}'), "smoke", tmp_path, extra_indexes={"tiring": Tiring})


@pytest.mark.slow
def test_deletions_are_timed_and_checked(tmp_path: Path) -> None:
    chosen = suite('{index = "scan", chunk = 100}', "delete = 0.25")
    (case,) = run_suite(chosen, "smoke", tmp_path).data["cases"]
    assert case["indexes"][0]["n_deleted"] == 500
    assert case["indexes"][0]["delete_seconds"] > 0
    keeps = suite('{index = "keeps"}', "delete = 0.25")
    with pytest.raises(WrongAnswers, match=r"0 missing, [1-9]"):
        run_suite(keeps, "smoke", tmp_path, extra_indexes={"keeps": KeepsDeleted})


@pytest.mark.slow
def test_an_index_may_be_built_by_insertion_and_see_fewer_events(tmp_path: Path) -> None:
    chosen = suite('{index = "scan", build = "insert", chunk = 300, events = 5}')
    (case,) = run_suite(chosen, "smoke", tmp_path).data["cases"]
    (row,) = case["indexes"]
    assert (row["build"], row["n_events"], row["counters"]["events"]) == ("insert", 5, 5)
    assert row["counters"]["candidates"] == 5 * 2000
    assert row["answers"] == "reference"


def test_an_index_that_cannot_take_a_workload_is_skipped(tmp_path: Path) -> None:
    chosen = suite('{index = "scan"}, {index = "choosy"}', "checked_events = 4")
    report = run_suite(chosen, "smoke", tmp_path, extra_indexes={"choosy": Choosy})
    row = report.data["cases"][0]["indexes"][1]
    assert (row["answers"], row["note"], row["times"]) == ("skipped", "takes equalities only", [])
    assert "choosy: takes equalities only" in report.table()
    assert report.data["cases"][0]["answers"]["events"] == 4


@pytest.mark.slow
def test_passes_stop_when_their_time_is_used_up(tmp_path: Path) -> None:
    report = run_suite(suite(preset="seconds = 0.0000001"), "smoke", tmp_path)
    assert len(report.data["cases"][0]["indexes"][0]["times"]) == 1
    assert "scan: 1 passes in" in report.table()


def test_unknown_indexes_and_settings_are_explained(tmp_path: Path) -> None:
    with pytest.raises(MatchwoodError, match="expected indexes among scan, found nothing"):
        run_suite(suite(), "smoke", tmp_path, only_indexes=["nothing"])
    with pytest.raises(IndexBuildError, match="found 'nothing'"):
        run_suite(suite('{index = "nothing"}'), "smoke", tmp_path)
    with pytest.raises(IndexBuildError, match="scan: expected no settings, found colour"):
        run_suite(suite('{index = "scan", config = {colour = 1}}'), "smoke", tmp_path)


def test_files_that_are_no_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(FormatError, match="expected a result file of format 1"):
        Report.read(tmp_path / "x.json")
    with pytest.raises(StorageError, match="expected a result file, found"):
        Report.read(tmp_path / "y.json")
