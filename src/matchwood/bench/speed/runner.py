"""Runs the suite `speed`: before, goal, now, met or missed, and a roofline."""

from __future__ import annotations

from functools import partial
from typing import Any

from matchwood.bench.goals import Case, GoalSuite, run_goals
from matchwood.bench.speed import NAME
from matchwood.bench.speed.computed_case import computed_case
from matchwood.bench.speed.goals import GOALS
from matchwood.bench.speed.index_cases import WORKLOADS, index_case
from matchwood.bench.speed.planned_cases import TREES, conjunctions_case, growth_case, tree_case
from matchwood.bench.speed.sizes import PRESETS
from matchwood.bench.speed.user_cases import (
    dict_cases,
    equality_cases,
    json_cases,
    small_case,
    text_case,
)

CASES: dict[str, Case] = {
    "small": small_case,
    "dict": dict_cases,
    "equality": equality_cases,
    "json": json_cases,
    "computed": computed_case,
    "texts": text_case,
    **{name: partial(index_case, name) for name in WORKLOADS},
    **{name: partial(tree_case, name) for name in TREES},
    "conjunctions": conjunctions_case,
    "growth": growth_case,
}


def _lines(roofline: list[dict[str, Any]]) -> list[str]:
    return ["", "roofline, an event of a batch"] + [
        f"  {each['case']:<10}{each['kilobytes']:10,.1f} KB touched, "
        f"{each['gb_per_second']:6.2f} of {each['roof']:.1f} GB/s; at that rate "
        f"{each['least_micros']:,.1f} µs"
        for each in roofline
    ]


SUITE = GoalSuite(NAME, GOALS, PRESETS, CASES, "roofline", _lines)

run_speed = partial(run_goals, SUITE)
"""Run all cases, or some of them, with one index; see `run_goals`."""
