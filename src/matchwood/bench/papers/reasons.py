"""Reasons: what stands behind a claim that holds only partly or not, from the same rows.

A claim about time is judged a second time on the work of an event: nodes visited, candidates
looked at and predicates tested, counted by the structures themselves and equal on every machine.
Three cases are told apart:

- the work is nearer to the claim than the time: the structure does what the paper says, and a
  step of it costs more than a step of the rival (other machine, other compiler, faster baseline);
- the work says the same: on this workload, at this size, the structure does not save that work;
- the matches bound it: most candidates match, so no method could look at much less.

The size is named when it is below the paper's, because a structure that divides saves more the
more there is to divide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from matchwood.bench.papers.claims import HIGHER_IS_BETTER, HOLDS, Curves, Finding, judge
from matchwood.bench.papers.curves import Judged, Panel
from matchwood.bench.papers.rows import MEASURED, Row

TIMES = {"us_per_event", *HIGHER_IS_BETTER}
STEPS = ("nodes_per_event", "candidates_per_event", "predicates_per_event")
SHARES = {
    "megabytes": (("bytes_per_subscription", "bytes a subscription"),),
    "process_megabytes": (("bytes_per_subscription", "bytes a subscription, counted"),),
    "build_seconds": (("build_us_per_subscription", "µs to build a subscription"),),
    "throughput": (
        ("candidates_per_event", "candidates a message"),
        ("index_updates_per_event", "index updates a message"),
    ),
    "index_updates_per_event": (("candidates_per_event", "candidates a message"),),
}
"""What stands behind a metric that has no steps: other metrics of the same rows."""
BOUND = 0.5
"""A share of matching candidates from which the matches themselves bound what can be saved."""


def reason(panel: Panel, judged: Judged) -> str:
    """Why a claim does not wholly hold, with the numbers that show it; empty when it holds or was
    not measured.
    """
    metric = judged.claim.metric or panel.figure.shown[0]
    score = judged.finding.score
    if score is None or score == HOLDS or not panel.rows:
        return ""
    parts: list[str] = []
    if metric in TIMES:
        found = judge(judged.claim, _work_curves(panel, panel.curves[metric]))
        if found.score is not None:
            parts = [_compared(found, score), *_costs_of_steps(panel, judged)]
            parts += _bounded(panel, judged)
    if not parts:
        parts += _shares(panel, judged, metric)
    parts += _sizes(panel)
    return "; ".join(parts)


def steps(row: Row | None) -> float | None:
    """Nodes, candidates and predicates of an event together; None without counters."""
    if row is None or row["state"] != MEASURED:
        return None
    found = [row["metrics"][each] for each in STEPS if row["metrics"].get(each)]
    return float(sum(found)) if found else None


def _work_curves(panel: Panel, curves: Curves) -> Curves:
    """The curves of a figure with steps instead of time; for a throughput, their reciprocal."""
    points = sorted({point for point, _ in panel.rows})
    values: dict[str, list[float | None]] = {}
    for who in curves.values:
        found = [steps(panel.rows.get((point, who))) for point in points]
        if curves.higher:
            found = [None if each is None else 1 / each for each in found]
        values[who] = found if len(points) == len(curves.xs) else [None] * len(curves.xs)
    return curves._replace(values=values)


def _compared(found: Finding, score: float) -> str:
    assert found.score is not None
    if found.score > score:
        return f"the work of an event is nearer to the claim than the time: {found.text}"
    return f"the work of an event says the same as the time: {found.text}"


def _costs_of_steps(panel: Panel, judged: Judged) -> Iterator[str]:
    """Nanoseconds of a step at the last point, of those that the claim names and of the fastest
    of the others.
    """
    rows = _last_rows(panel)
    times = {
        who: (row["metrics"]["us_per_event"], n)
        for who, row in rows.items()
        if "us_per_event" in row["metrics"] and (n := steps(row))
    }
    shown = _named_and_best(panel, judged, {who: time for who, (time, _) in times.items()})
    if len(shown) > 1:
        costs = {who: 1000 * times[who][0] / times[who][1] for who in shown}
        yield "a step costs " + ", ".join(f"{who} {cost:.3g} ns" for who, cost in costs.items())


def _shares(panel: Panel, judged: Judged, metric: str) -> Iterator[str]:
    """For what has no steps to compare: what a subscription or an event costs, at the last point,
    of those that the claim names and of the best of the others.
    """
    rows = _last_rows(panel)
    for name, unit in SHARES.get(metric, ()):
        values = {who: row["metrics"][name] for who, row in rows.items() if name in row["metrics"]}
        shown = _named_and_best(panel, judged, values)
        if shown:
            yield f"{unit}: " + ", ".join(f"{who} {values[who]:,.3g}" for who in shown)


def _last_rows(panel: Panel) -> dict[str, Row]:
    """The measured rows of the last point, by series."""
    last = max(point for point, _ in panel.rows)
    return {
        who: row
        for (point, who), row in panel.rows.items()
        if point == last and row["state"] == MEASURED
    }


def _named_and_best(panel: Panel, judged: Judged, costs: Mapping[str, float]) -> list[str]:
    """The series that a claim names and the rival that costs least, of those with a number."""
    named = [each for each in judged.claim.who if each in costs]
    against = panel.curves[panel.figure.shown[0]].rivals(judged.claim)
    rivals = [each for each in against if each in costs and each not in named]
    return named + sorted(rivals, key=lambda each: costs[each])[:1]


def _bounded(panel: Panel, judged: Judged) -> Iterator[str]:
    rows = _last_rows(panel)
    for who in judged.claim.who:
        metrics = rows[who]["metrics"] if who in rows else {}
        matches = metrics.get("matches_per_event", 0)
        candidates = metrics.get("candidates_per_event", 0)
        if candidates and BOUND <= matches / candidates <= 1:
            yield f"{matches / candidates:.0%} of the candidates of {who} match"


def _sizes(panel: Panel) -> Iterator[str]:
    for row in _last_rows(panel).values():
        published = row.get("paper_subscriptions")
        used = (row.get("parameters") or {}).get("n_subscriptions")
        if published and used and used < published:
            yield f"{used:,} subscriptions at the last point, {published:,} in the paper"
            return
