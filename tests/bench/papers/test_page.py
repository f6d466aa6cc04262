"""The page of verdicts: self-contained, every panel on it, read in a browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from matchwood.bench.papers import read_papers
from matchwood.bench.papers.drawing import UNITS
from matchwood.bench.papers.page import write_page, write_pictures
from matchwood.bench.papers.rows import MEASURED, REFUSED, Results, Row
from matchwood.bench.papers.summary import as_data, as_text, write_markdown

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
RUN = {
    "kind": "run", "format": 1, "suite": "papers", "preset": "small", "seed": None,
    "commit": "0123456789abcdef", "machine": {"cpu": "a CPU", "cores": 2, "system": "Linux"},
    "versions": {"python": "3"}, "started": "2026-01-01T00:00:00",
}  # fmt: skip


@pytest.fixture(scope="module")
def invented() -> Results:
    """A row for every point of every series: a number, or a refusal for every seventh."""
    rows: list[Row] = []
    for paper in read_papers():
        for case in paper.cases:
            for point in case.numbers("small", paper.presets["small"]):
                for number, series in enumerate(case.series):
                    rows.append(_row(case.key, point, case.x(point), series.id, number, len(rows)))
    return Results(None, [RUN], rows)


def _row(case: str, point: int, x: object, series: str, number: int, seen: int) -> Row:
    value = 10.0 * (1 + number) * (1 + point)
    names = [*UNITS]
    row: Row = {
        "case": case, "point": point, "x": x, "series": series, "definition": "d",
        "state": MEASURED, "times": [1.0], "metrics": dict.fromkeys(names, value),
        "parameters": {"n_subscriptions": 1000},
    }  # fmt: skip
    if seen % 7 == 3:
        row |= {"state": REFUSED, "label": "time cap", "reason": "<slow> & late"}
    return row


def test_the_page_has_every_panel_first_on_a_wall_and_needs_no_network(
    invented: Results, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    found = write_page(invented, page)
    text = page.read_text(encoding="utf-8")
    assert text.count('class="panel ') == len(found) == 92
    wall = re.findall(r'href="#([^"]+)"', text)
    assert sorted(wall) == sorted(each.id for each in found)
    assert len(set(wall)) == 92
    assert text.rindex('href="#') < text.index('class="panel ')
    urls = set(re.findall(r'https?://[^"\s<]+', text))
    assert urls <= {"http://www.w3.org/2000/svg"}  # the name of SVG, which nothing fetches
    assert "&lt;slow&gt; &amp; late" in text
    for each in ("prefers-color-scheme: dark", "0123456789ab", "a CPU", "viewport"):
        assert each in text


def test_verdicts_are_text_data_and_markdown(invented: Results, tmp_path: Path) -> None:
    data = as_data(invented)
    assert sum(data["verdicts"].values()) == len(data["panels"]) == 92
    assert json.loads(json.dumps(data)) == data
    assert "92 panels" in as_text(invented)
    write_markdown(invented, tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert text.count("\n### ") == 92


@pytest.mark.slow
def test_every_panel_is_a_picture_too(invented: Results, tmp_path: Path) -> None:
    papers = tuple(each for each in read_papers() if each.id == "vcr")
    written = write_pictures(invented, tmp_path, papers)
    assert {each.suffix for each in written} == {".svg", ".png"}
    assert (tmp_path / "vcr-figure-7-a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "vcr-figure-6-a-paper_megabytes.svg").read_text().startswith("<svg")


SCRIPT = """
<script>
window.addEventListener("error", (event) => { document.title = "error: " + event.message; });
window.addEventListener("load", () => {
  const panel = document.getElementById("be-tree-figure-5-a");
  const button = panel.querySelector('.legend button[data-series="be"]');
  button.click();
  const hidden = panel.querySelector('g.series[data-series="be"]').classList.contains("hidden");
  button.click();
  const shown = !panel.querySelector('g.series[data-series="be"]').classList.contains("hidden");
  const svg = panel.querySelector("svg");
  svg.focus();
  const focused = document.activeElement === svg;
  const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  press("ArrowRight");
  const first = panel.querySelector("output").textContent;
  press("ArrowDown");
  const second = panel.querySelector("output").textContent;
  const found = {hidden, shown, focused, first, second,
    wide: document.documentElement.scrollWidth, view: document.documentElement.clientWidth};
  const pre = document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify(found);
  document.body.append(pre);
});
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_in_a_browser_series_toggle_and_arrow_keys_read_values(
    invented: Results, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    write_page(invented, page)
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("<style>", SCRIPT + "<style>", 1), encoding="utf-8")
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=390,800",
         "--disable-background-networking", "--enable-logging=stderr", "--virtual-time-budget=4000",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    assert "<title>error" not in done.stdout
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', done.stdout)[1])  # type: ignore[index]
    assert found["hidden"]
    assert found["shown"]
    assert found["focused"]
    assert found["first"] == "BE, 100K: 10 µs an event"
    assert found["second"].startswith("BE-B, 100K: 20")
    assert found["wide"] <= max(found["view"], 390)  # nothing sticks out on a phone
