"""The suite `speed`: its rows, and that a wrong answer leaves no times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands import call
from matchwood.bench.goals import LEAST, AnswersDiffer, agree
from matchwood.bench.speed import user_cases
from matchwood.bench.speed.goals import GOALS
from matchwood.bench.speed.index_cases import distinct
from matchwood.bench.speed.runner import CASES, run_speed
from matchwood.bench.speed.user_cases import texts_of
from matchwood.encode.events import EventBatch
from matchwood.errors import MatchwoodError

BY_KEY = {each.key: each for each in GOALS}


def test_a_goal_is_met_on_the_better_side() -> None:
    assert BY_KEY["small"].is_met(4.9)
    assert not BY_KEY["small"].is_met(5.1)
    assert BY_KEY["dicts"].is_met(300_000)
    assert BY_KEY["dict p50"].is_met(1) is None
    assert len(BY_KEY) == len(GOALS)
    assert all(each.sense == LEAST for each in GOALS if each.unit in ("µs", "B"))


@pytest.mark.slow
def test_the_command_prints_before_goal_and_now(tmp_path: Path) -> None:
    command = ["bench", "run", "--suite", "speed", "--case", "small", "--out"]
    done = call(*command, tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    assert "before" in done.output
    (row,) = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert row["key"] == "small"
    assert row["now"] > 0
    assert row["is_met"] is None  # a smoke run judges nothing
    assert "speed: what a user waits for" in call("bench", "list").output


def test_a_wrong_answer_leaves_no_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(user_cases.Matcher, "match", lambda self, event: [])
    with pytest.raises(AnswersDiffer):
        run_speed("smoke", tmp_path, only=("small",))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(AnswersDiffer):
        agree("x", [1], [1], [2])


def test_unknown_presets_and_cases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MatchwoodError, match="expected a preset among smoke"):
        run_speed("huge", tmp_path)
    with pytest.raises(MatchwoodError, match="expected cases among small"):
        run_speed("smoke", tmp_path, only=("nothing",))


def test_texts_are_distinct_and_have_five_predicates() -> None:
    texts = texts_of(300)
    assert len(set(texts)) == 300
    assert all(text.count(" AND ") >= 4 for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CASES.keys() - {"small"}))
def test_every_case_measures_its_rows(case: str, tmp_path: Path) -> None:
    shown: list[str] = []
    report = run_speed("smoke", tmp_path, only=(case,), show=shown.append)
    assert report.data["rows"]
    assert all(row["now"] > 0 for row in report.data["rows"])
    assert all(goal.what in report.table() for goal in GOALS if goal.key == case)
    assert all(row["what"] in "\n".join(shown) for row in report.data["rows"])


def test_events_of_large_cases_are_distinct() -> None:
    keys = np.array([1, 2, 1, 2, 1, 3])
    events = EventBatch(np.array([0, 2, 4, 4, 6]), np.zeros(6, np.int32), keys, keys)
    found = distinct(events)
    assert found.start.tolist() == [0, 2, 2, 4]
    assert found.lo.tolist() == [1, 2, 1, 3]
