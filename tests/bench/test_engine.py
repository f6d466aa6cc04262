"""The suite `engine`: its rows, and that a wrong answer leaves no times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import call
from matchwood import Matcher
from matchwood.bench.engine import cases
from matchwood.bench.engine.contest import WORKLOADS, ratio
from matchwood.bench.engine.goals import GOALS
from matchwood.bench.engine.runner import CASES, run_engine
from matchwood.bench.goals import AnswersDiffer
from matchwood.errors import MatchwoodError

BY_KEY = {each.key: each for each in GOALS}


def test_rows_have_names_of_their_own_and_ratios_a_goal() -> None:
    assert len(BY_KEY) == len(GOALS)
    assert all(BY_KEY[f"auto {name}"].is_met(1.1) for name in WORKLOADS)
    assert not BY_KEY["auto begen"].is_met(1.3)
    assert ratio({"auto": 3.0, "scan": 4.0, "blocks": 2.0}) == (1.5, "blocks")


@pytest.mark.slow
def test_the_command_prints_a_histogram_of_searches(tmp_path: Path) -> None:
    command = ["bench", "run", "--suite", "engine", "--case", "live", "--out"]
    done = call(*command, tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    assert "searches by duration" in done.output
    data = json.loads((tmp_path / "found.json").read_text())
    assert [row["key"] for row in data["rows"]] == ["changes", "p99"]
    (histogram,) = data["histograms"]
    assert sum(histogram["quiet"]) > 0
    assert sum(histogram["changing"]) > 0
    assert "engine: auto against the best" in call("bench", "list").output


def test_a_wrong_answer_leaves_no_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[Path] = []
    open_ = Matcher.open

    def forgetful(folder: Path, *args: object, **options: object) -> Matcher:
        m = open_(folder, *args, **options)
        if folder in opened:
            m.remove_many(list(m)[:500])
        opened.append(folder)
        return m

    monkeypatch.setattr(cases.Matcher, "open", forgetful)
    with pytest.raises(AnswersDiffer):
        run_engine("smoke", tmp_path, only=("adds",))
    assert list(tmp_path.iterdir()) == []


def test_unknown_presets_and_cases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MatchwoodError, match="suite engine: expected a preset among smoke"):
        run_engine("huge", tmp_path)
    with pytest.raises(MatchwoodError, match="suite engine: expected cases among uniform"):
        run_engine("smoke", tmp_path, only=("nothing",))


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CASES.keys() - {"live"}))
def test_every_case_measures_its_rows(case: str, tmp_path: Path) -> None:
    shown: list[str] = []
    report = run_engine("smoke", tmp_path, only=(case,), show=shown.append)
    assert report.data["rows"]
    assert all(row["now"] > 0 for row in report.data["rows"])
    assert all(row["what"] in report.table() for row in report.data["rows"])
    assert all(row["what"] in "\n".join(shown) for row in report.data["rows"])
