"""The suite papers: all panels, rows resumed, refused rows labelled, answers checked."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchwood.bench.answers import WrongAnswers
from matchwood.bench.papers import read_papers, run_papers
from matchwood.bench.papers.cases import PRESETS, Limits, Paper, read_paper
from matchwood.bench.papers.compare import NOISE, SLOWER, as_text, compare_runs
from matchwood.bench.papers.curves import panels
from matchwood.bench.papers.isolated import ENDED, EXPANSION, MEMORY, TIME, Child, Refused
from matchwood.bench.papers.rows import MEASURED, REFUSED, WRONG, Results
from matchwood.bench.papers.workers import side_by_side
from matchwood.errors import ExpansionError, FormatError, MatchwoodError

PANELS = {"be_tree": 27, "ps_tree": 26, "vcr": 8, "a_tree": 23, "agile": 8}
"""Every lettered panel of every figure, and every table."""


def tiny(*series: str, points: str = "[{ n_subscriptions = 300 }]", more: str = "") -> Paper:
    """A paper of one case."""
    lines = "\n".join(f'[series.{each}]\nindex = "{each}"' for each in series)
    names = ", ".join(f'"{each}"' for each in series)
    paper = read_paper(
        "tiny",
        f"""
paper = "Tiny"
{lines}
{more}
[[case]]
id = "1"
workload = "begen:smoke"
axis = "n_subscriptions"
points = {points}
series = [{names}]
[[case.figure]]
panel = "Figure 1"
title = "t"
claims = [{{ rule = "faster", who = "{series[0]}", says = "best" }}]
""",
    )
    limits = {each: Limits(events=3, checked=3, repetitions=2, row_seconds=20) for each in PRESETS}
    return dataclasses.replace(paper, presets=limits)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_panel_of_the_five_papers_is_a_case() -> None:
    found = {p.id: sum(len(case.figures) for case in p.cases) for p in read_papers()}
    assert found == PANELS
    for paper in read_papers():
        for case in paper.cases:
            assert all(figure.claims for figure in case.figures), case.key


@pytest.mark.slow
def test_every_point_of_every_case_has_a_workload_and_settings() -> None:
    for paper in read_papers():
        for case in paper.cases:
            for preset in PRESETS:
                limits = paper.presets[preset]
                for point in range(len(case.points)):
                    for series in case.series:
                        case.config(point, series, preset, limits)
                        if case.workload:
                            workload, whole = case.at(point, series, preset, limits)
                            assert 0 < workload.n_subscriptions <= max(whole, limits.least)


def test_claims_name_points_that_exist() -> None:
    for paper in read_papers():
        for case in paper.cases:
            xs = [case.x(point) for point in range(len(case.points))]
            for figure in case.figures:
                for claim in figure.claims:
                    if isinstance(claim.at, str) or claim.rule in ("refuses",):
                        continue
                    at = claim.at if isinstance(claim.at, list) else [claim.at]
                    assert set(at) <= set(xs), (case.key, figure.panel, claim.says)


@pytest.mark.slow
def test_a_run_resumes_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    paper = tiny("scan", "be_tree", points="[{ n_subscriptions = 200 }, { n_subscriptions = 400 }]")
    whole = run_papers("paper", out, papers=[paper])
    assert len(whole) == 4
    lines = out.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["run"] + ["row"] * 4
    torn = [*lines[:3], lines[3][:50]]  # a run that was killed while it wrote
    out.write_text("\n".join(torn))
    seen: list[str] = []
    again = run_papers("paper", out, lambda what, *_: seen.append(what), papers=[paper])
    assert len(again) == 4
    assert len(seen) == 2
    assert {row["answers"] for row in again if row["point"] == 0} == {
        row["answers"] for row in whole if row["point"] == 0
    }
    nothing: list[str] = []
    run_papers("paper", out, lambda what, *_: nothing.append(what), papers=[paper])
    assert nothing == []


@pytest.mark.slow
def test_two_jobs_measure_the_rows_of_one_and_resume_as_it_does(tmp_path: Path) -> None:
    points = "[{ n_subscriptions = 200 }, { n_subscriptions = 300 }, { n_subscriptions = 400 }]"
    paper = tiny("scan", "be_tree", points=points)
    alone = run_papers("paper", tmp_path / "one.jsonl", papers=[paper])
    out = tmp_path / "two.jsonl"
    both = run_papers("paper", out, papers=[paper], jobs=2)

    def answers(results: Results) -> dict[tuple[int, str], tuple[str, str]]:
        return {
            (row["point"], row["series"]): (row["definition"], row["answers"]) for row in results
        }

    assert answers(both) == answers(alone)
    assert len(rows_of(out)) == 1 + 6
    nothing: list[str] = []
    run_papers("paper", out, lambda what, *_: nothing.append(what), papers=[paper], jobs=2)
    assert nothing == []


def test_a_worker_that_fails_or_ends_is_an_error_and_leaves_no_process() -> None:
    import os

    def fails(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return os.getpid()

    def children() -> set[str]:
        """Processes of this one; others may be there, as Spark's."""
        return set(Path("/proc/thread-self/children").read_text().split())

    before = children()
    found: list[tuple[int, int]] = []
    with pytest.raises(MatchwoodError, match="ValueError: two"):
        found += side_by_side([0, 1, 2, 3], 2, fails)
    with pytest.raises(MatchwoodError, match="fewer --jobs"):
        list(side_by_side([0, 1], 2, lambda _: os._exit(1)))
    assert children() <= before
    done = list(side_by_side([0, 1, 3, 4], 2, fails))
    assert sorted(number for number, _ in done) == [0, 1, 3, 4]
    assert os.getpid() not in {pid for _, pid in done}


