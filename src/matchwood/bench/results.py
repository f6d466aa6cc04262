"""Results: what was measured, raw; `metrics` says what follows from it.

Times are kept one by one and as they were: a later reader may want another average.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REFERENCE, AGREES, UNCHECKED, SKIPPED = "reference", "agree", "unchecked", "skipped"
"""What is known about an index's answers."""

SCAN = "scan"


@dataclass
class IndexResult:
    """One index in one case; times in seconds."""

    label: str
    index: str
    config: Mapping[str, Any]
    build: str
    answers: str = UNCHECKED
    note: str = ""
    compile_seconds: float = 0.0
    build_seconds: float | None = None
    bytes: int | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    n_events: int = 0
    times: list[float] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    n_deleted: int = 0
    delete_seconds: float | None = None


@dataclass
class CaseResult:
    """One workload and all indexes on it."""

    label: str
    workload: str
    parameters: Mapping[str, Any]
    subscriptions: dict[str, int]
    n_predicates: int
    table_bytes: int
    n_events: int
    n_entries: int
    seconds: Mapping[str, float]
    compile_seconds: float
    answers: dict[str, Any]
    indexes: list[IndexResult] = field(default_factory=list)


def metrics(row: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, float | None]:
    """What the table shows of one index, from the raw numbers of a result file."""
    median = _median(row)
    scan = next((_median(each) for each in case["indexes"] if each["index"] == SCAN), None)
    work = row["counters"]
    events = work.get("events") or 0
    per_event = {
        f"{name}_per_event": work[name] / events if events else None
        for name in ("nodes", "candidates", "predicates", "matches")
        if name in work
    }
    times = row["times"]
    matches = work.get("matches")
    return {
        "us_per_event": None if median is None else median * 1e6,
        "spread": (max(times) - min(times)) / statistics.median(times) if times else None,
        "times_faster_than_scan": scan / median if scan and median else None,
        **per_event,
        "candidates_per_match": work["candidates"] / matches if matches else None,
        "build_seconds": row["build_seconds"],
        "megabytes": None if row["bytes"] is None else row["bytes"] / 1e6,
        "bytes_per_subscription": _ratio(row["bytes"], case["subscriptions"]["indexed"]),
        "compile_seconds": row["compile_seconds"],
        "deletes_per_second": _ratio(row["n_deleted"], row["delete_seconds"]),
    }


def _median(row: Mapping[str, Any]) -> float | None:
    """Seconds per event, the median of all passes."""
    if not row["times"] or not row["n_events"]:
        return None
    return float(statistics.median(row["times"]) / row["n_events"])


def _ratio(count: float | None, of: float | None) -> float | None:
    return count / of if count is not None and of else None
