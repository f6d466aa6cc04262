"""Suites with goals: each measured figure is shown with its goal, met or missed.

A suite yields `Measured` values, and perhaps other records that its table shows below.  Answers are
compared before a time is kept.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.bench.kept import KeptRun, check_parts, check_preset
from matchwood.bench.surroundings import circumstances
from matchwood.errors import MatchwoodError

Case = Callable[[Any, str], Iterator[Any]]
"""Called with sizes and the name of an index; yields `Measured` values and other records."""

LEAST, MOST = "at most", "at least"


class Goal(NamedTuple):
    """One row."""

    key: str
    what: str
    unit: str
    before: float | None
    goal: float | None
    """None: shown, not judged."""
    sense: str

    def is_met(self, now: float) -> bool | None:
        if self.goal is None:
            return None
        return now <= self.goal if self.sense == LEAST else now >= self.goal


class Measured(NamedTuple):
    """The value of a row, and further figures that explain it."""

    key: str
    value: float
    extra: dict[str, float] = {}  # noqa: RUF012 - never written


class AnswersDiffer(MatchwoodError):
    """Two ways of matching found different things: a defect, not a wrong call."""


def agree(case: str, *answers: Iterable[Any]) -> None:
    """Raise unless all ways of matching gave the same."""
    first, *others = map(list, answers)
    for other in others:
        if other != first:
            raise AnswersDiffer(f"{case}: answers differ, so there are no times")


def seconds(call: Callable[[], Any], rounds: int = 5) -> float:
    """The least time of the thread that a call takes."""
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        call()
        times.append(time.thread_time() - began)
    return min(times)


class GoalSuite(NamedTuple):
    """What a suite measures."""

    name: str
    goals: Sequence[Goal]
    presets: Mapping[str, Any]
    """Sizes by preset, each a NamedTuple."""
    cases: Mapping[str, Case]
    records: str
    """What the other records are called in the result."""
    lines: Callable[[list[dict[str, Any]]], list[str]]
    """The other records for people."""


class GoalReport(KeptRun):
    """A finished run."""

    def __init__(self, suite: GoalSuite, data: dict[str, Any]) -> None:
        super().__init__(data)
        self._suite = suite

    def table(self) -> str:
        data = self.data
        lines = [f"suite {data['suite']}, preset {data['preset']}, index {data['index']}", ""]
        if data["preset"] == "smoke":
            lines += ["few subscriptions: goals are not judged", ""]
        lines.append(f"{'':<68}{'before':>10}{'goal':>13}{'now':>12}")
        lines += [_row(each) for each in data["rows"]]
        lines += self._suite.lines(data[self._suite.records])
        judged = [each["is_met"] for each in data["rows"]]
        met = f"{judged.count(True)} met, {judged.count(False)} missed"
        lines += ["", f"{met}, {data['seconds']:.0f} s in all", str(self.path or "")]
        return "\n".join(lines)


def run_goals(
    suite: GoalSuite,
    preset: str,
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    index: str = "auto",
    only: tuple[str, ...] = (),
    show: Callable[[str], None] | None = None,
) -> GoalReport:
    """Run all cases of a suite, or some of them, with one index; write the result.

    `show` is called with the rows of each case when it ends.
    """
    check_preset(f"suite {suite.name}", preset, suite.presets)
    check_parts(f"suite {suite.name}", "cases", only, suite.cases)
    sizes, started = suite.presets[preset], datetime.now(UTC)
    chosen = [name for name in suite.cases if not only or name in only]
    measured: dict[str, Measured] = {}
    records: list[dict[str, Any]] = []
    is_judged = preset != "smoke"
    for done, name in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen))
        of_case = list(suite.cases[name](sizes, index))
        found = {each.key: each for each in of_case if isinstance(each, Measured)}
        records += [each._asdict() for each in of_case if not isinstance(each, Measured)]
        measured |= found
        if show is not None:
            for row in _rows(suite, found, is_judged):
                show(_row(row))
        gc.collect()
    report = GoalReport(
        suite,
        {
            "format": 1, "suite": suite.name, "preset": preset, "index": index,
            "sizes": sizes._asdict(),
            "rows": _rows(suite, measured, is_judged),
            suite.records: records,
            **circumstances(started),
            "seconds": (datetime.now(UTC) - started).total_seconds(),
        },
    )  # fmt: skip
    report.write(out)
    return report


def _rows(suite: GoalSuite, measured: dict[str, Measured], is_judged: bool) -> list[dict[str, Any]]:
    return [
        _data(each, measured[each.key], is_judged) for each in suite.goals if each.key in measured
    ]


def _data(goal: Goal, found: Measured, is_judged: bool) -> dict[str, Any]:
    is_met = goal.is_met(found.value) if is_judged else None
    return {**goal._asdict(), "now": found.value, "is_met": is_met, "extra": found.extra}


def _row(row: dict[str, Any]) -> str:
    judged = {True: "met", False: "missed", None: ""}[row["is_met"]]
    extra = ", ".join(f"{name} {_shown(value)}" for name, value in row["extra"].items())
    sign = "" if row["goal"] is None else ">= " if row["sense"] == MOST else "<= "
    text = (
        f"{row['what']:<62}{row['unit']:>6}{_shown(row['before']):>10}"
        f"{sign + _shown(row['goal']):>13}{_shown(row['now']):>12}  {judged}"
    )
    return f"{text}\n      also: {extra}" if extra else text


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
