"""Runner: measures every row of a preset that the result file does not have yet."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from matchwood.bench.answers import WrongAnswers
from matchwood.bench.context_arena import WARM_UP
from matchwood.bench.kept import FOLDER, check_preset
from matchwood.bench.papers import context_rows, external_rows, index_rows, other_rows
from matchwood.bench.papers.cases import NAME, PRESETS, Case, Limits, Paper, read_papers
from matchwood.bench.papers.index_rows import Contender
from matchwood.bench.papers.isolated import Child, Refused
from matchwood.bench.papers.rows import MEASURED, REFUSED, WRONG, Results, Row, definition
from matchwood.bench.papers.workers import side_by_side
from matchwood.bench.surroundings import circumstances
from matchwood.errors import MatchwoodError
from matchwood.workload import Workload

TOO_LARGE = "beyond this machine"

Progress = Callable[[str, int, int], None]


class _Task(NamedTuple):
    """A row to measure."""

    case: Case
    point: int
    contender: Contender
    workload: Workload | None
    whole: int
    definition: str


def run_papers(
    preset: str,
    out: Path | None = None,
    progress: Progress | None = None,
    only: Sequence[str] = (),
    seed: int | None = None,
    minutes: float | None = None,
    papers: Sequence[Paper] | None = None,
    suite: str = NAME,
    jobs: int = 1,
) -> Results:
    """Measure what is missing; see `matchwood bench run --help`.

    only     cases ("be_tree/5a") or papers ("be_tree")
    minutes  stop after so long; the same command goes on later
    jobs     points measured side by side; at most as many as there are idle cores
    Raises WrongAnswers at the end when a contender disagreed with scan or with the others.
    """
    check_preset(f"suite {suite}", preset, PRESETS)
    if jobs < 1:
        raise MatchwoodError(f"expected at least one job, found {jobs}")
    chosen = _chosen(read_papers(suite) if papers is None else papers, only)
    path = FOLDER if out is None else out
    path = path if path.suffix == ".jsonl" else path / f"{suite}-{preset}.jsonl"
    results = Results.begin(path, {
        "suite": suite, "preset": preset, "seed": seed, "jobs": jobs,
        **circumstances(datetime.now(UTC)),
    })  # fmt: skip
    tasks = [
        list(_tasks(case, point, preset, paper.presets[preset], seed))
        for paper, case in chosen
        for point in case.numbers(preset, paper.presets[preset])
    ]
    limits = {paper.id: paper.presets[preset] for paper, _ in chosen}
    total = sum(map(len, tasks))
    left = [[task for task in group if _missing(results, task)] for group in tasks]
    done = total - sum(map(len, left))
    until = None if minutes is None else time.monotonic() + 60 * minutes

    def work(number: int) -> list[Row]:
        if until is not None and time.monotonic() > until:
            return []
        group = left[number]
        found = _measured(group, limits[group[0].case.paper], results)
        return [_completed(task, row) for task, row in found]

    numbers = [number for number, group in enumerate(left) if group]
    for number, rows in side_by_side(numbers, jobs, work):
        for row in rows:
            results.add(row)
            done += 1
            if progress is not None:
                case = left[number][0].case
                progress(f"{case.key} {case.x(row['point'])}", done, total)
    wrong = [row for row in results if row["state"] == WRONG]
    if wrong:
        raise WrongAnswers(
            f"{len(wrong)} rows with wrong answers in {path}: {wrong[0]['case']}, "
            f"{wrong[0]['series']}: {wrong[0]['reason']}"
        )
    return results


def _chosen(papers: Sequence[Paper], only: Sequence[str]) -> list[tuple[Paper, Case]]:
    cases = [(paper, case) for paper in papers for case in paper.cases]
    names = {name for paper, case in cases for name in (paper.id, case.key)}
    unknown = sorted(set(only) - names)
    if unknown:
        raise MatchwoodError(
            f"expected papers or cases, as be_tree or be_tree/5a, found {', '.join(unknown)}: "
            "`matchwood bench list` names them"
        )
    return [(p, c) for p, c in cases if not only or p.id in only or c.key in only]


def _tasks(
    case: Case, point: int, preset: str, limits: Limits, seed: int | None
) -> Iterator[_Task]:
    for series in case.series:
        workload, whole = None, 0
        if case.workload:
            workload, whole = case.at(point, series, preset, limits, seed)
        contender = Contender(series, case.config(point, series, preset, limits))
        what = {
            "series": dataclasses.asdict(series),
            "config": contender.config,
            "workload": workload and {"name": workload.name, **workload.parameters()},
            "limits": dataclasses.asdict(limits),
            "runner": case.runner,
            "scale": case.scale.get(preset),
        }
        if case.runner == "context":
            what["warm_up"] = WARM_UP
        yield _Task(case, point, contender, workload, whole, definition(what))


def _missing(results: Results, task: _Task) -> bool:
    row = results.done(task.case.key, task.point, task.contender.series.id, task.definition)
    return row is None


def _measured(
    tasks: Sequence[_Task], limits: Limits, results: Results
) -> Iterator[tuple[_Task, Row]]:
    """The rows of one point, workload by workload."""
    groups: dict[str, list[_Task]] = {}
    for task in tasks:
        key = str(task.workload and task.workload.parameters())
        groups.setdefault(key, []).append(task)
    for group in groups.values():
        began = time.monotonic()
        rows = list(_measured_group(group, limits, results))
        each = (time.monotonic() - began) / max(1, len(rows))
        for task, row in rows:
            yield task, {**row, "wall_seconds": round(each, 3)}


def _measured_group(
    group: Sequence[_Task], limits: Limits, results: Results
) -> Iterator[tuple[_Task, Row]]:
    task = group[0]
    if task.workload is not None and task.workload.n_subscriptions > limits.most:
        n = task.workload.n_subscriptions
        reason = f"{n:,} subscriptions; this preset tries up to {limits.most:,}"
        for each in group:
            yield each, _refused(TOO_LARGE, reason)
        return
    if task.case.runner == "index":
        yield from _index_rows(group, limits)
        return
    expected: str | None = None
    for each in group:
        row = _alone(each, limits)
        if row["state"] == MEASURED and not row.get("reason") and row["answers"]:
            expected = expected or _known_answers(results, each) or row["answers"]
            if row["answers"] != expected:
                row |= {"state": WRONG, "reason": "other answers than the first of this point"}
        yield each, row


def _known_answers(results: Results, task: _Task) -> str | None:
    """Answers of a series that was measured at this point before, on the same workload."""
    for series in task.case.series:
        row = results.find(task.case.key, task.point, series.id)
        if row and row["state"] == MEASURED and not row.get("reason"):
            same = task.workload is None or row["parameters"] == _json(task.workload)
            if same and row["answers"] and series.id != task.contender.series.id:
                return str(row["answers"])
    return None


def _index_rows(group: Sequence[_Task], limits: Limits) -> list[tuple[_Task, Row]]:
    workload = group[0].workload
    assert workload is not None
    try:
        arena = index_rows.load(workload, limits)
    except (MatchwoodError, MemoryError) as error:
        return [(each, _refused("workload", str(error) or "out of memory")) for each in group]
    tasks = {id(each.contender): each for each in group}
    rows: list[tuple[_Task, Row]] = []
    index_rows.measure(
        [each.contender for each in group],
        arena,
        limits,
        lambda contender, row: rows.append((tasks[id(contender)], row)),
    )
    return rows


def _alone(task: _Task, limits: Limits) -> Row:
    """A row that needs nothing from others."""
    runner, contender, workload = task.case.runner, task.contender, task.workload

    def steps() -> Iterator[Any]:
        if runner == "stabbing":
            n = max(1_000, round(100_000 * limits.scale))
            return other_rows.stabbing(contender, n, limits)
        assert workload is not None
        if runner == "external":
            return external_rows.steps(contender, given, limits)
        if runner == "sharing":
            return other_rows.sharing(contender, workload, limits)
        if runner == "transition":
            return other_rows.transition(contender, replaced, limits)
        return context_rows.steps(contender, workload, limits, burst=runner == "burst")

    try:
        if runner in ("context", "burst"):
            context_rows.warm_up(contender)
        if runner == "external" and workload is not None:
            given = external_rows.conditions(workload)
        if runner == "transition" and workload is not None:
            replaced = other_rows.load_transition(contender, workload)
        child = Child(steps, limits.megabytes)
    except MatchwoodError as error:
        return _refused("refused", str(error))
    try:
        # A filter on a stream stops by itself at the cap and tells what it has done by then.
        row: Row = child.step(limits.row_seconds * (3 if runner in ("context", "burst") else 1))
        return {"state": MEASURED, **row}
    except Refused as refused:
        return _refused(refused.label, refused.reason)
    except WrongAnswers as error:
        return {"state": WRONG, "label": "wrong", "reason": str(error), "times": []}
    finally:
        child.close()


def _refused(label: str, reason: str) -> Row:
    return {"state": REFUSED, "label": label, "reason": reason, "times": [], "metrics": {}}


def _json(workload: Workload) -> dict[str, Any]:
    """Parameters as they are read back from a file."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in workload.parameters().items()}


def _completed(task: _Task, row: Row) -> Row:
    workload = task.workload
    return {
        "case": task.case.key,
        "point": task.point,
        "x": task.case.x(task.point),
        "series": task.contender.series.id,
        "definition": task.definition,
        "config": task.contender.config,
        "workload": task.case.workload,
        "parameters": None if workload is None else _json(workload),
        "paper_subscriptions": task.whole,
        **row,
    }
