"""Page: one HTML file with everything in it, and no network.

First the wall, one small verdict a panel; then every panel drawn, with the paper's claims and what
became of them, the work counters, the points without a number and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path

from matchwood.bench.papers.cases import Paper, read_papers
from matchwood.bench.papers.claims import FAILS, HOLDS, PARTLY
from matchwood.bench.papers.curves import Judged, Panel, panels
from matchwood.bench.papers.drawing import COLOURS, png, short, shown, svg, unit
from matchwood.bench.papers.reasons import reason
from matchwood.bench.papers.rows import MEASURED, Results
from matchwood.bench.papers.summary import counts, work
from matchwood.errors import StorageError

_CLASS = {HOLDS: "reproduced", PARTLY: "partly", FAILS: "not"}
_WORD = {HOLDS: "holds", PARTLY: "partly", FAILS: "does not hold"}


def write_page(
    results: Results, path: Path, papers: tuple[Paper, ...] | None = None
) -> list[Panel]:
    """Write the page; gives the panels on it."""
    found = panels(results, papers or read_papers(results.suite))
    _write(path, "\n".join(_html(results, found)))
    return found


def write_pictures(
    results: Results, folder: Path, papers: tuple[Paper, ...] | None = None
) -> list[Path]:
    """An SVG and a PNG of every panel that has numbers."""
    written = []
    for panel in panels(results, papers or read_papers(results.suite)):
        if not panel.rows:
            continue
        for number, metric in enumerate(panel.figure.shown):
            name = f"{panel.id}{'' if number == 0 else f'-{metric}'}"
            _write(folder / f"{name}.svg", svg(panel, metric))
            png(panel, metric, folder / f"{name}.png")
            written += [folder / f"{name}.svg", folder / f"{name}.png"]
    return written


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"expected a path that can be written, found {error.strerror}: {path}"
        ) from None


def _html(results: Results, found: list[Panel]) -> Iterator[str]:
    here = files("matchwood.bench") / "papers"
    style = (here / "page.css").read_text(encoding="utf-8")
    script = (here / "page.js").read_text(encoding="utf-8")
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<link rel="icon" href="data:,">'
    yield f"<title>The papers' evaluation</title><style>{style}</style></head><body>"
    yield "<h1>The papers' evaluation</h1>"
    yield from _head(results, found)
    yield from _wall(found)
    for paper in dict.fromkeys(each.paper.name for each in found):
        yield f'<h2>{escape(paper)}</h2><div class="panels">'
        for panel in found:
            if panel.paper.name == paper:
                yield from _panel(panel, results.preset)
        yield "</div>"
    yield f"<script>{script}</script></body></html>"


def _head(results: Results, found: list[Panel]) -> Iterator[str]:
    run = results.runs[-1]
    machine, versions = run["machine"], run["versions"]
    said = ", ".join(f"{n} {word}" for word, n in counts(found).items())
    software = ", ".join(f"{name} {number}" for name, number in versions.items())
    yield f"<p><b>{len(found)} panels: {escape(said)}.</b> A verdict is computed from the claims "
    yield "below each panel: every claim holds, some do, none does. A claim about a factor holds "
    yield "from half of its gain on."
    if results.preset == "smoke":
        yield " <b>This is the preset smoke: a few hundred subscriptions; its verdicts mean "
        yield "nothing.</b>"
    yield "</p>"
    yield f'<p class="soft">preset {escape(results.preset)}, {len(results):,} rows · '
    yield f"{escape(str(machine['cpu']))}, {machine['cores']} cores · {escape(software)} · "
    yield f"commit {escape(results.commits)} · {escape(str(run['started'])[:10])} · "
    yield "times are CPU time of one thread; solid lines are as in the paper, dashed ones ours; "
    yield "a cross is a point without a number</p>"


def _wall(found: list[Panel]) -> Iterator[str]:
    for paper in dict.fromkeys(each.paper.name for each in found):
        yield f'<h3>{escape(paper)}</h3><nav class="wall" aria-label="verdicts of {escape(paper)}">'
        for each in found:
            if each.paper.name == paper:
                css, name = _css(each.verdict), escape(each.figure.panel)
                yield f'<a class="{css}" href="#{each.id}">{name}<br>'
                yield f'<span class="word {css}">{each.verdict}</span></a>'
        yield "</nav>"


def _css(verdict: str) -> str:
    return verdict if verdict in _CLASS.values() else "none"


def _panel(panel: Panel, preset: str) -> Iterator[str]:
    figure = panel.figure
    yield f'<section class="panel {_css(panel.verdict)}" id="{panel.id}">'
    yield f"<h3>{escape(figure.panel)}: "
    yield f'<span class="word {_css(panel.verdict)}">{panel.verdict}</span></h3>'
    yield f"<div>{escape(figure.title)}</div>"
    if panel.rows and not figure.table:
        for metric in figure.shown:
            yield svg(panel, metric)
        yield from _legend(panel)
        yield '<output aria-live="polite" class="soft">arrow keys read values</output>'
    elif panel.rows:
        yield from _table(panel)
    yield '<ul class="claims">'
    for each in panel.judged:
        yield from _claim(panel, each)
    yield "</ul>"
    yield from _notes(panel, preset)
    yield "</section>"


def _legend(panel: Panel) -> Iterator[str]:
    yield '<div class="legend">'
    for number, (who, name) in enumerate(shown(panel)):
        colour = COLOURS[number % len(COLOURS)]
        yield f'<button type="button" aria-pressed="true" data-series="{escape(who)}" '
        yield f'style="--c:{colour}">{escape(name)}</button>'
    yield "</div>"


def _table(panel: Panel) -> Iterator[str]:
    metrics = panel.figure.shown
    heads = "".join(f"<th>{escape(unit(each))}</th><th>paper</th>" for each in metrics)
    yield f'<div class="scroll"><table><tr><th></th>{heads}</tr>'
    for i, x in enumerate(panel.curves[metrics[0]].xs):
        for who, name in shown(panel):
            given = panel.figure.paper.get(who, ())[i * len(metrics) : (i + 1) * len(metrics)]
            cells = []
            for number, metric in enumerate(metrics):
                value = panel.curves[metric].values.get(who, [None] * (i + 1))[i]
                cells.append("-" if value is None else short(value))
                cells.append(short(given[number]) if number < len(given) else "")
            label = f"{name} {x}".strip()
            yield f"<tr><td>{escape(label)}</td>{''.join(f'<td>{c}</td>' for c in cells)}</tr>"
    yield "</table></div>"


def _claim(panel: Panel, judged: Judged) -> Iterator[str]:
    score = judged.finding.score
    css = _CLASS[score] if score is not None else "none"
    word = _WORD[score] if score is not None else "not measured"
    goal = "A goal of this library: " if judged.claim.ours else ""
    yield f'<li class="{css}">{goal}{escape(judged.claim.says)}: '
    yield f'<span class="word {css}">{word}</span>. '
    yield f"{escape(judged.finding.text)}"
    if why := reason(panel, judged):
        yield f'<br><span class="soft">Behind it: {escape(why)}.</span>'
    yield "</li>"


def _notes(panel: Panel, preset: str) -> Iterator[str]:
    lines = [panel.figure.differs] if panel.figure.differs else []
    share = panel.case.scale.get(preset, panel.paper.presets[preset].scale)
    if share != 1 and panel.case.workload:
        lines.append(f"Subscriptions: {share:.3g} x the paper's.")
    lines += list(work(panel))
    refused = sorted(
        {f"{row['series']} at {short(row['x'])}: {row['label']} ({row.get('reason', '')[:90]})"
         for row in panel.rows.values() if row["state"] != MEASURED}
    )  # fmt: skip
    if refused:
        lines.append("Without a number: " + "; ".join(refused))
    if lines:
        yield "<details><summary>work, sizes, what differs</summary>"
        yield "".join(f'<p class="soft">{escape(line)}</p>' for line in lines) + "</details>"
