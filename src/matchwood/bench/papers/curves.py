"""Curves: the rows of a result file as the numbers of a figure, and its verdict."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from matchwood.bench.papers.cases import Case, Figure, Paper
from matchwood.bench.papers.claims import (
    HIGHER_IS_BETTER,
    UNMEASURED,
    Claim,
    Curves,
    Finding,
    judge,
    verdict,
)
from matchwood.bench.papers.rows import MEASURED, Results, Row


class Judged(NamedTuple):
    """A claim and what became of it."""

    claim: Claim
    finding: Finding


class Panel(NamedTuple):
    """A figure of a paper with our numbers in it."""

    paper: Paper
    case: Case
    figure: Figure
    curves: dict[str, Curves]  # by metric
    rows: dict[tuple[int, str], Row]  # by point and series
    judged: list[Judged]
    verdict: str

    @property
    def id(self) -> str:
        name = f"{self.paper.id}-{self.figure.panel}".lower()
        return re.sub("[^a-z0-9]+", "-", name).strip("-")


def panels(results: Results, papers: tuple[Paper, ...]) -> list[Panel]:
    """Every figure and table of the papers, in their order."""
    return [
        panel(paper, case, figure, results)
        for paper in papers
        for case in paper.cases
        for figure in case.figures
    ]


def panel(paper: Paper, case: Case, figure: Figure, results: Results) -> Panel:
    shown = figure.series or tuple(each.id for each in case.series)
    numbers = case.numbers(results.preset, paper.presets[results.preset])
    rows = {
        (point, who): row
        for point in numbers
        for who in shown
        if (row := results.find(case.key, point, who)) is not None
    }
    metrics = {*figure.shown, *[claim.metric for claim in figure.claims if claim.metric]}
    curves = {each: _curves(case, each, numbers, shown, rows) for each in sorted(metrics)}
    judged = [Judged(each, judge(each, curves[each.metric or figure.shown[0]]))
              for each in figure.claims]  # fmt: skip
    published = [each.finding for each in judged if not each.claim.ours]
    word = verdict(published) if rows else UNMEASURED
    return Panel(paper, case, figure, curves, rows, judged, word)


def _curves(
    case: Case,
    metric: str,
    numbers: list[int],
    shown: tuple[str, ...],
    rows: dict[tuple[int, str], Row],
) -> Curves:
    others = [each.id for each in case.series if each.id in shown and not each.ours]
    drawn = {who: row for (_, who), row in rows.items() if metric in row.get("curve", {})}
    higher = metric in HIGHER_IS_BETTER
    index = {each.id: each.index for each in case.series}
    if drawn:
        xs = max((row["curve"]["x"] for row in drawn.values()), key=len)
        values = {
            who: row["curve"][metric] + [None] * (len(xs) - len(row["curve"][metric]))
            for who, row in drawn.items()
        }
        refused = {who: [each is None for each in found] for who, found in values.items()}
        return Curves(xs, values, refused, others, higher, index, _burst(drawn))
    xs = [_x(case.x(point)) for point in numbers]
    values = {who: [_value(rows.get((i, who)), metric) for i in numbers] for who in shown}
    refused = {
        who: [(row := rows.get((i, who))) is not None and row["state"] != MEASURED for i in numbers]
        for who in shown
    }
    return Curves(xs, values, refused, others, higher, index)


def _burst(rows: dict[str, Row]) -> tuple[float, float]:
    """First and last message of the updates' burst; the part in which it begins is left out."""
    parameters = next(iter(rows.values())).get("parameters") or {}
    parts = parameters.get("burst") or [[0, 0.0]] * 2
    quiet, loud = parts[0][0], parts[1][0]
    return quiet + loud / 4, quiet + loud


def _x(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)


def _value(row: Row | None, metric: str) -> float | None:
    if row is None:
        return None
    value = row.get("metrics" if row["state"] == MEASURED else "bounds", {}).get(metric)
    return None if value is None else float(value)
