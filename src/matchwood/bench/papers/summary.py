"""Summary: the verdicts of a run, for the screen, for machines and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.bench.papers.cases import read_papers
from matchwood.bench.papers.claims import FAILS, HOLDS, NOT, PART, REPRODUCED, UNMEASURED
from matchwood.bench.papers.curves import Panel, panels
from matchwood.bench.papers.drawing import AXES, short, unit
from matchwood.bench.papers.reasons import reason
from matchwood.bench.papers.rows import MEASURED, Results

COLUMNS = 12
"""Most numbers of a curve in a table."""

ORDER = (REPRODUCED, PART, NOT, UNMEASURED)


def counts(found: list[Panel]) -> dict[str, int]:
    """Panels by verdict."""
    by = Counter(each.verdict for each in found)
    return {word: by[word] for word in ORDER if by[word]}


def as_data(results: Results) -> dict[str, Any]:
    """Everything about the verdicts, for `--json`."""
    found = panels(results, read_papers(results.suite))
    return {
        "preset": results.preset,
        "rows": len(results),
        "runs": results.runs,
        "verdicts": counts(found),
        "panels": [
            {
                "paper": each.paper.name,
                "panel": each.figure.panel,
                "title": each.figure.title,
                "verdict": each.verdict,
                "claims": [
                    {
                        "says": c.claim.says,
                        "ours": c.claim.ours,
                        "score": c.finding.score,
                        "found": c.finding.text,
                        "why": reason(each, c),
                    }
                    for c in each.judged
                ],
            }
            for each in found
        ],
    }


def as_text(results: Results) -> str:
    """What the screen shows."""
    found = panels(results, read_papers(results.suite))
    what = f"suite {results.suite}, preset {results.preset}"
    lines = [f"{what}: {len(results):,} rows, {len(found)} panels"]
    for each in found:
        published = [c for c in each.judged if not c.claim.ours]
        held = sum(c.finding.score == HOLDS for c in published)
        said = f"{held} of {len(published)} claims hold"
        lines.append(f"{each.paper.name:8} {each.figure.panel:13} {each.verdict:12} {said}")
    refused = Counter(row.get("label") for row in results if row["state"] != MEASURED)
    if refused:
        lines.append("rows without a number: " + ", ".join(f"{n} {k}" for k, n in refused.items()))
    lines.append(", ".join(f"{n} {word}" for word, n in counts(found).items()))
    if results.preset == "smoke":
        lines.append("smoke has a few hundred subscriptions: its verdicts mean nothing")
    lines.append(f"result: {results.path}")
    return "\n".join(lines)


def write_markdown(results: Results, path: Path) -> None:
    """docs/results.md: every panel with its claims, what was found, and what differs."""
    path.write_text("\n".join(_markdown(results)) + "\n", encoding="utf-8")


def _markdown(results: Results) -> Iterator[str]:
    found = panels(results, read_papers(results.suite))
    run = results.runs[-1]
    seconds = sum(row.get("wall_seconds", 0) for row in results)
    yield "# Results"
    yield ""
    again = f"matchwood bench run --suite {results.suite} --preset {results.preset}"
    yield f"Generated; do not edit. Again: `{again}`,"
    yield "then `matchwood bench report RESULTS --markdown docs/results.md`."
    yield ""
    machine = run["machine"]
    yield (
        f"Preset `{results.preset}`, {len(results):,} rows, {seconds / 60:.0f} minutes; "
        f"{machine['cpu']}, {machine['cores']} cores; commit {results.commits}; "
        f"{run['started'][:10]}."
    )
    yield ""
    yield "| verdict | panels |"
    yield "|---|---|"
    for word, n in counts(found).items():
        yield f"| {word} | {n} |"
    for paper in read_papers(results.suite):
        yield f"\n## {paper.name}\n"
        for each in found:
            if each.paper is paper:
                yield from _panel(each)


def _panel(each: Panel) -> Iterator[str]:
    yield f"### {each.figure.panel}: {each.verdict}"
    yield ""
    yield f"{each.figure.title}."
    yield ""
    yield from _numbers(each)
    for judged in each.judged:
        score = judged.finding.score
        word = "holds" if score == HOLDS else "does not hold" if score == FAILS else "partly"
        if score is None:
            word = "not measured"
        goal = "A goal of this library: " if judged.claim.ours else ""
        yield f"- {goal}{judged.claim.says}: **{word}**. {judged.finding.text}"
        if why := reason(each, judged):
            yield f"  - Behind it: {why}."
    if each.figure.differs:
        yield f"- Differs: {each.figure.differs}"
    for line in work(each):
        yield f"- {line}"
    refused = sorted({f"{row['series']}: {row['label']}" for row in each.rows.values()
                      if row["state"] != MEASURED})  # fmt: skip
    if refused:
        yield f"- Without a number: {', '.join(refused)}"
    yield ""


def _numbers(each: Panel) -> Iterator[str]:
    """The numbers of a panel, a line a series; of a long curve every so many."""
    for metric in each.figure.shown if each.rows else ():
        curves = each.curves[metric]
        shown = [who for who, values in curves.values.items() if any(v is not None for v in values)]
        at = sorted({round(i) for i in np.linspace(0, len(curves.xs) - 1, COLUMNS)})
        axis = each.figure.axis or AXES.get(each.case.axis, each.case.axis)
        by = f"{unit(metric)}, by {axis}" if len(at) > 1 else unit(metric)
        yield f"| {by} | {' | '.join(short(curves.xs[i]) for i in at)} |"
        yield "|---" * (len(at) + 1) + "|"
        for who in shown:
            cells = [_cell(curves.values[who][i], curves.refused[who][i]) for i in at]
            yield f"| {who} | {' | '.join(cells)} |"
        yield ""


def _cell(value: float | None, is_refused: bool) -> str:
    return "-" if value is None else f"{'> ' if is_refused else ''}{short(value)}"


def work(each: Panel) -> Iterator[str]:
    """The counters behind the last point: work that is the same on every machine."""
    if not each.rows:
        return
    last = max(point for point, _ in each.rows)
    parts = []
    for (point, who), row in each.rows.items():
        metrics = row.get("metrics", {})
        if point == last and "candidates_per_event" in metrics:
            parts.append(
                f"{who} {metrics['candidates_per_event']:,.4g} candidates, "
                f"{metrics.get('predicates_per_event', 0):,.4g} predicates"
            )
    if parts:
        yield "Work an event at the last point: " + "; ".join(parts)