@pytest.mark.slow
def test_a_changed_definition_is_measured_again(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run_papers("paper", out, papers=[tiny("be_tree")])
    seen: list[str] = []
    other = tiny("be_tree", points="[{ n_subscriptions = 301 }]")
    run_papers("paper", out, lambda what, *_: seen.append(what), papers=[other])
    assert len(seen) == 1


def test_another_preset_does_not_go_into_the_same_file(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run_papers("paper", out, papers=[tiny("scan")])
    with pytest.raises(FormatError, match="preset"):
        run_papers("small", out, papers=[tiny("scan")])


def test_a_row_that_refuses_is_a_labelled_point_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matchwood.index.baselines.gryphon import Gryphon
    from matchwood.index.baselines.k_index import KIndex

    def too_much(*_: Any, **__: Any) -> Any:
        return np.ones(2**40)

    def expanded(*_: Any, **__: Any) -> Any:
        raise ExpansionError("too many")

    monkeypatch.setattr(KIndex, "search", too_much)
    monkeypatch.setattr(Gryphon, "build", expanded)
    monkeypatch.setattr("matchwood.bench.papers.index_rows._warm_up", lambda *_: None)
    paper = tiny("scan", "k_index", "gryphon", "be_tree")
    results = run_papers("paper", tmp_path / "r.jsonl", papers=[paper])
    states = {row["series"]: (row["state"], row.get("label")) for row in results}
    assert states["scan"] == states["be_tree"] == (MEASURED, None)
    assert states["k_index"] == (REFUSED, MEMORY)
    assert states["gryphon"] == (REFUSED, EXPANSION)
    panel = panels(results, (paper,))[0]
    assert panel.curves["us_per_event"].refused["k_index"] == [True]


def test_wrong_answers_are_recorded_and_end_the_run_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matchwood.index.baselines.counting import Counting
    from matchwood.index.core.protocol import Hits

    right = Counting.search

    def one_less(self: Any, events: Any, scratch: Any) -> Hits:
        hits = right(self, events, scratch)
        offsets = np.minimum(hits.offsets, len(hits.slots) - 1)
        return Hits(offsets, hits.slots[:-1], hits.counters)

    monkeypatch.setattr(Counting, "search", one_less)
    out = tmp_path / "r.jsonl"
    with pytest.raises(WrongAnswers, match="1 rows with wrong answers"):
        run_papers("paper", out, papers=[tiny("counting", "be_tree")])
    states = {row["series"]: row["state"] for row in Results.read(out)}
    assert states == {"counting": WRONG, "be_tree": MEASURED}


def test_a_point_beyond_the_machine_is_labelled_and_not_tried(tmp_path: Path) -> None:
    paper = tiny("scan")
    few = {each: dataclasses.replace(paper.presets[each], most=100) for each in PRESETS}
    results = run_papers("paper", tmp_path / "r.jsonl",
                         papers=[dataclasses.replace(paper, presets=few)])  # fmt: skip
    assert [row["label"] for row in results] == ["beyond this machine"]


def test_an_unknown_case_or_series_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(MatchwoodError, match="be_tree/99"):
        run_papers("smoke", tmp_path, only=["be_tree/99"])
    with pytest.raises(MatchwoodError, match="series that exist"):
        read_paper(
            "x",
            tiny.__doc__
            and """
paper = "X"
[series.a]
index = "scan"
[[case]]
id = "1"
workload = "begen"
series = ["a"]
[[case.figure]]
panel = "p"
title = "t"
claims = [{ rule = "faster", who = "b", says = "so" }]
""",
        )


@pytest.mark.slow
def test_programs_that_are_not_ours_give_the_same_answers(tmp_path: Path) -> None:
    results = run_papers("smoke", tmp_path, suite="external")
    rows = {(row["point"], row["series"]): row for row in results}
    for name in ("matcher", "numpy", "duckdb", "python_eval"):
        assert rows[0, name]["state"] == MEASURED, rows[0, name]
    measured = [row for row in results if row["state"] == MEASURED and row["point"] == 0]
    assert len({row["answers"] for row in measured}) == 1
    assert measured[0]["metrics"]["matches_per_event"] > 0


@pytest.mark.slow
def test_the_whole_suite_runs_in_the_preset_smoke(tmp_path: Path) -> None:
    results = run_papers("smoke", tmp_path)
    found = panels(results, read_papers())
    assert len(found) == sum(PANELS.values())
    assert all(panel.rows for panel in found)
    states = [row["state"] for row in results]
    assert states.count(MEASURED) > 0.97 * len(states)
    reasons = {(row["case"], row["series"]) for row in results if row["state"] == REFUSED}
    assert {case for case, _ in reasons} <= {"a_tree/depth", "a_tree/children", "be_tree/8a",
                                             "be_tree/8b"}  # fmt: skip


def steps_of(*found: Any) -> Any:
    def steps() -> Iterator[Any]:
        for each in found:
            yield each() if callable(each) else each

    return steps


def refused(child: Child, seconds: float = 120.0) -> str:
    with pytest.raises(Refused) as error:
        child.step(seconds)
    return error.value.label


def test_a_process_of_its_own_has_a_time_cap_a_memory_cap_and_no_way_to_end_ours() -> None:
    import os
    import time

    assert refused(Child(steps_of(lambda: time.sleep(600)), 500), 0.1) == TIME
    assert refused(Child(steps_of(lambda: np.ones(10**9)), 500)) == MEMORY
    assert refused(Child(steps_of(lambda: os._exit(3)), 500)) == ENDED
    child = Child(steps_of(1, 2), 500)
    assert [child.step(120), child.step(120)] == [1, 2]
    child.close()


def test_a_difference_within_the_spread_is_noise(tmp_path: Path) -> None:
    first = run_papers("paper", tmp_path / "a.jsonl", papers=[tiny("scan", "be_tree")])
    row = next(iter(first))
    row |= {"times": [1.0, 1.1, 1.2], "metrics": {"us_per_event": 100.0}}
    second = Results(None, first.runs, [{**row, "metrics": {"us_per_event": 110.0}}])
    (pair,) = compare_runs(Results(None, first.runs, [row]), second)
    assert pair.word == NOISE
    third = Results(None, first.runs, [{**row, "metrics": {"us_per_event": 150.0}}])
    (pair,) = compare_runs(Results(None, first.runs, [row]), third)
    assert pair.word == SLOWER
    assert "1 slower" in as_text([pair])
