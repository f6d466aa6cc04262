"""Rows of filters on messages and context updates: one process and one fresh filter each.

As in the paper: the filter is built, deescalated, warmed up with messages and their updates, then
measured.  A time is that of a message and of the updates before it.  A burst gives a curve: the
throughput of every part of the messages.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.bench.answers import pairs
from matchwood.bench.context_arena import Filter, Stream, warm_up_stream
from matchwood.bench.papers.cases import Limits
from matchwood.bench.papers.index_rows import Contender
from matchwood.errors import MatchwoodError
from matchwood.workload import Workload
from matchwood.workload.context import Context

PARTS = 50
"""Points of the curve of a burst: the paper's batches of 100 of 5,000 messages."""


def steps(contender: Contender, workload: Workload, limits: Limits, burst: bool) -> Iterator[Any]:
    """Inside the process: one row."""
    if not isinstance(workload, Context):
        raise MatchwoodError(f"expected the workload 'context', found {workload.name!r}")
    filter_ = Filter(contender.series.index, dict(contender.config), workload)
    stream = Stream(workload, filter_.attributes, filter_.store)
    if not burst:
        warm_up_stream(filter_, stream, workload)
    n = workload.n_events
    n_parts = min(PARTS, n) if burst else limits.repetitions
    ends = np.linspace(0, n, n_parts + 1).astype(int)
    before = filter_.index.work.copy()
    updating = filter_.update_seconds
    digest, parts, work = hashlib.sha256(), [], np.zeros(5, np.int64)
    deadline = time.monotonic() + limits.row_seconds
    for first, last in pairwise(ends.tolist()):
        if time.monotonic() > deadline:
            break  # the rest of the messages has no number; what there is tells how slow it was
        seconds, hits = filter_.run(stream.stretch(first, last))
        parts.append((last, sum(seconds) / len(seconds)))
        for each in hits:
            work += each.counters
            digest.update(pairs(each, 1).astype("<i8").tobytes())
    done = (filter_.index.work - before).tolist()
    events = max(1, int(work[0]))
    per_event = float(np.mean([each for _, each in parts]))
    per_update = (filter_.update_seconds - updating) / events
    row = {
        "n_events": events,
        "build_seconds": filter_.build_seconds,
        "answers": digest.hexdigest(),
        "times": [each for _, each in parts],
        "counters": {
            **dict(zip(("events", "nodes", "candidates", "predicates", "matches"),
                       work.tolist(), strict=True)),
            "index_updates": done[0], "deescalations": done[1],
            "updates": done[2], "false_positives": done[3],
        },
        "metrics": {
            "us_per_event": per_event * 1e6,
            "throughput": 1 / max(per_event, 1e-12),
            "mean_throughput": 1 / max(per_event, 1e-12),
            "update_us_per_event": per_update * 1e6,
            "search_us_per_event": (per_event - per_update) * 1e6,
            "index_updates_per_event": done[0] / events,
            "candidates_per_event": float(work[2]) / events,
            "updates_per_event": done[2] / events,
            "build_seconds": filter_.build_seconds,
            "megabytes": filter_.index.stats()["bytes"] / 1e6,
        },
    }  # fmt: skip
    if burst:
        row["curve"] = {"x": [at for at, _ in parts], "throughput": [1 / each for _, each in parts]}
    if len(parts) < n_parts:
        row["reason"] = f"time cap: {parts[-1][0]:,} of {n:,} messages"
    yield row


def warm_up(contender: Contender) -> None:
    """Use every kernel of a filter once in the parent."""
    tiny = Context(n_subscriptions=300, n_events=6, updates_per_profile=3000.0)
    filter_ = Filter(contender.series.index, dict(contender.config), tiny)
    filter_.run(Stream(tiny, filter_.attributes, filter_.store).stretch(0, 6))
