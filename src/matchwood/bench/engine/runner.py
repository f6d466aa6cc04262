"""Runs the suite `engine`: before, goal, now, met or missed, and a histogram of searches."""

from __future__ import annotations

from functools import partial
from typing import Any

from matchwood.bench.engine import NAME
from matchwood.bench.engine.cases import add_cases, live_case, memory_case, open_case, thread_case
from matchwood.bench.engine.contest import WORKLOADS, contest_case
from matchwood.bench.engine.goals import GOALS
from matchwood.bench.engine.sizes import PRESETS
from matchwood.bench.goals import Case, GoalSuite, run_goals

CASES: dict[str, Case] = {
    **{name: partial(contest_case, name) for name in WORKLOADS},
    "live": live_case,
    "open": open_case,
    "adds": add_cases,
    "threads": thread_case,
    "memory": memory_case,
}


def _lines(histograms: list[dict[str, Any]]) -> list[str]:
    lines = []
    for each in histograms:
        lines += ["", f"{'searches by duration':<24}{'quiet':>12}{'changing':>12}"]
        names = [*[f"up to {edge:g} ms" for edge in each["edges"]], "longer"]
        counts = zip(names, each["quiet"], each["changing"], strict=True)
        lines += [f"  {name:<22}{quiet:12,}{busy:12,}" for name, quiet, busy in counts]
    return lines


SUITE = GoalSuite(NAME, GOALS, PRESETS, CASES, "histograms", _lines)

run_engine = partial(run_goals, SUITE)
"""Run all cases, or some of them; see `run_goals`."""
