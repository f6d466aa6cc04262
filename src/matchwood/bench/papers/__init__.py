"""The papers' evaluation: every figure and table as a case, its claims as data, verdicts computed.

    cases.py      suites/papers/*.toml -> papers, series, cases, figures, claims
    rows.py       the result file: one JSON line a row, so that a run resumes
    isolated.py   a row's index in a process of its own, with a time cap and a memory cap
    runner.py     what is still to measure, row by row
    workers.py    points measured side by side
    *_rows.py     how one kind of case is measured
    curves.py     rows -> the numbers of a figure
    claims.py     a claim and the numbers -> holds, partly, does not
    reasons.py    what stands behind a claim that does not wholly hold
    summary.py    verdicts for the screen, for machines and as Markdown
    page.py       the HTML page; drawing.py its pictures; compare.py two runs side by side

Presets: `smoke` (seconds, ends of every axis), `small` (all points, within an hour on two cores),
`paper` (the paper's sizes; what 24 GiB cannot hold is a labelled point).
"""

from __future__ import annotations

from matchwood.bench.papers.cases import EXTERNAL, NAME, PRESETS, read_papers
from matchwood.bench.papers.runner import run_papers
from matchwood.bench.suite import Listed

__all__ = ["EXTERNAL", "LISTED", "NAME", "read_papers", "run_papers"]

LISTED = (
    Listed(
        NAME, "every figure and table of the five papers, with verdicts on their claims", PRESETS
    ),
    Listed(
        EXTERNAL, "DuckDB, NumPy, Python's eval and rule-engine compared with a Matcher", PRESETS
    ),
)
"""The lines of `bench list`."""
