"""Runs the suite `speed`, and shows it: before, goal, now, met or missed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from matchwood.bench.kept import KeptRun
from matchwood.bench.speed import NAME
from matchwood.bench.speed.goals import BY_KEY, GOALS, MOST, Goal
from matchwood.bench.speed.index_cases import WORKLOADS, growth_case, index_case
from matchwood.bench.speed.roofline import Reading
from matchwood.bench.speed.sizes import PRESETS, Sizes
from matchwood.bench.speed.user_cases import (
    Measured,
    dict_cases,
    equality_cases,
    json_cases,
    small_case,
    text_case,
)
from matchwood.bench.surroundings import commit, machine, versions
from matchwood.errors import MatchwoodError

Case = Callable[[Sizes, str], Iterator[Measured | Reading]]

CASES: dict[str, Case] = {
    "small": small_case,
    "dict": dict_cases,
    "equality": equality_cases,
    "json": json_cases,
    "texts": text_case,
    **{name: partial(index_case, name) for name in WORKLOADS},
    "growth": growth_case,
}


class SpeedReport(KeptRun):
    """A finished run."""

    def table(self) -> str:
        lines = [f"suite {NAME}, preset {self.data['preset']}, index {self.data['index']}", ""]
        if self.data["preset"] == "smoke":
            lines += ["few subscriptions: goals are not judged", ""]
        lines.append(f"{'':<68}{'before':>10}{'goal':>13}{'now':>12}")
        lines += [_row(each) for each in self.data["rows"]]
        lines += ["", "roofline, an event of a batch"]
        lines += [
            f"  {each['case']:<10}{each['kilobytes']:10,.1f} KB touched, "
            f"{each['gb_per_second']:6.2f} of {each['roof']:.1f} GB/s; at that rate "
            f"{each['least_micros']:,.1f} µs"
            for each in self.data["roofline"]
        ]
        judged = [each["is_met"] for each in self.data["rows"]]
        met = f"{judged.count(True)} met, {judged.count(False)} missed"
        lines += ["", f"{met}, {self.data['seconds']:.0f} s in all", str(self.path or "")]
        return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    goal = BY_KEY[row["key"]]
    judged = {True: "met", False: "missed", None: ""}[row["is_met"]]
    beside = ", ".join(f"{name} {_shown(value)}" for name, value in row["beside"].items())
    sign = "" if goal.goal is None else ">= " if goal.sense == MOST else "<= "
    text = (
        f"{goal.what:<62}{goal.unit:>6}{_shown(goal.before):>10}"
        f"{sign + _shown(goal.goal):>13}{_shown(row['now']):>12}  {judged}"
    )
    return f"{text}\n      beside: {beside}" if beside else text


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def run_speed(
    preset: str,
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    index: str = "auto",
    only: tuple[str, ...] = (),
) -> SpeedReport:
    """Run all cases, or some of them, with one index."""
    if preset not in PRESETS:
        raise MatchwoodError(f"suite speed: expected a preset among {', '.join(PRESETS)}")
    unknown = sorted(set(only) - CASES.keys())
    if unknown:
        raise MatchwoodError(
            f"suite speed: expected cases among {', '.join(CASES)}, found {', '.join(unknown)}"
        )
    sizes, started = PRESETS[preset], datetime.now(UTC)
    chosen = [name for name in CASES if (not only or name in only) and
              (name != "growth" or sizes.grown)]  # fmt: skip
    measured: dict[str, Measured] = {}
    readings: list[Reading] = []
    for done, name in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen))
        for found in CASES[name](sizes, index):
            if isinstance(found, Reading):
                readings.append(found)
            else:
                measured[found.key] = found
        gc.collect()
    is_judged = preset != "smoke"
    report = SpeedReport(
        {
            "format": 1, "suite": NAME, "preset": preset, "index": index,
            "sizes": sizes._asdict(),
            "rows": [_data(each, measured[each.key], is_judged)
                     for each in GOALS if each.key in measured],
            "roofline": [each._asdict() for each in readings],
            "started": started.isoformat(timespec="seconds"),
            "seconds": (datetime.now(UTC) - started).total_seconds(),
            "versions": versions(), "machine": machine(), "commit": commit(),
        }
    )  # fmt: skip
    report.write(out)
    return report


def _data(goal: Goal, found: Measured, is_judged: bool) -> dict[str, Any]:
    return {
        "key": goal.key, "what": goal.what, "unit": goal.unit, "before": goal.before,
        "goal": goal.goal, "sense": goal.sense, "now": found.value,
        "is_met": goal.is_met(found.value) if is_judged else None, "beside": found.beside,
    }  # fmt: skip
