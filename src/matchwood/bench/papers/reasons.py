"""Reasons: what stands behind a claim that holds only partly or not, from the same rows.

A claim about time is judged a second time on the work of an event: nodes visited, candidates
looked at and predicates tested, counted by the structures themselves and equal on every machine.
The work may be nearer to the claim than the time: then the structure does what the paper says, and
a step of it costs more than a step of the rival (other machine, other compiler, faster baseline).
It may say the same, or be further from it: then, on this workload and at this size, the structure
does not save that work.  Where most candidates match, no method could look at much less.

Claims about memory, construction and streams of updates are compared by what a subscription, a
predicate or a message costs.  All numbers are of the points that the claim is about, its first and
last one where it is about growth.  The size is named when it is below the paper's, because a
structure that divides saves more the more there is to divide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from matchwood.bench.papers.claims import (
    HIGHER_IS_BETTER,
    HOLDS,
    Curves,
    Finding,
    indices,
    judge,
)
from matchwood.bench.papers.curves import Judged, Panel
from matchwood.bench.papers.rows import MEASURED, Row

TIMES = {"us_per_event", *HIGHER_IS_BETTER}
STEPS = ("nodes_per_event", "candidates_per_event", "predicates_per_event")
STREAMS = ("context", "burst")
GROWTH = ("rises", "falls", "flat", "grows_less", "linear", "returns")
BOUNDED = ("faster", "order", "similar", "cross")

_OF_MESSAGES = (
    ("update_us_per_event", "µs of the updates before a message"),
    ("search_us_per_event", "µs of a message alone"),
    ("candidates_per_event", "candidates a message"),
    ("index_updates_per_event", "index updates a message"),
)
_OF_BUILDING = (
    ("build_us_per_subscription", "µs to build a subscription"),
    ("build_us_per_predicate", "µs to build a predicate"),
    ("nodes_per_subscription", "nodes a subscription"),
)
_OF_MEMORY = (
    ("bytes_per_subscription", "bytes a subscription"),
    ("bytes_per_predicate", "bytes a predicate"),
)
SHARES = {
    "megabytes": _OF_MEMORY,
    "process_megabytes": (("bytes_per_subscription", "bytes a subscription, counted"),),
    "bytes_per_subscription": (
        ("predicates_per_subscription", "predicates a subscription"),
        ("bytes_per_predicate", "bytes a predicate"),
    ),
    "build_seconds": _OF_BUILDING,
    "build_us_per_subscription": _OF_BUILDING[1:],
    "query_ms": (
        ("found_per_key", "intervals found a key"),
        ("ns_per_found", "ns an interval found"),
    ),
    "index_updates_per_event": (("candidates_per_event", "candidates a message"),),
    **dict.fromkeys(sorted(TIMES), _OF_MESSAGES),
}
"""What stands behind a metric that has no steps to compare: other metrics of the same rows."""
BOUND = 0.5
"""A share of matching candidates from which the matches themselves bound what can be saved."""


def reason(panel: Panel, judged: Judged) -> str:
    """Why a claim does not wholly hold, with the numbers that show it; empty when it holds or was
    not measured.
    """
    score = judged.finding.score
    if score is None or score == HOLDS or not panel.rows:
        return ""
    metric = judged.claim.metric or panel.figure.shown[0]
    parts: list[str] = []
    if judged.claim.rule == "refuses":
        parts += _refusals(panel, judged)
    elif metric in TIMES and panel.case.runner not in STREAMS:
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
        if len(points) != len(curves.xs):  # one row is a curve of its own
            drawn = panel.rows.get((points[0], who), {}).get("curve", {}).get("steps_per_event")
            found = drawn or [None] * len(curves.xs)
        if curves.higher:
            found = [None if each is None else 1 / each for each in found]
        values[who] = found
    return curves._replace(values=values)


def _compared(found: Finding, score: float) -> str:
    assert found.score is not None
    if found.score > score:
        return f"the work of an event is nearer to the claim than the time: {found.text}"
    if found.score < score:
        return f"the work of an event is further from the claim than the time: {found.text}"
    return f"the work of an event says the same as the time: {found.text}"


def _costs_of_steps(panel: Panel, judged: Judged) -> Iterator[str]:
    """Nanoseconds of a step, of those that the claim names and of the fastest of the others."""
    found = [
        {
            who: (row["metrics"]["us_per_event"], n)
            for who, row in rows.items()
            if "us_per_event" in row["metrics"] and (n := steps(row))
        }
        for rows in _rows(panel, judged)
    ]
    shown = _named_and_best(panel, judged, {who: time for who, (time, _) in found[-1].items()})
    if len(shown) > 1:
        costs = [{who: 1000 * time / n for who, (time, n) in times.items()} for times in found]
        yield "a step costs " + ", ".join(f"{who} {_between(costs, who)} ns" for who in shown)


def _shares(panel: Panel, judged: Judged, metric: str) -> Iterator[str]:
    """For what has no steps to compare: what a subscription or a message costs, of those that the
    claim names and of the best of the others.
    """
    found = _rows(panel, judged)
    judged_by = {
        who: row["metrics"][metric] for who, row in found[-1].items() if metric in row["metrics"]
    }
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    best = _named_and_best(panel, judged, {who: sign * each for who, each in judged_by.items()})
    for name, unit in SHARES.get(metric, ()):
        values = [
            {who: row["metrics"][name] for who, row in rows.items() if name in row["metrics"]}
            for rows in found
        ]
        shown = [who for who in best if who in values[-1]]
        if shown:
            yield f"{unit}: " + ", ".join(f"{who} {_between(values, who)}" for who in shown)


def _between(values: list[dict[str, float]], who: str) -> str:
    """A number, or the first and the last one."""
    numbers = [f"{each[who]:,.3g}" for each in values if who in each]
    return numbers[-1] if len(set(numbers)) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _rows(panel: Panel, judged: Judged) -> list[dict[str, Row]]:
    """The measured rows by series, at the last point that a claim is about; at the first one as
    well when it is about growth.
    """
    metric = judged.claim.metric or panel.figure.shown[0]
    points = sorted({point for point, _ in panel.rows})
    chosen = [points[0], points[-1]]
    if len(points) == len(panel.curves[metric].xs):
        about = indices(judged.claim, panel.curves[metric])
        chosen = [points[about[0]], points[about[-1]]] if about else chosen
    wanted = chosen if judged.claim.rule in GROWTH and chosen[0] != chosen[1] else chosen[1:]
    return [
        {
            who: row
            for (at, who), row in panel.rows.items()
            if at == point and row["state"] == MEASURED
        }
        for point in wanted
    ]


def _named_and_best(panel: Panel, judged: Judged, costs: Mapping[str, float]) -> list[str]:
    """The series that a claim names and the rival that costs least, of those with a number."""
    named = [each for each in judged.claim.who if each in costs]
    against = panel.curves[panel.figure.shown[0]].rivals(judged.claim)
    rivals = [each for each in against if each in costs and each not in named]
    return named + sorted(rivals, key=lambda each: costs[each])[:1]


def _bounded(panel: Panel, judged: Judged) -> Iterator[str]:
    rows = _rows(panel, judged)[-1]
    for who in judged.claim.who if judged.claim.rule in BOUNDED else ():
        metrics = rows[who]["metrics"] if who in rows else {}
        matches = metrics.get("matches_per_event", 0)
        candidates = metrics.get("candidates_per_event", 0)
        if candidates and BOUND <= matches / candidates <= 1:
            yield f"{matches / candidates:.0%} of the candidates of {who} match"


def _refusals(panel: Panel, judged: Judged) -> Iterator[str]:
    """Where series that a claim names have no number, and why; where they have one after all."""
    for (_, who), row in sorted(panel.rows.items(), key=lambda each: each[0]):
        if who not in judged.claim.who:
            continue
        if row["state"] != MEASURED:
            yield f"{who} at {row['x']}: {row['label']}"
        elif row["x"] >= judged.claim.at:
            yield f"{who} at {row['x']}: measured, {row['metrics'].get('megabytes', 0):,.3g} MB"


def _sizes(panel: Panel) -> Iterator[str]:
    last = max(point for point, _ in panel.rows)
    for (point, _), row in panel.rows.items():
        published = row.get("paper_subscriptions")
        used = (row.get("parameters") or {}).get("n_subscriptions")
        if point == last and published and used and used < published:
            yield f"{used:,} subscriptions at the last point, {published:,} in the paper"
            return
