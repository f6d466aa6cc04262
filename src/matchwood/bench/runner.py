"""Runner: every case of a preset, from the generator to the times.

Indexes of a case are timed in turn, pass by pass, the first one changing: noise of the machine then
falls on all alike.  Nothing is timed before every answer of the case is checked.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.bench.answers import fingerprint
from matchwood.bench.contender import Contender, arena_of
from matchwood.bench.null import Null
from matchwood.bench.report import Report
from matchwood.bench.results import CaseResult
from matchwood.bench.suite import Case, IndexSpec, Preset, Suite, find_suite
from matchwood.bench.surroundings import circumstances
from matchwood.encode.expression_kernels import ALWAYS, CONJUNCTION, NEVER, TREE
from matchwood.encode.expressions import ExpressionTable
from matchwood.errors import MatchwoodError
from matchwood.index.core.protocol import Index
from matchwood.index.core.registry import find_index
from matchwood.workload.loading import CHUNK, Loaded, load_events, load_subscriptions
from matchwood.workload.stopwatch import Stopwatch

FORMAT = 1
"""Version of the result file."""

Progress = Callable[[str, int, int], None]


def run_suite(
    suite: str | Suite,
    preset: str,
    out: Path | None = None,
    progress: Progress | None = None,
    only_indexes: Sequence[str] | None = None,
    seed: int | None = None,
    extra_indexes: Mapping[str, type[Index]] | None = None,
) -> Report:
    """See `matchwood.bench.run_suite`."""
    started = datetime.now(UTC)
    found = suite if isinstance(suite, Suite) else find_suite(suite)
    chosen = found.preset(preset)
    only = tuple(only_indexes or ())
    rows = [found.rows(preset, case, only) for case in chosen.cases]
    classes = _classes(found, rows, only, extra_indexes or {})
    steps = _Steps(progress, sum(map(_n_steps, chosen.cases, rows, [chosen] * len(rows))))
    cases = [
        _run_case(case, specs, chosen, seed, classes, steps)
        for case, specs in zip(chosen.cases, rows, strict=True)
    ]
    report = Report(
        {
            "format": FORMAT,
            "suite": found.name,
            "description": found.description,
            "preset": preset,
            "arguments": {
                "suite": suite if isinstance(suite, str) else found.name,
                "preset": preset,
                "index": list(only),
                "seed": seed,
            },
            "definition": dataclasses.asdict(chosen),
            **circumstances(started),
            "seconds": (datetime.now(UTC) - started).total_seconds(),
            "cases": [dataclasses.asdict(case) for case in cases],
        }
    )
    report.write(out)
    return report


class _Steps:
    """Tells the caller how far the run is."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, what: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(what, min(self._done, self._total), self._total)


def _n_steps(case: Case, specs: Sequence[IndexSpec], preset: Preset) -> int:
    chunks = -(-case.generator().n_subscriptions // CHUNK)
    return chunks + 1 + len(specs) * (1 + preset.repetitions)


def _classes(
    suite: Suite,
    rows: Sequence[Sequence[IndexSpec]],
    only: Sequence[str],
    extra: Mapping[str, type[Index]],
) -> dict[str, type[Index]]:
    """The class of every index that will run: an unknown name is an error before hours of work."""
    known = {name for each in suite.indexes for name in (each.label, each.index)}
    unknown = sorted(set(only) - known)
    if unknown or not any(rows):
        raise MatchwoodError(
            f"suite {suite.name!r}: expected indexes among {', '.join(sorted(known))}, "
            f"found {', '.join(unknown) or 'none of them in this preset'}"
        )
    given: dict[str, Any] = {"null": Null, **extra}
    names = {spec.index for specs in rows for spec in specs}
    return {name: given[name] if name in given else find_index(name) for name in sorted(names)}


def _run_case(
    case: Case,
    specs: Sequence[IndexSpec],
    preset: Preset,
    seed: int | None,
    classes: Mapping[str, type[Index]],
    steps: _Steps,
) -> CaseResult:
    workload = case.generator(seed)
    prefix = f"{case.label}: " if case.label else ""
    watch = Stopwatch()
    with watch.phase("warm up"):
        load_subscriptions(workload, last=100)

    def loaded_chunk(done: int, total: int) -> None:
        steps(f"{prefix}loaded {done:,} of {total:,} subscriptions")

    loaded = load_subscriptions(workload, watch, loaded_chunk)
    events = load_events(workload, loaded.attributes, watch)
    n_checked = min(preset.checked_events or events.n_events, events.n_events)
    arena = arena_of(case.label, loaded, events, n_checked)
    steps(f"{prefix}answers of scan for {n_checked:,} events")
    contenders = [Contender(spec, classes[spec.index], arena) for spec in specs]
    for each in contenders:
        each.prepare(will_delete=preset.delete > 0)
        steps(f"{prefix}built and checked {each.spec.label}")
    _time([each for each in contenders if each.takes_part], preset, steps, prefix)
    return CaseResult(
        label=case.label,
        workload=case.workload,
        parameters=workload.parameters(),
        subscriptions=_counts(loaded),
        n_predicates=len(loaded.table.predicates),
        table_bytes=loaded.table.nbytes,
        n_events=events.n_events,
        n_entries=len(events.attr),
        seconds=watch.seconds,
        compile_seconds=watch.compiling,
        answers={
            "sha256": fingerprint(arena.expected),
            "matches": len(arena.expected),
            "events": n_checked,
        },
        indexes=[each.result for each in contenders],
    )


def _time(contenders: list[Contender], preset: Preset, steps: _Steps, prefix: str) -> None:
    """Timed passes in turn, then deletions."""
    gc.collect()
    gc.disable()
    try:
        for number in range(preset.repetitions):
            turn = number % max(1, len(contenders))
            for each in contenders[turn:] + contenders[:turn]:
                if sum(each.result.times) < preset.seconds:
                    each.run_pass()
                else:
                    each.result.note = f"{len(each.result.times)} passes in {preset.seconds:g} s"
                steps(f"{prefix}pass {number + 1} of {preset.repetitions}: {each.spec.label}")
        if preset.delete:
            for each in contenders:
                each.run_deletes(preset.delete)
    finally:
        gc.enable()


def _counts(loaded: Loaded) -> dict[str, int]:
    table: ExpressionTable = loaded.table
    names = {"conjunctions": CONJUNCTION, "trees": TREE, "always_true": ALWAYS, "never_true": NEVER}
    counts = {name: int(np.sum(table.layout.kind == kind)) for name, kind in names.items()}
    indexed = counts["conjunctions"] + counts["trees"]
    return {"total": sum(counts.values()), "indexed": indexed, **counts}
