"""What stands behind a claim that does not wholly hold: computed from the rows of the panel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from matchwood.bench.papers.cases import read_papers
from matchwood.bench.papers.claims import HOLDS, NOT, Claim, judge, verdict
from matchwood.bench.papers.curves import Judged, Panel, panels
from matchwood.bench.papers.reasons import reason
from matchwood.bench.papers.rows import Results

KEPT = Path(__file__).parents[3] / "benchmarks" / "papers-small.jsonl"


@pytest.fixture(scope="module")
def kept() -> list[Panel]:
    results = Results.read(KEPT)
    return panels(results, read_papers(results.suite))


def invented(kept: list[Panel], **costs: tuple[float, float]) -> Panel:
    """A panel with these series: microseconds and steps of an event, the same at every point."""
    found = next(each for each in kept if each.figure.shown[0] == "us_per_event" and each.rows)
    points = sorted({point for point, _ in found.rows})
    template = next(row for row in found.rows.values() if row["state"] == "measured")
    rows: dict[tuple[int, str], Any] = {}
    for who, (time, steps) in costs.items():
        metrics = {"us_per_event": time, "candidates_per_event": steps, "matches_per_event": 1.0}
        for point in points:
            rows[point, who] = {**template, "series": who, "metrics": metrics}
    curve = found.curves["us_per_event"]._replace(
        values={who: [time] * len(points) for who, (time, _) in costs.items()},
        others=list(costs),
        families={},
    )
    return found._replace(rows=rows, curves={"us_per_event": curve})


def judged(panel: Panel, score: float) -> Judged:
    claim = Claim.read("test", {"rule": "faster", "who": "a", "factor": 4.0, "says": "best"})
    found = judge(claim, panel.curves["us_per_event"])
    assert found.score == score
    return Judged(claim, found)


def test_steps_that_cost_more_are_told_from_steps_that_are_not_saved(kept: list[Panel]) -> None:
    dear = invented(kept, a=(10.0, 100.0), b=(9.0, 500.0))
    assert reason(dear, judged(dear, 0.0)).startswith(
        "the work of an event is nearer to the claim than the time: 5 x the next best"
    )
    assert "a step costs a 100 ns, b 18 ns" in reason(dear, judged(dear, 0.0))
    many = invented(kept, a=(10.0, 1000.0), b=(9.0, 500.0))
    assert "says the same as the time: 0.5 x" in reason(many, judged(many, 0.0))


def test_what_holds_needs_no_reason(kept: list[Panel]) -> None:
    good = invented(kept, a=(1.0, 100.0), b=(9.0, 500.0))
    assert reason(good, judged(good, 1.0)) == ""


def test_matches_that_bound_the_work_are_named(kept: list[Panel]) -> None:
    bound = invented(kept, a=(10.0, 1.25), b=(9.0, 1.0))
    assert "80% of the candidates of a match" in reason(bound, judged(bound, 0.0))


def test_every_panel_of_the_kept_run_that_differs_says_what_stands_behind_it(
    kept: list[Panel],
) -> None:
    silent = [
        (each.id, found.claim.says)
        for each in kept
        for found in each.judged
        if found.finding.score not in (None, HOLDS)
        and not each.figure.differs
        and not reason(each, found)
    ]
    assert silent == []


def test_every_panel_of_the_kept_run_that_is_not_reproduced_has_a_paragraph(
    kept: list[Panel],
) -> None:
    assert [
        each.id for each in kept if each.verdict == NOT and len(each.figure.differs) < 100
    ] == []


def test_numbers_are_of_the_points_that_a_claim_is_about(kept: list[Panel]) -> None:
    panel = invented(kept, a=(10.0, 100.0), b=(9.0, 500.0))
    xs = panel.curves["us_per_event"].xs
    first = min(point for point, _ in panel.rows)
    row = panel.rows[first, "a"]
    panel.rows[first, "a"] = {**row, "metrics": {**row["metrics"], "us_per_event": 30.0}}
    data = {"who": "a", "factor": 4.0, "says": "best"}
    early = Claim.read("test", {**data, "rule": "faster", "at": xs[0]})
    found = Judged(early, judge(early, panel.curves["us_per_event"]))
    assert "a step costs a 300 ns, b 18 ns" in reason(panel, found)
    growing = Claim.read("test", {**data, "rule": "rises"})
    found = Judged(growing, judge(growing, panel.curves["us_per_event"]))
    assert "a step costs a 300 to 100 ns, b 18 ns" in reason(panel, found)


def test_a_stream_of_updates_is_compared_by_what_a_message_costs(kept: list[Panel]) -> None:
    panel = next(each for each in kept if each.id == "agile-figure-11")
    reasons = [reason(panel, each) for each in panel.judged]
    assert any("candidates a message: " in why for why in reasons)
    assert not any("a step costs" in why for why in reasons)


def test_what_refuses_says_where_and_why(kept: list[Panel]) -> None:
    panel = next(each for each in kept if each.id == "a-tree-figure-11-b")
    claim = next(each for each in panel.judged if each.claim.who == ("translation",))
    assert "translation at 4: expansion" in reason(panel, claim)


def test_a_goal_of_ours_is_judged_and_has_no_part_in_the_verdict(kept: list[Panel]) -> None:
    panel = next(each for each in kept if each.id == "agile-figure-11")
    assert any(each.claim.ours and each.finding.score is not None for each in panel.judged)
    published = [each.finding for each in panel.judged if not each.claim.ours]
    assert panel.verdict == verdict(published)
