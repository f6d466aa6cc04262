"""Runner of suites with messages and context updates in one stream.

Cases that differ only in their updates run one after the other on the same filters, in the order of
the suite, and the values walk on.  A case begins with a warm-up of 500 messages and the updates
between them, as in the paper, or fewer when these are very many.  Indexes are built once, fully
deescalated.

A time is CPU time of one message and the updates before it: the stream is one thread without
waiting, and a shared machine then disturbs it least.  Every filter's answers to every message must
be those of the first filter of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.bench.answers import check, fingerprint, pairs
from matchwood.bench.context_arena import Filter, Stream, Stretch
from matchwood.bench.results import AGREES, REFERENCE, CaseResult, IndexResult
from matchwood.bench.suite import Case, IndexSpec
from matchwood.context.agile_kernels import NO_INDEX
from matchwood.errors import MatchwoodError
from matchwood.kernel.jit import compile_seconds
from matchwood.workload.context import Context

CHUNKS = 4
"""Times of a case are kept in so many parts."""

WARM_UP, WARM_UP_MESSAGES = 8, 500
"""Most updates a profile, and most messages (the paper's 500), before a case is timed."""

_AT_ONCE = 20

_WALKS_ON = {"updates_per_profile", "delta", "indexed_share", "burst", "n_events"}
"""Parameters that may differ between cases that share their filters."""


def run_cases(
    cases: Sequence[Case],
    rows: Sequence[Sequence[IndexSpec]],
    seed: int | None,
    steps: Callable[[str], None],
) -> list[CaseResult]:
    """All cases of a preset, in groups that share their filters."""
    workloads = [_context(case, seed) for case in cases]
    _compile([spec for row in rows for spec in row])
    results: list[CaseResult] = []
    first = 0
    while first < len(cases):
        last = first + 1
        while last < len(cases) and _profiles(workloads[last]) == _profiles(workloads[first]):
            last += 1
        results += _Group(cases[first:last], workloads[first:last], rows[first:last], steps).run()
        first = last
    return results


def _compile(specs: Sequence[IndexSpec]) -> None:
    """Use every kernel once, so that no time holds its compiling."""
    tiny = Context(n_subscriptions=300, n_events=6, updates_per_profile=3000.0)
    settings = {(spec.index, spec.config.get("merge", "count")) for spec in specs}
    for index, merge in sorted(settings):
        always = {"policy": "always"} if index == "agile" else {}
        filter_ = Filter(index, {"merge": merge, **always}, tiny)
        filter_.run(Stream(tiny, filter_.attributes, filter_.store).stretch(0, 6))


def _context(case: Case, seed: int | None) -> Context:
    workload = case.generator(seed)
    if not isinstance(workload, Context):
        raise MatchwoodError(f"expected the workload 'context', found {case.workload!r}")
    return workload


def _profiles(workload: Context) -> dict[str, Any]:
    return {k: v for k, v in workload.parameters().items() if k not in _WALKS_ON}


class _Group:
    """Cases on the same profiles: filter by filter, each through all of them."""

    def __init__(
        self,
        cases: Sequence[Case],
        workloads: Sequence[Context],
        rows: Sequence[Sequence[IndexSpec]],
        steps: Callable[[str], None],
    ) -> None:
        self._cases, self._workloads, self._rows, self._steps = cases, workloads, rows, steps
        self._expected: list[list[np.ndarray] | None] = [None] * len(cases)
        self._sizes: dict[str, Any] = {}

    def run(self) -> list[CaseResult]:
        found: list[list[IndexResult]] = [[] for _ in self._cases]
        specs = {spec.label: spec for row in self._rows for spec in row}
        for spec in specs.values():
            self._run_filter(spec, found)
        return [self._result(i, each) for i, each in enumerate(found)]

    def _run_filter(self, spec: IndexSpec, found: list[list[IndexResult]]) -> None:
        compiled = compile_seconds()
        filter_ = Filter(spec.index, dict(spec.config), self._workloads[0])
        self._note_sizes(filter_)
        stream = Stream(self._workloads[0], filter_.attributes, filter_.store)
        for i, workload in enumerate(self._workloads):
            stream.turn_to(workload)
            warm_up_stream(filter_, stream, workload)
            stretches = _stretches(stream, workload)
            if spec not in self._rows[i]:
                for stretch in stretches:  # the values walk on, for the cases after this one
                    for update in stretch.updates:
                        filter_.warm_up(update)
                continue
            result = IndexResult(spec.label, spec.index, spec.config, "bulk")
            result.build_seconds = filter_.build_seconds
            self._time(i, filter_, stretches, result)
            result.compile_seconds = compile_seconds() - compiled
            compiled = compile_seconds()
            found[i].append(result)
            self._steps(f"{self._cases[i].label}: {spec.label}")

    def _time(self, i: int, filter_: Filter, stretches: list[Stretch], result: IndexResult) -> None:
        before = filter_.index.work.copy()
        answers: list[np.ndarray] = []
        counters = np.zeros(5, np.int64)
        for number, stretch in enumerate(stretches):
            if number == 1:  # the first one was to warm up
                before = filter_.index.work.copy()
            seconds, hits = filter_.run(stretch)
            answers += [pairs(each, 1) for each in hits]
            if number:
                result.times.append(sum(seconds))
                result.n_events = len(seconds)
                counters += sum((each.counters for each in hits), np.zeros(5, np.int64))
        self._check(i, answers, result)
        done = (filter_.index.work - before).tolist()
        names = ("events", "nodes", "candidates", "predicates", "matches")
        result.counters = dict(zip(names, counters.tolist(), strict=True))
        result.counters["index_updates"], result.counters["deescalations"] = done[0], done[1]
        result.counters["updates"], result.counters["false_positives"] = done[2], done[3]
        result.bytes = filter_.index.stats()["bytes"]
        if self._workloads[i].burst:
            rates = [f"{result.n_events / each:,.0f}" for each in result.times]
            result.note = f"messages a second, part by part: {' '.join(rates)}"

    def _check(self, i: int, answers: list[np.ndarray], result: IndexResult) -> None:
        expected = self._expected[i]
        if expected is None:
            self._expected[i] = answers
            result.answers = REFERENCE
            return
        for message, (found, right) in enumerate(zip(answers, expected, strict=True)):
            check(result.label, f"{self._cases[i].label}, message {message}", found, right)
        result.answers = AGREES

    def _note_sizes(self, filter_: Filter) -> None:
        self._sizes = {
            "n_predicates": len(filter_.table.predicates),
            "table_bytes": filter_.table.nbytes + filter_.store.nbytes,
        }

    def _result(self, i: int, rows: list[IndexResult]) -> CaseResult:
        workload, answers = self._workloads[i], self._expected[i] or []
        n = workload.n_subscriptions
        return CaseResult(
            label=self._cases[i].label,
            workload=self._cases[i].workload,
            parameters=workload.parameters(),
            subscriptions={"total": n, "indexed": n},
            n_events=workload.n_events,
            n_entries=workload.n_events * len(workload.names),
            seconds={},
            compile_seconds=0.0,
            answers={
                "events": len(answers),
                "matches": sum(map(len, answers)),
                "sha256": fingerprint(np.concatenate(answers)) if answers else "",
            },
            indexes=rows,
            **self._sizes,
        )


def warm_up_stream(filter_: Filter, stream: Stream, workload: Context) -> None:
    """Messages and their updates, after those of the case; no message where there is no index."""
    if workload.burst:
        return
    first = workload.n_events
    before, after = workload.updates_before(first)
    most = int(WARM_UP * workload.n_subscriptions / max(1, after - before))
    last = first + max(2, min(WARM_UP_MESSAGES, most))
    for at in range(first, last, _AT_ONCE):
        stretch = stream.stretch(at, min(at + _AT_ONCE, last))
        if filter_.index.mode != NO_INDEX:
            filter_.run(stretch)
            continue
        for update in stretch.updates:
            filter_.store.write(*update)


def _stretches(stream: Stream, workload: Context) -> list[Stretch]:
    """A sixth of the messages to warm up, the rest in equal parts; a burst in parts of 250."""
    n = workload.n_events
    if workload.burst:
        ends = [0, *range(250, n + 1, 250)]
    else:
        ends = [0, *np.linspace(n // 6, n, CHUNKS + 1).astype(int).tolist()]
    return [stream.stretch(a, b) for a, b in pairwise(ends) if b > a]
